"""`repair_transcript`: report broken links between a conversation and its derived memories. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.lifecycle import Trigger
from holdfast.domain.redaction import clip_items
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptRepairReport
from holdfast.domain.scope import Scope
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation


@dataclass(frozen=True, slots=True)
class RepairTranscript(Read[StartedOperation, MemoryTranscriptRepairReport]):
    """Check a conversation and the references to it."""

    action: ClassVar[Action] = Action.REPAIR_TRANSCRIPT
    governance: Governance
    address: ConversationAddress
    scope: Scope

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope) -> RepairTranscript:
        address = ConversationAddress.of(governance, where)
        return cls(governance, address, address.scope)

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        return StartedOperation(core, self.action, core.clock.now())

    def apply(self, reader: Reader, prepared: StartedOperation) -> MemoryTranscriptRepairReport:
        thread = self.address.resolve(reader)
        most = self.governance.budget.transcript.repair_issues
        found = reader.transcripts.check(thread, most + 1)
        issues, cut = clip_items(found.issues, most)
        summary = f"{len(issues)} issues in {found.checked_turns} turns and {found.checked_derived_refs} references"
        return MemoryTranscriptRepairReport(
            key=key_of(thread),
            checked_turns=found.checked_turns,
            checked_derived_refs=found.checked_derived_refs,
            issues=issues,
            profile_budget_applied=cut,
            fail_closed=bool(issues),
            lifecycle_report=prepared.report(summary, trigger=Trigger.OPERATOR_REQUESTED),
        )

    def record_count(self, result: MemoryTranscriptRepairReport) -> int:
        return result.checked_turns
