"""Texts as the full-text index takes them, and queries that are words alone, whatever signs are in them.

Scripts without spaces are indexed by the character, and asked for by pairs of neighbours, or by single characters where
no pair is found; the index itself folds case, takes accents off, and stems English words. Both ways go through the same
folding, so that they always agree.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

MAX_ASKED = 64
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
_ONE = re.compile(f"([{_SPACELESS}])")
_RUN = re.compile(f"[{_SPACELESS}]+|[^{_SPACELESS}]+")
# Between these a word may end. What is within one, such as a dot or a hyphen, makes it a phrase.
_BETWEEN = re.compile(r"[\s\x00!-&(-,/:-@\[-^`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+")


def indexed(text: str) -> str:
    """The words of a text, as the index is given them."""
    return _ONE.sub(r" \1 ", unicodedata.normalize("NFKC", text).replace("\x00", " "))


def asked(query: str, stop_words: Iterable[Collection[str]] = ()) -> tuple[str, ...]:
    """Queries of the index for any of the words, each to be tried if the ones before found nothing.

    Words that every text has are left out, by the one list that knows most of them, unless there are no others.
    """
    words = list(dict.fromkeys(word for word in _words(query) if any(char.isalnum() for char in word)))
    common = max(stop_words, key=lambda known: sum(word in known for word in words), default=())
    telling = [word for word in words if word not in common] or words
    runs = [run for word in telling for run in _RUN.findall(word)]
    tries = [" OR ".join(_quoted(run, size) for run in runs[:MAX_ASKED]) for size in (2, 1)]
    return tuple(dict.fromkeys(tried for tried in tries if tried))


def _words(query: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", query).casefold()
    return [word.strip(".'’-_") for word in _BETWEEN.split(folded)]


def _quoted(run: str, size: int) -> str:
    """In quotes nothing is an operator; a quote itself cannot be in a word."""
    if not _ONE.match(run):
        return f'"{run}"'
    places = range(max(1, min(len(run), MAX_ASKED) + 1 - size))
    return " OR ".join(f'"{" ".join(run[at : at + size])}"' for at in places)
