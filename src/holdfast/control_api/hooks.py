"""Calls on hooks: emit events and hydrate runs."""

from __future__ import annotations

from typing import Unpack

from holdfast.control.hooks import EmitHook, Hydrate
from holdfast.control_api.arguments import Payload, Source, payload_from, require_source
from holdfast.control_api.base_calls import ControlCalls
from holdfast.domain.access import Action
from holdfast.domain.contract import HookKind
from holdfast.domain.hooks import EmittedHook, Hydration
from holdfast.domain.hydration import DEFAULT_BUDGET_MS, DEFAULT_CHARS, DEFAULT_SNIPPETS
from holdfast.inputs import Moment, ScopeKwargs, moment_from, parse_enum


class HookCalls(ControlCalls):
    async def emit(
        self,
        kind: HookKind | str,
        hook_id: str,
        payload: Payload,
        *,
        source: Source,
        triggered_at: Moment | None = None,
        binding_key: str | None = None,
        **where: Unpack[ScopeKwargs],
    ) -> EmittedHook:
        """Emit an event. The binding that serves the scope captures it if that hook is enabled there.

        `hook_id` is the event's own id: emitted again, it is delivered once. Another payload under it is a conflict.
        """

        def make() -> EmitHook:
            scope = self._scope(where)
            return EmitHook(
                scope=scope,
                kind=parse_enum(HookKind, kind, "kind"),
                hook_id=hook_id,
                source=require_source(source, self.space),
                payload=payload_from(payload),
                binding_key=binding_key,
                triggered_at=moment_from(triggered_at, "triggered_at"),
                actor_agent_id=scope.agent,
                run_id=scope.run,
            )

        return await self._perform(Action.DELIVER_HOOK, make)

    async def hydrate(
        self,
        query: str,
        *,
        hook_id: str | None = None,
        top_k: int = DEFAULT_SNIPPETS,
        max_chars: int = DEFAULT_CHARS,
        budget_ms: int = DEFAULT_BUDGET_MS,
        binding_key: str | None = None,
        **where: Unpack[ScopeKwargs],
    ) -> Hydration:
        """Return a bounded preamble for a run within `budget_ms`, or none with a reason. It never stops the run."""

        def make() -> Hydrate:
            scope = self._scope(where)
            return Hydrate(
                scope=scope,
                query=query,
                hook_id=hook_id,
                top_k=top_k,
                max_chars=max_chars,
                budget_ms=budget_ms,
                binding_key=binding_key,
                actor_agent_id=scope.agent,
                run_id=scope.run,
            )

        return await self._perform(Action.QUERY, make)
