"""Decide whose words a message holds, and how far a memory that rests on it can be trusted.

A subject's own words are those of a user's message without a source, whose sender is the subject. Words that come
through a source (a webhook, a mail, an import), from a tool, an assistant or another sender are somebody else's, and so
is a recall that is pasted back: a memory would confirm itself. They support no memory of more than low trust.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.domain.candidates import is_supported
from holdfast.domain.memory import Candidate, Trust
from holdfast.domain.own_words import own_words
from holdfast.domain.transcript import Message, Role

# The highest trust of a memory that rests on the words of others.
OTHERS_TRUST = Trust.LOW
# The label of a reference message, of this engine or of the agent's gateway, and the beginning of one of its lines.
_RECALLED = re.compile(r"Reference from (?:memory|the Memory Gateway)\.|^\s*\d+\. \[(?:memory|said by )", re.MULTILINE)


def holds_recall(text: str) -> bool:
    """True if the text holds a part of what a recall showed to a model."""
    return _RECALLED.search(text) is not None


def is_own_statement(message: Message) -> bool:
    """True if the message holds the words of its subject; without a subject, each sender speaks for themselves."""
    if message.role is not Role.USER or message.source is not None or holds_recall(message.text):
        return False
    sender, subject = message.sender, message.scope.subject
    # Compared without regard to case alone: a name that only looks like the subject's is another's.
    return sender is None or subject is None or sender.casefold() == subject.casefold()


def limit_trust(candidate: Candidate, evidence: Sequence[Message]) -> Candidate:
    """Rest the candidate on its subject's own words, if they alone say it; else its trust is that of others' words."""
    own = [message for message in evidence if is_own_statement(message)]
    if len(own) == len(evidence):
        return candidate
    if own and is_supported(candidate.text, _supporting_texts(own)):
        return replace(candidate, evidence=tuple(message.id for message in own))
    return replace(candidate, trust=min(candidate.trust, OTHERS_TRUST))


def _supporting_texts(messages: Iterable[Message]) -> list[str]:
    return [text for message in messages for text in (own_words(message.text), message.sender or "")]
