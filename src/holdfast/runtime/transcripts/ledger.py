"""`replay`: list a conversation's turns for inspection, without their texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_whole
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.lifecycle import Trigger
from holdfast.domain.runtime_api.transcripts import LedgerEntry, MemoryReplayReport
from holdfast.domain.scope import Scope
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation
from holdfast.runtime.transcripts.replay import MOST_TURNS


@dataclass(frozen=True, slots=True)
class ReplayLedger(Read[StartedOperation, MemoryReplayReport]):
    """The last turns of a conversation, as a ledger without texts."""

    action: ClassVar[Action] = Action.REPLAY
    governance: Governance
    address: ConversationAddress
    scope: Scope
    limit: int

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, limit: object) -> ReplayLedger:
        address = ConversationAddress.of(governance, where)
        return cls(governance, address, address.scope, checked_whole(limit, "limit", 1, MOST_TURNS))

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        return StartedOperation(core, self.action, core.clock.now())

    def apply(self, reader: Reader, prepared: StartedOperation) -> MemoryReplayReport:
        thread = self.address.resolve(reader)
        limit = min(self.limit, self.governance.budget.transcript.page_size)
        total = reader.transcripts.turn_count(thread)
        entries = tuple(
            LedgerEntry(turn.sequence, turn.id, turn.state, len(turn.messages), len(turn.host_refs), turn.committed_at)
            for turn in reader.transcripts.last_turns(thread, limit)
        )
        summary = f"{len(entries)} of {total} turns"
        return MemoryReplayReport(
            key=key_of(thread),
            entries=entries,
            total_turns=total,
            inspection_only=True,
            profile_budget_applied=limit < min(self.limit, total),
            lifecycle_report=prepared.report(summary, trigger=Trigger.REPLAY_INSPECTION),
        )

    def record_count(self, result: MemoryReplayReport) -> int:
        return len(result.entries)
