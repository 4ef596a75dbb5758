"""Decide whose words a message holds, and how far a memory that rests on it can be trusted.

A subject's own words are those of a user's message without a source, whose sender is the subject. Words that come
through a source (a webhook, a mail, an import), from a tool, an assistant or another sender are somebody else's, and so
is a recall that is pasted back: a memory would confirm itself. They support no memory of more than low trust.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from holdfast.domain.candidates import read_stems
from holdfast.domain.fact_words import ENDING, NEGATING_CHARACTERS, NEGATIONS
from holdfast.domain.memory import Candidate, MemoryRecord, Trust
from holdfast.domain.own_words import own_words
from holdfast.domain.transcript import Message, Role

# The highest trust of a memory that rests on the words of others.
OTHERS_TRUST = Trust.LOW
# Words that end a fact in plain speech, besides those that reconciliation knows.
_MORE_DENYING = (
    "longer anymore former formerly ex used fired dismissed outgrown outgrew divorce single broken gone free instead"
    " mehr entlassen ehemalig geschieden scheidung dejado ya divorcio plus viré divorcé mais demitido divórcio"
)
# The label of a reference message, of this engine or of the agent's gateway, and the beginning of one of its lines.
_RECALLED = re.compile(
    r"Reference from (?:memory|the Memory Gateway)\.|^\s*\d+\. \[(?:memory|unconfirmed|said by |from )", re.MULTILINE
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMBER = re.compile(r"\d+")
_QUESTION = re.compile(r"[^.!?。！？\n]*[?？؟]+")
_POSSESSIVE = re.compile(r"['’]s?$")


def holds_recall(text: str) -> bool:
    """True if the text holds a part of what a recall showed to a model."""
    return _RECALLED.search(text) is not None


def speaks_for_subject(role: str | None, sender: str | None, source: str | None, subject: str | None) -> bool:
    """True if a message is its subject's own; without a subject, each sender speaks for themselves.

    Names are compared without regard to case alone: one that only looks like the subject's is another's.
    """
    if role != Role.USER or source is not None:
        return False
    return sender is None or subject is None or sender.casefold() == subject.casefold()


def is_own_statement(message: Message) -> bool:
    """True if the message holds the words of its subject, and not what a recall showed."""
    own = speaks_for_subject(message.role, message.sender, message.source, message.scope.subject)
    return own and not holds_recall(message.text)


def limit_trust(
    candidate: Candidate, evidence: Sequence[Message], known: MemoryRecord | None = None, *, worded_by_model: bool
) -> Candidate:
    """Rest the candidate on its subject's own words, if they alone say it; else its trust is that of others' words.

    `known` is the memory that it changes. A model's wording is held against the words; rules read own words only.
    """
    own = [message for message in evidence if is_own_statement(message)]
    if own and (not worded_by_model or states(own, candidate.text, "" if known is None else known.text)):
        return replace(candidate, evidence=tuple(message.id for message in own))
    if known is not None and not worded_by_model and _is_of_same_speaker(evidence, known):
        return candidate
    return replace(candidate, trust=min(candidate.trust, OTHERS_TRUST))


def _is_of_same_speaker(evidence: Iterable[Message], known: MemoryRecord) -> bool:
    """True if the memory rests on the same sender's words alone: people may go on about what they said themselves."""
    senders = {link.sender for link in known.evidence}
    return len(senders) == 1 and all(
        message.sender in senders
        and speaks_for_subject(message.role, message.sender, message.source, message.sender)
        and not holds_recall(message.text)
        for message in evidence
    )


def states(messages: Iterable[Message], text: str, known: str = "") -> bool:
    """True if messages could say a text in their sender's own words. A question states nothing."""
    return _supports([(message, _QUESTION.sub("", own_words(message.text))) for message in messages], text, known)


def mentions(messages: Iterable[Message], text: str, known: str = "") -> bool:
    """True if messages could be what a text was made from, be it a question or a quotation."""
    return _supports([(message, message.text) for message in messages], text, known)


def _supports(statements: Sequence[tuple[Message, str]], text: str, known: str) -> bool:
    """True if the statements hold what a text says.

    They have all numbers and names that neither the subject's name nor the known memory explains; at least half of its
    words, or of those that are new; and if it denies something, or ends it, so do they.
    """
    said = "\n".join(statement for _, statement in statements)
    names = " ".join(name for message, _ in statements for name in _names_of(message))
    years = " ".join(str(message.said_at.year + step) for message, _ in statements for step in (-1, 0, 1))
    own, explained = set(read_stems(said)), set(read_stems(f"{known} {names} {years}"))
    # Denials are worded in many ways.
    stems = set(read_stems(text)) - set(read_stems(names)) - (_DENYING_STEMS - own)
    return (
        set(_NUMBER.findall(text)) <= set(_NUMBER.findall(f"{said} {known} {names} {years}"))
        and set(_read_names(text)) <= own | explained
        and (_are_half(stems, own) or _are_half(stems - explained, own) or (stems <= explained and _meet(text, said)))
        and (not _denies(text) or _denies(said) or _denies(known))
    )


def _are_half(stems: set[str], own: set[str]) -> bool:
    return 2 * len(stems & own) >= len(stems) > 0


def _meet(text: str, said: str) -> bool:
    """True if both have a name or a stem in common."""
    names = {word for word in _WORD.findall(text)[1:] if word[0].isupper()}
    return not names.isdisjoint(_WORD.findall(said)) or not set(read_stems(text)).isdisjoint(read_stems(said))


def _names_of(message: Message) -> Iterator[str]:
    yield from (name for name in (message.sender, message.scope.subject) if name is not None)


def _read_names(text: str) -> Iterator[str]:
    """Yield the stems of the words that begin with a capital, but for the first."""
    for word in _WORD.findall(text)[1:]:
        if word[0].isupper():
            yield from read_stems(_POSSESSIVE.sub("", word))


def _denies(text: str) -> bool:
    words = {word.casefold().replace("’", "'") for word in _WORD.findall(text)}
    return not words.isdisjoint(_DENYING) or any(char in NEGATING_CHARACTERS for char in text)


_DENYING = NEGATIONS | ENDING | frozenset(_MORE_DENYING.split())
_DENYING_STEMS = frozenset(read_stems(" ".join(_DENYING)))
