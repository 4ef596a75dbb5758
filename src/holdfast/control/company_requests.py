"""Base classes of the verbs in one space: on its own rows, such as operations, jobs and costs, and on its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from holdfast.control import validation
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import arguments_of, check_arguments
from holdfast.domain.events import EventKind
from holdfast.domain.ids import OperationId
from holdfast.domain.scope import Scope
from holdfast.ports import Transaction
from holdfast.runtime.activity_events import activity_event
from holdfast.runtime.cursors import Pagination
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.idempotency import digest_of

R = TypeVar("R")
# Actions on what belongs to the space as a whole. Their scope may not be narrower.
_COMPANY_WIDE = frozenset({Action.READ_BINDINGS, Action.MANAGE_BINDINGS, Action.READ_COSTS, Action.MANAGE_COSTS})


@dataclass(frozen=True, slots=True)
class CompanyRequest:
    """A request in one space, which checks its scope and all its arguments."""

    action: ClassVar[Action]
    scope: Scope

    def __post_init__(self) -> None:
        if self.action in _COMPANY_WIDE:
            validation.check_company(self.scope)
        else:
            validation.check_one_company(self.scope)
        check_arguments(self)


class _CompanyReading(CompanyRequest):
    """A reading request. `since` and `until`, if it has them, are a span."""

    __slots__ = ()

    def __post_init__(self) -> None:
        CompanyRequest.__post_init__(self)
        kind: Any = type(self)
        span = {each.name: each.value_in(self) for each in arguments_of(kind) if each.name in ("since", "until")}
        validation.check_span(span.get("since"), span.get("until"))

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def record_count(self, result: Any) -> int:
        found = getattr(result, "items", result)
        return len(found) if isinstance(found, tuple) else 1


class CompanyRead(_CompanyReading, Read[Core, R]):
    """A read that needs nothing but the core."""

    __slots__ = ()


class CompanyWrite(CompanyRequest, Write[tuple[Core, Grant], R]):
    """A write that needs nothing but the core and its grant."""

    __slots__ = ()

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, Grant]:
        return core, grant

    def record_count(self, result: R) -> int:
        return 1


class WakesWorker:
    """Mixin of writes that queue a job: the worker is woken after the commit."""

    __slots__ = ()

    async def finish(self, core: Core, result: R, operation_id: OperationId) -> R:
        core.wake()
        return result


class CompanyPage(Pagination, _CompanyReading, Read[Core, R]):
    """A read of one page. A cursor is valid only with the arguments that it was issued for."""

    __slots__ = ()

    def __post_init__(self) -> None:
        _CompanyReading.__post_init__(self)
        self._before()

    def _query(self) -> str:
        given = [each for each in arguments_of(type(self)) if each.name not in ("cursor", "limit")]
        return digest_of(type(self).__name__, self.scope.given(), [each.value_in(self) for each in given])[:16]


def log_change(
    transaction: Transaction,
    prepared: tuple[Core, Grant],
    kind: EventKind,
    key: str,
    details: Mapping[str, str | int | None] | None = None,
) -> None:
    """Record a change in the space's activity, in the commit of the change."""
    transaction.events.append(activity_event(*prepared, kind, key, details))
