"""The arithmetic of ranking: parts, their weights, BM25, normalization, combination and the order of the result.

Pure functions over arrays; nothing here knows where a number came from. What is promised: every part can be switched
off by a weight of 0; a part on which all candidates are equal contributes nothing; scores lie between 0 and 1; and the
order is the same for the same candidates, whatever order they came in.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Long texts repeat a word for more reasons than that they are about it, so counts saturate early; and in a short
# message a second word is no dilution, so length is held against a text less than BM25 usually does.
BM25_K1 = 1.2
BM25_B = 0.6
# Where half of the attainable weight of words is reached: more matches add less and less.
SATURATION = 25.0
# Scores closer than this are equal: the last bits of a sum of floats must not decide an order.
SCORE_DIGITS = 6


class Part(StrEnum):
    """What a score is made of. The values are the names that an explanation shows."""

    VECTOR = "vector"
    WINDOW_VECTOR = "window_vector"
    WORDS = "words"
    WINDOW_WORDS = "window_words"
    SESSION_WORDS = "session_words"
    SPEAKER = "speaker"
    TIME = "time"
    STATEMENT = "statement"
    DATE = "date"
    OWN_WORDS = "own_words"


PARTS = tuple(Part)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts; 0 switches it off. What they add up to does not matter.

    vector         the record's text is near the query in meaning
    window_vector  the record with what was said just before and after it is
    words          the record holds the query's words
    window_words   so does that window
    session_words  so does its conversation
    speaker        it was said by a participant whom the query names
    time           the query asks for a time, and the record holds one
    statement      the record is not merely a question
    date           it was said at the date that the query names
    own_words      the query is in the first person, and the record is the user's own
    """

    vector: float = 0.60
    window_vector: float = 0.25
    words: float = 0.15
    window_words: float = 0.25
    session_words: float = 0.15
    speaker: float = 0.35
    time: float = 0.15
    statement: float = 0.15
    date: float = 0.60
    own_words: float = 0.25

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: a weight is 0 or more")

    @classmethod
    def plain(cls, vector: float = 0.7, words: float = 0.3) -> Weights:
        """The hybrid of meaning and words alone."""
        off = {part.value: 0.0 for part in PARTS}
        return cls(**{**off, Part.VECTOR: vector, Part.WORDS: words})

    def without(self, *parts: Part) -> Weights:
        return replace(self, **{part.value: 0.0 for part in parts})

    def of(self, part: Part) -> float:
        value: float = getattr(self, part.value)
        return value


def bm25_idf(frequency: FloatArray, documents: int) -> FloatArray:
    """How much a term says, by how few of the documents hold it. Never negative."""
    return np.log1p((documents - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)


def bm25(counts: FloatArray, idf: FloatArray, lengths: FloatArray, mean_length: float) -> FloatArray:
    """Scores of documents: `counts` has a row per term and a column per document."""
    norm = BM25_K1 * (1 - BM25_B) + (BM25_K1 * BM25_B / max(mean_length, 1.0)) * lengths
    scores: FloatArray = (idf * (BM25_K1 + 1)) @ (counts / (counts + norm))
    return scores


def saturated(scores: FloatArray, half: float = SATURATION) -> FloatArray:
    """Map 0.. to 0..1, so that a text full of the query's words does not drown every other part."""
    return scores / (scores + np.float32(half))


def normalized(scores: FloatArray) -> FloatArray:
    """Scale each row to 0..1 over the candidates, so that parts with different units can be weighed together."""
    low = scores.min(axis=-1, keepdims=True)
    spread = scores.max(axis=-1, keepdims=True) - low
    # Equal scores carry no information: they must not outvote a part that does.
    return np.where(spread > 1e-9, (scores - low) / np.where(spread > 1e-9, spread, 1), 0).astype(np.float32)


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
    return cosines / np.sqrt(np.maximum(count + 2 * products, np.float32(1e-6)))


@dataclass(frozen=True, slots=True)
class Traits:
    """What the records that a search sees are like; the parts that mean nothing for such records are left out."""

    people: int = 0
    assistant: bool = False
    mean_length: float = 0.0


def effective(weights: Weights, traits: Traits) -> FloatArray:
    """The weights, in the order of `PARTS`, that hold for records like these."""
    off: set[Part] = set()
    if traits.people < 2 or traits.assistant:
        # With an assistant, the user's question often is the evidence.
        off |= {Part.STATEMENT}
    if not traits.assistant:
        off |= {Part.OWN_WORDS}
    return np.array([0.0 if part in off else weights.of(part) for part in PARTS], np.float32)


def combined(even: FloatArray, weights: FloatArray) -> FloatArray:
    scores: FloatArray = weights @ even
    return scores


def strength(raw: FloatArray) -> float:
    return 1.0
