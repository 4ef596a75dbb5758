"""The arithmetic of ranking: parts, their weights, BM25, normalization, combination and the order of the result.

Pure functions over arrays; nothing here knows where a number came from. What is promised: every part can be switched
off by a weight of 0; a part on which all candidates are equal contributes nothing; the order is the same for the same
candidates, whatever order they came in; and scores lie between 0 and 1, comparable between searches: the best one's
says how well it matches in itself, the others lie below it by as much as their parts do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.numbers import checked_real
from holdfast.errors import InvalidInput

FloatArray = NDArray[np.float32]
HalfArray = NDArray[np.float16]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Long texts repeat a word for more reasons than that they are about it, so counts saturate early; and in a short
# message a second word is no dilution, so length is held against a text less than BM25 usually does.
BM25_K1 = 1.2
BM25_B = 0.6
# Where half of the attainable weight of words is reached: more matches add less and less.
SATURATION = 25.0
# The BM25 score of a match as good as a cosine of one half.
FAIR_MATCH = 8.0
# How many of the nearest an approximate search asks its index for, at least.
NEAREST_DEPTH = 150
# Scores closer than this are equal: the last bits of a sum of floats must not decide an order.
SCORE_DIGITS = 6


class Part(StrEnum):
    """What a score is made of. The values are the names that an explanation shows."""

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
# The parts of meaning and of words: the record's own first, then those of what is around it.
MEANING = (Part.VECTOR, Part.WINDOW_VECTOR, Part.SESSION_VECTOR)
MATCHING = (Part.WORDS, Part.WINDOW_WORDS, Part.SESSION_WORDS)
MEANING_AT, MATCHING_AT = ([PARTS.index(part) for part in arm] for arm in (MEANING, MATCHING))
AROUND_AT = MEANING_AT[1:] + MATCHING_AT[1:]

# The weights are for messages of this mean length, in terms. Longer texts say more themselves and need what is around
# them less: half as much where they are longer by the sum of both.
MESSAGE_TERMS, ENOUGH_TERMS = 30.0, 100.0
# Longer texts are embedded in pieces of about so many terms: no vector says less than one of such a piece.
PIECE_TERMS = 150.0
# As many words that no other record holds are a good match; the weights of words are for one.
GOOD_TERMS, LEAST_MATCH = 3.0, 0.05
# So many of the best by their own meaning, and by their own words, lead: a first page.
LEADERS = 10
# Where one person speaks, or nobody does, no more than this share of their weight is left to window and session.
ALONE = 0.7
# Neighbours are alike from here on: by how much of the way from any two records' cosine to 1 their own cosine lies.
ALIKE = 0.2
# How far vectors are trusted that are averages of token vectors, and any in a script without spaces: most models know
# it as single characters, which the words hold better.
STATIC_TRUST, SPACELESS_TRUST = 0.6, 0.02


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts; 0 switches it off. What they add up to does not matter.

    vector         the record's text is near the query in meaning
    window_vector  the record with what was said just before and after it is
    session_vector what is nearest in its conversation is
    words          the record holds the query's words
    window_words   so does that window
    session_words  so does its conversation
    speaker        it was said by a participant whom the query names
    time           the query asks for a time, and the record holds one
    statement      the record is not merely a question
    date           it was said at the date that the query names
    own_words      the query is in the first person, and the record is the user's own

    `lead` is not a part: as much of window and session is credited to the record that leads by its own meaning or words
    alone, if they match less; and what stands apart from its window is not judged by it (see `uphold`). 0 switches both
    off.

    `adaptive` weights follow what the records are like and how well the words match (see `effective` and
    `effective_lead`); others hold as they are.
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
                raise InvalidInput(part, f"a weight is 0 or more, not {self.of(part)}")
        if not 0 <= checked_real(self.lead, "lead") <= 1:
            raise InvalidInput("lead", f"is from 0 to 1, not {self.lead}")

    @classmethod
    def plain(cls, vector: float = 0.7, words: float = 0.3) -> Weights:
        """The hybrid of meaning and words alone."""
        off = {part.value: 0.0 for part in PARTS}
        return cls(**{**off, Part.VECTOR.value: vector, Part.WORDS.value: words}, lead=0.0, adaptive=False)

    def without(self, *parts: Part) -> Weights:
        kept = {part.value: 0.0 if part in parts else self.of(part) for part in PARTS}
        return Weights(**kept, lead=self.lead, adaptive=self.adaptive)

    def of(self, part: Part) -> float:
        value: float = getattr(self, part.value)
        return value


def bm25_idf(frequency: FloatArray, documents: int) -> FloatArray:
    """How much a term says, by how few of the documents hold it. Never negative."""
    return np.log1p((documents - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)


def bm25(counts: FloatArray, idf: FloatArray, lengths: FloatArray, mean_length: float) -> FloatArray:
    """Scores of documents: `counts` has a row per term and a column per document."""
    slope = np.float32(BM25_K1 * BM25_B / max(mean_length, 1.0))
    norm = np.float32(BM25_K1 * (1 - BM25_B)) + slope * lengths
    shares = (counts / (counts + norm)).astype(np.float32, copy=False)
    return weighed(idf * np.float32(BM25_K1 + 1), shares)


def weighed(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """The weighted sum of rows. Unlike a matrix product, its value never depends on where a column lies."""
    sums: FloatArray = np.einsum("i,ij->j", weights, rows)
    return sums


def saturated(scores: FloatArray, half: float = SATURATION) -> FloatArray:
    """Map 0.. to 0..1, so that a text full of the query's words does not drown every other part."""
    return scores / (scores + np.float32(half))


