"""Transcript operations of a `MemoryRuntime`: commit, finalize, replay, lifecycle, repair and export."""

from __future__ import annotations

from holdfast.domain.access import Action
from holdfast.domain.checks import checked_instance
from holdfast.domain.governance import Governance
from holdfast.domain.identity import DEFAULT_CHANNEL, MemoryScope
from holdfast.domain.lifecycle import ModeInput
from holdfast.domain.profiles import Pressure
from holdfast.domain.runtime_api.transcripts import (
    AT_LEISURE,
    CanonicalTurnDelta,
    FinalizeReport,
    MemoryReplayReport,
    MemoryReplayRequest,
    MemoryTranscriptCommitReport,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptExportReport,
    MemoryTranscriptExportRequest,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptRepairReport,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptReplayReport,
    MemoryTranscriptReplayRequest,
    TranscriptTurnInput,
)
from holdfast.domain.transcript_turns import ConversationKey
from holdfast.pending_call import pending_methods
from holdfast.runtime.transcripts.commit import CommitTranscript
from holdfast.runtime.transcripts.finalize import FinalizeTurn
from holdfast.runtime.transcripts.ledger import ReplayLedger
from holdfast.runtime.transcripts.lifecycle import RequestLifecycle
from holdfast.runtime.transcripts.repair import RepairTranscript
from holdfast.runtime.transcripts.replay import ExportTranscript, ReplayTranscript
from holdfast.sdk.operations import Operations, request_from

_EXPORT, _REPAIR, _LEDGER = MemoryTranscriptExportRequest(), MemoryTranscriptRepairRequest(), MemoryReplayRequest()


@pending_methods("runtime")
class TranscriptOperations(Operations):
    """Operations on transcripts. Without a conversation they use the one committed last."""

    async def commit_transcript(self, request: MemoryTranscriptCommitRequest) -> MemoryTranscriptCommitReport:
        """Commit one turn verbatim. Repeating a turn id changes nothing; with other content it raises `Conflict`."""

        def make(governance: Governance) -> CommitTranscript:
            given = checked_instance(request, MemoryTranscriptCommitRequest)
            turn = checked_instance(given.turn, TranscriptTurnInput, "turn")
            return CommitTranscript.of(governance, self._resolve_scope(turn.conversation), given)

        report = await self._perform(Action.COMMIT_TRANSCRIPT, make)
        self._set_last(report.key)
        return report

    async def finalize_turn_and_maintain(
        self,
        delta: CanonicalTurnDelta,
        *,
        mode_input: ModeInput = AT_LEISURE,
        pressure: str = Pressure.NORMAL,
    ) -> FinalizeReport:
        """Commit the new part of a delivered turn, and queue learning from it in the same commit."""

        def make(governance: Governance) -> FinalizeTurn:
            where = self._resolve_scope(checked_instance(delta, CanonicalTurnDelta, "delta").conversation)
            return FinalizeTurn.of(governance, where, delta, mode_input, pressure)

        report = await self._perform(Action.FINALIZE_TURN, make)
        self._set_last(report.transcript_commit.key)
        return report

    async def replay_transcript(self, request: MemoryTranscriptReplayRequest | str) -> MemoryTranscriptReplayReport:
        """Return a page of a conversation in one view. A text is the view."""
        wanted = request_from(request, MemoryTranscriptReplayRequest, "view")
        return await self._perform_in(
            Action.REPLAY_TRANSCRIPT, ReplayTranscript.of, wanted, MemoryTranscriptReplayRequest
        )

    async def export_transcript(self, request: MemoryTranscriptExportRequest = _EXPORT) -> MemoryTranscriptExportReport:
        """Return a page of a conversation for export, with citations."""
        return await self._perform_in(
            Action.EXPORT_TRANSCRIPT, ExportTranscript.of, request, MemoryTranscriptExportRequest
        )

    async def request_transcript_lifecycle(
        self, request: MemoryTranscriptLifecycleRequest
    ) -> MemoryTranscriptLifecycleReport:
        """Archive, restore, mask, delete raw or review a turn or a conversation."""
        return await self._perform_in(
            Action.TRANSCRIPT_LIFECYCLE, RequestLifecycle.of, request, MemoryTranscriptLifecycleRequest
        )

    async def repair_transcript(self, request: MemoryTranscriptRepairRequest = _REPAIR) -> MemoryTranscriptRepairReport:
        """Report broken links between a conversation and its derived memories."""
        return await self._perform_in(
            Action.REPAIR_TRANSCRIPT,
            lambda governance, where, _: RepairTranscript.of(governance, where),
            request,
            MemoryTranscriptRepairRequest,
        )

    async def replay(self, request: MemoryReplayRequest | str = _LEDGER) -> MemoryReplayReport:
        """List a chat's last turns as a ledger, without their texts. A text is the chat's id."""
        wanted = request_from(request, MemoryReplayRequest, "chat_id")

        def make(governance: Governance) -> ReplayLedger:
            where = self._resolve_scope(_chat_scope(checked_instance(wanted, MemoryReplayRequest)))
            return ReplayLedger.of(governance, where, wanted.limit)

        return await self._perform(Action.REPLAY, make)

    def _set_last(self, key: ConversationKey) -> None:
        self._last = MemoryScope(channel=key.channel_id, conversation_id=key.conversation_id)


def _chat_scope(request: MemoryReplayRequest) -> MemoryScope | None:
    if request.chat_id is None:
        return None
    return MemoryScope(DEFAULT_CHANNEL if request.channel is None else request.channel, request.chat_id)
