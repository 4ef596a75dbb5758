"""Base classes of the verbs on a company's own rows, such as operations, jobs and costs."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from holdfast.control import validation
from holdfast.domain.access import Grant
from holdfast.domain.arguments import arguments_of, check_arguments
from holdfast.domain.scope import Scope
from holdfast.runtime.cursors import Pagination
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.idempotency import digest_of

P = TypeVar("P")
R = TypeVar("R")


def check_request(request: Any) -> None:
    """Check the scope and all arguments of a request."""
    if request.whole_company:
        validation.check_company(request.scope)
    else:
        validation.check_one_company(request.scope)
    check_arguments(request)


class CompanyRead(Read[P, R]):
    """A read. `whole_company` refuses a scope that is narrower than the company."""

    __slots__ = ()
    whole_company: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_request(self)

    async def prepare(self, core: Core, grant: Grant) -> P:
        return None  # type: ignore[return-value]

    def record_count(self, result: R) -> int:
        return 1


class CompanyWrite(Write[tuple[Core, Grant], R]):
    """A write that needs nothing but the core and its grant."""

    __slots__ = ()
    whole_company: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_request(self)

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, Grant]:
        return core, grant

    def record_count(self, result: R) -> int:
        return 1


class CompanyPage(Pagination, Read[P, R]):
    """A read of one page. A cursor is valid only with the arguments that it was issued for."""

    __slots__ = ()
    whole_company: ClassVar[bool] = False
    scope: Scope

    def __post_init__(self) -> None:
        check_request(self)
        self._before()

    async def prepare(self, core: Core, grant: Grant) -> P:
        return None  # type: ignore[return-value]

    def _query(self) -> str:
        given = [each for each in arguments_of(type(self)) if each.name not in ("cursor", "limit")]
        return digest_of(type(self).__name__, self.scope.given(), [each.value_in(self) for each in given])[:16]

    def record_count(self, result: R) -> int:
        return len(result.items)  # type: ignore[attr-defined]