def unsaturated(share: float, half: float = SATURATION) -> float:
    """The score that `saturated` maps to this."""
    return half * share / max(1 - share, 1e-6)


def words_match(best: float, records: int) -> float:
    """How well words match the best of so many records, by its (saturated) score: 1 if well, 2 at most.

    Scaled to the best alone, one common word would count as much as the whole query. Measured in what a word can say
    among so many records, so that it holds for ten as for thousands. Never 0: an explanation shows words that were
    looked for and not found.
    """
    score = unsaturated(best)
    good = GOOD_TERMS * float(bm25_idf(np.ones(1, np.float32), records)[0])
    return max(2 * score / (score + good), LEAST_MATCH)


def normalized(scores: FloatArray, low: FloatArray | None = None, high: FloatArray | None = None) -> FloatArray:
    """Scale each row to 0..1 over the candidates, so that parts with different units can be weighed together.

    Where the scores are those of some candidates alone, `low` and `high` are the bounds over all.
    """
    least = scores.min(axis=-1, keepdims=True) if low is None else low[:, None]
    spread = (scores.max(axis=-1, keepdims=True) if high is None else high[:, None]) - least
    # Equal scores carry no information: they must not outvote a part that does.
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    even: FloatArray = (scores - least) * scale
    return even


def leading(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Which lead, and how far: 1 for the best, a tenth less for each place after it.

    Equals share the last of their places, so that where many are the best, none leads.
    """
    among = min(LEADERS + 1, len(scores))
    least = np.partition(scores, len(scores) - among)[len(scores) - among]
    rows = np.flatnonzero((scores >= least - 10.0**-SCORE_DIGITS) & (scores > 0))
    keys = np.round(scores[rows], SCORE_DIGITS)
    places = len(keys) - 1 - np.searchsorted(np.sort(keys), keys, "left")
    return rows, np.maximum(1 - places / LEADERS, 0).astype(np.float32)


def uphold(even: FloatArray, weights: FloatArray, lead: float, apart: FloatArray) -> None:
    """Raise, in place, what is around a row to match at least as far as the row leads, or stands apart and matches.

    A remark in a conversation about something else has nothing around it that matches; were it not for this, any row
    amid a weak match of the other kind would pass it. Vectors that count less than words uphold less, too.
    """
    # A part on which all are equal says nothing, of these rows neither.
    around = [at for at in AROUND_AT if weights[at] and even[at].any()]
    if apart.any():
        for at in around:
            own = VECTOR_AT if at in MEANING_AT else WORDS_AT
            even[at] = np.maximum(even[at], apart * even[own])
    meaning, matching = float(weights[MEANING_AT].sum()), float(weights[MATCHING_AT].sum())
    trust = min(meaning / matching, 1.0) if matching else 1.0
    for arm, share in ((VECTOR_AT, trust), (WORDS_AT, 1.0)):
        rows, led = leading(even[arm])
        for at in around:
            even[at, rows] = np.maximum(even[at, rows], np.float32(lead * share) * led)


def best_first(scores: FloatArray, numbers: IntArray, limit: int) -> IntArray:
    """Indices of the `limit` best. Equal scores come in the order in which their records were made."""
    keys = np.round(scores, SCORE_DIGITS)
    if limit < len(keys):
        # All that tie with the last place compete for it.
        threshold = np.partition(keys, len(keys) - limit)[len(keys) - limit]
        among = np.flatnonzero(keys >= threshold)
    else:
        among = np.arange(len(keys))
    order = np.lexsort((numbers[among], -keys[among]))
    return among[order[:limit]]


def rank_of(index: int, scores: FloatArray, numbers: IntArray) -> int:
    """The place of one candidate, from 1, in the order of `best_first`."""
    keys = np.round(scores, SCORE_DIGITS)
    ahead = (keys > keys[index]) | ((keys == keys[index]) & (numbers < numbers[index]))
    return int(np.count_nonzero(ahead)) + 1


def window_cosines(cosines: FloatArray, count: FloatArray, products: FloatArray) -> FloatArray:
    """Cosines of the query with means of vectors, without making the means.

    `cosines` are the sums of the members' cosines with the query, `count` how many members there are, and `products`
    the sums of the members' products with each other, each pair once.
    """
    lengths = np.sqrt(np.maximum(count + np.float32(2) * products, np.float32(1e-6)))
    return (cosines / lengths).astype(np.float32, copy=False)


def apart(products: FloatArray, count: FloatArray, usual: FloatArray, around: FloatArray, square: float) -> FloatArray:
    """How far records have nothing to do with their neighbours: 1 if no more than with any other, 0 if they are alike.

    `products` are the sums of a record's cosines with its neighbours and `count` how many these are; `usual` is its
    product with the mean of all vectors, `around` the sum of its neighbours', and `square` the mean's with itself.
    Without the mean, which all vectors of a kind share, records would be as near to one another as their embedder has
    everything. Who has no neighbours stands apart from none.
    """
    likeness = products - count * usual - around + count * np.float32(square)
    scale = np.maximum(count * np.float32(ALIKE * max(1 - square, 1e-6)), np.float32(1e-6))
    return np.where(count > 0, np.clip(1 - likeness / scale, 0, 1), 0).astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True)
class Traits:
    """What a search meets: the records that it sees, the query's script, what made the vectors, and how words match."""

    people: int = 0
    assistant: bool = False
    mean_length: float = 0.0
    spaceless: bool = False
    static_vectors: bool = False
    words_match: float = 1.0


def effective(weights: Weights, traits: Traits) -> FloatArray:
    """The weights, in the order of `PARTS`, that hold for a search like this."""
    given = {part: weights.of(part) for part in PARTS}
    if weights.adaptive:
        _leave_out(given, traits)
        _fit_to_need(given, traits)
        _trust(given, MEANING, _vector_trust(traits))
        _trust(given, MATCHING, traits.words_match)
    return np.array([given[part] for part in PARTS], np.float32)


def effective_lead(weights: Weights, traits: Traits) -> float:
    """How far who leads is upheld in a search like this.

    People who talk to each other mostly keep to what they talk about. What is told to an assistant, or noted down, is
    more often told in passing, amid something else: there, `lead` counts as its fourth root.
    """
    return weights.lead**0.25 if weights.adaptive and traits.people < 2 else weights.lead


def _leave_out(given: dict[Part, float], traits: Traits) -> None:
    if traits.people < 2 or traits.assistant:
        # To an assistant, the user's question often is the evidence.
        given[Part.STATEMENT] = 0.0
    if not traits.assistant:
        given[Part.OWN_WORDS] = 0.0


def _fit_to_need(given: dict[Part, float], traits: Traits) -> None:
    """A message between people needs its neighbours to be understood; a long text, or one's own, needs them less."""
    needed = min(_like_a_message(traits.mean_length), 1.0 if traits.people > 1 else ALONE)
    for own, *around in (MEANING, MATCHING):
        for part in around:
            if given[own]:
                given[own] += given[part] * (1 - needed)
            given[part] *= needed


def _like_a_message(terms: float) -> float:
    """1 for texts as short as messages, and the less the longer they are."""
    return min((ENOUGH_TERMS + MESSAGE_TERMS) / (ENOUGH_TERMS + terms), 1.0)


def _vector_trust(traits: Traits) -> float:
    """The more one vector has to say, the less it says of each thing; an average loses more than a model does."""
    if traits.spaceless:
        return SPACELESS_TRUST
    clear = _like_a_message(min(traits.mean_length, PIECE_TERMS))
    return float(STATIC_TRUST * clear if traits.static_vectors else clear**0.5)


def _trust(given: dict[Part, float], parts: tuple[Part, ...], factor: float) -> None:
    for part in parts:
        given[part] *= factor


@dataclass(frozen=True, slots=True)
class Combined:
    """Scores, the weights that make them up, and `base`, which all candidates have in common."""

    scores: FloatArray
    weights: FloatArray
    base: float


def combined(raw: FloatArray, even: FloatArray, weights: FloatArray) -> Combined:
    """Weigh the normalized parts, and scale so that the best one's score is how well it matches in itself.

    Both the scale and the base are the same for all candidates: they do not touch the order.
    """
    total = float(weights.sum()) or 1.0
    sums = weighed(weights, even)
    best = int(np.argmax(sums))
    scale = match(float(raw[VECTOR_AT, best]), float(raw[WORDS_AT, best]))
    base = scale * (1 - float(sums[best]) / total)
    weights = weights * np.float32(scale / total)
    return Combined(weighed(weights, even) + np.float32(base), weights, base)


def match(cosine: float, words: float) -> float:
    """How well one record matches, between 0 and 1, by its meaning or by its (saturated) words."""
    bm25_score = unsaturated(words)
    return min(max(cosine, bm25_score / (bm25_score + FAIR_MATCH), 0.0), 1.0)
