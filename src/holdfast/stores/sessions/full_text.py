"""Text for the full-text index, and queries that contain words only, whatever signs are in them.

Scripts without spaces are indexed by the character, and queried by pairs of neighbours, or by single characters if no
pair matches; the index itself folds case, removes accents, and stems English words. Text and queries go through the
same normalization, so that they always agree.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

MAX_ASKED = 64
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
_ONE = re.compile(f"([{_SPACELESS}])")
_RUN = re.compile(f"[{_SPACELESS}]+|[^{_SPACELESS}]+")
# Word separators. Other signs within a word, such as a dot or a hyphen, make it a phrase.
_BETWEEN = re.compile(r"[\s\x00!-&(-,/:-@\[-^`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+")


def index_text(text: str) -> str:
    """Normalize a text for the index."""
    return _ONE.sub(r" \1 ", unicodedata.normalize("NFKC", text).replace("\x00", " "))


def build_queries(query: str, stop_words: Iterable[Collection[str]] = ()) -> tuple[str, ...]:
    """Build index queries for any of the words; try each one only if those before it match nothing.

    Stop words are left out, by the one list that has most of the words, unless there are no others.
    """
    words = list(dict.fromkeys(word for word in _words(query) if any(char.isalnum() for char in word)))
    common = max(stop_words, key=lambda known: sum(word in known for word in words), default=())
    telling = [word for word in words if word not in common] or words
    runs = [run for word in telling for run in _RUN.findall(word)]
    tries = [" OR ".join(_quote_run(run, size) for run in runs[:MAX_ASKED]) for size in (2, 1)]
    return tuple(dict.fromkeys(tried for tried in tries if tried))


def _words(query: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", query).casefold()
    return [word.strip(".'’-_") for word in _BETWEEN.split(folded)]


def _quote_run(run: str, size: int) -> str:
    """Quote a run, so that nothing in it is an operator; a word cannot contain a quote."""
    if not _ONE.match(run):
        return f'"{run}"'
    places = range(max(1, min(len(run), MAX_ASKED) + 1 - size))
    return " OR ".join(f'"{" ".join(run[at : at + size])}"' for at in places)
