"""`replay`: list a conversation's turns for inspection, without their texts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.lifecycle import Trigger
from holdfast.domain.numbers import checked_whole
from holdfast.domain.scope import Scope
from holdfast.domain.surface.transcripts import LedgerEntry, MemoryReplayReport
from holdfast.ports import Reader
from holdfast.runtime.governed.replay import MOST_TURNS
from holdfast.runtime.governed.threads import Address, course
from holdfast.runtime.perform import Core, Read


@dataclass(frozen=True, slots=True)
class _Prepared:
    core: Core
    started_at: datetime


@dataclass(frozen=True, slots=True)
class ReplayLedger(Read[_Prepared, MemoryReplayReport]):
    """The last turns of a conversation, as a ledger without texts."""

    action: ClassVar[Action] = Action.REPLAY
    governance: Governance
    address: Address
    scope: Scope
    limit: int

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, limit: object) -> ReplayLedger:
        address = Address.of(governance, where)
        return cls(governance, address, address.scope, checked_whole(limit, "limit", 1, MOST_TURNS))

    async def prepare(self, core: Core, grant: Grant) -> _Prepared:
        return _Prepared(core, core.clock.now())

    def apply(self, reader: Reader, prepared: _Prepared) -> MemoryReplayReport:
        thread = self.address.find(reader)
        limit = min(self.limit, self.governance.budget.transcript.page_size)
        total = reader.turn_count(thread)
        entries = tuple(
            LedgerEntry(turn.sequence, turn.id, turn.state, len(turn.messages), len(turn.host_refs), turn.committed_at)
            for turn in reader.last_turns(thread, limit)
        )
        summary = f"{len(entries)} of {total} turns"
        return MemoryReplayReport(
            key=key_of(thread),
            entries=entries,
            total_turns=total,
            inspection_only=True,
            profile_budget_applied=limit < min(self.limit, total),
            lifecycle_report=course(
                self.action,
                prepared.started_at,
                prepared.core.clock.now(),
                summary,
                trigger=Trigger.REPLAY_INSPECTION,
            ),
        )

    def record_count(self, result: MemoryReplayReport) -> int:
        return len(result.entries)
