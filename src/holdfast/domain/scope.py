"""Scopes, and the partition that a scope belongs to.

On a write, the scope is where a record is stored. On a read, each part that is set must match; a part that is not set
matches anything the grant allows.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Annotated

from holdfast.domain.arguments import Rule
from holdfast.domain.presentable import Presentable
from holdfast.errors import InvalidScope

DEFAULT_SPACE = "default"
EVERYWHERE = "*"  # not a space: all of them at once, for maintenance of the store
MAX_PART_CHARS = 256
Part = Annotated[str, Rule(lambda value, name: check_part(name, value), "NAME", 1, MAX_PART_CHARS)]


class PartitionKind(StrEnum):
    SUBJECT = "subject"
    AGENT = "agent"
    SHARED = "shared"


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """The unit of statistics, postings and vectors: of one subject, else of one agent, else shared in the space."""

    space: Part
    kind: PartitionKind
    owner: Annotated[
        str, Rule(lambda value, name: value and check_part(name, value), "NAME", max_length=MAX_PART_CHARS)
    ] = ""

    @property
    def scope(self) -> Scope:
        """The scope of all its records."""
        return Scope(self.space, **({} if self.kind is PartitionKind.SHARED else {self.kind.value: self.owner}))


@dataclass(frozen=True, slots=True)
class Scope(Presentable):
    """The place of a record: a space, and the parts of it that are set.

    A write is stored there. A read must match each part that is set; None matches all.
    """

    space: Part = DEFAULT_SPACE
    app: Part | None = None
    project: Part | None = None
    agent: Part | None = None
    subject: Part | None = None
    channel: Part | None = None
    conversation: Part | None = None
    run: Part | None = None
    issue: Part | None = None
    namespace: Part | None = None

    def __post_init__(self) -> None:
        for name in SCOPE_PARTS:
            value = getattr(self, name)
            if value is not None or name == "space":
                check_part(name, value)

    @property
    def partition(self) -> Partition:
        """The partition that stores records of this scope."""
        if self.subject is not None:
            return Partition(self.space, PartitionKind.SUBJECT, self.subject)
        if self.agent is not None:
            return Partition(self.space, PartitionKind.AGENT, self.agent)
        return Partition(self.space, PartitionKind.SHARED)

    def given(self) -> dict[str, str]:
        """Return the parts that are set, by name."""
        return {name: value for name in SCOPE_PARTS if (value := getattr(self, name)) is not None}

    @property
    def thread(self) -> Scope:
        """The scope of the conversation itself, without run and issue."""
        return replace(self, run=None, issue=None)

    def covers(self, other: Scope) -> bool:
        """True if `other` is equal in each part that is set here.

        Subject and agent are not compared: they select the partitions to read, and the shared one has no subject.
        """
        return self.space == other.space and all(
            getattr(self, name) in (None, getattr(other, name)) for name in FILTER_PARTS
        )


SCOPE_PARTS = tuple(field.name for field in fields(Scope))
# The parts that identify a conversation. It can span several runs and issues.
CONVERSATION_PARTS = ("conversation", "app", "project", "channel", "namespace")
FILTER_PARTS = ("app", "project", "channel", "conversation", "run", "issue", "namespace")


def could_be_part(value: str | None) -> bool:
    """True if a name from elsewhere is valid in a scope, so that a query can ask for it."""
    if value is None:
        return False
    try:
        check_part("name", value)
    except InvalidScope:
        return False
    return True


def check_part(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidScope(name, f"expected text, got {type(value).__name__}")
    if not value.strip():
        raise InvalidScope(name, "is empty; leave it out or give it a value")
    if len(value) > MAX_PART_CHARS:
        raise InvalidScope(name, f"has {len(value)} characters; at most {MAX_PART_CHARS} are allowed")
    # Fast path: a printable string holds neither.
    if not value.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise InvalidScope(name, "holds control characters or lone surrogates; remove them")
