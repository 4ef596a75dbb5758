"""`finalize_turn_and_maintain`: commit the new part of a delivered turn and queue learning from it, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.candidates import is_of_a_user
from holdfast.domain.capabilities import Gate
from holdfast.domain.checks import Metadata, checked_flag, checked_instance, checked_instances, checked_text
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import MessageId, checked_id
from holdfast.domain.jobs import JobKind, NewJob
from holdfast.domain.lifecycle import Disposition, ModeInput, Trigger, admit, checked_mode
from holdfast.domain.profiles import Pressure, pressure_of
from holdfast.domain.resent_history import count_known_messages, is_long_enough, match_redelivery
from holdfast.domain.runtime_api.transcripts import (
    CanonicalTurnDelta,
    FinalizeReport,
    MemoryTranscriptCommitReport,
    PrivateGardenSelfWork,
    SessionCommit,
    TurnGovernance,
    TurnMaintenance,
    TurnMessage,
    TurnProtocol,
    TurnSource,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    DELIVERIES,
    ActorAttribution,
    DeliveryStatus,
    SkippedReason,
    TranscriptTurn,
    TurnDelta,
    Utterance,
    checked_member,
)
from holdfast.errors import Conflict, InvalidInput
from holdfast.ports import Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.indexing import IndexedText
from holdfast.runtime.job_queue import enqueue, enqueue_indexing
from holdfast.runtime.record_writes import add_turn
from holdfast.runtime.transcripts.budgets import require_budget
from holdfast.runtime.transcripts.commit import commit_report, skipped_report
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation
from holdfast.runtime.transcripts.maintenance_job import NOTHING_TO_LEARN
from holdfast.runtime.transcripts.turn_input import (
    EXTERNAL_CONTENT_USED,
    TurnContext,
    ValidatedMessage,
    new_turn,
    validate_message,
    validate_turn_id,
    with_metadata,
)

# Without a model, rules learn from the turn, as in the library.
BY_RULES = "learns_by_rules"
_MAX_PARTS = 16
_MAX_CANDIDATES = 500
_MAX_SOURCE_CHARS = 1_024


@dataclass(frozen=True, slots=True)
class _PreparedFinalize:
    """`entries` belong to the last messages: those that seemed new."""

    started: StartedOperation
    entries: Sequence[IndexedText]


@dataclass(frozen=True, slots=True)
class _FinalizePlan:
    """The index of the first new message and the id of the turn to add, or the reason why nothing is new."""

    first: int
    turn_id: str
    reason: SkippedReason | None = None
    there: TranscriptTurn | None = None


@dataclass(frozen=True, slots=True)
class FinalizeTurn(Write[_PreparedFinalize, FinalizeReport]):
    """Commit a delivered turn. Idempotent by the turn's id and by the end of the conversation.

    A failed turn may be delivered later under the same id: its new part becomes a separate turn, whose id is the first
    one's plus a number.
    """

    action: ClassVar[Action] = Action.FINALIZE_TURN
    governance: Governance
    address: ConversationAddress
    scope: Scope
    turn_id: str
    delta: TurnDelta
    messages: tuple[ValidatedMessage, ...]
    circumstances: TurnContext
    candidate_ids: tuple[str, ...]
    mode: ModeInput
    pressure: Pressure

    @classmethod
    def of(
        cls, governance: Governance, where: MemoryScope, delta: CanonicalTurnDelta, mode: ModeInput, pressure: str
    ) -> FinalizeTurn:
        address = ConversationAddress.of(governance, where)
        turn_id = validate_turn_id(delta.turn_id)
        circumstances = TurnContext(_turn_attribution(delta), delta.delivery_status, delta.host_refs)  # type: ignore[arg-type]
        inputs, observations, answer = _validate_messages(governance, delta, circumstances.attribution)
        turn = TurnDelta(
            checked_member(DeliveryStatus, delta.delivery_status, "delivery_status"),
            tuple(each.role_and_text for each in inputs),
            None if answer is None else answer.draft.text,
            tuple(each.draft.text for each in observations),
        )
        return cls(
            governance,
            address,
            address.scope,
            turn_id,
            turn,
            (*inputs, *observations, *(() if answer is None else (answer,)))[: len(turn.messages)],
            circumstances,
            _validate_candidate_ids(delta.candidate_ids),
            checked_mode(mode),
            pressure_of(pressure),
        )

    async def prepare(self, core: Core, grant: Grant) -> _PreparedFinalize:
        started = StartedOperation(core, self.action, core.clock.now())
        if not self.messages:
            return _PreparedFinalize(started, ())
        tail = await core.store.read(grant, lambda reader: self._tail(reader, self.address.resolve(reader)))
        new = self.messages[count_known_messages(self.delta, tail) :]
        entries = await indexing.make_entries(core, [given.draft.text for given in new]) if new else ()
        return _PreparedFinalize(started, entries)

    def _tail(self, reader: Reader, thread: Scope) -> Sequence[Utterance]:
        """The last messages: enough to find the dialogue among tool output and private messages."""
        limit = 2 * len(self.messages) + 32
        tail = reader.transcripts.tail(thread, limit)
        while len(tail) == limit and not is_long_enough(tail, self.delta):
            limit *= 4
            tail = reader.transcripts.tail(thread, limit)
        return tail

    def apply(self, transaction: Transaction, prepared: _PreparedFinalize) -> FinalizeReport:
        started = prepared.started
        thread = self.address.resolve(transaction)
        plan = self._plan(transaction, thread)
        if plan.reason is None:
            commit = self._commit(transaction, prepared, thread, plan)
        else:
            commit = skipped_report(started, transaction, thread, plan.reason, plan.there, self.turn_id)
        if commit.sequence is not None:
            self.address.store_alias(transaction, thread, started.started_at)
        maintenance = self._maintenance(transaction, started.core, thread, commit)
        summary = f"{commit.lifecycle_report.result_summary}; maintenance: {maintenance.disposition}"
        return FinalizeReport(
            session_commit=SessionCommit(commit.committed, commit.skipped_reason),
            transcript_commit=commit,
            maintenance=maintenance,
            private_garden_self_work=PrivateGardenSelfWork(),
            semantic_governance=TurnGovernance(self.candidate_ids),
            lifecycle_report=started.report(summary, changed=commit.committed, trigger=Trigger.POST_REPLY),
        )

    def _plan(self, reader: Reader, thread: Scope) -> _FinalizePlan:
        reason = DELIVERIES[self.delta.status].reason
        if reason is not None:
            return _FinalizePlan(0, self.turn_id, reason)
        parts = self._parts(reader, thread)
        if not parts:
            first = count_known_messages(self.delta, self._tail(reader, thread))
        else:
            committed = [Utterance(message.role, message.text) for part in parts for message in part.messages]
            matched = match_redelivery(committed, [given.role_and_text for given in self.messages])
            if matched is None or len(parts) == _MAX_PARTS:
                raise Conflict(
                    f"turn_id: {self.turn_id!r:.80} was committed with other content; give each turn an id of its own"
                )
            first = matched
        if first == len(self.messages):
            existing = parts or reader.transcripts.last_turns(thread, 1)
            return _FinalizePlan(
                first, self.turn_id, SkippedReason.ALREADY_COMMITTED, existing[-1] if existing else None
            )
        return _FinalizePlan(first, f"{self.turn_id}#part={len(parts) + 1}" if parts else self.turn_id)

    def _parts(self, reader: Reader, thread: Scope) -> list[TranscriptTurn]:
        """The turns already committed under this id: the first one and its later parts."""
        parts: list[TranscriptTurn] = []
        while len(parts) < _MAX_PARTS:
            found = reader.transcripts.turn(thread, f"{self.turn_id}#part={len(parts) + 1}" if parts else self.turn_id)
            if found is None:
                break
            parts.append(found)
        return parts

    def _commit(
        self, transaction: Transaction, prepared: _PreparedFinalize, thread: Scope, plan: _FinalizePlan
    ) -> MemoryTranscriptCommitReport:
        core, count = prepared.started.core, len(self.messages)
        # The tail may have changed since `prepare`: messages that became new have no vectors yet.
        late = max(0, count - len(prepared.entries) - plan.first)
        entries = [
            *(IndexedText(core.analyzer.analyze(given.draft.text), ()) for given in self.messages[plan.first :][:late]),
            *prepared.entries[len(prepared.entries) - (count - plan.first - late) :],
        ]
        new = self.messages[plan.first :]
        messages = zip(new, entries, strict=True)
        turn = new_turn(core, thread, plan.turn_id, messages, self.circumstances, prepared.started.started_at)
        stored = add_turn(transaction, core, turn)
        if stored.new:
            require_budget(transaction, self.governance)
        waiting = [str(stored.ids[place]) for place in sorted(stored.new) if not core.embedder.local or place < late]
        enqueue_indexing(transaction, core, thread, waiting)
        return commit_report(prepared.started, transaction, thread, plan.turn_id, stored)

    def _maintenance(
        self, transaction: Transaction, core: Core, thread: Scope, commit: MemoryTranscriptCommitReport
    ) -> TurnMaintenance:
        """Queue the learning job in the same commit, so that it exists if and only if the turn does."""
        if not commit.committed:
            return TurnMaintenance(Disposition.SKIP, commit.skipped_reason)
        withheld = self.governance.catalogue["maintain"].reason
        lacks_model = withheld is Gate.CONFIGURED and "maintain" not in self.governance.switched_off
        if withheld is not None and not lacks_model:
            return TurnMaintenance(Disposition.REJECT, f"not_available_because_of_{withheld}")
        admission = admit(Action.MAINTAIN, self.mode, self.pressure)
        if admission.disposition is not Disposition.EXECUTE_NOW:
            return TurnMaintenance(admission.disposition, admission.reason, admission.retry_after_ms)
        kind, reason, message_ids = JobKind.MAINTAIN, None, tuple(commit.message_ids)
        if lacks_model or core.curator is None:
            kind, reason, message_ids = JobKind.EXTRACT, BY_RULES, _own_words(transaction, thread, commit)
        if not message_ids:
            return TurnMaintenance(Disposition.SKIP, NOTHING_TO_LEARN)
        job_id = enqueue(transaction, core, NewJob(kind, thread, message_ids))
        return TurnMaintenance(Disposition.EXECUTE_NOW, reason, job_id=job_id)

    def has_work(self, core: Core, result: FinalizeReport) -> bool:
        return result.transcript_commit.committed

    def record_count(self, result: FinalizeReport) -> int:
        return len(result.transcript_commit.message_ids) if result.transcript_commit.committed else 0


def _own_words(reader: Reader, thread: Scope, commit: MemoryTranscriptCommitReport) -> tuple[MessageId, ...]:
    """Return the committed messages that a user vouches for: rules learn from no others."""
    turn = reader.transcripts.turn(thread, commit.turn_id)
    messages = () if turn is None else turn.messages
    return tuple(
        message.id
        for message in messages
        if message.id in commit.message_ids and message.role is Role.USER and is_of_a_user(message.authority)
    )


def _turn_attribution(delta: CanonicalTurnDelta) -> ActorAttribution | None:
    if delta.actor is not None:
        checked_instance(delta.actor, ActorAttribution, "actor")
    if delta.subject is None:
        return delta.actor
    actor = delta.actor or ActorAttribution()
    if actor.subject_id not in (None, delta.subject):
        raise InvalidInput("subject", "differs from the actor's subject_id; give one of them, or the same")
    return replace(actor, subject_id=delta.subject)


def _validate_messages(
    governance: Governance, delta: CanonicalTurnDelta, attribution: ActorAttribution | None
) -> tuple[list[ValidatedMessage], list[ValidatedMessage], ValidatedMessage | None]:
    """Validate the input messages, the tool observations and the answer."""
    source = _source_metadata(delta.source)
    if checked_flag(delta.external_content_used, "external_content_used"):
        source = {**source, EXTERNAL_CONTENT_USED: True}

    def of(message: object, role: Role | None, field: str) -> ValidatedMessage:
        turn_message = TurnMessage(message) if isinstance(message, str) else message
        if not isinstance(turn_message, TurnMessage):
            raise InvalidInput(field, f"expected a TurnMessage or a text, got {type(turn_message).__name__}")
        if role is not None:
            turn_message = replace(turn_message, role=role)
        return with_metadata(validate_message(turn_message, governance, attribution), source)

    inputs = [
        of(each, None, "input_messages") for each in checked_instances(delta.input_messages, object, "input_messages")
    ]
    tools = [
        of(each, Role.TOOL, "tool_observations")
        for each in checked_instances(delta.tool_observations, object, "tool_observations")
    ]
    answer = delta.assistant_message
    return inputs, tools, None if answer is None else of(answer, Role.ASSISTANT, "assistant_message")


def _source_metadata(source: TurnSource) -> Metadata:
    checked_instance(source, TurnSource, "source")
    parts = {part.name: getattr(source, part.name) for part in fields(source)}
    values = {name: value for name, value in parts.items() if value is not None}
    if source.protocol is not None:
        values["protocol"] = checked_member(TurnProtocol, source.protocol, "source.protocol").value
    return {
        f"source.{name}": checked_text(value, f"source.{name}", max_chars=_MAX_SOURCE_CHARS)
        for name, value in values.items()
    }


def _validate_candidate_ids(candidate_ids: object) -> tuple[str, ...]:
    found = checked_instances(candidate_ids, str, "candidate_ids")
    if len(found) > _MAX_CANDIDATES:
        raise InvalidInput("candidate_ids", f"has {len(found)} ids; at most {_MAX_CANDIDATES} are allowed")
    return tuple(checked_id(each, "candidate_ids") for each in found)
