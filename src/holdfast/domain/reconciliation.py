"""Decide what a proposed fact is to the known ones: new, a duplicate, an update or a contradiction. Pure.

The relation that a model claims is a proposal. Likeness merges nothing: names, numbers, dates and negation must agree.
An update ends only a memory of the same subject and matter, by newer words of a person, and of no higher trust. In
doubt both are kept: a wrong duplicate loses a fact, and a fact that is kept twice does no harm.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache

from holdfast.domain.fact_words import (
    ADDING,
    ATTITUDES,
    COMPARING,
    DATE_WORDS,
    ENDING,
    GENERIC,
    NEGATING_CHARACTERS,
    NEGATIONS,
    NUMBER_WORDS,
    PEOPLE,
    SIDES,
)
from holdfast.domain.memory import Candidate, FactRelation, MemoryRecord, Trust
from holdfast.domain.repetition import read_statement
from holdfast.domain.transcript import Message, Role

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NEGATIVE_NUMBER = re.compile(r"(?<!\w)[-−](?=[.,]?\d)")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_END_OF_SENTENCE = " \t\n.!。！"
# Other signs carry meaning: "C#", "5 %", "3 €".
_PUNCTUATION = re.compile(r"[\w\s.,;:!?'\"’‘“”„«»()\[\]{}…¿¡。，、！？；：（）「」-]")
_POSSESSOR = re.compile(r"(?:['’]s?)$")
# Up to here a word of a sentence may be its subject: "la hermana de Ana".
_HEAD_WORDS = 3
_LEAST_PART = 4
_ROOT_CHARS = 6


class DecisionReason(StrEnum):
    """The reason of a decision."""

    NOTHING_ALIKE = "nothing_alike"
    LEARNED_BEFORE = "learned_before"
    SAME_WORDS = "same_words"
    RESTATED = "restated"
    CONFIRMED = "confirmed"
    FURTHER = "one_more_of_its_kind"
    DETAILS_DIFFER = "details_differ"
    OPPOSITE = "opposite"
    CLAIMED = "claimed_by_model"
    SUCCEEDED = "succeeded"
    IN_SLOT = "same_slot"
    OLDER = "older_than_known"
    UNRELATED = "unrelated"
    HIGHER_TRUST = "known_has_higher_trust"
    NOT_SAID_BY_PERSON = "not_said_by_a_person"
    UNKNOWN_TARGET = "target_not_known"


@dataclass(frozen=True, slots=True)
class Decision:
    """The relation of a candidate, the memory that it concerns, and why. Without a relation, nothing changes.

    `ends_at` is the end of the target's validity in an update; without one, its next revision has the new text.
    """

    relation: FactRelation | None
    reason: DecisionReason
    target: MemoryRecord | None = None
    ends_at: datetime | None = None


def normalize_statement(text: str) -> str:
    """Return a text without its case, its spacing and its full stop. Texts with the same form say the same."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(folded.split()).strip(_END_OF_SENTENCE)


def can_end(trust: Trust, known: Trust) -> bool:
    """True if a fact of this trust may end or replace a known one. Nothing ends a memory of higher trust."""
    return trust >= known


# --- decide -----------------------------------------------------------------------------------------------------------


