"""Text analysis for search: terms, flags, and the pieces to embed.

Terms depend on the word, never on the language of the text around it, so that a query and a record always agree: words
are folded (case, compatibility forms, Latin accents) and stemmed by the rules of their script's most common language;
scripts without spaces become single characters and bigrams; code identifiers give the whole and its parts. Accepts any
Unicode, in linear time.
"""

from __future__ import annotations

import re
import struct
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import Stemmer

from holdfast.ports import TERM_BYTES, Analysis, TextFlag
from holdfast.search.word_lists import CLITICS_AFTER, CLITICS_BEFORE, TIME_WORDS

ANALYZER_VERSION = 1
PIECE_CHARS = 900
MAX_WORD_CHARS = 64
MAX_COUNT = 65_535
# Of each cache. Hostile words have a hundred terms each: only ordinary ones are cached.
_CACHED_WORDS = 50_000
_MAX_CACHED_CHARS, _MAX_CACHED_TERMS = 32, 8

# Vowel signs and other marks inside words, which Python does not count as letters.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u0f18-\u0fff\u1000-\u109f\u1780-\u17d3\u200c\u200d\u3099\u309a"
)
_LETTER = rf"[\w{_MARKS}]"
_ASCII_WORD = re.compile(r"\w+(?:[.']\w+)*", re.ASCII)
_WORD = re.compile(rf"{_LETTER}+(?:[.'’]{_LETTER}+)*")
# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer: no spaces between words, or words too long to match as a whole.
_SPACELESS_CLASS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_SPACELESS = re.compile(f"[{_SPACELESS_CLASS}]")
_RUN = re.compile(f"[{_SPACELESS_CLASS}]+|[^{_SPACELESS_CLASS}]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATOR = re.compile(r"[._'’]+")
_APOSTROPHE = re.compile(r"['’]")
_CYRILLIC = re.compile("[\u0400-\u052f]")
_LATIN_MARK = re.compile("[\u0300-\u036f]")
_BOUNDARY = re.compile(r"\n+|(?<=[.!?…])\s+|(?<=[。！？])")
_SENTENCE_END = re.compile(r"[.!。！…\n]+(?=\s|$)|[。！\n]|[?？؟]+")
_YEAR_OR_CLOCK = re.compile(r"(?<!\d)(?:(?:19|20)\d\d|\d{1,2}[:：]\d\d)(?!\d)")
_CJK_TIME = re.compile(
    "昨天|今天|明天|前天|后天|上周|下周|本周|上个月|下个月|去年|今年|明年|星期|礼拜|周[一二三四五六日末天]"
    "|[0-9一二三四五六七八九十两几半](?:个)?(?:年|月|号|日|点|时|時|小时|分钟|天|周|週|월|년|일)"
    "|昨日|今日|明日|先週|来週|先月|来月|去年|来年|어제|오늘|내일|지난|다음 ?주|요일"
)
_QUESTION_MARKS = ("?", "？", "؟")
_EXCLAMATION_WORDS = 4


@lru_cache(maxsize=_CACHED_WORDS)
def term_hash(term: str) -> int:
    """The stable 64-bit hash under which a term is stored."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")


class TextAnalyzer:
    """Implements `ports.Analyzer`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._english = Stemmer.Stemmer("english")
        self._russian = Stemmer.Stemmer("russian")
        # A stemmer has internal state: two threads would mix their words.
        self._stemming = threading.Lock()
        self._known: dict[str, tuple[int, ...]] = {}

    @property
    def version(self) -> int:
        return ANALYZER_VERSION

    def analyze(self, text: str) -> Analysis:
        words = split_words(text)
        counts: dict[int, int] = {}
        for word in words:
            for term in self.terms_of(word):
                counts[term] = counts.get(term, 0) + 1
        flags = _flags(text, words)
        pieces = (text,) if len(text) <= PIECE_CHARS else tuple(split_pieces(text))
        return Analysis(pack_terms(counts), sum(counts.values()), flags, pieces)

    def terms_of(self, word: str) -> tuple[int, ...]:
        """The terms of one word; several for a code identifier or a script without spaces."""
        terms = self._known.get(word)
        if terms is None:
            terms = tuple(term_hash(term) for term in self._split(word))
            if len(self._known) >= _CACHED_WORDS:
                self._known.clear()
            if len(word) <= _MAX_CACHED_CHARS and len(terms) <= _MAX_CACHED_TERMS:
                self._known[word] = terms
        return terms

    def query_terms_of(self, word: str) -> tuple[int, ...]:
        """The terms of a query word: in scripts without spaces only bigrams, if there are any."""
        if word.isascii() or not _SPACELESS.search(word):
            return self.terms_of(word)
        terms = []
        for run in _RUN.findall(word):
            terms += list(_pairs(run)) or [run] if _SPACELESS.match(run) else list(self._split(run))
        return tuple(term_hash(term) for term in terms)

    def _split(self, word: str) -> Iterator[str]:
        if not word.isascii() and _SPACELESS.search(word):
            for run in _RUN.findall(word):
                if _SPACELESS.match(run):
                    yield from run
                    yield from _pairs(run)
                else:
                    yield from self._split(run)
        elif word.isalnum() and (word.islower() or word[1:].islower() or word.isupper()):
            yield self._fold_and_stem(word)
        else:
            yield from self._parts(word)

    def _parts(self, word: str) -> Iterator[str]:
        """Split `os.path`, `snake_case`, `camelCase` or `Anna's`: the whole, if it is an identifier, and its parts."""
        if _APOSTROPHE.search(word):
            for part in _without_clitics(_APOSTROPHE.split(word)):
                yield from self._split(part)
            return
        parts = [part for part in _SEPARATOR.split(word) if part]
        if len(word) <= MAX_WORD_CHARS:
            parts = [hump for part in parts for hump in _HUMP.split(part)]
            if len(parts) > 1:
                yield word.casefold()
        if len(parts) == 1 or not all(part.isdigit() for part in parts):
            yield from (self._fold_and_stem(part) for part in parts)

    def _fold_and_stem(self, word: str) -> str:
        word = word[:MAX_WORD_CHARS].casefold()
        if _CYRILLIC.search(word):
            return self._stem(self._russian, word).replace("ё", "е")
        if not word.isascii():
            word = unicodedata.normalize("NFC", _LATIN_MARK.sub("", unicodedata.normalize("NFD", word)))
        return self._stem(self._english, word) if word.isascii() else word

    def _stem(self, stemmer: Any, word: str) -> str:
        with self._stemming:
            return str(stemmer.stemWord(word))


def split_words(text: str) -> list[str]:
    """Split into words as written, in order."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def is_spaceless(text: str) -> bool:
    """True if most letters belong to a script without spaces between words."""
    return not text.isascii() and 2 * len(_SPACELESS.findall(text)) > sum(map(str.isalpha, text))


def _pairs(run: str) -> Iterator[str]:
    return (run[start : start + 2] for start in range(len(run) - 1))


def _without_clitics(parts: list[str]) -> list[str]:
    """Drop clitics: `Anna's` becomes Anna, `l'homme` homme; `O'Brien` keeps both parts."""
    left = [part for part in parts[:-1] if part and part.casefold() not in CLITICS_BEFORE]
    if parts[-1] and (not left or parts[-1].casefold() not in CLITICS_AFTER):
        left.append(parts[-1])
    return left


def _flags(text: str, words: Iterable[str]) -> TextFlag:
    flags = TextFlag.NONE
    if len(text) > PIECE_CHARS:
        flags |= TextFlag.LONG
    if (
        not TIME_WORDS.isdisjoint(words)
        or _YEAR_OR_CLOCK.search(text)
        or (not text.isascii() and _CJK_TIME.search(text))
    ):
        flags |= TextFlag.TIME_EXPRESSION
    if len(text) <= PIECE_CHARS and text.rstrip()[-1:] in _QUESTION_MARKS:
        flags |= TextFlag.ENDS_ASKING
        if _is_only_questions(text):
            flags |= TextFlag.QUESTION_ONLY
    return flags


def _is_only_questions(text: str) -> bool:
    """True if the text contains only questions, and perhaps an exclamation ("Wow, great!")."""
    start, stated = 0, 0
    for end in _SENTENCE_END.finditer(text):
        if end.group()[0] not in _QUESTION_MARKS:
            stated += _weight_of(text[start : end.start()])
        start = end.end()
    return stated <= _EXCLAMATION_WORDS


def _weight_of(sentence: str) -> int:
    return len(sentence.split()) if sentence.isascii() else max(len(sentence.split()), len(sentence) // 2)


def split_pieces(text: str) -> Iterator[str]:
    """Split into pieces of at most `PIECE_CHARS`, at the end of a line or sentence if possible, else of a word."""
    start, last = 0, 0
    for end in (*(match.end() for match in _BOUNDARY.finditer(text)), len(text)):
        while end - start > PIECE_CHARS:
            at = last if last - start >= PIECE_CHARS // 3 else _word_end(text, start)
            if piece := text[start:at].strip():
                yield piece
            start = at
        last = end
    if piece := text[start:].strip():
        yield piece


def _word_end(text: str, start: int) -> int:
    limit = start + PIECE_CHARS
    space = text.rfind(" ", start + PIECE_CHARS // 2, limit)
    return space + 1 if space >= 0 else limit


def pack_terms(counts: Mapping[int, int]) -> bytes:
    """Pack term hashes (u64, little-endian), then their counts (u16), for storage with a record."""
    size = len(counts)
    capped = [count if count < MAX_COUNT else MAX_COUNT for count in counts.values()]
    return struct.pack(f"<{size}Q{size}H", *counts.keys(), *capped)


def unpack_terms(packed: bytes) -> dict[int, int]:
    size = len(packed) // TERM_BYTES
    values = struct.unpack(f"<{size}Q{size}H", packed)
    return dict(zip(values[:size], values[size:], strict=True))
