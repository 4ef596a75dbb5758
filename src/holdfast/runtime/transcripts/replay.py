"""`replay_transcript` and `export_transcript`: return a page of a conversation, always redacted by a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from holdfast.domain.access import Action, Grant, check_view
from holdfast.domain.checks import checked_whole
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.lifecycle import Admission, ModeInput, Trigger, admit, checked_mode
from holdfast.domain.redaction import RedactedTranscriptSlice, redact_turns
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptExportReport,
    MemoryTranscriptExportRequest,
    MemoryTranscriptReplayReport,
    MemoryTranscriptReplayRequest,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import MAX_SEQUENCE, View, checked_member, citation
from holdfast.errors import InvalidCursor
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.transcripts.conversation_address import ADMITTED, ConversationAddress, StartedOperation

MOST_TURNS = 1_000_000
_PageRequest = MemoryTranscriptReplayRequest | MemoryTranscriptExportRequest
R = TypeVar("R", MemoryTranscriptReplayReport, MemoryTranscriptExportReport)


@dataclass(frozen=True, slots=True)
class TranscriptPageQuery:
    """The requested page of a conversation, and its view."""

    governance: Governance
    address: ConversationAddress
    view: View
    limit: int
    cursor: str | None

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, request: _PageRequest) -> TranscriptPageQuery:
        cursor: object = request.cursor
        if cursor is not None and not isinstance(cursor, str):
            raise InvalidCursor("cursor", f"cursor_not_found: expected a text, got {type(cursor).__name__}")
        return cls(
            governance,
            ConversationAddress.of(governance, where),
            checked_member(View, request.view, "view"),
            checked_whole(request.limit, "limit", 1, MOST_TURNS),
            cursor,
        )


@dataclass(frozen=True, slots=True)
class _TranscriptPage:
    """A redacted page. `clipped`: the profile's page size is below the requested limit."""

    thread: Scope
    slice: RedactedTranscriptSlice
    next_cursor: str | None
    clipped: bool

    def summary(self, view: View) -> str:
        audit = self.slice.audit
        return f"{audit.turns} turns as {view}, {audit.redacted_messages} of {audit.messages} messages withheld"

    def fields_of_report(self, view: View) -> dict[str, Any]:
        """The fields that the reports of both verbs have."""
        return {
            "key": key_of(self.thread),
            "view": view,
            "slice": self.slice,
            "next_cursor": self.next_cursor,
            "has_more": self.next_cursor is not None,
            "profile_budget_applied": self.clipped or self.slice.profile_budget_applied,
        }


def _load_page(reader: Reader, wanted: TranscriptPageQuery) -> _TranscriptPage:
    budget = wanted.governance.budget.transcript
    thread = wanted.address.resolve(reader)
    after = 0 if wanted.cursor is None else resolve_cursor(reader, thread, wanted.cursor)
    limit = min(wanted.limit, budget.page_size)
    turns = reader.transcripts.turns(thread, after, limit + 1)
    shown = redact_turns(turns[:limit], wanted.view, budget)
    more = len(turns) > limit
    cursor = f"{turns[limit - 1].sequence}:{turns[limit - 1].id}" if more else None
    return _TranscriptPage(thread, shown, cursor, more and limit < wanted.limit)


def resolve_cursor(reader: Reader, thread: Scope, cursor: str) -> int:
    """Decode a cursor to the sequence a page starts after. It must name a turn of this conversation."""
    number, _, turn_id = cursor.partition(":")
    if turn_id and number.isascii() and number.isdigit() and 0 < (sequence := int(number[:20])) <= MAX_SEQUENCE:
        found = reader.transcripts.turn_states(thread, sequence - 1, 1)
        if found and (found[0].sequence, found[0].id) == (sequence, turn_id):
            return sequence
    raise InvalidCursor(
        "cursor", "cursor_not_found: names no turn of this conversation; pass on the `next_cursor` of a page unchanged"
    )


class _PageRead(Read[StartedOperation, R]):
    """Common base of both verbs."""

    __slots__ = ()
    wanted: TranscriptPageQuery

    def _start(self, core: Core, grant: Grant, admission: Admission) -> StartedOperation:
        check_view(grant.actor, self.wanted.view, self.scope.partition)
        return StartedOperation(core, self.action, core.clock.now(), admission)

    def record_count(self, result: R) -> int:
        return result.slice.audit.messages


@dataclass(frozen=True, slots=True)
class ReplayTranscript(_PageRead[MemoryTranscriptReplayReport]):
    """A page of a conversation in one view."""

    action: ClassVar[Action] = Action.REPLAY_TRANSCRIPT
    scope: Scope
    wanted: TranscriptPageQuery

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, request: MemoryTranscriptReplayRequest) -> ReplayTranscript:
        wanted = TranscriptPageQuery.of(governance, where, request)
        return cls(wanted.address.scope, wanted)

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        return self._start(core, grant, ADMITTED)

    def apply(self, reader: Reader, prepared: StartedOperation) -> MemoryTranscriptReplayReport:
        page, view = _load_page(reader, self.wanted), self.wanted.view
        report = prepared.report(page.summary(view))
        return MemoryTranscriptReplayReport(**page.fields_of_report(view), lifecycle_report=report)


@dataclass(frozen=True, slots=True)
class ExportTranscript(_PageRead[MemoryTranscriptExportReport]):
    """A page of a conversation for export, with citations."""

    action: ClassVar[Action] = Action.EXPORT_TRANSCRIPT
    scope: Scope
    wanted: TranscriptPageQuery
    mode: ModeInput

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, request: MemoryTranscriptExportRequest) -> ExportTranscript:
        wanted = TranscriptPageQuery.of(governance, where, request)
        return cls(wanted.address.scope, wanted, checked_mode(request.mode_input))

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        return self._start(core, grant, admit(self.action, self.mode))

    def apply(self, reader: Reader, prepared: StartedOperation) -> MemoryTranscriptExportReport:
        view = self.wanted.view
        if prepared.is_admitted:
            page = _load_page(reader, self.wanted)
            summary = page.summary(view)
        else:
            nothing = redact_turns((), view, self.wanted.governance.budget.transcript)
            page = _TranscriptPage(self.wanted.address.stated, nothing, None, False)
            summary = f"nothing exported: {prepared.admission.reason}"
        return MemoryTranscriptExportReport(
            **page.fields_of_report(view),
            lifecycle_report=prepared.report(summary, trigger=Trigger.SNAPSHOT_TRANSFER),
            citations=tuple(citation(key_of(page.thread), turn.id) for turn in page.slice.turns),
        )