def decide(
    candidate: Candidate, evidence: Sequence[Message], known: Sequence[MemoryRecord], *, subject: str | None = None
) -> Decision:
    """Decide on a candidate that rests on `evidence`. `known` are current memories of its scope.

    `subject` is the name of the person whose memory it is.
    """
    said_at = max((message.said_at for message in evidence), default=None)
    open_now = [memory for memory in known if not _has_ended(memory, said_at)]
    same = _find_same_words(candidate.text, open_now)
    if same is not None:
        return _repeat(candidate, same, DecisionReason.SAME_WORDS)
    target = next((memory for memory in open_now if memory.id == candidate.target), None)
    if target is None:
        missing = candidate.relation not in (None, FactRelation.NEW)
        return _decide_unclaimed(candidate, open_now, subject, DecisionReason.UNKNOWN_TARGET if missing else None)
    facts = _Comparison(read_fact(candidate.text, subject), read_fact(target.text, subject))
    if candidate.relation is FactRelation.DUPLICATE:
        if facts.is_restatement:
            return _repeat(candidate, target, DecisionReason.RESTATED)
        return _contradict(candidate, target) if facts.is_opposite else _new(DecisionReason.DETAILS_DIFFER)
    if candidate.relation is FactRelation.UPDATE:
        return _decide_update(candidate, evidence, target, facts)
    if candidate.relation is FactRelation.CONTRADICTION:
        return _contradict(candidate, target, DecisionReason.CLAIMED)
    return _decide_unclaimed(candidate, open_now, subject, None)


def decide_in_slot(candidate: Candidate, old: MemoryRecord) -> Decision:
    """Decide on a candidate whose slot is taken: facts of one slot replace each other."""
    if normalize_statement(old.text) == normalize_statement(candidate.text):
        return _repeat(candidate, old, DecisionReason.SAME_WORDS)
    if not _replaces(candidate, old):
        return Decision(None, DecisionReason.OLDER, old)
    if not can_end(candidate.trust, old.trust):
        return _contradict(candidate, old, DecisionReason.HIGHER_TRUST)
    return Decision(FactRelation.UPDATE, DecisionReason.IN_SLOT, old)


def was_learned_before(candidate: Candidate, histories: Iterable[Sequence[MemoryRecord]]) -> bool:
    """True if a revision of a memory says the same, and the memory rested on all of the candidate's evidence.

    Then the same messages were learned from before. What became of that memory since was decided: it stays.
    """
    wanted, words = set(candidate.evidence), normalize_statement(candidate.text)
    for revisions in histories:
        rested = {link.message_id for revision in revisions for link in revision.evidence}
        if wanted <= rested and any(normalize_statement(revision.text) == words for revision in revisions):
            return True
    return False


def _replaces(candidate: Candidate, old: MemoryRecord) -> bool:
    """True if the candidate replaces the memory in its slot. An older fact does not, nor the end of another fact."""
    if candidate.former is not None:
        return candidate.former in old.text
    since, until_now = candidate.validity.since, old.validity.since
    return candidate.replaces or since is None or until_now is None or since >= until_now


def _has_ended(memory: MemoryRecord, said_at: datetime | None) -> bool:
    until = memory.validity.until
    return until is not None and (said_at is None or until <= said_at)


def _find_same_words(text: str, known: Iterable[MemoryRecord]) -> MemoryRecord | None:
    words = normalize_statement(text)
    same = [memory for memory in known if normalize_statement(memory.text) == words]
    return max(same, key=lambda memory: memory.trust, default=None)


def _new(reason: DecisionReason) -> Decision:
    return Decision(FactRelation.NEW, reason)


def _repeat(candidate: Candidate, target: MemoryRecord, reason: DecisionReason) -> Decision:
    # What others claimed, its subject now says.
    if target.trust < Trust.MODEST <= candidate.trust:
        return Decision(FactRelation.UPDATE, DecisionReason.CONFIRMED, target)
    # A memory without evidence was stated by itself: with evidence, it would go when that is forgotten. And words that
    # no person said do not keep a trusted memory alive.
    if not target.evidence or candidate.trust < min(target.trust, Trust.MODEST):
        return Decision(None, reason, target)
    return Decision(FactRelation.DUPLICATE, reason, target)


def _contradict(
    candidate: Candidate, target: MemoryRecord, reason: DecisionReason = DecisionReason.OPPOSITE
) -> Decision:
    if candidate.trust < min(target.trust, Trust.MODEST):
        return _new(DecisionReason.NOT_SAID_BY_PERSON)
    return Decision(FactRelation.CONTRADICTION, reason, target)


