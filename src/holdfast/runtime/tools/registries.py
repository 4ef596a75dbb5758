"""Register, list, show and delete the tools of a host. A registry belongs to exactly one memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_flag, checked_instance
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.ids import OperationId
from holdfast.domain.jobs import JobKind
from holdfast.domain.runtime_api.skills import DONE, UNCHANGED
from holdfast.domain.runtime_api.tools import (
    NO_SUCH_REGISTRY,
    NO_TOOL_REGISTRY,
    REGISTRIES_AVAILABLE,
    AgentToolRegistryDeleteRequest,
    AgentToolRegistryDetailRequest,
    AgentToolRegistryListReport,
    AgentToolRegistryListRequest,
    AgentToolRegistryMutationReport,
    AgentToolRegistryReport,
    AgentToolRegistrySummary,
)
from holdfast.domain.scope import Scope
from holdfast.domain.tool_experience import digest_of
from holdfast.domain.tool_registries import (
    FINGERPRINT_MISMATCH,
    MAX_REGISTRIES,
    AgentToolRegistry,
    checked_name,
    checked_registry,
    registry_fingerprint,
)
from holdfast.errors import BudgetExceeded, NotFound
from holdfast.ports import Reader, Transaction
from holdfast.ports.repositories.tools import ExperienceCount
from holdfast.runtime.event_log import append_event
from holdfast.runtime.forget import scrub_store
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.job_queue import enqueue_for_store


@dataclass(frozen=True, slots=True)
class _RegistryChange(Write[Core, AgentToolRegistryMutationReport]):
    """Common base of the verbs that change one registry."""

    governance: Governance

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    @property
    def registry_id(self) -> str:
        raise NotImplementedError

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def report(
        self, reason: str = DONE, *, accepted: bool = True, changed: bool = False, fingerprint: str | None = None
    ) -> AgentToolRegistryMutationReport:
        return AgentToolRegistryMutationReport(accepted, changed, self.registry_id, self.action, reason, fingerprint)

    def append_event(self, transaction: Transaction, core: Core, **details: int) -> None:
        append_event(
            transaction,
            core,
            EventKind.OPERATOR,
            self.scope,
            keep=self.governance.budget.events,
            details={"operation": self.action, **details},
        )

    def record_count(self, result: AgentToolRegistryMutationReport) -> int:
        return int(result.changed)


@dataclass(frozen=True, slots=True)
class UpsertToolRegistry(_RegistryChange):
    """Register a snapshot of a host's tools, in place of the earlier one of its id."""

    action: ClassVar[Action] = Action.UPSERT_TOOL_REGISTRY
    registry: AgentToolRegistry

    def __post_init__(self) -> None:
        object.__setattr__(self, "registry", checked_registry(self.registry))

    @property
    def registry_id(self) -> str:
        return self.registry.registry_id

    def apply(self, transaction: Transaction, prepared: Core) -> AgentToolRegistryMutationReport:
        registry, computed = self.registry, registry_fingerprint(self.registry)
        if registry.fingerprint not in (None, computed):
            return self.report(FINGERPRINT_MISMATCH, accepted=False, fingerprint=computed)
        known = transaction.tools.registry(self.scope, registry.registry_id)
        if known is not None and known.fingerprint == computed:
            return self.report(UNCHANGED, fingerprint=computed)
        if known is None and len(transaction.tools.registries(self.scope)) >= MAX_REGISTRIES:
            raise BudgetExceeded(f"registries: this memory has {MAX_REGISTRIES}, the most allowed; delete one first")
        registered_at = registry.registered_at or prepared.clock.now()
        transaction.tools.put_registry(self.scope, replace(registry, fingerprint=computed, registered_at=registered_at))
        self.append_event(transaction, prepared, tools=len(registry.tools))
        return self.report(changed=True, fingerprint=computed)


