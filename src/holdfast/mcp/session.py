"""The caller of tools: a service, an actor and a space, and what the host has fixed of the scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.control.json_views import SCOPE_NAMES
from holdfast.control_api import AsyncControlPlane
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity
from holdfast.errors import ConfigurationError
from holdfast.inputs import ScopeKwargs
from holdfast.library import AsyncMemory
from holdfast.mcp.runtime_tools import RuntimeCalls, envelope_parts
from holdfast.ports import Service
from holdfast.transports.adapter import AdapterCaller, TransportAdapter

DEFAULT_APP = "default"
"""The app and project of a user's memory on a service, if a request names none."""
_USERS = (ActorKind.USER, ActorKind.DEVICE)


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """Somebody whose client calls tools. Every call passes the gate as this actor.

    `fixed` are parts of the scope, by their names in JSON, that no tool call can change. `adapter` is for the
    runtime's tools; a memory on a server has none.
    """

    service: Service
    actor: Actor
    space: str
    adapter: TransportAdapter | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)
    app: str | None = None
    auth_kind: str = "local"

    @property
    def memory(self) -> AsyncMemory:
        return AsyncMemory(self.service, actor=self.actor, space=self.space)

    @property
    def plane(self) -> AsyncControlPlane:
        return AsyncControlPlane(self.service, actor=self.actor, space=self.space)

    def runtime(self, meta: Mapping[str, Any] | None) -> RuntimeCalls:
        """Return the runtime's calls, with what the host sent beside this one."""
        if self.adapter is None:
            raise ConfigurationError(
                "the runtime's tools need a store; of a server, use its own /mcp/runtime instead of `holdfast mcp`"
            )
        where = self.where
        owner, app = (where.get("subject"), where.get("agent")), (where.get("app"), where.get("project"))
        identity = MemoryIdentity(self.space, *owner, *app)
        caller = AdapterCaller(self.service, self.actor, identity)
        return RuntimeCalls(self.adapter, caller, self.auth_kind, envelope_parts(meta))

    @property
    def scope(self) -> Mapping[str, str]:
        """The fixed parts of the scope by their names in JSON: those of the host, and the caller's own."""
        own = {ActorKind.USER: "subject_id", ActorKind.DEVICE: "subject_id", ActorKind.AGENT: "agent_id"}
        name = own.get(self.actor.kind)
        return self.fixed if name is None else {**self.fixed, name: self.actor.id}

    @property
    def where(self) -> ScopeKwargs:
        """The same parts as keyword arguments of the library. A user's memory is that of the service's other routes."""
        ours = {theirs: part for part, theirs in SCOPE_NAMES.items()}
        default = DEFAULT_APP if self.actor.kind in _USERS else None
        parts = {"app": self.app or default, "project": default} | {
            ours[name]: value for name, value in self.scope.items()
        }
        return cast("ScopeKwargs", {name: value for name, value in parts.items() if value is not None})
