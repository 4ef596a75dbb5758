"""Forgetting: the target, the plan, the preview before it and the receipt after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from holdfast.domain.arguments import many, text_rule
from holdfast.domain.backups import RetainedBackup
from holdfast.domain.checks import MAX_FILTER_CHARS, check_count, checked_text
from holdfast.domain.ids import Id, OperationId, checked_id
from holdfast.domain.presentable import Presentable
from holdfast.domain.scope import Part, check_part
from holdfast.errors import InvalidInput

MAX_FORGET_IDS = 1_000


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """The target of a forget. Exactly one of: ids, a conversation, a subject, a source."""

    ids: Annotated[tuple[Id, ...], many(MAX_FORGET_IDS, noun="ID"), "The ids of the records to forget."] = ()
    conversation: Part | None = None
    subject: Part | None = None
    source: Annotated[str | None, text_rule(MAX_FILTER_CHARS, "NAME"), "Forget everything from this source."] = None

    def __post_init__(self) -> None:
        # A target that is set but empty is an error, never "everything".
        targets = ["ids"] if self.ids else []
        targets += [name for name in ("conversation", "subject", "source") if getattr(self, name) is not None]
        # A subject beside another target narrows it: "this conversation of Ana's".
        if len(targets) > 1 and targets != ["conversation", "subject"]:
            raise InvalidInput("forget", f"give one target, not {' and '.join(targets)}")
        if not targets:
            raise InvalidInput("forget", "has no target; give an id, a conversation, a subject or a source")
        check_count(self.ids, "record_id", 0, MAX_FORGET_IDS)
        for record_id in self.ids:
            checked_id(record_id, "record_id")
        for name in ("conversation", "subject"):
            if (value := getattr(self, name)) is not None:
                check_part(name, value)
        if self.source is not None:
            checked_text(self.source, "source", max_chars=MAX_FILTER_CHARS)


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """The plan of a forget: everything it would remove. `fingerprint` changes with the content.

    `first_number` is the lowest of the store's numbers of it, None if unknown.
    `derived_ids` are memories anywhere in the space whose current revision derives only from forgotten messages;
    `baseless` are the store's numbers of such older revisions, of memories that stay. `delivery_ids` are hook
    deliveries that carry, or carried, something about the target. `proposals` are the store's numbers of
    those that rest on it. `tool_entries` are the store's names of registries of tools and of experience with them.
    """

    fingerprint: str
    message_ids: tuple[str, ...]
    memory_ids: tuple[str, ...]
    revisions: int
    derived_ids: tuple[str, ...]
    weakened: int
    conversations: int
    baseless: tuple[int, ...] = ()
    resource_ids: tuple[str, ...] = ()
    delivery_ids: tuple[str, ...] = ()
    proposals: tuple[int, ...] = ()
    tool_entries: tuple[str, ...] = ()
    first_number: int | None = None


@dataclass(frozen=True, slots=True)
class OutsideMemory(Presentable):
    """A binding to an external provider. A forget does not reach it: what was sent there stays until removed there."""

    binding: str
    provider: str


@dataclass(frozen=True, slots=True)
class ForgetPreview(Presentable):
    """The effect of a forget now. With `token`, the forget is refused if the effect has changed.

    `derived` memories have no evidence but the forgotten: they are removed too. `weakened` ones have other evidence:
    they stay, but lose a link, or an older revision that has no evidence left. `deliveries` of hooks lose their
    payloads, and are dropped if they have not arrived. `tool_entries` are registries of tools, and what was learned of
    tools. `remaining_outside` is out of reach.
    """

    token: str
    messages: int
    memories: int
    revisions: int
    derived: int
    weakened: int
    conversations: int
    ids: tuple[str, ...]
    truncated: bool
    resources: int = 0
    deliveries: int = 0
    tool_entries: int = 0
    remaining_outside: tuple[OutsideMemory, ...] = ()

    @property
    def empty(self) -> bool:
        """True if there is nothing to forget."""
        return not (self.messages or self.memories or self.resources or self.deliveries or self.tool_entries)


@dataclass(frozen=True, slots=True)
class ForgetReceipt(Presentable):
    """Proof of a forget. `remaining` was counted by looking up the ids again; it is always 0.

    `scrubbed` if the bytes are gone from the file and its log. Otherwise a job removes them after a reader finishes.
    `remaining_outside` names the external memories of the space: what was sent there may remain. `backups` are those
    that still hold it, as far as the store knows and this machine can see.
    """

    operation_id: OperationId
    messages: int
    memories: int
    revisions: int
    tombstones: int
    remaining: int
    scrubbed: bool
    forgotten_at: datetime
    replayed: bool = False
    resources: int = 0
    deliveries: int = 0
    tool_entries: int = 0
    remaining_outside: tuple[OutsideMemory, ...] = ()
    backups: tuple[RetainedBackup, ...] = ()

    @property
    def found(self) -> bool:
        """True if there was anything to forget. Forgetting twice, or an unknown name, is no error."""
        return bool(self.messages or self.memories or self.resources or self.deliveries or self.tool_entries)
