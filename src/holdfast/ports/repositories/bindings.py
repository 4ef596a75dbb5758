"""Port of bindings: the memories that serve a space, and the spaces and agents that each serves.

Any grant in the space reads them; only a grant over the whole space changes them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.bindings import Binding, Target, TargetKind


class BindingReader(Protocol):
    def find_all(self, keys: Collection[str] | None = None) -> Sequence[Binding]:
        """Return all, or those of these keys, ordered by key. A space that never had any has `first_binding`."""

    def targets(self, of: Collection[str] | None = None) -> Sequence[Target]:
        """Return all, or those of these spaces and agents; the space's first. In a space that never had any
        binding, the space is bound to `first_binding`."""


class BindingWriter(BindingReader, Protocol):
    def add(self, binding: Binding) -> None:
        """Add a binding; raises `BindingExists` if its key is taken. Also stores the space's implicit first binding."""

    def replace(self, binding: Binding) -> None:
        """Replace the binding of that key; stores the implicit first binding of a space if it is that one.

        Raises `RevisionConflict` unless the stored one is the preceding revision (compare-and-set).
        """

    def remove(self, key: str, at: datetime) -> None:
        """Remove it with its targets; raises `BindingNotFound` if missing. Its operations stay, its key is free."""

    def set_target(self, target: Target) -> None: ...

    def clear_target(self, kind: TargetKind, target_id: str) -> bool: ...