@dataclass(frozen=True, slots=True)
class DeleteToolRegistry(_RegistryChange):
    """Delete a registry. The experience with its tools stays unless it is to go too; it gives no hint any more."""

    action: ClassVar[Action] = Action.DELETE_TOOL_REGISTRY
    request: AgentToolRegistryDeleteRequest

    def __post_init__(self) -> None:
        request = checked_instance(self.request, AgentToolRegistryDeleteRequest)
        checked_name(request.registry_id, "registry_id")
        checked_flag(request.with_experience, "with_experience")

    @property
    def registry_id(self) -> str:
        return self.request.registry_id

    def apply(self, transaction: Transaction, prepared: Core) -> AgentToolRegistryMutationReport:
        is_deleted = transaction.tools.delete_registry(self.scope, self.registry_id)
        with_experience = self.request.with_experience
        experience = transaction.tools.delete_experience(self.scope, self.registry_id) if with_experience else 0
        if not (is_deleted or experience):
            return self.report(NO_SUCH_REGISTRY, accepted=False)
        self.append_event(transaction, prepared, registries=int(is_deleted), experience=experience)
        enqueue_for_store(transaction, prepared, JobKind.SCRUB)
        return self.report(changed=True)

    async def finish(
        self, core: Core, result: AgentToolRegistryMutationReport, operation_id: OperationId
    ) -> AgentToolRegistryMutationReport:
        if result.changed:
            await scrub_store(core)
        return result


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListToolRegistries(Read[Core, AgentToolRegistryListReport]):
    """List the registries of this memory, with a report of the experience with their tools."""

    action: ClassVar[Action] = Action.LIST_TOOL_REGISTRIES
    governance: Governance
    request: AgentToolRegistryListRequest

    def __post_init__(self) -> None:
        checked_instance(self.request, AgentToolRegistryListRequest)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> AgentToolRegistryListReport:
        registries = tuple(reader.tools.registries(self.scope))
        return AgentToolRegistryListReport(registries, _report(reader, self.scope, registries))

    def record_count(self, result: AgentToolRegistryListReport) -> int:
        return len(result.registries)


@dataclass(frozen=True, slots=True)
class GetToolRegistry(Read[Core, AgentToolRegistry]):
    """Show one registry of this memory."""

    action: ClassVar[Action] = Action.GET_TOOL_REGISTRY
    governance: Governance
    request: AgentToolRegistryDetailRequest

    def __post_init__(self) -> None:
        checked_name(checked_instance(self.request, AgentToolRegistryDetailRequest).registry_id, "registry_id")

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> AgentToolRegistry:
        found = reader.tools.registry(self.scope, self.request.registry_id)
        if found is None:
            raise NotFound(f"there is no tool registry {self.request.registry_id!r} in this memory; list them to see")
        return found

    def record_count(self, result: AgentToolRegistry) -> int:
        return 1


def report_registries(reader: Reader, scope: Scope) -> AgentToolRegistryReport:
    """Report the registries of a memory, and the experience with their tools."""
    return _report(reader, scope, reader.tools.registries(scope))


def _report(reader: Reader, scope: Scope, registries: Sequence[AgentToolRegistry]) -> AgentToolRegistryReport:
    counts = reader.tools.count_versions(scope)
    digests = {digest_of(registry.registry_id) for registry in registries}
    others = (count for count in counts.values() if count.registry_digest not in digests)
    return AgentToolRegistryReport(
        total=len(registries),
        tools=sum(len(registry.tools) for registry in registries),
        registries=tuple(_summarize(registry, counts) for registry in registries),
        unregistered=sum(count.governed + count.deferred for count in others),
        reason=REGISTRIES_AVAILABLE if registries else NO_TOOL_REGISTRY,
    )


def _summarize(registry: AgentToolRegistry, counts: Mapping[bytes, ExperienceCount]) -> AgentToolRegistrySummary:
    digest = digest_of(registry.registry_id)
    current = {
        digest_of(registry.registry_id, tool.tool_id, tool.schema_fingerprint)
        for tool in registry.tools
        if not tool.disabled
    }
    of_registry = {version: count for version, count in counts.items() if count.registry_digest == digest}
    usable = [count for version, count in of_registry.items() if version in current]
    total = sum(count.governed + count.deferred for count in of_registry.values())
    governed, deferred = sum(count.governed for count in usable), sum(count.deferred for count in usable)
    assert registry.fingerprint is not None
    assert registry.registered_at is not None
    return AgentToolRegistrySummary(
        registry_id=registry.registry_id,
        namespace=registry.namespace,
        owner=str(registry.owner),
        scope=str(registry.scope),
        fingerprint=registry.fingerprint,
        registered_at=registry.registered_at,
        tools=len(registry.tools),
        disabled=sum(tool.disabled for tool in registry.tools),
        governed=governed,
        deferred=deferred,
        drifted=total - governed - deferred,
    )
