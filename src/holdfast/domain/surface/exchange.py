"""What hosts ask for when memory moves: continuity snapshots of one conversation, and whole spaces as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from os import PathLike
from typing import Any

from holdfast.domain.archived import ArchivedMemory, ArchivedTurn
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import MessageId
from holdfast.domain.lifecycle import LifecycleReport, ModeInput

NOT_BUILT = "not_built"


class TransferMode(StrEnum):
    """Bootstrap: enough to begin with somebody known. Full restore: to go on where the conversation stopped."""

    BOOTSTRAP = "bootstrap"
    FULL_RESTORE = "full_restore"


# --- continuity snapshots ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SnapshotManifest:
    """What a snapshot holds. The fingerprint is of its content: all but itself and the moment of the export."""

    content_fingerprint: str
    counts: Mapping[str, int]
    includes_private: bool
    includes_execution_state: bool
    truncated: bool


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """The beginning of one message that was said last."""

    role: str
    text: str
    message_id: MessageId


@dataclass(frozen=True, slots=True)
class ExecutionState:
    """Where the conversation stopped: its last turns, oldest first, as the view of the export shows them."""

    turns: tuple[ArchivedTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class ContinuitySnapshot:
    """What moves one conversation with what is known of its owner. The parts that nothing fills yet say why."""

    version: int
    exported_at: datetime
    mode: TransferMode
    chat_id: str
    origin: Mapping[str, str]
    manifest: SnapshotManifest
    summary: tuple[SummaryLine, ...] = ()
    long_term_memory: tuple[ArchivedMemory, ...] = ()
    execution_state: ExecutionState | None = None
    self_model: tuple[str, ...] = ()
    self_authored_core: tuple[str, ...] = ()
    core_revision_ledger: tuple[str, ...] = ()
    self_continuity: tuple[str, ...] = ()
    relationship_experience: tuple[str, ...] = ()
    self_reason: str = NOT_BUILT


@dataclass(frozen=True, slots=True)
class MemoryExportRequest:
    """Of the conversation that a chat id or a scope names, else of the one that was committed last."""

    chat_id: str | None = None
    scope: MemoryScope | None = None
    mode: str = TransferMode.FULL_RESTORE
    include_private: bool = False
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class MemoryExportReport:
    """`snapshot` is None if the export was not admitted; `document` is the same as JSON, the same bytes each time."""

    accepted: bool
    snapshot: ContinuitySnapshot | None
    document: str | None
    lifecycle_report: LifecycleReport


@dataclass(frozen=True, slots=True)
class MemoryImportRequest:
    """`snapshot` is one that was exported, or its document as text, bytes or JSON."""

    snapshot: ContinuitySnapshot | str | bytes | Mapping[str, Any]
    target_chat_id: str | None = None
    scope: MemoryScope | None = None
    mode: str = TransferMode.FULL_RESTORE
    include_private: bool = False
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of what was to be taken in. Known was there already; forgotten had been, and was not brought back."""

    turns: int = 0
    messages: int = 0
    memories: int = 0
    resources: int = 0
    aliases: int = 0
    known: int = 0
    forgotten: int = 0
    withheld: int = 0

    @property
    def changed(self) -> bool:
        return any((self.turns, self.messages, self.memories, self.resources, self.aliases))

    def __add__(self, other: Taken) -> Taken:
        return Taken(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class MemoryImportReport:
    """`taken.withheld` counts what is private, and was left out because it was not asked for."""

    accepted: bool
    changed: bool
    mode: TransferMode
    conversation: str
    content_fingerprint: str
    taken: Taken
    lifecycle_report: LifecycleReport


# --- whole spaces -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemorySpaceExportRequest:
    """To a file, or without a path into the report itself, if the profile's snapshots may be so large."""

    include_private: bool = False
    path: str | PathLike[str] | None = None
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class SpaceCounts:
    turns: int = 0
    messages: int = 0
    resources: int = 0
    memories: int = 0
    aliases: int = 0
    redacted: int = 0  # messages that the view withheld; they are not in the file


@dataclass(frozen=True, slots=True)
class MemorySpaceExportReport:
    accepted: bool
    space: str
    include_private: bool
    counts: SpaceCounts
    content_fingerprint: str | None
    size_bytes: int
    content: bytes | None
    path: str | None
    lifecycle_report: LifecycleReport


@dataclass(frozen=True, slots=True)
class MemorySpaceImportRequest:
    """From a file, or from what a report of an export held. It goes into the space of the runtime."""

    path: str | PathLike[str] | None = None
    content: bytes | None = None
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class MemorySpaceImportReport:
    accepted: bool
    changed: bool
    space: str
    origin_space: str | None
    content_fingerprint: str | None
    taken: Taken
    lifecycle_report: LifecycleReport
