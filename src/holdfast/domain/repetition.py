"""Tell whether two texts say the same, and whether a text is small talk. Pure, and cautious: a doubt means no.

Two texts repeat each other if their content words, numbers, names and negations agree; words that carry nothing ("a
reminder:", "again") do not count. Similarity of meaning is not used: "the demo is on 3 May" is near "the demo is on
5 May", and says something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.domain import plain_words

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# As fast as it gets; marks at its edges are stripped.
_TOKEN = re.compile(r"[\w'’]+")
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# Longer texts are compared by their beginning.
_MOST_CHARS = 2_000
# An assistant's message that restates the user's has most of its content words, and few others.
_ECHO_SHARE = 0.75
_LEAST_ECHO_WORDS = 2
# A change of plan has at least so many words of the plan, and more than this share of them.
_LEAST_REVISED_WORDS, _REVISED_SHARE = 2, 0.75
# Texts are compared if they share the beginnings of so many words of the shorter one: a stem keeps three letters.
_LEAST_SHARED_WORDS = 0.35
_BEGINNING = 3
_KEY = re.compile(r"\w[\w'’]*")
# Longer messages hold more than courtesies.
_MOST_COURTESY_WORDS, _MOST_COURTESY_CHARS = 12, 160
# Marks and brackets that may follow the end of a question.
_SENTENCE_END = re.compile(r"[.!?…;:]\s|[。！？]")
_CLOSING = " \t\n\"'”’»)!.…"


class Statement(NamedTuple):
    """The words of a text that carry its meaning.

    `stems` are its content words without endings, `order` those with negations, directions and persons in their order,
    `names` the names it holds, and `capitals` its capitalized words by stem. A personal one is about its speaker: "I
    live here", said by two people, is two statements.
    """

    speaker: str | None
    stems: tuple[str, ...]
    order: tuple[str, ...]
    numbers: tuple[str, ...]
    names: frozenset[str]
    capitals: frozenset[tuple[str, str]]
    is_negated: bool
    is_personal: bool
    is_past: bool
    announces_change: bool

    def repeats(self, other: Statement) -> bool:
        """True if both say the same."""
        if not self.stems and not self.numbers:
            return False
        return (
            self.order == other.order
            and self._agrees(other)
            and self.is_past == other.is_past
            and self._is_of_same_speaker(other)
            and self._has_same_names(other)
        )

    def echoes(self, other: Statement) -> bool:
        """True if this restates the other with few words of its own: "So you moved to Lisbon! How is it?"."""
        own, others = set(self.stems), set(other.stems)
        if len(others) < _LEAST_ECHO_WORDS or not self._agrees(other):
            return False
        shared = len(own & others)
        added = own - others - _courtesy_stems() - _stems_of((other.speaker or "").split())
        return shared >= _ECHO_SHARE * len(others) and len(added) <= max(2, shared // 2)

    def revises(self, older: Statement) -> bool:
        """True if this announces a change of what the other says: "Change of plan: the demo is on 5 May now".

        Both have the same names and mostly the same words; numbers and dates differ.
        """
        if not self.announces_change or self.names != older.names:
            return False
        own, plan = set(self.stems), set(older.stems)
        times = _time_stems()
        differs = self.numbers != older.numbers or bool((own ^ plan) & times)
        if not differs or own - plan - times - _change_stems():
            return False
        plan -= times | _change_stems()
        shared = len(own & plan)
        return shared >= _LEAST_REVISED_WORDS and shared > _REVISED_SHARE * len(plan)

    def covers(self, other: Statement, share: float) -> bool:
        """True if this has at least that share of the other's words: it may say something else of the same matter."""
        others = set(other.stems)
        return len(others.intersection(self.stems)) >= share * len(others) > 0

    def adds_to(self, other: Statement) -> int:
        """Count the words and numbers of this that the other does not have."""
        return len(set(self.stems) - set(other.stems)) + len(set(self.numbers) - set(other.numbers))

    def _agrees(self, other: Statement) -> bool:
        return self.numbers == other.numbers and self.is_negated == other.is_negated

    def _is_of_same_speaker(self, other: Statement) -> bool:
        if not (self.is_personal or other.is_personal) or None in (self.speaker, other.speaker):
            return True
        return self.speaker == other.speaker

    def _has_same_names(self, other: Statement) -> bool:
        """True if no capitalized word is another one with the same stem, such as Jon and Jones."""
        both = {stem for stem, _ in self.capitals} & {stem for stem, _ in other.capitals}
        return all(pair in other.capitals for pair in self.capitals if pair[0] in both)


