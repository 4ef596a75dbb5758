"""Runtime skills: states beside their memories, names that belong to one, and nothing left after a forget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import MemoryRecord, Plane, Status
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied
from holdfast.ports import NewRevision, Store
from holdfast.testing.store_suite.scribe import (
    BOB,
    EVERYTHING,
    SPACE,
    Scribe,
    delta,
    find_record,
    forget,
    put,
    read_grant,
    scenario,
    write_grant,
)

_NAME = "runtime_skill__deploy"
_HOME = Scope(subject="ana")
_OTHER = Scope(space="other", subject="ana")


async def _skill(
    store: Store, scribe: Scribe, scope: Scope = _HOME, name: str = _NAME
) -> tuple[NewRevision, SkillState]:
    memory = scribe.revision(scope, "build then switch", plane=Plane.PROCEDURAL)
    await put(store, memory)
    state = SkillState(name, last_used_at=scribe.clock.step(), use_count=3, last_outcome_note="the port was wrong")
    await _put(store, memory.id, scope, state)
    return memory, state


async def _put(
    store: Store, memory_id: MemoryId, scope: Scope, state: SkillState, status: Status = Status.ACCEPTED
) -> None:
    await store.write(write_grant(scope), lambda t: t.skills.put(memory_id, scope.partition, state, status))


class SkillContract:
    """The promises of every store about runtime skills."""

    @scenario
    async def test_a_state_is_read_as_it_was_put_and_replaced_by_the_next(self, store: Store) -> None:
        memory, state = await _skill(store, Scribe())
        changes = [
            replace(state, enabled=False, revision_pending=True, mismatch_count=2, last_outcome_note="now the host"),
            replace(state, validated_success_count=7, needs_approval=True, last_used_at=None, last_outcome_note=None),
            state,
        ]
        for changed in (state, *changes):
            await _put(store, memory.id, _HOME, changed)
            assert await store.read(SPACE, lambda r: dict(r.skills.states([memory.id, "mem_none"]))) == {
                memory.id: changed
            }
        assert await store.read(SPACE, lambda r: r.skills.find(_HOME.partition, _NAME)) == memory.id
        assert await store.read(SPACE, lambda r: r.skills.find(_HOME.partition, "runtime_skill__other")) is None
        _, findings = await store.read(EVERYTHING, lambda r: r.maintenance.integrity("contract:2:1"))
        assert findings == []

    @scenario
    async def test_the_status_of_the_current_revision_follows_and_search_sees_the_change(self, store: Store) -> None:
        scribe = Scribe()
        memory, state = await _skill(store, scribe)
        newer = scribe.revision(_HOME, "switch then build", of=memory, plane=Plane.PROCEDURAL, supersedes=1)
        await put(store, newer)
        seen = (await delta(store)).change
        for status in (Status.QUARANTINED, Status.ACCEPTED):
            await _put(store, memory.id, _HOME, state, status)
            changed = await delta(store, since=seen)
            assert [row.status for row in changed.rows if row.superseded_at is None] == [status]
            seen = changed.change
        revisions = await store.read(SPACE, lambda r: r.records.revisions(memory.id))
        assert [(each.revision, each.status) for each in revisions if isinstance(each, MemoryRecord)] == [
            (1, Status.ACCEPTED),
            (2, Status.ACCEPTED),
        ]

    @scenario
    async def test_a_grant_never_sees_the_skill_of_another(self, store: Store) -> None:
        memory, state = await _skill(store, Scribe())
        for grant in (read_grant(BOB), read_grant(_OTHER), read_grant(Scope(space="other"))):
            assert await store.read(grant, lambda r: dict(r.skills.states([memory.id]))) == {}
            assert await store.read(grant, lambda r: r.skills.find(_HOME.partition, _NAME)) is None
        for scope in (BOB, _OTHER):
            with pytest.raises(AccessDenied):
                await store.write(
                    write_grant(scope), lambda t: t.skills.put(memory.id, _HOME.partition, state, Status.QUARANTINED)
                )

    @scenario
    async def test_two_owners_may_have_skills_of_one_name(self, store: Store) -> None:
        scribe = Scribe()
        homes = (_HOME, Scope(subject="bob"), _OTHER, Scope())
        made = [(scope, (await _skill(store, scribe, scope))[0].id) for scope in homes]
        for scope, memory_id in made:
            assert await store.read(EVERYTHING, lambda r, at=scope: r.skills.find(at.partition, _NAME)) == memory_id  # type: ignore[misc]

    @scenario
    async def test_forgetting_the_memory_forgets_its_name_and_note(self, store: Store) -> None:
        scribe = Scribe()
        memory, state = await _skill(store, scribe)
        kept, _ = await _skill(store, scribe, name="runtime_skill__kept")
        await forget(store, ForgetTarget(ids=(memory.id,)), write_grant(_HOME), scribe.clock.step())
        states = await store.read(SPACE, lambda r: r.skills.states([memory.id, kept.id]))
        assert [each.name for each in states.values()] == ["runtime_skill__kept"]
        assert await store.read(SPACE, lambda r: r.skills.find(_HOME.partition, _NAME)) is None
        assert await find_record(store, memory.id) is None
        _, findings = await store.read(EVERYTHING, lambda r: r.maintenance.integrity("contract:2:1"))
        assert findings == []
        again = scribe.revision(_HOME, "build anew", plane=Plane.PROCEDURAL)
        await put(store, again)
        await _put(store, again.id, _HOME, state)
        assert await store.read(SPACE, lambda r: r.skills.find(_HOME.partition, _NAME)) == again.id
