"""What a forget takes away, shown before and proven after."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.domain.ids import OperationId, checked_id
from holdfast.domain.scope import check_part
from holdfast.domain.text import checked_text
from holdfast.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """Exactly one of: some ids, a conversation, a subject, a source."""

    ids: tuple[str, ...] = ()
    conversation: str | None = None
    subject: str | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        # What is given and empty is a mistake, never "everything".
        given = ["ids"] if self.ids else []
        given += [name for name in ("conversation", "subject", "source") if getattr(self, name) is not None]
        # A subject beside another target narrows it: "this conversation of Ana's".
        if len(given) > 1 and given != ["conversation", "subject"]:
            raise InvalidInput("forget", f"give one target, not {' and '.join(given)}")
        if not given:
            raise InvalidInput("forget", "say what to forget: an id, a conversation, a subject or a source")
        for record_id in self.ids:
            checked_id(record_id, "record_id")
        for name in ("conversation", "subject"):
            if (value := getattr(self, name)) is not None:
                check_part(name, value)
        if self.source is not None:
            checked_text(self.source, "source")


@dataclass(frozen=True, slots=True)
class Doomed:
    """What a forget would remove. `fingerprint` changes with it.

    `derived_ids` are memories whose current revision rests on nothing but forgotten messages, wherever in the space
    they are; `baseless` are the store's numbers of older revisions that do, of memories that stay. `delivery_ids` are
    hooks that carry, or carried, something about the same.
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


@dataclass(frozen=True, slots=True)
class ForgetPreview:
    """What a forget would touch now. `token` makes the forget refuse if that has changed.

    `derived` are the memories that rest, as they stand now, on nothing but the forgotten evidence: they go too.
    `weakened` keep other evidence: they stay, and lose a link, or an older revision that has nothing left to rest on.
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

    @property
    def empty(self) -> bool:
        return not (self.messages or self.memories or self.resources)


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """Proof of a forget. `remaining` was counted by looking for the ids again; it is always 0.

    `scrubbed` says whether the bytes have left the file and its log, or wait for a reader to finish (a job does it).
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

    @property
    def found(self) -> bool:
        """Whether there was anything to forget. Forgetting a second time is no error, nor is a name that nobody has."""
        return bool(self.messages or self.memories or self.resources)
