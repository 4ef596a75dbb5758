"""Requests and reports of export and import: continuity snapshots of one conversation, and whole spaces as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from os import PathLike
from typing import Annotated, Any

from holdfast.domain.archive_format import ArchivedMemory, ArchivedTurn
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import MessageId
from holdfast.domain.lifecycle import LifecycleReport, ModeInput
from holdfast.domain.presentable import Presentable
from holdfast.domain.space_file import LeftOut
from holdfast.domain.transcript_turns import Authority

NOT_BUILT = "not_built"


class TransferMode(StrEnum):
    """Bootstrap: enough to start with a known person. Full restore: continue the conversation where it stopped."""

    BOOTSTRAP = "bootstrap"
    FULL_RESTORE = "full_restore"


# --- continuity snapshots ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SnapshotManifest(Presentable):
    """The manifest of a snapshot. The fingerprint covers everything but itself and the time of the export."""

    content_fingerprint: str
    counts: Mapping[str, int]
    includes_private: bool
    includes_execution_state: bool
    truncated: bool


@dataclass(frozen=True, slots=True)
class SummaryLine(Presentable):
    """The beginning of one of the last messages. Snapshots of earlier versions do not know its authority."""

    role: str
    text: str
    message_id: MessageId
    authority: Authority | None = None


@dataclass(frozen=True, slots=True)
class ExecutionState(Presentable):
    """The end of the conversation: its last turns, oldest first, as the export view shows them."""

    turns: tuple[ArchivedTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class ContinuitySnapshot(Presentable):
    """One conversation and the memories of its owner. Parts that are not built yet are empty, with a reason."""

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
    """Export the conversation of a chat id or a scope, else the one that was committed last."""

    chat_id: str | None = None
    scope: MemoryScope | None = None
    mode: Annotated[str, "bootstrap, or full_restore with the last turns."] = TransferMode.FULL_RESTORE
    include_private: Annotated[bool, "Include private memories, too."] = False
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class MemoryExportReport(Presentable):
    """The result of an export. `snapshot` is None if not admitted; `document` is the same as canonical JSON."""

    accepted: bool
    snapshot: ContinuitySnapshot | None
    document: str | None
    lifecycle_report: LifecycleReport


@dataclass(frozen=True, slots=True)
class MemoryImportRequest:
    """Import `snapshot`: an exported one, or its document as text, bytes or JSON."""

    snapshot: ContinuitySnapshot | str | bytes | Mapping[str, Any]
    target_chat_id: Annotated[str | None, "The chat to import into; by default the one of the snapshot."] = None
    scope: MemoryScope | None = None
    mode: Annotated[str, "bootstrap, or full_restore with the last turns."] = TransferMode.FULL_RESTORE
    include_private: Annotated[bool, "Import the private memories of the snapshot, too."] = False
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class Taken(Presentable):
    """Counts of an import. `known` were present already; `forgotten` had been forgotten and were not restored."""

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
class MemoryImportReport(Presentable):
    """The result of an import. `taken.withheld` counts private records that were not requested."""

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
    """Export to a file, or without a path into the report, if the profile's snapshots may be that large."""

    include_private: bool = False
    path: str | PathLike[str] | None = None
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class SpaceCounts(Presentable):
    turns: int = 0
    messages: int = 0
    resources: int = 0
    memories: int = 0
    aliases: int = 0
    redacted: int = 0  # messages of the turns in the file whose content it does not hold


@dataclass(frozen=True, slots=True)
class MemorySpaceExportReport(Presentable):
    """The result of an export. With turns in `left_out`, the file is no backup of the space."""

    accepted: bool
    space: str
    include_private: bool
    counts: SpaceCounts
    content_fingerprint: str | None
    size_bytes: int
    content: bytes | None
    path: str | None
    lifecycle_report: LifecycleReport
    left_out: LeftOut = field(default_factory=LeftOut)


@dataclass(frozen=True, slots=True)
class MemorySpaceImportRequest:
    """Import from a file, or from the content of an export report, into the space of the runtime."""

    path: str | PathLike[str] | None = None
    content: bytes | None = None
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class MemorySpaceImportReport(Presentable):
    """The result of an import. `left_out` was not in the file; None if the file is of version 1, and does not say."""

    accepted: bool
    changed: bool
    space: str
    origin_space: str | None
    content_fingerprint: str | None
    taken: Taken
    lifecycle_report: LifecycleReport
    left_out: LeftOut | None = None