def read_statement(text: str, *, speaker: str | None = None) -> Statement:
    """Read a text. The speaker's own name counts as a pronoun: "Ana lives here", said of Ana, is "I live here"."""
    own = speaker.casefold().split() if speaker else ()
    stems: list[str] = []
    order: list[str] = []
    numbers: list[str] = []
    names: set[str] = set()
    capitals: set[tuple[str, str]] = set()
    head = text[:_MOST_CHARS]
    if any(verb in head for verb in plain_words.REMINDING):
        head = plain_words.REMINDERS.sub(" ", head)
    is_negated = not head.isascii() and plain_words.NEGATING_CHARACTERS.search(head) is not None
    is_personal = is_past = False
    announces_change = plain_words.CHANGING_CHARACTERS.search(head) is not None
    for place, word in enumerate(_TOKEN.findall(head)):
        read = _read_word(word)
        if read.is_silent:
            continue
        if read.is_plain:
            if read.folded not in own:
                stems += read.stems
                order += read.stems
            continue
        if read.marks:
            is_negated = is_negated or read.negates
            is_personal = is_personal or read.is_personal
            is_past = is_past or read.is_past
            announces_change = announces_change or read.announces_change
            if read.marker is not None:
                order.append(read.marker)
        if read.is_empty or read.folded in own:
            continue
        if read.is_number:
            numbers.append(read.folded)
            order.append(read.folded)
            continue
        if read.capitals:
            capitals.update(read.capitals)
            if place and not read.is_time:
                names.add(read.folded)
        stems += read.stems
        order += read.stems
    return Statement(
        speaker=None if speaker is None else speaker.casefold(),
        stems=tuple(stems),
        order=tuple(order),
        numbers=tuple(numbers),
        names=frozenset(names),
        capitals=frozenset(capitals),
        is_negated=is_negated,
        is_personal=is_personal,
        is_past=is_past,
        announces_change=announces_change,
    )


class Reading:
    """A text that is read as a statement only when another shares enough of its words to say the same."""

    __slots__ = ("_beginnings", "_speaker", "_statement", "_text")

    def __init__(self, text: str, speaker: str | None = None) -> None:
        self._text, self._speaker = text, speaker
        self._statement: Statement | None = None
        head = text[:_MOST_CHARS]
        # Without spaces there are no words to count.
        spaceless = not head.isascii() and _SPACELESS.search(head) is not None
        words = () if spaceless else frozenset(_KEY.findall(head.casefold())) - plain_words.EMPTY
        self._beginnings = frozenset([word[:_BEGINNING] for word in words])

    @property
    def statement(self) -> Statement:
        if self._statement is None:
            self._statement = read_statement(self._text, speaker=self._speaker)
        return self._statement

    def may_compare(self, other: Reading) -> bool:
        """True if the texts share so many words that one may repeat, echo or change the other."""
        own, others = self._beginnings, other._beginnings
        return len(own & others) >= _LEAST_SHARED_WORDS * min(len(own), len(others))

    def may_share_words(self, other: Reading) -> bool:
        own, others = self._beginnings, other._beginnings
        return not own or not others or not own.isdisjoint(others)


class _Word(NamedTuple):
    """A word, casefolded. The `marker` stands for it where order matters, such as in "from Rome to Porto".

    A word `marks` if it says something about the statement; if it is empty and marks nothing, it is silent. A plain one
    has nothing but its stems.
    """

    folded: str
    stems: tuple[str, ...]
    capitals: tuple[tuple[str, str], ...]
    marker: str | None
    negates: bool
    is_personal: bool
    is_past: bool
    announces_change: bool
    is_empty: bool
    is_number: bool
    is_time: bool
    marks: bool
    is_silent: bool
    is_plain: bool


