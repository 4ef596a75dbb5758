"""`capabilities`: list what this runtime can do, and why the rest is unavailable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.capabilities import Catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.scope import Scope
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read


@dataclass(frozen=True, slots=True)
class ShowCapabilities(Read[None, Catalogue]):
    """The catalogue of capabilities."""

    action: ClassVar[Action] = Action.CAPABILITIES
    governance: Governance

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> Catalogue:
        return self.governance.catalogue

    def record_count(self, result: Catalogue) -> int:
        return len(result.capabilities)
