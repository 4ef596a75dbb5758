"""`export`: a continuity snapshot of one conversation and its owner's lasting memories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.domain.access import Action, Grant, check_view
from holdfast.domain.archive_format import ArchivedMemory, ArchivedTurn
from holdfast.domain.checks import checked_flag
from holdfast.domain.continuity_snapshot import MOST_MEMORIES, MOST_TURNS, build_snapshot, to_document
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.lifecycle import admit, checked_mode
from holdfast.domain.memory import GUARDED_PLANES, MemoryRecord, Plane, Status
from holdfast.domain.results import HitKind
from holdfast.domain.runtime_api.exchange import MemoryExportReport, MemoryExportRequest, TransferMode
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.transcript_turns import TranscriptState, View, checked_member
from holdfast.errors import NotFound
from holdfast.ports import ListFilter, Reader
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.transcripts.archive import Links, archive_memory, archive_turns
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation

# Planes that outlive a conversation. Episodes and document chunks are not facts about the owner.
_LASTING = frozenset({Plane.LONG_TERM, Plane.SHARED_FACT, Plane.PROCEDURAL})
_PAGE = 500


@dataclass(frozen=True, slots=True)
class ExportContinuity(Read[StartedOperation, MemoryExportReport]):
    """Export a snapshot. Private content is included only on request, for actors that may read the raw view."""

    action: ClassVar[Action] = Action.EXPORT
    governance: Governance
    request: MemoryExportRequest
    where: MemoryScope

    def __post_init__(self) -> None:
        checked_member(TransferMode, self.request.mode, "mode")
        checked_flag(self.request.include_private, "include_private")
        checked_mode(self.request.mode_input)
        ConversationAddress.of(self.governance, self.where)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        """The owner's whole memory: learned memories belong to no conversation."""
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        if self.request.include_private:
            check_view(grant.actor, View.RAW_OWNER_ONLY, self.scope.partition)
        return StartedOperation(core, self.action, core.clock.now(), admit(self.action, self.request.mode_input))

    def apply(self, reader: Reader, prepared: StartedOperation) -> MemoryExportReport:
        if not prepared.is_admitted:
            return MemoryExportReport(False, None, None, prepared.report_transfer("nothing exported"))
        thread = ConversationAddress.of(self.governance, self.where).resolve(reader)
        turns = self._turns(reader, thread)
        mode = TransferMode(self.request.mode)
        cited = {message.id for turn in turns for message in turn.messages}
        snapshot = build_snapshot(
            mode,
            thread,
            tuple(self._memories(reader, thread.partition, cited if mode is TransferMode.FULL_RESTORE else set())),
            turns,
            includes_private=self.request.include_private,
            exported_at=prepared.started_at,
            most_bytes=self.governance.budget.snapshot_bytes,
        )
        counts = snapshot.manifest.counts
        summary = f"{counts['long_term_memory']} memories, {counts['turns']} turns"
        return MemoryExportReport(True, snapshot, to_document(snapshot), prepared.report_transfer(summary))

    def _turns(self, reader: Reader, thread: Scope) -> tuple[ArchivedTurn, ...]:
        most = min(self.governance.budget.transcript.page_size, MOST_TURNS)
        found = reader.transcripts.last_turns(thread, most)
        if not found:
            raise NotFound(f"there is no conversation {thread.conversation!r:.80} here; nothing was exported")
        view = View.RAW_OWNER_ONLY if self.request.include_private else View.EXPORT
        # A deleted turn cannot be resumed from.
        turns, _ = archive_turns(reader, thread, found, view)
        return tuple(turn for turn in turns if turn.state is not TranscriptState.RAW_DELETED)

    def _memories(self, reader: Reader, partition: Partition, messages: set[str]) -> list[ArchivedMemory]:
        """The newest memories of the partition itself, without shared ones."""
        planes = _LASTING | GUARDED_PLANES if self.request.include_private else _LASTING
        memory_filter = ListFilter(kind=HitKind.MEMORY, planes=planes, status=Status.ACCEPTED)
        most = MOST_MEMORIES[TransferMode(self.request.mode)]
        memories: list[ArchivedMemory] = []
        before: str | None = None
        while len(memories) < most and (page := reader.records.page(memory_filter, before, _PAGE)):
            before = page[-1].id.partition("_")[2]
            own = [item for item in page if isinstance(item, MemoryRecord) and item.scope.partition == partition]
            links = reader.records.links([memory.id for memory in own]) if messages else {}
            skills = reader.skills.states([memory.id for memory in own])
            memories += [_current_revision(memory, links, messages, skills.get(memory.id)) for memory in own]
        return memories[:most]

    def record_count(self, result: MemoryExportReport) -> int:
        return 0 if result.snapshot is None else sum(result.snapshot.manifest.counts.values())


def _current_revision(
    memory: MemoryRecord, links: Links, messages: set[str], skill: SkillState | None
) -> ArchivedMemory:
    """The current revision, without author, reason and note, with evidence only from the exported turns."""
    archived = archive_memory([memory], links, skill and replace(skill, last_outcome_note=None))
    (revision,) = archived.revisions
    evidence = tuple(message_id for message_id in revision.evidence if message_id in messages)
    return replace(archived, revisions=(replace(revision, author=None, reason=None, evidence=evidence),))
