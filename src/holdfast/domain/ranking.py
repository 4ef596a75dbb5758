"""The arithmetic of ranking: parts, their weights, BM25, normalization, combination and the order of the result.

Pure functions over arrays. Guarantees: a weight of 0 switches a part off; a part on which all candidates are equal
contributes nothing; the order does not depend on the order of the input; scores lie between 0 and 1 and are comparable
between searches: the best score says how well that record matches by itself, the others lie below it by the difference
of their parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.checks import checked_real
from holdfast.errors import InvalidInput

FloatArray = NDArray[np.float32]
HalfArray = NDArray[np.float16]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Long texts repeat words that they are not about, so counts saturate early. In a short message more words are no
# dilution, so length is penalized less than usual in BM25.
BM25_K1 = 1.2
BM25_B = 0.6
# The BM25 score that maps to one half: more matches add less and less.
SATURATION = 25.0
# The BM25 score that is as good as a cosine of one half.
FAIR_MATCH = 8.0
# The least number of neighbours that an approximate search asks its index for.
NEAREST_DEPTH = 150
# Scores closer than this are equal: the last bits of a sum of floats must not decide an order.
SCORE_DIGITS = 6


class Part(StrEnum):
    """A part of a score. The values are the names that an explanation shows."""

    VECTOR = "vector"
    WINDOW_VECTOR = "window_vector"
    SESSION_VECTOR = "session_vector"
    WORDS = "words"
    WINDOW_WORDS = "window_words"
    SESSION_WORDS = "session_words"
    SPEAKER = "speaker"
    TIME = "time"
    STATEMENT = "statement"
    DATE = "date"
    OWN_WORDS = "own_words"


PARTS = tuple(Part)
PART_NAMES = tuple(part.value for part in PARTS)
VECTOR_AT, WORDS_AT = PARTS.index(Part.VECTOR), PARTS.index(Part.WORDS)
# The parts of meaning and of words: the record's own first, then those of its context.
MEANING = (Part.VECTOR, Part.WINDOW_VECTOR, Part.SESSION_VECTOR)
MATCHING = (Part.WORDS, Part.WINDOW_WORDS, Part.SESSION_WORDS)
MEANING_AT, MATCHING_AT = ([PARTS.index(part) for part in arm] for arm in (MEANING, MATCHING))
AROUND_AT = MEANING_AT[1:] + MATCHING_AT[1:]

# The weights are for messages of this mean length, in terms. Longer texts need their context less: half as much if
# they are longer by the sum of both.
MESSAGE_TERMS, ENOUGH_TERMS = 30.0, 100.0
# Longer texts are embedded in pieces of about so many terms, which bounds how vague a vector can be.
PIECE_TERMS = 150.0
# So many words that no other record holds are a good match, for which the weights of words are set.
GOOD_TERMS, LEAST_MATCH = 3.0, 0.05
# The number of leaders: the best by their own meaning, and the best by their own words. A first page.
LEADERS = 10
# With at most one speaker, window and session keep at most this share of their weight.
ALONE = 0.7
# Neighbours are alike if their cosine lies at least this fraction of the way from the average cosine to 1.
ALIKE = 0.2
# Trust in vectors that are averages of token vectors, and in any vectors of a script without spaces: most models know
# it as single characters, which word matching handles better.
STATIC_TRUST, SPACELESS_TRUST = 0.6, 0.02


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each part; 0 switches it off. Their sum does not matter.

    vector         the record's text is near the query in meaning
    window_vector  the record with its neighbours is near the query
    session_vector the nearest record of its conversation is near the query
    words          the record holds the query's words
    window_words   the record with its neighbours does
    session_words  its conversation does
    speaker        the query names the speaker of the record
    time           the query asks for a time, and the record holds one
    statement      the record is not merely a question
    date           the record was said at the date that the query names
    own_words      the query is in the first person, and the record is the user's own

    `lead` is not a part. It is the least score of window and session for a record that leads by its own meaning or
    words; and a record unlike its neighbours is not judged by them (see `floor_context_scores`). 0 switches both off.

    `adaptive` weights are adjusted to the records and to how well the words match (see
    `effective_weights` and `effective_lead`); others are used as they are.
    """

    vector: float = 0.50
    window_vector: float = 0.40
    session_vector: float = 0.10
    words: float = 0.15
    window_words: float = 0.25
    session_words: float = 0.30
    speaker: float = 0.35
    time: float = 0.30
    statement: float = 0.30
    date: float = 0.50
    own_words: float = 0.15
    lead: float = 0.75
    adaptive: bool = True

    def __post_init__(self) -> None:
        for part in PARTS:
            checked_real(self.of(part), part)
            if self.of(part) < 0:
                raise InvalidInput(part, f"must be 0 or more, not {self.of(part)}")
        if not 0 <= checked_real(self.lead, "lead") <= 1:
            raise InvalidInput("lead", f"must be from 0 to 1, not {self.lead}")

    @classmethod
    def plain(cls, vector: float = 0.7, words: float = 0.3) -> Weights:
        """Return weights of a plain hybrid: meaning and words only."""
        off = {part.value: 0.0 for part in PARTS}
        return cls(**{**off, Part.VECTOR.value: vector, Part.WORDS.value: words}, lead=0.0, adaptive=False)

    def without(self, *parts: Part) -> Weights:
        """Return the same weights with these parts switched off."""
        weights = {part.value: 0.0 if part in parts else self.of(part) for part in PARTS}
        return Weights(**weights, lead=self.lead, adaptive=self.adaptive)

    def of(self, part: Part) -> float:
        """Return the weight of a part."""
        value: float = getattr(self, part.value)
        return value


