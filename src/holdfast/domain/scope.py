"""Where something belongs, and the partition that follows from it.

On a write, a scope says where a record goes. On a read, each part that is given must match; a part that is not given
matches anything the grant allows.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from holdfast.errors import InvalidScope

DEFAULT_SPACE = "default"
EVERYWHERE = "*"  # no space of its own: all of them at once, for the store's own upkeep
MAX_PART_CHARS = 256


class PartitionKind(StrEnum):
    SUBJECT = "subject"
    AGENT = "agent"
    SHARED = "shared"


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """The unit of statistics, postings and vectors: one subject's, else one agent's, else the space's shared one."""

    space: str
    kind: PartitionKind
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    space: str = DEFAULT_SPACE
    app: str | None = None
    project: str | None = None
    agent: str | None = None
    subject: str | None = None
    channel: str | None = None
    conversation: str | None = None
    run: str | None = None
    issue: str | None = None
    namespace: str | None = None

    def __post_init__(self) -> None:
        for name in SCOPE_PARTS:
            value = getattr(self, name)
            if value is not None or name == "space":
                check_part(name, value)

    @property
    def partition(self) -> Partition:
        """Where a record of this scope is kept."""
        if self.subject is not None:
            return Partition(self.space, PartitionKind.SUBJECT, self.subject)
        if self.agent is not None:
            return Partition(self.space, PartitionKind.AGENT, self.agent)
        return Partition(self.space, PartitionKind.SHARED)

    def given(self) -> dict[str, str]:
        """The parts that are given, by name."""
        return {name: value for name in SCOPE_PARTS if (value := getattr(self, name)) is not None}

    @property
    def thread(self) -> Scope:
        """The conversation itself, whatever run or issue is at hand."""
        return replace(self, run=None, issue=None)

    def covers(self, other: Scope) -> bool:
        """Whether each part given here is the same there.

        Subject and agent are not compared: they choose the partitions that are read, of which the shared one belongs
        to no subject.
        """
        return self.space == other.space and all(
            getattr(self, name) in (None, getattr(other, name)) for name in FILTER_PARTS
        )


SCOPE_PARTS = tuple(field.name for field in fields(Scope))
# What tells one conversation from another. Runs and issues come and go within one.
CONVERSATION_PARTS = ("conversation", "app", "project", "channel", "namespace")
FILTER_PARTS = ("app", "project", "channel", "conversation", "run", "issue", "namespace")


def could_be_part(value: str | None) -> bool:
    """Whether a name that was given elsewhere could stand in a scope, and so be asked for."""
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
    # Whatever can be printed holds neither, and nearly every name can.
    if not value.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise InvalidScope(name, "holds control characters or lone surrogates; remove them")