# Words repeat; texts are not cached, because they can be forgotten.
@lru_cache(20_000)
def _read_word(word: str) -> _Word:
    word = word.strip("'’_")
    folded = word.casefold().replace("’", "'").removesuffix("'s")
    stems = tuple(_stems(folded)) if folded else ()
    negates, is_past = folded in plain_words.NEGATIONS, folded in plain_words.PAST
    is_personal, announces_change = folded in plain_words.FIRST_PERSON, folded in plain_words.CHANGE_WORDS
    marker = "¬" if negates else plain_words.MARKERS.get(folded)
    marks = negates or is_personal or is_past or announces_change or marker is not None
    is_empty = negates or not folded or folded in plain_words.EMPTY
    is_number, is_capital = any(char.isdigit() for char in folded), word[:1].isupper()
    return _Word(
        folded=folded,
        stems=stems,
        capitals=tuple((stem, folded) for stem in stems) if is_capital else (),
        marker=marker,
        negates=negates,
        is_personal=is_personal,
        is_past=is_past,
        announces_change=announces_change,
        is_empty=is_empty,
        is_number=is_number,
        is_time=not _time_stems().isdisjoint(stems),
        marks=marks,
        is_silent=is_empty and not marks,
        is_plain=not (is_empty or marks or is_number or is_capital),
    )


def _stems_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset(stem for word in words for stem in _read_word(word).stems)


@lru_cache(1)
def _courtesy_stems() -> frozenset[str]:
    return _stems_of(plain_words.COURTESIES)


@lru_cache(1)
def _time_stems() -> frozenset[str]:
    return frozenset(stem for word in plain_words.TIMES for stem in _stems(word))


@lru_cache(1)
def _change_stems() -> frozenset[str]:
    return _stems_of(plain_words.CHANGE_WORDS | plain_words.BESIDE_CHANGES)


def only_asks(text: str, query: Reading | None = None) -> bool:
    """True if a message is nothing but a question that names nothing, or the query itself: it answers nothing.

    "Where did you stay in Lisbon?" names something, and "Shall I bring snacks on Friday?" tells something.
    """
    if not text.rstrip(_CLOSING).endswith(("?", "？", "؟")):
        return False
    asked = read_statement(text)
    content = (asked.stems, asked.numbers)
    if query is not None and content == (query.statement.stems, query.statement.numbers) != ((), ()):
        return True
    is_one = _SENTENCE_END.search(text.rstrip(_CLOSING).rstrip("?？؟")) is None
    first = _WORD.search(text)
    return (
        is_one
        and first is not None
        and first.group().casefold().replace("’", "'").removesuffix("'s") in plain_words.QUESTION_WORDS
        and not (asked.numbers or asked.names)
    )


def is_small_talk(text: str) -> bool:
    """True if a message says nothing that could be remembered: "Got it, thanks!", "haha", an emoji."""
    if len(text) > _MOST_COURTESY_CHARS:
        return False
    if not text.isascii() and _SPACELESS.search(text):
        return plain_words.SPACELESS_COURTESIES.fullmatch(text) is not None
    plain: list[str] = []
    other: str | None = None
    for found in _WORD.finditer(text):
        word = found.group()
        plain.append(word.casefold().replace("’", "'"))
        if plain[-1] not in plain_words.COURTESIES:
            if other is not None:
                return False
            other = word
        if len(plain) > _MOST_COURTESY_WORDS:
            return False
    if not plain:
        return not any(char.isalnum() for char in text)
    return other is None or _is_addressed(other, plain)


def _is_addressed(word: str, plain: Sequence[str]) -> bool:
    """True if the word is the name of the person who is greeted or thanked, rather than news."""
    return (
        word[0].isupper()
        and not plain_words.GREETINGS.isdisjoint(plain)
        and plain_words.COPULAS.isdisjoint(plain)
        and not _read_word(word).is_time
    )


def _stems(word: str) -> Iterator[str]:
    """Yield a word without its ending; pairs of characters for scripts without spaces."""
    if _SPACELESS.search(word):
        yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
    else:
        yield _without_ending(word)


def _without_ending(word: str) -> str:
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "e"):
        if len(word) - len(ending) >= 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word