def bm25_idf(frequency: FloatArray, documents: int) -> FloatArray:
    """Return the inverse document frequency of terms. Never negative."""
    return np.log1p((documents - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)


def bm25(counts: FloatArray, idf: FloatArray, lengths: FloatArray, mean_length: float) -> FloatArray:
    """Score documents: `counts` has a row per term and a column per document."""
    slope = np.float32(BM25_K1 * BM25_B / max(mean_length, 1.0))
    norm = np.float32(BM25_K1 * (1 - BM25_B)) + slope * lengths
    shares = (counts / (counts + norm)).astype(np.float32, copy=False)
    return weighted_sum(idf * np.float32(BM25_K1 + 1), shares)


def weighted_sum(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the weighted sum of rows. Unlike a matrix product, it never depends on the position of a column."""
    sums: FloatArray = np.einsum("i,ij->j", weights, rows)
    return sums


def saturate(scores: FloatArray, half: float = SATURATION) -> FloatArray:
    """Map scores from 0 up to 0..1, so that a text full of the query's words does not drown every other part."""
    return scores / (scores + np.float32(half))


def unsaturate(share: float, half: float = SATURATION) -> float:
    """Invert `saturate`."""
    return half * share / max(1 - share, 1e-6)


def words_match(best: float, records: int) -> float:
    """Rate how well words match the best of so many records, by its (saturated) score: 1 if well, 2 at most.

    Normalized to the best alone, one common word would count as much as the whole query. Measured in the idf of a rare
    word, so that it holds for ten records as for thousands. Never 0: an explanation shows words that were not found.
    """
    score = unsaturate(best)
    good = GOOD_TERMS * float(bm25_idf(np.ones(1, np.float32), records)[0])
    return max(2 * score / (score + good), LEAST_MATCH)


def normalize_rows(scores: FloatArray, low: FloatArray | None = None, high: FloatArray | None = None) -> FloatArray:
    """Scale each row to 0..1 over the candidates, so that parts with different units can be weighed together.

    If the scores are of some candidates only, `low` and `high` are the bounds over all.
    """
    least = scores.min(axis=-1, keepdims=True) if low is None else low[:, None]
    spread = (scores.max(axis=-1, keepdims=True) if high is None else high[:, None]) - least
    # Equal scores carry no information: they must not outvote a part that does.
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    even: FloatArray = (scores - least) * scale
    return even


def find_leaders(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the leading rows and their lead: 1 for the best, a tenth less for each place after it.

    Ties share the last of their places, so that none leads if many are the best.
    """
    among = min(LEADERS + 1, len(scores))
    least = np.partition(scores, len(scores) - among)[len(scores) - among]
    rows = np.flatnonzero((scores >= least - 10.0**-SCORE_DIGITS) & (scores > 0))
    keys = np.round(scores[rows], SCORE_DIGITS)
    places = len(keys) - 1 - np.searchsorted(np.sort(keys), keys, "left")
    return rows, np.maximum(1 - places / LEADERS, 0).astype(np.float32)


def floor_context_scores(even: FloatArray, weights: FloatArray, lead: float, apart: FloatArray) -> None:
    """Floor a row's context scores, in place, by its own score if it leads or is unlike its neighbours.

    A remark in a conversation about something else has no matching context; without this, any row in a weakly matching
    context would outrank it. Vectors that count less than words raise the floor less, too.
    """
    # A part on which all rows are equal must stay without effect.
    around = [at for at in AROUND_AT if weights[at] and even[at].any()]
    if apart.any():
        for at in around:
            own = VECTOR_AT if at in MEANING_AT else WORDS_AT
            even[at] = np.maximum(even[at], apart * even[own])
    meaning, matching = float(weights[MEANING_AT].sum()), float(weights[MATCHING_AT].sum())
    trust = min(meaning / matching, 1.0) if matching else 1.0
    for arm, share in ((VECTOR_AT, trust), (WORDS_AT, 1.0)):
        rows, led = find_leaders(even[arm])
        for at in around:
            even[at, rows] = np.maximum(even[at, rows], np.float32(lead * share) * led)


def best_first(scores: FloatArray, numbers: IntArray, limit: int) -> IntArray:
    """Return the indices of the `limit` best. Ties are in the order in which the records were made."""
    keys = np.round(scores, SCORE_DIGITS)
    if limit < len(keys):
        # Include all that tie with the last place.
        threshold = np.partition(keys, len(keys) - limit)[len(keys) - limit]
        among = np.flatnonzero(keys >= threshold)
    else:
        among = np.arange(len(keys))
    order = np.lexsort((numbers[among], -keys[among]))
    return among[order[:limit]]


def rank_of(index: int, scores: FloatArray, numbers: IntArray) -> int:
    """Return the rank of one candidate, from 1, in the order of `best_first`."""
    keys = np.round(scores, SCORE_DIGITS)
    ahead = (keys > keys[index]) | ((keys == keys[index]) & (numbers < numbers[index]))
    return int(np.count_nonzero(ahead)) + 1


def window_cosines(cosines: FloatArray, count: FloatArray, products: FloatArray) -> FloatArray:
    """Compute cosines of the query with means of vectors, without building the means.

    `cosines` are the sums of the members' cosines with the query, `count` the number of members, and `products` the
    sums of the members' products with each other, each pair once.
    """
    lengths = np.sqrt(np.maximum(count + np.float32(2) * products, np.float32(1e-6)))
    return (cosines / lengths).astype(np.float32, copy=False)


def context_unlikeness(
    products: FloatArray, count: FloatArray, usual: FloatArray, around: FloatArray, square: float
) -> FloatArray:
    """Rate how unlike their neighbours records are: 1 if no more alike than any two records, 0 if alike.

    `products` are the sums of a record's cosines with its neighbours and `count` their number; `usual` is its product
    with the mean of all vectors, `around` the sum of its neighbours', and `square` the mean's with itself. The mean is
    subtracted because all vectors of an embedder share it. A record without neighbours gets 0.
    """
    likeness = products - count * usual - around + count * np.float32(square)
    scale = np.maximum(count * np.float32(ALIKE * max(1 - square, 1e-6)), np.float32(1e-6))
    return np.where(count > 0, np.clip(1 - likeness / scale, 0, 1), 0).astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a search: its records, the query's script, the kind of vectors, and how well words match."""

    people: int = 0
    assistant: bool = False
    mean_length: float = 0.0
    spaceless: bool = False
    static_vectors: bool = False
    words_match: float = 1.0


def effective_weights(weights: Weights, traits: Traits) -> FloatArray:
    """Return the weights for a search with these traits, in the order of `PARTS`."""
    adjusted = {part: weights.of(part) for part in PARTS}
    if weights.adaptive:
        _drop_unsuited_parts(adjusted, traits)
        _shift_from_context(adjusted, traits)
        _scale_weights(adjusted, MEANING, _vector_trust(traits))
        _scale_weights(adjusted, MATCHING, traits.words_match)
    return np.array([adjusted[part] for part in PARTS], np.float32)


def effective_lead(weights: Weights, traits: Traits) -> float:
    """Return `lead` for a search with these traits.

    People who talk to each other mostly keep to a topic. Facts told to an assistant, or noted down, are more often
    mentioned in passing: there, `lead` counts as its fourth root.
    """
    return weights.lead**0.25 if weights.adaptive and traits.people < 2 else weights.lead


def _drop_unsuited_parts(weights: dict[Part, float], traits: Traits) -> None:
    if traits.people < 2 or traits.assistant:
        # In talk with an assistant, the user's question often is the evidence.
        weights[Part.STATEMENT] = 0.0
    if not traits.assistant:
        weights[Part.OWN_WORDS] = 0.0


def _shift_from_context(weights: dict[Part, float], traits: Traits) -> None:
    """Move weight from the context to the record: long texts, and those of one speaker, need their context less."""
    needed = min(_message_likeness(traits.mean_length), 1.0 if traits.people > 1 else ALONE)
    for own, *around in (MEANING, MATCHING):
        for part in around:
            if weights[own]:
                weights[own] += weights[part] * (1 - needed)
            weights[part] *= needed


def _message_likeness(terms: float) -> float:
    """Return 1 for texts as short as messages, and less for longer ones."""
    return min((ENOUGH_TERMS + MESSAGE_TERMS) / (ENOUGH_TERMS + terms), 1.0)


def _vector_trust(traits: Traits) -> float:
    """Return the trust in vectors. Longer texts make vaguer vectors; averages lose more than a model does."""
    if traits.spaceless:
        return SPACELESS_TRUST
    clear = _message_likeness(min(traits.mean_length, PIECE_TERMS))
    return float(STATIC_TRUST * clear if traits.static_vectors else clear**0.5)


def _scale_weights(weights: dict[Part, float], parts: tuple[Part, ...], factor: float) -> None:
    for part in parts:
        weights[part] *= factor


@dataclass(frozen=True, slots=True)
class CombinedScores:
    """Scores, the weights behind them, and `base`, which all candidates have in common."""

    scores: FloatArray
    weights: FloatArray
    base: float


def combine_scores(raw: FloatArray, even: FloatArray, weights: FloatArray) -> CombinedScores:
    """Weigh the normalized parts, and scale so that the best score is how well that record matches by itself.

    Scale and base are the same for all candidates, so they do not affect the order.
    """
    total = float(weights.sum()) or 1.0
    sums = weighted_sum(weights, even)
    best = int(np.argmax(sums))
    scale = match_score(float(raw[VECTOR_AT, best]), float(raw[WORDS_AT, best]))
    base = scale * (1 - float(sums[best]) / total)
    weights = weights * np.float32(scale / total)
    return CombinedScores(weighted_sum(weights, even) + np.float32(base), weights, base)


def match_score(cosine: float, words: float) -> float:
    """Rate the match of one record, between 0 and 1, by its meaning or by its (saturated) words."""
    bm25_score = unsaturate(words)
    return min(max(cosine, bm25_score / (bm25_score + FAIR_MATCH), 0.0), 1.0)
