"""`request_transcript_lifecycle`: archive, restore, mask, delete raw or review one turn or a whole conversation.

It is one transaction; after its commit, masked and deleted content is never shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, ActorKind, Grant
from holdfast.domain.checks import checked_text
from holdfast.domain.events import Event, EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.ids import EventId, MessageId, OperationId, checked_id
from holdfast.domain.jobs import JobKind
from holdfast.domain.lifecycle import Trigger
from holdfast.domain.redaction import TranscriptGovernanceBudget, TranscriptRedactionReportItem, clip_items, redact_turn
from holdfast.domain.runtime_api.transcripts import (
    AffectedHostRef,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import TranscriptState, Transition, View, checked_member, state_after
from holdfast.errors import InvalidText, StoreCorrupt
from holdfast.ports import Reader, Transaction, TurnState
from holdfast.runtime.forget import scrub_store
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.job_queue import enqueue_for_store
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation

MAX_REASON_CHARS = 512
_STATES = 1_000


@dataclass(frozen=True, slots=True)
class _PreparedLifecycle:
    started: StartedOperation
    grant: Grant


@dataclass(slots=True)
class _MatchedTurns:
    """The matching turns: those that change or are reviewed, and the number of those that cannot change."""

    affected: list[TurnState] = field(default_factory=list)
    refused: int = 0


@dataclass(slots=True)
class _Details:
    """The report's details of the affected turns, limited by the budget."""

    message_ids: list[MessageId] = field(default_factory=list)
    host_refs: list[AffectedHostRef] = field(default_factory=list)
    items: list[TranscriptRedactionReportItem] = field(default_factory=list)
    redacted: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class RequestLifecycle(Write[_PreparedLifecycle, MemoryTranscriptLifecycleReport]):
    """Move a turn or a conversation through its lifecycle, or review it."""

    action: ClassVar[Action] = Action.TRANSCRIPT_LIFECYCLE
    governance: Governance
    address: ConversationAddress
    scope: Scope
    transition: Transition
    reason: str
    turn_id: str | None

    @classmethod
    def of(
        cls, governance: Governance, where: MemoryScope, request: MemoryTranscriptLifecycleRequest
    ) -> RequestLifecycle:
        address = ConversationAddress.of(governance, where)
        return cls(
            governance,
            address,
            address.scope,
            checked_member(Transition, request.transition, "transition"),
            _validate_reason(request.reason),
            None if request.turn_id is None else checked_id(request.turn_id, "turn_id"),
        )

    async def prepare(self, core: Core, grant: Grant) -> _PreparedLifecycle:
        return _PreparedLifecycle(StartedOperation(core, self.action, core.clock.now()), grant)

    def apply(self, transaction: Transaction, prepared: _PreparedLifecycle) -> MemoryTranscriptLifecycleReport:
        core, now = prepared.started.core, prepared.started.started_at
        thread = self.address.resolve(transaction)
        touched = self._match_turns(transaction, thread)
        # Loaded before the change, because deleted content cannot be read later; shown in the state after it.
        details = self._details(transaction, thread, touched.affected, prepared.grant)
        budget = self.governance.budget.transcript
        sequences = [turn.sequence for turn in touched.affected]
        found = transaction.transcripts.derived_from(thread, sequences, budget.derived_refs + 1) if sequences else ()
        derived, cut = clip_items(found, budget.derived_refs)
        changed = bool(sequences) and self.transition is not Transition.REVIEW
        messages = sum(turn.messages for turn in touched.affected)
        if changed:
            messages = transaction.transcripts.set_state(thread, sequences, self._target_state(touched), now)
        if changed and self.transition is Transition.DELETE_RAW:
            # Queued in the same commit as the deletion, so that the bytes are removed even after a crash.
            enqueue_for_store(transaction, core, JobKind.SCRUB)
        if changed and self._target_state(touched) is TranscriptState.ACTIVE:
            # Masked texts are not embedded, so they may lack vectors now.
            enqueue_for_store(transaction, core, JobKind.REEMBED)
        event = self._event(core, thread, touched, messages, now)
        transaction.events.append(event)
        summary = f"{self.transition}: {len(sequences)} turns {'changed' if changed else 'matched, nothing changed'}"
        return MemoryTranscriptLifecycleReport(
            key=key_of(thread),
            transition=self.transition,
            changed=changed,
            affected_turns=len(sequences),
            affected_messages=messages,
            refused_turns=touched.refused,
            affected_turn_ids=tuple(turn.id for turn in touched.affected),
            affected_message_ids=tuple(details.message_ids),
            affected_host_refs=tuple(details.host_refs),
            redacted_host_refs=details.redacted,
            host_ref_redactions=tuple(details.items),
            derived_memory_refs=derived,
            profile_budget_applied=cut or details.cut,
            reason=self.reason,
            requested_by=str(prepared.grant.actor),
            requested_at=now,
            scrubbed=None,
            lifecycle_report=prepared.started.report(
                summary, changed=changed, trigger=Trigger.OPERATOR_REQUESTED, event_id=event.id
            ),
        )

    def _match_turns(self, reader: Reader, thread: Scope) -> _MatchedTurns:
        touched = _MatchedTurns()
        for turn in self._iter_turns(reader, thread):
            next_state = state_after(turn.state, self.transition)
            if next_state is None:
                touched.refused += 1
            elif next_state is not turn.state or self.transition is Transition.REVIEW:
                touched.affected.append(turn)
        return touched

    def _iter_turns(self, reader: Reader, thread: Scope) -> Iterator[TurnState]:
        if self.turn_id is not None:
            turn = reader.transcripts.turn(thread, self.turn_id)
            if turn is not None:
                yield TurnState(turn.sequence, turn.id, turn.state, len(turn.messages), turn.committed_at)
            return
        last = 0
        while page := reader.transcripts.turn_states(thread, last, _STATES):
            yield from page
            last = page[-1].sequence

    def _target_state(self, touched: _MatchedTurns) -> TranscriptState:
        """The new state of all affected turns: a transition leads to exactly one."""
        goals = {state_after(turn.state, self.transition) for turn in touched.affected}
        (goal,) = goals
        assert goal is not None
        return goal

    def _details(self, reader: Reader, thread: Scope, affected: Sequence[TurnState], grant: Grant) -> _Details:
        budget = self.governance.budget.transcript
        view = View.OPERATOR_AUDIT if grant.actor.kind is ActorKind.OPERATOR else View.HOST_UI
        listed, cut = clip_items(affected, budget.page_size)
        details = _Details(cut=cut)
        for state in listed:
            self._add_details(reader, thread, state, view, budget, details)
        return details

    def _add_details(
        self,
        reader: Reader,
        thread: Scope,
        state: TurnState,
        view: View,
        budget: TranscriptGovernanceBudget,
        details: _Details,
    ) -> None:
        try:
            turn = reader.transcripts.turn(thread, state.id)
        except StoreCorrupt:
            return  # An unreadable turn is masked or deleted all the same; `repair_transcript` reports it.
        if turn is None:
            return
        shown = redact_turn(replace(turn, state=state_after(turn.state, self.transition) or turn.state), view, budget)
        details.message_ids.extend(message.id for message in turn.messages)
        details.host_refs.extend(AffectedHostRef(turn.id, each.index, each.ref) for each in shown.host_refs)
        details.redacted += shown.audit.redacted_host_refs
        room = budget.redaction_items - len(details.items)
        items, cut = clip_items([item for item in shown.redactions if item.host_ref is not None], room)
        details.items.extend(items)
        details.cut |= cut or shown.profile_budget_applied

    def _event(self, core: Core, thread: Scope, touched: _MatchedTurns, messages: int, now: datetime) -> Event:
        sequence = touched.affected[0].sequence if self.turn_id is not None and touched.affected else None
        return Event(
            id=EventId(core.ids.new(ids.EVENT)),
            kind=EventKind.OPERATOR,
            scope=thread,
            at=now,
            details={
                "operation": self.action.value,
                "transition": self.transition.value,
                "reason": self.reason,
                "sequence": sequence,
                "turns": len(touched.affected),
                "refused_turns": touched.refused,
                "messages": messages,
            },
        )

    async def finish(
        self, core: Core, result: MemoryTranscriptLifecycleReport, operation_id: OperationId
    ) -> MemoryTranscriptLifecycleReport:
        if result.changed and self.transition is Transition.DELETE_RAW:
            return replace(result, scrubbed=await scrub_store(core))
        if result.changed and self.transition is Transition.RESTORE:
            core.wake()
        return result

    def record_count(self, result: MemoryTranscriptLifecycleReport) -> int:
        return result.affected_messages if result.changed else 0

    def without_text(self, result: MemoryTranscriptLifecycleReport) -> MemoryTranscriptLifecycleReport:
        return replace(result, affected_host_refs=(), host_ref_redactions=(), reason="")

    def with_text(self, reader: Reader, result: MemoryTranscriptLifecycleReport) -> MemoryTranscriptLifecycleReport:
        return replace(result, reason=self.reason)


def _validate_reason(reason: object) -> str:
    if isinstance(reason, str) and not reason.strip():
        raise InvalidText("reason", "is empty; give the reason, it is stored with the event")
    return checked_text(reason, "reason", max_chars=MAX_REASON_CHARS)
