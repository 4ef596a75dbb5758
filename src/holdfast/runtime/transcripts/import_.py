"""`import_`: import a continuity snapshot, all or nothing. Repeats of the same snapshot change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, ActorKind, Grant
from holdfast.domain.archive_format import Archived, ArchivedMemory, ArchivedRevision, ArchivedTurn, is_private
from holdfast.domain.canonical import derive_id
from holdfast.domain.checks import checked_flag
from holdfast.domain.continuity_snapshot import MOST_MEMORIES, open_summary, read_snapshot, summary_text
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import DEFAULT_CHANNEL, MemoryScope
from holdfast.domain.ids import EventId
from holdfast.domain.lifecycle import admit, checked_mode
from holdfast.domain.memory import ALWAYS, Plane, Status, Trust
from holdfast.domain.runtime_api.exchange import (
    ContinuitySnapshot,
    MemoryImportReport,
    MemoryImportRequest,
    SummaryLine,
    Taken,
    TransferMode,
)
from holdfast.domain.scope import CONVERSATION_PARTS, Partition, Scope
from holdfast.domain.transcript_turns import checked_member
from holdfast.errors import InvalidSnapshot
from holdfast.loops import run_in_thread
from holdfast.ports import Transaction
from holdfast.runtime.event_log import append_event
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.transcripts.budgets import require_budget
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation
from holdfast.runtime.transcripts.record_import import IndexedRecord, RecordImporter, index_records

# Maximum trust of imported memories by the kind of actor that imports them.
_VOUCHED = {ActorKind.OPERATOR: Trust.STATED, ActorKind.USER: Trust.STATED}


@dataclass(frozen=True, slots=True)
class _PreparedImport:
    started: StartedOperation
    author: str
    most_trust: Trust
    snapshot: ContinuitySnapshot
    memories: Sequence[IndexedRecord]
    turns: Sequence[IndexedRecord]
    withheld: int


@dataclass(frozen=True, slots=True)
class ImportContinuity(Write[_PreparedImport, MemoryImportReport]):
    """Import a snapshot. It is verified before anything is written; then all of it commits at once.

    Its memories go to the runtime's identity, its turns to the target conversation. A bootstrap imports no turns, but
    stores their summary as an episode.
    """

    action: ClassVar[Action] = Action.IMPORT
    governance: Governance
    request: MemoryImportRequest

    def __post_init__(self) -> None:
        checked_member(TransferMode, self.request.mode, "mode")
        checked_flag(self.request.include_private, "include_private")
        checked_mode(self.request.mode_input)
        if (where := self._requested_scope()) is not None:
            ConversationAddress.of(self.governance, where)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    def _requested_scope(self) -> MemoryScope | None:
        if self.request.scope is not None:
            return self.request.scope
        target = self.request.target_chat_id
        return None if target is None else MemoryScope(chat_id=target)

    def _target_scope(self, snapshot: ContinuitySnapshot) -> MemoryScope:
        """The conversation named by the request, else the snapshot's own."""
        channel = snapshot.origin.get("channel", DEFAULT_CHANNEL)
        return self._requested_scope() or MemoryScope(channel=channel, conversation_id=snapshot.chat_id)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedImport:
        admission = admit(self.action, self.request.mode_input)
        started = StartedOperation(core, self.action, core.clock.now(), admission)
        space, max_bytes = self.scope.space, self.governance.budget.snapshot_bytes
        snapshot = await run_in_thread(lambda: read_snapshot(self.request.snapshot, space, max_bytes))
        if self._mode is TransferMode.FULL_RESTORE and snapshot.mode is TransferMode.BOOTSTRAP:
            raise InvalidSnapshot("mode", "is bootstrap, which holds no turns to restore; import it as bootstrap")
        memories, turns = self._select_records(snapshot)
        open_memories, open_turns = self._without_private(memories), self._without_private(turns)
        if self._mode is TransferMode.BOOTSTRAP and (lines := open_summary(snapshot)):
            open_memories = [*open_memories, self._episode(snapshot, lines)]
        return _PreparedImport(
            started=started,
            author=str(grant.actor),
            most_trust=_VOUCHED.get(grant.actor.kind, Trust.MODEST),
            snapshot=snapshot,
            memories=await index_records(core, open_memories),
            turns=await index_records(core, open_turns),
            withheld=len(memories) + len(turns) - len(self._without_private(memories)) - len(open_turns),
        )

    @property
    def _mode(self) -> TransferMode:
        return TransferMode(self.request.mode)

    def _select_records(self, snapshot: ContinuitySnapshot) -> tuple[Sequence[ArchivedMemory], Sequence[ArchivedTurn]]:
        memories = snapshot.long_term_memory[: MOST_MEMORIES[self._mode]]
        state = snapshot.execution_state
        return memories, state.turns if state is not None and self._mode is TransferMode.FULL_RESTORE else ()

    def _without_private(self, some: Sequence[ArchivedMemory | ArchivedTurn]) -> list[Archived]:
        return [each for each in some if self.request.include_private or not is_private(each)]

    def _episode(self, snapshot: ContinuitySnapshot, lines: Sequence[SummaryLine]) -> ArchivedMemory:
        made_for = f"{snapshot.manifest.content_fingerprint}/{self.scope.partition}"
        revision = ArchivedRevision(
            scope=self.scope,
            plane=Plane.EPISODE,
            text=summary_text(snapshot.chat_id, lines),
            trust=Trust.LOW,
            status=Status.ACCEPTED,
            validity=ALWAYS,
            recorded_at=snapshot.exported_at,
            # If the messages are in this store, link them: masking or forgetting them then covers this episode too.
            evidence=tuple(dict.fromkeys(line.message_id for line in lines)),
        )
        return ArchivedMemory(derive_id(ids.MEMORY, snapshot.exported_at, made_for, "episode"), (revision,))

    def apply(self, transaction: Transaction, prepared: _PreparedImport) -> MemoryImportReport:
        snapshot = prepared.snapshot
        if not prepared.started.is_admitted:
            return self._report(prepared, Taken(), self._target_scope(snapshot).conversation_id or "", None)
        thread = ConversationAddress.of(self.governance, self._target_scope(snapshot)).resolve(transaction)
        intake = self._importer(prepared, thread)
        taken = Taken(withheld=prepared.withheld)
        for record in (*prepared.turns, *prepared.memories):
            taken += intake.import_record(
                transaction, replace(record, archived=self._move_to_own_scope(record.archived, thread))
            )
        event_id = None
        if taken.changed:
            require_budget(transaction, self.governance)
            event_id = append_event(
                transaction,
                prepared.started.core,
                EventKind.LIFECYCLE,
                self.scope,
                keep=self.governance.budget.events,
                content_hash=snapshot.manifest.content_fingerprint,
                details={"operation": self.action.value, "turns": taken.turns, "memories": taken.memories},
            )
        return self._report(prepared, taken, thread.conversation or "", event_id)

    def _importer(self, prepared: _PreparedImport, thread: Scope) -> RecordImporter:
        """Keep the ids only in their original conversation: elsewhere they may be in use."""
        origin = prepared.snapshot.origin
        partition = thread.partition
        at_home = Scope(**{name: value for name, value in origin.items() if name != "channel"}).partition == partition
        same = at_home and (prepared.snapshot.chat_id, origin.get("channel")) == (thread.conversation, thread.channel)
        # A bootstrap imports no turns: the messages of its summary are here already, or nowhere.
        same |= at_home and self._mode is TransferMode.BOOTSTRAP
        return RecordImporter(
            core=prepared.started.core,
            messages_home=None if same else str(thread.given()),
            memories_home=None if at_home else _partition_name(partition),
            author=prepared.author,
            most_trust=prepared.most_trust,
        )

    def _move_to_own_scope(self, archived: Archived, thread: Scope) -> Archived:
        """Move the record into the runtime's own scope, whatever scope it names."""
        if isinstance(archived, ArchivedTurn):
            place = {name: getattr(thread, name) for name in CONVERSATION_PARTS}
            return replace(archived, scope=replace(self._own_scope(archived.scope), **place))
        assert isinstance(archived, ArchivedMemory)
        revisions = tuple(replace(each, scope=self._own_scope(each.scope)) for each in archived.revisions)
        return replace(archived, revisions=revisions)

    def _own_scope(self, scope: Scope) -> Scope:
        if scope.partition == self.scope.partition:
            return scope
        return replace(scope, subject=self.scope.subject, agent=self.scope.agent)

    def _report(
        self, prepared: _PreparedImport, taken: Taken, conversation: str, event_id: EventId | None
    ) -> MemoryImportReport:
        summary = f"{taken.memories} memories, {taken.turns} turns, {taken.known} known"
        return MemoryImportReport(
            accepted=prepared.started.is_admitted,
            changed=taken.changed,
            mode=self._mode,
            conversation=conversation,
            content_fingerprint=prepared.snapshot.manifest.content_fingerprint,
            taken=taken,
            lifecycle_report=prepared.started.report_transfer(summary, changed=taken.changed, event_id=event_id),
        )

    def has_work(self, core: Core, result: MemoryImportReport) -> bool:
        return result.changed and not core.embedder.local

    def record_count(self, result: MemoryImportReport) -> int:
        return result.taken.messages + result.taken.memories


def _partition_name(partition: Partition) -> str:
    return f"{partition.space}/{partition.kind}/{partition.owner}"
