"""Scan text for prompt injection: text that is an attack on the agent that reads it.

A curated entry goes into the system prompt, so it is scanned before it is stored, and again before it is shown. The
patterns are in `patterns.py` and `vocabularies.py`; `decoding.py` finds other readings of a text, and this module
brings each into the forms that the patterns match: without disguised letters, and without separators between letters.

A scan is best effort and does not prove that a text is harmless. It blocks known attacks; its measured rate is in
docs/explanation/security.md. Besides, the prompt says that notes are not instructions, and entries cannot leave their
place in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from holdfast.agent.curated.decoding import readings, turned_readings
from holdfast.agent.curated.patterns import (
    HIDES,
    LEAKS,
    LOUD,
    LOUD_LEAK,
    OVERRIDES,
    PERSONA,
    PHRASES,
    POSES,
    PROMPT,
    SHAPES,
    UNSPACED,
)
from holdfast.agent.curated.vocabularies import VOCABULARIES, Vocabulary
from holdfast.domain.lookalikes import LOOSE_TWINS
from holdfast.domain.visible_text import has_hidden, has_unsafe_control

MAX_SCANNED_CHARS = 65_536

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
_MARKS = re.compile("[\u200e\u200f\u061c]")

_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u065f\u0670]")
_APOSTROPHES = re.compile(r"(?<=\w)['’`´](?=\w)")
# A digit or sign stands for a letter where it is next to one. `l` and `i` are one letter here: both are written as 1.
_DISGUISES = str.maketrans("0134578@$!|l€£¢", "oieastbasiiielc")
_DISGUISED = re.compile(r"[^\W\d_][0134578@$!|€£¢]|[0134578@$!|€£¢][^\W\d_]")
_UNSPACED_SCRIPT = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
_CLAUSE_END = re.compile(r"[.!?;:]+(?:\s|$)|[。！？；]|\n")


@lru_cache(maxsize=256)
def threat_in(text: str) -> str:
    """Return why the text must not reach a prompt, as a verb phrase ("tries to …"); empty if no threat was found."""
    # Some characters normalize to many others.
    if len(text) > MAX_SCANNED_CHARS or len(unicodedata.normalize("NFKC", text)) > MAX_SCANNED_CHARS:
        return f"is longer than {MAX_SCANNED_CHARS:,} characters"
    if _has_invisible(text):
        return "holds invisible characters"
    for reading in readings(text):
        if why := _find_threat(reading) or _find_disguised_threat(reading):
            return why
        for turned in turned_readings(reading):
            if why := _find_turned_threat(turned):
                return why
    return ""


def fold_text(text: str) -> str:
    """Remove differences of width, font, case and accent; letters of other scripts stay as they are."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()))
    return unicodedata.normalize("NFC", plain)


def _has_invisible(text: str) -> bool:
    # Marks of direction are common in text from right to left, and have no effect of their own there.
    return has_unsafe_control(text) or has_hidden(_MARKS.sub("", text) if _RIGHT_TO_LEFT.search(text) else text)


def _find_threat(text: str) -> str:
    if re.search(LOUD, unicodedata.normalize("NFKC", text)):
        return POSES
    if re.search(LOUD_LEAK, text):
        return LEAKS
    plain = fold_text(text)
    latin = plain.translate(LOOSE_TWINS)
    for form in dict.fromkeys((plain, latin)):
        if why := _first_match(_tables().shapes, form) or _first_match(_tables().phrases, _words(form)):
            return why
    for form in dict.fromkeys(map(_letters, (plain, latin))):
        if why := _first_match(_tables().run_together, form):
            return why
    return _find_in_vocabulary(plain)


def _find_turned_threat(text: str) -> str:
    """Find a threat by its words alone: what is turned round has lost its shape."""
    latin = fold_text(text).translate(LOOSE_TWINS)
    return (
        _first_match(_tables().phrases, _words(latin))
        or _first_match(_tables().run_together, _letters(latin))
        or _find_in_vocabulary(latin)
        or _find_disguised_threat(text)
    )


def _find_disguised_threat(text: str) -> str:
    """Find a threat in which digits and signs stand for letters."""
    latin = fold_text(text).translate(LOOSE_TWINS)
    if not _DISGUISED.search(latin):
        return ""
    plain = latin.translate(_DISGUISES)
    return _first_match(_tables().disguised, _words(plain)) or _first_match(
        _tables().disguised_together, _letters(plain)
    )


def _find_in_vocabulary(plain: str) -> str:
    """Find a clause that holds a word of each group of a rule, near each other."""
    unspaced = _UNSPACED_SCRIPT.search(plain) is not None
    for clause in _CLAUSE_END.split(plain):
        words = _words(clause)
        # The first letters of its words tell which languages a clause may be in; for most notes, none.
        named = {at for word in words.split() for at in _languages_by_prefix().get(word[:_PREFIX_CHARS], ())}
        for at in sorted(named):
            if why := next((rule.why for rule in _rules()[at] if rule.matches(words)), ""):
                return why
        if unspaced:
            letters = _letters(clause)
            rules = (rule for group in _rules() for rule in group if not rule.spaced)
            if why := next((rule.why for rule in rules if rule.matches(letters)), ""):
                return why
    return ""


