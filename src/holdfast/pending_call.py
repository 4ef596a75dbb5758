"""Calls that wait to be awaited: what the methods of the asynchronous classes return.

A method stays a coroutine function, and its call a coroutine for `asyncio`, `anyio` and `inspect`. But a call that is
used as if it were its result, because `await` was forgotten, says so. A call that is never awaited warns, as
Python's own do.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Generator
from functools import update_wrapper
from typing import Any, NoReturn, TypeVar

from holdfast.domain.call_errors import call_again
from holdfast.errors import MissingAwait

C = TypeVar("C", bound=type)
R = TypeVar("R")
_Method = Callable[..., Coroutine[Any, Any, Any]]

# The operations that only results have.
_OF_RESULTS = (
    *("__iter__", "__len__", "__getitem__", "__contains__", "__bool__", "__aiter__"),
    *("__enter__", "__exit__", "__aenter__", "__aexit__"),
)


class PendingCall(Coroutine[Any, Any, R]):
    """A call of an asynchronous method: a coroutine, of which every other use is refused in our words."""

    __slots__ = ("__weakref__", "_work")

    def __init__(self, work: Coroutine[Any, Any, R]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, None, R]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cr_") or name in ("__name__", "__qualname__"):  # event loops read them
            return getattr(self._work, name)
        if name.startswith("_"):
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return self._refuse()

    def _refuse(self, *args: Any) -> NoReturn:
        raise MissingAwait(self.__name__, f"was not awaited; write: await {self.__qualname__}(...)")

    def __repr__(self) -> str:
        return f"<{self.__qualname__}(...): await it for its result>"


for _operation in _OF_RESULTS:
    setattr(PendingCall, _operation, PendingCall._refuse)


def pending_methods(receiver: str) -> Callable[[C], C]:
    """Make the public coroutine methods of a class return pending calls. `receiver` names the object in errors.

    They also explain arguments that do not fit. `inspect.unwrap` returns the methods as written.
    """

    def decorate(kind: C) -> C:
        for name, member in list(vars(kind).items()):
            method = member.__func__ if isinstance(member, classmethod) else member
            if not name.startswith("_") and inspect.iscoroutinefunction(inspect.unwrap(method)):
                call = _pending(method, f"{kind.__name__ if member is not method else receiver}.{name}")
                setattr(kind, name, call if member is method else classmethod(call))
        return kind

    return decorate


def _pending(method: _Method, name: str) -> _Method:
    def call(*args: Any, **kwargs: Any) -> PendingCall[Any]:
        try:
            work = method(*args, **kwargs)
        except TypeError as error:
            work = call_again(method, args, kwargs, error)
        return PendingCall(work)

    update_wrapper(call, method)
    method.__qualname__ = name  # of its coroutines: Python's warning names it
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(call)
    else:
        # Python 3.11 tells coroutine functions by a flag of their code alone; a call does not read it.
        call.__code__ = call.__code__.replace(co_flags=call.__code__.co_flags | inspect.CO_COROUTINE)
    return call
