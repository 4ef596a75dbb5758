"""Replaces the words of texts by invented ones, the same word by the same, so that only their pattern is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
_LEAST_SYLLABLES = 3
# It has no factor in common with the number of syllables, so that every word is made once, and neighbours differ.
_STEP = 98_767
_WORD = re.compile(r"\w+")
# Everything else than words, plain punctuation and spaces is left out: an emoji or an accent would be a trace.
_TOKEN = re.compile(r"\w+|[ \n.,;:!?'\"()/-]")


class Pseudonyms:
    """Invented words for all words of some texts. None of them is among the originals."""

    def __init__(self, texts: Iterable[str]) -> None:
        originals = dict.fromkeys(word for text in texts for word in _words(text))
        invented = (word for word in _invent_words() if word not in originals)
        self._pseudonyms = dict(zip(originals, invented, strict=False))
        self._blank = next(invented)

    def replace(self, text: str) -> str:
        """Return a text with all words replaced; one without a word becomes a single one."""
        shown = "".join(map(self._token, _TOKEN.findall(text))).strip()
        return shown if _WORD.search(shown) else self._blank

    def _token(self, token: str) -> str:
        word = self._pseudonyms.get(token.casefold())
        if word is None:
            return token
        return word.capitalize() if token[0].isupper() else word


def _words(text: str) -> Iterator[str]:
    return (word.casefold() for word in _WORD.findall(text))


def _invent_words() -> Iterator[str]:
    base = len(_SYLLABLES)
    for length in count(_LEAST_SYLLABLES):
        size = base**length
        for number in range(size):
            left = number * _STEP % size
            places = [left // base**place % base for place in range(length)]
            yield "".join(_SYLLABLES[place] for place in places)
