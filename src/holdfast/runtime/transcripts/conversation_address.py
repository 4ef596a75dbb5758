"""Resolve the conversation of a request, and build the lifecycle report of an operation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.domain.access import Action
from holdfast.domain.checks import checked_instance
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import EventId
from holdfast.domain.lifecycle import Admission, Disposition, LifecycleReport, Trigger
from holdfast.domain.scope import Scope, check_part
from holdfast.errors import AliasNotTrusted
from holdfast.ports import Alias, Reader, Transaction
from holdfast.runtime.gate import Core

ADMITTED = Admission(Disposition.EXECUTE_NOW)


@dataclass(frozen=True, slots=True)
class ConversationAddress:
    """The validated conversation address of a request."""

    where: MemoryScope
    stated: Scope

    @classmethod
    def of(cls, governance: Governance, given: object) -> ConversationAddress:
        where = checked_instance(given, MemoryScope, "scope")
        if where.chat_id is not None:
            check_part("chat_id", where.chat_id)
        return cls(where, governance.thread(where))

    @property
    def scope(self) -> Scope:
        """The scope that the call may access. A chat id may stand for any conversation of its channel."""
        return self.stated if self.where.chat_id is None else replace(self.stated, conversation=None)

    def resolve(self, reader: Reader) -> Scope:
        """Resolve the address to its thread. A chat id alone is resolved by its alias, unless that is ambiguous."""
        if self.where.conversation_id is not None or self.where.chat_id is None:
            return self.stated
        alias = reader.aliases.find(self.stated, self.where.chat_id)
        if alias is None or alias == Alias(self.where.chat_id, trusted=True):
            return self.stated
        # The chat id may also be a conversation's own name: ambiguous if that conversation has turns.
        if not alias.trusted or reader.transcripts.turn_states(self.stated, 0, 1):
            chat_id = f"{self.where.chat_id!r:.80}"
            raise AliasNotTrusted(
                f"chat_id: {chat_id} has stood for more than one conversation; give the conversation_id"
            )
        return replace(self.stated, conversation=alias.conversation)

    def store_alias(self, transaction: Transaction, thread: Scope, at: datetime) -> None:
        """Store the chat id as an alias, if a commit names both and they differ.

        If it was already a conversation's own name, it stands for two from now on: resolving it to one of them would
        miss the other's turns, also when they are to be masked.
        """
        chat_id = self.where.chat_id
        if chat_id is None or self.where.conversation_id is None or chat_id == thread.conversation:
            return
        own = replace(thread, conversation=chat_id)
        if transaction.aliases.find(thread, chat_id) is None and transaction.transcripts.turn_states(own, 0, 1):
            transaction.aliases.put(own, chat_id, at)
        transaction.aliases.put(thread, chat_id, at)


@dataclass(frozen=True, slots=True)
class StartedOperation:
    """An operation of a runtime that has started, and whether it was admitted."""

    core: Core
    action: Action
    started_at: datetime
    admission: Admission = ADMITTED

    @property
    def is_admitted(self) -> bool:
        return self.admission.disposition is Disposition.EXECUTE_NOW

    def report(
        self,
        summary: str,
        *,
        changed: bool = False,
        trigger: Trigger = Trigger.SDK_CALL,
        event_id: EventId | None = None,
    ) -> LifecycleReport:
        """Report that it completed or was not admitted."""
        return LifecycleReport(
            operation=self.action,
            trigger=trigger,
            admission=self.admission,
            event_id=event_id,
            started_at=self.started_at,
            finished_at=self.core.clock.now(),
            success=self.is_admitted,
            changed=changed,
            result_summary=summary,
            error_stage=None if self.is_admitted else "admission",
        )

    def report_transfer(
        self, summary: str, *, changed: bool = False, event_id: EventId | None = None
    ) -> LifecycleReport:
        """Report a transfer; if it was not admitted, its summary is the reason."""
        text = summary if self.is_admitted else f"{self.admission.reason}"
        return self.report(text, changed=changed, trigger=Trigger.SNAPSHOT_TRANSFER, event_id=event_id)