def _words(text: str) -> str:
    """Return the words, each followed by one blank. Marks stay: Indian scripts write vowels with them."""
    plain = _APOSTROPHES.sub("", text)
    return " ".join("".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in plain).split()) + " "


def _letters(text: str) -> str:
    return "".join(char for char in text if unicodedata.category(char)[0] in "LM")


# --- pattern tables, compiled on first use ----------------------------------------------------------------------------

Table = tuple[tuple[str, re.Pattern[str]], ...]


def _first_match(table: Table, text: str) -> str:
    return next((why for why, pattern in table if pattern.search(text)), "")


def _compile_tables(*tables: Mapping[str, Sequence[str]], disguised: bool = False) -> Table:
    """Compile patterns for folded text; with `disguised`, for text without `l`."""
    return tuple(
        (why, re.compile(pattern.replace("l", "i") if disguised else pattern, re.MULTILINE))
        for table in tables
        for why, patterns in table.items()
        for pattern in [fold_text("|".join(patterns))]
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """Shapes; phrases; phrases that are recognized without blanks between words; both for disguised letters."""

    shapes: Table
    phrases: Table
    run_together: Table
    disguised: Table
    disguised_together: Table


@cache
def _tables() -> _Tables:
    long = {
        why: [phrase.replace(" ", "").replace(r"\b", "") for phrase in PHRASES[why]]
        for why in (OVERRIDES, PROMPT, PERSONA, HIDES)
    }
    return _Tables(
        _compile_tables(SHAPES),
        _compile_tables(PHRASES),
        _compile_tables(long, UNSPACED),
        _compile_tables(PHRASES, disguised=True),
        _compile_tables(long, disguised=True),
    )


# --- rules of words, by language --------------------------------------------------------------------------------------

_AWAY = "https|, http|, www|, mailto|"
_SPACED_REACH, _UNSPACED_REACH = 60, 24
# No stem of a first group is shorter.
_PREFIX_CHARS = 3


@dataclass(frozen=True, slots=True)
class _Rule:
    """Matches where a word of each group is near a word of the first group."""

    why: str
    groups: tuple[re.Pattern[str], ...]
    spaced: bool

    def matches(self, text: str) -> bool:
        reach = _SPACED_REACH if self.spaced else _UNSPACED_REACH
        first, *others = self.groups
        return any(
            all(other.search(text, max(0, found.start() - reach), found.end() + reach) for other in others)
            for found in first.finditer(text)
        )


@cache
def _rules() -> tuple[tuple[_Rule, ...], ...]:
    """Compile the rules of each language. The first group of a rule is the one with the rarest words."""
    return tuple(
        tuple(
            _Rule(why, tuple(_compile_words(words, language.spaced) for words in groups), language.spaced)
            for why, groups in _word_groups(language)
        )
        for language in VOCABULARIES.values()
    )


@cache
def _languages_by_prefix() -> Mapping[str, Sequence[int]]:
    """Index the spaced languages by how the words of each rule's first group begin."""
    index: dict[str, list[int]] = {}
    for at, language in enumerate(VOCABULARIES.values()):
        firsts = {groups[0] for _, groups in _word_groups(language)} if language.spaced else set()
        for stem in {stem for words in firsts for stem in words.split(", ")}:
            index.setdefault(fold_text(stem).split()[0].rstrip("|")[:_PREFIX_CHARS], []).append(at)
    return index


def _word_groups(words: Vocabulary) -> Iterator[tuple[str, tuple[str, ...]]]:
    rules = (
        (OVERRIDES, (words.orders, words.drop, words.before)),
        (OVERRIDES, (words.orders, words.follow, words.no)),
        (PROMPT, (words.prompt, words.show)),
        (PROMPT, (words.orders, words.show, words.inner)),
        (PERSONA, (words.free, words.you)),
        (LEAKS, (words.keys, words.send, _AWAY if words.spaced else "http, www")),
        (HIDES, (words.user, words.hush)),
        (HIDES, (words.user, words.say, words.no)),
    )
    yield from (rule for rule in rules if all(rule[1]))


def _compile_words(words: str, spaced: bool) -> re.Pattern[str]:
    stems = [re.escape(fold_text(stem)) for stem in words.split(", ")]
    if not spaced:
        return re.compile("|".join(stems))
    # Where a text divides words, a stem begins one; `|` ends it, and a blank stands for up to two words between.
    each = (stem.replace(r"\|", " ").replace(r"\ ", r"[^ ]* (?:[^ ]+ ){0,2}") for stem in stems)
    return re.compile(rf"(?<![^ ])(?:{'|'.join(each)})")
