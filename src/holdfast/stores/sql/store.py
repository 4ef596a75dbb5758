"""The part of a store that both databases share: it hands writes and audit rows to the writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from holdfast.domain.access import Grant, storewide_grant
from holdfast.domain.operations import Operation
from holdfast.loops import run_in_thread
from holdfast.ports import Transaction
from holdfast.stores.writer_queue import AuditingWriter

T = TypeVar("T")


class SqlStore:
    """Implements what is shared of `ports.Store`.

    Reading, writing and auditing suspend on an event loop, and block without one.
    """

    sync_safe = True
    _writer: AuditingWriter

    def __init__(self, location: str) -> None:
        self.location = location

    async def write(self, grant: Grant, work: Callable[[Transaction], T]) -> T:
        return cast(T, await self._writer.submit(grant, work))

    async def audit(self, operation: Operation) -> None:
        if not self._writer.audit(operation):
            await run_in_thread(self._writer.wait_for_room)

    async def wait_for_audits(self) -> None:
        if self._writer.owes_audits:
            await self._writer.submit(storewide_grant(), lambda transaction: None)
