"""The texts for every system: synthetic, shaped like messages, and the same in every run.

Words come from the vocabulary of the static embedder's tokenizer, which is in rough order of frequency. A text is about
one of many topics and padded with common words, so that terms are as unevenly distributed as in real language, and
vectors form clusters.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WORD_START = "▁"
_TOPICS = 2_000
_TOPIC_WORDS = 24
_SHORTEST_WORD = 4


class Corpus:
    """An endless series of texts from a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._words, self._weights, self._topics = _language()

    def text(self) -> str:
        chance = self._chance
        about = chance.choices(chance.choice(self._topics), k=chance.randint(4, 10))
        common = chance.choices(self._words, cum_weights=self._weights, k=chance.randint(3, 8))
        words = about + common
        chance.shuffle(words)
        return " ".join(words).capitalize() + "."

    def texts(self, count: int) -> list[str]:
        return [self.text() for _ in range(count)]

    def batches(self, count: int, size: int) -> Iterator[list[str]]:
        for start in range(0, count, size):
            yield self.texts(min(size, count - start))

    def queries(self, count: int) -> list[str]:
        """Queries, shorter than a text, each about one topic."""
        return [self._query() for _ in range(count)]

    def _query(self) -> str:
        chance = self._chance
        about = chance.choices(chance.choice(self._topics), k=chance.randint(2, 5))
        return " ".join([*about, *chance.choices(self._words, cum_weights=self._weights, k=2)])


@cache
def _language() -> tuple[list[str], list[float], list[list[str]]]:
    words = _vocabulary()
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    chance = random.Random(1)
    topics = [chance.sample(words, _TOPIC_WORDS) for _ in range(_TOPICS)]
    return words, weights, topics


def _vocabulary() -> list[str]:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise SystemExit("wordllama is not installed: see bench/README.md")
    tokens = Tokenizer.from_file(str(Path(spec.origin).parent / _TOKENIZER)).get_vocab()
    ranked = sorted(
        (rank, token.removeprefix(_WORD_START)) for token, rank in tokens.items() if token[0] == _WORD_START
    )
    return [
        word
        for _, word in ranked
        if len(word) >= _SHORTEST_WORD and word.isascii() and word.isalpha() and word.islower()
    ]
