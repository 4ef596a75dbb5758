"""The base of SQL repositories, and their creation on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.stores.sql.grant_scope import GrantScope

R = TypeVar("R", covariant=True)


class SqlRepository:
    """A view of the transaction's scope without state of its own: where another one is needed, it is made anew."""

    def __init__(self, scope: GrantScope) -> None:
        self._scope = scope
        self._db = scope.database


class Lazy(Generic[R]):
    """A repository of a reader or transaction: made on first use, then an attribute of the instance.

    `functools.cached_property` does the same under a lock.
    """

    def __init__(self, make: Callable[[Any], R]) -> None:
        self._make = make
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> R:
        made = self._make(instance.scope)
        setattr(instance, self._name, made)
        return made
