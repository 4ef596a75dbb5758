"""Which conversation a request means, and the course of an operation as its report tells it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from holdfast.domain.access import Action
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import EventId
from holdfast.domain.lifecycle import Admission, Disposition, LifecycleReport, Trigger
from holdfast.domain.scope import Scope, check_part
from holdfast.errors import AliasNotTrusted, InvalidInput
from holdfast.ports import Reader, Transaction

ADMITTED = Admission(Disposition.EXECUTE_NOW)


def stated_thread(governance: Governance, where: object) -> Scope:
    """The thread as far as the request says; every part that is given is checked."""
    if not isinstance(where, MemoryScope):
        raise InvalidInput("scope", f"expected a MemoryScope, got {type(where).__name__}")
    if where.chat_id is not None:
        check_part("chat_id", where.chat_id)
    return governance.thread(where)


def found_thread(reader: Reader, stated: Scope, where: MemoryScope) -> Scope:
    """The thread itself. A chat id that stands alone leads to what it was noted for, unless that is not certain."""
    if where.conversation_id is not None or where.chat_id is None:
        return stated
    alias = reader.alias(stated, where.chat_id)
    if alias is None:
        return stated
    if not alias.trusted:
        raise AliasNotTrusted(
            f"chat_id: {where.chat_id!r:.80} has stood for more than one conversation; give its conversation_id"
        )
    return replace(stated, conversation=alias.conversation)


def note_alias(transaction: Transaction, thread: Scope, where: MemoryScope, at: datetime) -> None:
    """Remember what a chat id stands for, if a commit names both and they differ."""
    if where.chat_id is not None and where.chat_id != thread.conversation and where.conversation_id is not None:
        transaction.put_alias(thread, where.chat_id, at)


def course(
    action: Action,
    started_at: datetime,
    finished_at: datetime,
    summary: str,
    *,
    changed: bool = False,
    trigger: Trigger = Trigger.SDK_CALL,
    admission: Admission = ADMITTED,
    event_id: EventId | None = None,
) -> LifecycleReport:
    """The report of an operation that came to its end, or was not admitted."""
    admitted = admission.disposition is Disposition.EXECUTE_NOW
    return LifecycleReport(
        operation=action,
        trigger=trigger,
        admission=admission,
        event_id=event_id,
        started_at=started_at,
        finished_at=finished_at,
        success=admitted,
        changed=changed,
        result_summary=summary,
        error_stage=None if admitted else "admission",
    )
