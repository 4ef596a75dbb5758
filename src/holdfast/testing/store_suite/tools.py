"""Tool registries and experience: one memory's own, in the order of hints, and nothing left after a forget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.scope import Scope
from holdfast.domain.tool_experience import ExperienceKey, ToolExperience, digest_of, id_digest
from holdfast.domain.tool_registries import AgentTool, AgentToolRegistry, registry_fingerprint
from holdfast.errors import AccessDenied
from holdfast.ports import Store
from holdfast.testing.store_suite.scribe import (
    BOB,
    EVERYTHING,
    SPACE,
    Scribe,
    forget,
    read_grant,
    scenario,
    write_grant,
)

_HOME = Scope(subject="ana")
_OTHER = Scope(space="other", subject="ana")
_IN_APP = Scope(subject="ana", app="desk")
_HOMES = (_HOME, _OTHER, _IN_APP, BOB, Scope())
_HERE, _THERE = digest_of("here"), digest_of("there")


def _registry(scribe: Scribe, name: str = "host", **more: Any) -> AgentToolRegistry:
    tools = (AgentTool("deploy", "schema-1", display_name="Deploy", risk_tags=("writes",)),)
    made = replace(AgentToolRegistry(name, tools, registered_at=scribe.clock.step()), **more)
    return replace(made, fingerprint=registry_fingerprint(made))


def _experience(scribe: Scribe, tool: str = "deploy", task: str = "ship", **more: Any) -> ToolExperience:
    key = ExperienceKey("host", tool, "schema-1", task)
    made = ToolExperience(key, scribe.clock.step(), succeeded=2, failed=1, recent=id_digest("one"), place=_HERE)
    return replace(made, **{"summary": "the port was wrong", "summary_place": _HERE, **more})


async def _put(store: Store, scope: Scope, *experiences: ToolExperience) -> None:
    for each in experiences:
        await store.write(write_grant(scope), lambda t, each=each: t.tools.put_experience(scope, each))  # type: ignore[misc]


async def _leading(store: Store, scope: Scope = _HOME) -> list[ToolExperience]:
    return await store.read(EVERYTHING, lambda r: list(r.tools.leading(scope)))


async def _check(store: Store) -> None:
    _, findings = await store.read(EVERYTHING, lambda r: r.maintenance.integrity("contract:2:1"))
    assert findings == []


class ToolContract:
    """The promises of every store about tool registries and experience."""

    @scenario
    async def test_a_registry_is_read_as_it_was_put_and_replaced_by_the_next(self, store: Store) -> None:
        scribe = Scribe()
        first, other = _registry(scribe), _registry(scribe, "zoo")
        newer = _registry(scribe, namespace="other")
        for registry in (first, other, newer):
            await store.write(write_grant(_HOME), lambda t, it=registry: t.tools.put_registry(_HOME, it))  # type: ignore[misc]
            assert await store.read(SPACE, lambda r, it=registry: r.tools.registry(_HOME, it.registry_id)) == registry  # type: ignore[misc]
        assert await store.read(SPACE, lambda r: list(r.tools.registries(_HOME))) == [newer, other]
        assert await store.write(write_grant(_HOME), lambda t: t.tools.delete_registry(_HOME, "host"))
        assert not await store.write(write_grant(_HOME), lambda t: t.tools.delete_registry(_HOME, "host"))
        assert await store.read(SPACE, lambda r: list(r.tools.registries(_HOME))) == [other]
        await _check(store)

    @scenario
    async def test_experience_is_read_as_it_was_put(self, store: Store) -> None:
        scribe = Scribe()
        first = _experience(scribe)
        changes = (
            replace(first, succeeded=9, noted=True, summary="now the host", place=None, recent=b""),
            replace(first, partial=3, cancelled=4, summary="", summary_place=None, updated_at=scribe.clock.step()),
            first,
        )
        for changed in (first, *changes):
            await _put(store, _HOME, changed)
            assert await store.read(SPACE, lambda r: r.tools.experience(_HOME, first.key)) == changed
        assert await store.read(SPACE, lambda r: r.tools.experience_count(_HOME)) == 1
        await _check(store)

    @scenario
    async def test_the_best_task_of_each_tool_leads_in_the_order_of_hints(self, store: Store) -> None:
        scribe = Scribe()
        medium, high = _experience(scribe), _experience(scribe, task="roll-back", succeeded=5)
        once = _experience(scribe, "once", succeeded=1)
        noted = _experience(scribe, "noted", succeeded=1, noted=True)
        older, newer = _experience(scribe, "older"), _experience(scribe, "newer")
        await _put(store, _HOME, medium, once, noted, older, newer)
        assert await _leading(store) == [noted, newer, older, medium]
        await _put(store, _HOME, high)
        assert await _leading(store) == [high, noted, newer, older]
        counts = await store.read(EVERYTHING, lambda r: r.tools.count_versions(_HOME))
        assert sorted((count.governed, count.deferred) for count in counts.values()) == [
            (0, 1),
            (1, 0),
            (1, 0),
            (1, 0),
            (2, 0),
        ]
        assert await store.write(write_grant(_HOME), lambda t: t.tools.delete_experience(_HOME, "host")) == 6
        assert await _leading(store) == []
        await _check(store)

    @scenario
    async def test_more_tools_than_a_page_lead_each_once(self, store: Store) -> None:
        scribe = Scribe()
        await _put(store, _HOME, *(_experience(scribe, f"tool-{number}") for number in range(150)))
        names = [each.key.tool_id for each in await _leading(store)]
        assert names == [f"tool-{number}" for number in reversed(range(150))]

    @scenario
    async def test_a_grant_never_sees_or_changes_the_tools_of_another(self, store: Store) -> None:
        scribe = Scribe()
        registry, experience = _registry(scribe), _experience(scribe)
        await store.write(write_grant(_HOME), lambda t: t.tools.put_registry(_HOME, registry))
        await _put(store, _HOME, experience)
        for grant in (read_grant(BOB), read_grant(_OTHER), read_grant(Scope(space="other"))):
            assert await store.read(grant, lambda r: list(r.tools.registries(_HOME))) == []
            assert await store.read(grant, lambda r: r.tools.registry(_HOME, "host")) is None
            assert await store.read(grant, lambda r: r.tools.experience(_HOME, experience.key)) is None
            assert await store.read(grant, lambda r: list(r.tools.leading(_HOME))) == []
            assert await store.read(grant, lambda r: dict(r.tools.count_versions(_HOME))) == {}
        for scope in (BOB, _OTHER):
            with pytest.raises(AccessDenied):
                await store.write(write_grant(scope), lambda t: t.tools.put_registry(_HOME, registry))
            with pytest.raises(AccessDenied):
                await store.write(write_grant(scope), lambda t: t.tools.put_experience(_HOME, experience))

    @scenario
    async def test_each_memory_has_its_own_tools_of_the_same_names(self, store: Store) -> None:
        scribe = Scribe()
        made = {scope: (_registry(scribe), _experience(scribe)) for scope in _HOMES}
        for scope, (registry, experience) in made.items():
            await store.write(write_grant(scope), lambda t, at=scope, it=registry: t.tools.put_registry(at, it))  # type: ignore[misc]
            await _put(store, scope, experience)
        for scope, (registry, experience) in made.items():
            assert await store.read(EVERYTHING, lambda r, at=scope: list(r.tools.registries(at))) == [registry]  # type: ignore[misc]
            assert await _leading(store, scope) == [experience]

    @scenario
    async def test_forgetting_a_subject_forgets_its_tools_in_every_app(self, store: Store) -> None:
        scribe = Scribe()
        for scope in _HOMES:
            registry = _registry(scribe)
            await store.write(write_grant(scope), lambda t, at=scope, it=registry: t.tools.put_registry(at, it))  # type: ignore[misc]
            await _put(store, scope, _experience(scribe))
        target = ForgetTarget(subject="ana")
        planned = await store.read(read_grant(_HOME), lambda r: r.records.plan_forget(target))
        assert len(planned.tool_entries) == 4
        await forget(store, target, write_grant(_HOME), scribe.clock.step())
        left = [scope for scope in _HOMES if await _leading(store, scope)]
        assert left == [_OTHER, BOB, Scope()]
        for scope in _HOMES:
            registries = await store.read(EVERYTHING, lambda r, at=scope: r.tools.registries(at))  # type: ignore[misc]
            assert len(registries) == (scope in left)
        await _check(store)

    @scenario
    async def test_forgetting_a_conversation_forgets_what_came_from_it(self, store: Store) -> None:
        scribe = Scribe()
        alone, elsewhere = _experience(scribe), _experience(scribe, "other", place=_THERE, summary_place=_THERE)
        mixed = _experience(scribe, "mixed", place=None)
        of_others = _experience(scribe, "mixed", "roll-back", place=None, summary_place=_THERE)
        await _put(store, _HOME, alone, elsewhere, mixed, of_others)
        await forget(store, ForgetTarget(conversation="here"), write_grant(_HOME), scribe.clock.step())
        assert await store.read(SPACE, lambda r: r.tools.experience(_HOME, alone.key)) is None
        unsummarized = replace(mixed, summary="", summary_place=None)
        assert await store.read(SPACE, lambda r: r.tools.experience(_HOME, mixed.key)) == unsummarized
        assert await _leading(store) == [of_others, elsewhere]
        await _check(store)
