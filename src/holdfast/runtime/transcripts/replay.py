"""`replay_transcript` and `export_transcript`: return a page of a conversation, always redacted by a view."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from holdfast.domain.access import Action, Grant, check_view
from holdfast.domain.checks import checked_whole
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.lifecycle import (
    Admission,
    Disposition,
    LifecycleReport,
    ModeInput,
    Trigger,
    admit,
    checked_mode,
)
from holdfast.domain.redaction import RedactedSlice, redact_turns
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
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, lifecycle_report

MOST_TURNS = 1_000_000


@dataclass(frozen=True, slots=True)
class PreparedReplay:
    core: Core
    started_at: datetime
    admission: Admission


@dataclass(frozen=True, slots=True)
class TranscriptPageQuery:
    """The requested page of a conversation, and its view."""

    governance: Governance
    address: ConversationAddress
    view: View
    limit: int
    cursor: str | None

    @classmethod
    def of(
        cls, governance: Governance, where: MemoryScope, view: object, limit: object, cursor: object
    ) -> TranscriptPageQuery:
        if cursor is not None and not isinstance(cursor, str):
            raise InvalidCursor("cursor", f"cursor_not_found: expected a text, got {type(cursor).__name__}")
        return cls(
            governance,
            ConversationAddress.of(governance, where),
            checked_member(View, view, "view"),
            checked_whole(limit, "limit", 1, MOST_TURNS),
            cursor,
        )


@dataclass(frozen=True, slots=True)
class _TranscriptPage:
    """A redacted page. `clipped`: the profile's page size is below the requested limit."""

    thread: Scope
    slice: RedactedSlice
    next_cursor: str | None
    clipped: bool

    @property
    def profile_budget_applied(self) -> bool:
        return self.clipped or self.slice.profile_budget_applied


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


def _summary(page: _TranscriptPage, view: View) -> str:
    audit = page.slice.audit
    return f"{audit.turns} turns as {view}, {audit.redacted_messages} of {audit.messages} messages withheld"


@dataclass(frozen=True, slots=True)
class ReplayTranscript(Read[PreparedReplay, MemoryTranscriptReplayReport]):
    """A page of a conversation in one view."""

    action: ClassVar[Action] = Action.REPLAY_TRANSCRIPT
    scope: Scope
    wanted: TranscriptPageQuery

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, request: MemoryTranscriptReplayRequest) -> ReplayTranscript:
        wanted = TranscriptPageQuery.of(governance, where, request.view, request.limit, request.cursor)
        return cls(wanted.address.scope, wanted)

    async def prepare(self, core: Core, grant: Grant) -> PreparedReplay:
        check_view(grant.actor, self.wanted.view, self.scope.partition)
        return PreparedReplay(core, core.clock.now(), Admission(Disposition.EXECUTE_NOW))

    def apply(self, reader: Reader, prepared: PreparedReplay) -> MemoryTranscriptReplayReport:
        page = _load_page(reader, self.wanted)
        return MemoryTranscriptReplayReport(
            key=key_of(page.thread),
            view=self.wanted.view,
            slice=page.slice,
            next_cursor=page.next_cursor,
            has_more=page.next_cursor is not None,
            profile_budget_applied=page.profile_budget_applied,
            lifecycle_report=_lifecycle_report(self.action, prepared, _summary(page, self.wanted.view)),
        )

    def record_count(self, result: MemoryTranscriptReplayReport) -> int:
        return result.slice.audit.messages


@dataclass(frozen=True, slots=True)
class ExportTranscript(Read[PreparedReplay, MemoryTranscriptExportReport]):
    """A page of a conversation for export, with citations."""

    action: ClassVar[Action] = Action.EXPORT_TRANSCRIPT
    scope: Scope
    wanted: TranscriptPageQuery
    mode: ModeInput

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, request: MemoryTranscriptExportRequest) -> ExportTranscript:
        wanted = TranscriptPageQuery.of(governance, where, request.view, request.limit, request.cursor)
        return cls(wanted.address.scope, wanted, checked_mode(request.mode_input))

    async def prepare(self, core: Core, grant: Grant) -> PreparedReplay:
        check_view(grant.actor, self.wanted.view, self.scope.partition)
        return PreparedReplay(core, core.clock.now(), admit(self.action, self.mode))

    def apply(self, reader: Reader, prepared: PreparedReplay) -> MemoryTranscriptExportReport:
        if prepared.admission.disposition is Disposition.EXECUTE_NOW:
            page = _load_page(reader, self.wanted)
            summary = _summary(page, self.wanted.view)
        else:
            page = _TranscriptPage(
                self.wanted.address.stated,
                redact_turns((), self.wanted.view, self.wanted.governance.budget.transcript),
                None,
                False,
            )
            summary = f"nothing exported: {prepared.admission.reason}"
        key = key_of(page.thread)
        return MemoryTranscriptExportReport(
            key=key,
            view=self.wanted.view,
            slice=page.slice,
            next_cursor=page.next_cursor,
            has_more=page.next_cursor is not None,
            profile_budget_applied=page.profile_budget_applied,
            lifecycle_report=_lifecycle_report(self.action, prepared, summary, Trigger.SNAPSHOT_TRANSFER),
            citations=tuple(citation(key, turn.id) for turn in page.slice.turns),
        )

    def record_count(self, result: MemoryTranscriptExportReport) -> int:
        return result.slice.audit.messages


def _lifecycle_report(
    action: Action, prepared: PreparedReplay, summary: str, trigger: Trigger = Trigger.SDK_CALL
) -> LifecycleReport:
    now = prepared.core.clock.now()
    return lifecycle_report(action, prepared.started_at, now, summary, trigger=trigger, admission=prepared.admission)