def _decide_unclaimed(
    candidate: Candidate, known: Sequence[MemoryRecord], subject: str | None, reason: DecisionReason | None
) -> Decision:
    fact = read_fact(candidate.text, subject)
    for memory in known:
        if _Comparison(fact, read_fact(memory.text, subject)).is_opposite:
            return _contradict(candidate, memory)
    return _new(reason or DecisionReason.NOTHING_ALIKE)


def _decide_update(
    candidate: Candidate, evidence: Sequence[Message], target: MemoryRecord, facts: _Comparison
) -> Decision:
    spoken = [message for message in evidence if message.role is Role.USER]
    if not spoken or candidate.trust < Trust.MODEST:
        return _new(DecisionReason.NOT_SAID_BY_PERSON)
    if facts.candidate.is_adding:
        return _new(DecisionReason.FURTHER)
    if not facts.is_same_matter:
        return _new(DecisionReason.UNRELATED)
    if not can_end(candidate.trust, target.trust):
        return _contradict(candidate, target, DecisionReason.HIGHER_TRUST)
    said_at, known_at = max(message.said_at for message in spoken), _known_at(target)
    since, until_now = candidate.validity.since, target.validity.since
    if said_at < known_at or (since is not None and until_now is not None and since < until_now):
        return _contradict(candidate, target, DecisionReason.OLDER)
    # It was still true when it was last said.
    ends_at = said_at if since is None or since < known_at else since
    starts_later = until_now is not None and until_now >= ends_at
    return Decision(FactRelation.UPDATE, DecisionReason.SUCCEEDED, target, None if starts_later else ends_at)


def _known_at(memory: MemoryRecord) -> datetime:
    return max((link.said_at for link in memory.evidence), default=memory.recorded_at)


# --- read -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fact:
    """The parts of a text that must agree with those of another for both to say the same.

    `names` are the words with a capital letter, except the first word; that is `opening`. `head` is the thing or
    person that the sentence is about, if not the subject: "brother" in "Ana's brother lives in Cork".
    """

    order: tuple[str, ...]
    content: frozenset[str]
    stems: tuple[str, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    names: frozenset[str]
    opening: str | None
    negations: int
    attitudes: frozenset[str]
    people: frozenset[str]
    signs: str
    head: str | None
    comparisons: frozenset[str]
    is_adding: bool
    is_ending: bool
    has_case: bool

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.order)

    @property
    def is_naming(self) -> bool:
        """True if it only names its head, or says which one it is: "Ana's boss is Viktor"."""
        return self.head is not None and (self.head not in PEOPLE or self.content <= {self.head} | self.names | GENERIC)


def read_fact(text: str, subject: str | None = None) -> Fact:
    statement = read_statement(text, speaker=subject)
    own = set(subject.casefold().split()) if subject else set()
    found = [_POSSESSOR.sub("", word) for word in _WORD.findall(text)]
    words = [word.casefold().replace("’", "'") for word in found]
    empty = {word for word in words if not read_statement(word).stems}
    numbers = [_number(word) for word in words if word in NUMBER_WORDS or any(char.isdigit() for char in word)]
    plain = [word for word in words if word not in own]
    opening = plain[0] if plain and words[0] == plain[0] and found[0][0].isupper() and plain[0] not in empty else None
    dates = [word for word in words if word in DATE_WORDS]
    others = own | empty | NEGATIONS | DATE_WORDS | NUMBER_WORDS.keys()
    return Fact(
        order=tuple(words),
        content=frozenset(
            ATTITUDES.get(word, word)
            for word in words
            if word not in others and not any(char.isdigit() for char in word)
        ),
        stems=statement.stems,
        numbers=(*numbers, *_NEGATIVE_NUMBER.findall(text)),
        dates=tuple(dates),
        names=frozenset(
            word for place, word in enumerate(words) if place and found[place][0].isupper() and word not in own | empty
        ),
        opening=opening,
        negations=sum(word in NEGATIONS for word in words) + sum(char in NEGATING_CHARACTERS for char in text),
        attitudes=frozenset(ATTITUDES[word] for word in words if word in ATTITUDES),
        people=frozenset(words) & PEOPLE,
        signs="".join(sorted(_PUNCTUATION.sub("", text))),
        head=_head(text, words),
        comparisons=COMPARING & frozenset(words),
        is_adding=not ADDING.isdisjoint(words),
        is_ending=not ENDING.isdisjoint(words),
        has_case=any(char.isupper() for char in text),
    )


