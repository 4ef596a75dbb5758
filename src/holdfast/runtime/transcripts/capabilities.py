"""`capabilities`: list what this runtime can do, and why the rest is unavailable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action
from holdfast.domain.capabilities import MemoryCapabilityCatalog
from holdfast.domain.governance import Governance
from holdfast.domain.scope import Scope
from holdfast.ports import Reader
from holdfast.runtime.requests import Core, SimpleRead


@dataclass(frozen=True, slots=True)
class ShowCapabilities(SimpleRead[MemoryCapabilityCatalog]):
    """The catalogue of capabilities."""

    action: ClassVar[Action] = Action.CAPABILITIES
    governance: Governance

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    def apply(self, reader: Reader, prepared: Core) -> MemoryCapabilityCatalog:
        return self.governance.catalogue

    def record_count(self, result: MemoryCapabilityCatalog) -> int:
        return len(result.capabilities)