def _number(word: str) -> str:
    ordinal = _ORDINAL.fullmatch(word)
    return ordinal[1] if ordinal else NUMBER_WORDS.get(word, word)


def _head(text: str, words: Sequence[str]) -> str | None:
    """Return what belongs to the first name ("Ana's brother"), or the person that the text begins with."""
    first = _WORD.match(text)
    if first is not None and _POSSESSOR.search(first[0]) and len(words) > 1 and read_statement(words[0]).stems:
        return words[1]
    return next((word for word in words[:_HEAD_WORDS] if word in PEOPLE), None)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A candidate's fact beside a known one."""

    candidate: Fact
    known: Fact

    @property
    def is_restatement(self) -> bool:
        """True if the candidate says nothing that the known fact does not say, and all details agree."""
        one, other = self.candidate, self.known
        return (
            self._agrees
            and one.negations == other.negations
            and one.attitudes == other.attitudes
            and one.has_case
            and other.has_case
            and _adds_nothing(one, other)
            and (one.stems == other.stems or not one.comparisons & other.comparisons)
        )

    @property
    def is_opposite(self) -> bool:
        """True if both say the same but for a negation."""
        one, other = self.candidate, self.known
        differ = one.negations % 2 != other.negations % 2
        return differ and self._agrees and _adds_nothing(one, other) and _adds_nothing(other, one)

    @property
    def is_same_matter(self) -> bool:
        """True if both are about the same person or thing, and the same side of it."""
        one, other = self.candidate, self.known
        side = next((side for side in SIDES if one.words & side and other.words & side), frozenset[str]())
        names = (one.names & other.words) | (other.names & one.words)
        for head, words in ((one.head, other.words), (other.head, one.words)):
            if head is not None and head not in words and head not in side and not names:
                return False
        shared = (set(one.stems) & set(other.stems)) - _stems_of(PEOPLE)
        telling = shared - _stems_of(GENERIC) - {stem for name in names for stem in read_statement(name).stems}
        is_named_otherwise = one.head is not None and one.head == other.head and one.is_naming and other.is_naming
        return bool(side or telling or len(shared) > 1 or (names and one.is_ending) or is_named_otherwise)

    @property
    def _agrees(self) -> bool:
        one, other = self.candidate, self.known
        names = one.names | other.names | {one.opening, other.opening}
        return (
            one.numbers == other.numbers
            and one.dates == other.dates
            and one.people == other.people
            and one.signs == other.signs
            # Who does what to whom.
            and [word for word in one.order if word in names] == [word for word in other.order if word in names]
        )


def _adds_nothing(one: Fact, other: Fact) -> bool:
    """True if both have something in common, and the first has no word of weight that the other has not."""
    stems = _roots(other.stems)
    further = {
        word
        for word in one.content - other.content - GENERIC
        if not _roots(read_statement(word).stems) <= stems and not _is_part(word, other.words)
    }
    shared = one.content & other.content or _roots(one.stems) & stems or one.numbers or one.dates
    return bool(shared) and not further


def _roots(stems: Iterable[str]) -> set[str]:
    """Return the beginnings of stems: "allergic" and "allergy" are one."""
    return {stem[:_ROOT_CHARS] for stem in stems}


def _is_part(word: str, words: Iterable[str]) -> bool:
    """True if the word is a part of a compound: "años" of "cumpleaños"."""
    return len(word) >= _LEAST_PART and any(word in each for each in words)


@cache
def _stems_of(words: frozenset[str]) -> frozenset[str]:
    return frozenset(stem for word in words for stem in read_statement(word).stems)
