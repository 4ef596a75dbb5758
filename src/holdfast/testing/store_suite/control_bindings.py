"""Bindings, their targets, and credentials of every kind."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from holdfast.domain.access import ActorKind, ActorRole
from holdfast.domain.bindings import Binding, Target, TargetKind, first_binding
from holdfast.domain.contract import HookKind
from holdfast.domain.users import User, key_digest
from holdfast.errors import AccessDenied, BindingExists, BindingNotFound, HoldfastError, RevisionConflict
from holdfast.ports import Store, Transaction
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import EVERYTHING, scenario

GRANT = management_grant()


async def _bindings(store: Store) -> list[Binding]:
    return await store.read(GRANT, lambda r: list(r.bindings.find_all()))


async def _targets(store: Store) -> list[tuple[str, str, str]]:
    found = await store.read(GRANT, lambda r: list(r.bindings.targets()))
    return [(each.kind, each.target_id, each.binding_key) for each in found]


class ControlBindingContract:
    @scenario
    async def test_the_first_binding_is_written_down_beside_the_next(self, store: Store) -> None:
        scribe = ControlScribe()
        made = scribe.binding("b", hooks={HookKind.ISSUE_COMMENT_CAPTURE: True}, enabled=False)
        assert await _bindings(store) == [first_binding("default")]
        await store.write(GRANT, lambda t: t.bindings.add(made))
        assert await _bindings(store) == [made, replace(first_binding("default"), created_at=scribe.now())]
        assert await _targets(store) == [("company", "default", "default")]

    @scenario
    async def test_only_those_are_read_that_are_asked_for(self, store: Store) -> None:
        async def read(keys: tuple[str, ...], of: tuple[str, ...]) -> tuple[list[str], list[tuple[str, str]]]:
            return await store.read(
                GRANT,
                lambda r: (
                    [each.key for each in r.bindings.find_all(keys)],
                    [(each.target_id, each.binding_key) for each in r.bindings.targets(of)],
                ),
            )

        assert await read(("default",), ("default",)) == (["default"], [("default", "default")])
        assert await read(("other",), ("bot",)) == ([], [])
        scribe = ControlScribe()
        for key in ("a", "b", "c"):
            await store.write(GRANT, lambda t, key=key: t.bindings.add(scribe.binding(key)))  # type: ignore[misc]
            bound = Target(TargetKind.AGENT, f"bot-{key}", key)
            await store.write(GRANT, lambda t, bound=bound: t.bindings.set_target(bound))  # type: ignore[misc]
        assert await read(("c", "a", "nowhere"), ("default", "bot-b", "nobody")) == (
            ["a", "c"],
            [("default", "default"), ("bot-b", "b")],
        )
        assert await read((), ()) == ([], [])

    @scenario
    async def test_a_key_is_given_once_at_a_time(self, store: Store) -> None:
        scribe = ControlScribe()
        await store.write(GRANT, lambda t: t.bindings.add(scribe.binding("a")))
        for key in ("a", "default"):
            with pytest.raises(BindingExists, match=key):
                await store.write(GRANT, lambda t, key=key: t.bindings.add(scribe.binding(key)))  # type: ignore[misc]
        assert [each.key for each in await _bindings(store)] == ["a", "default"]
        for _ in range(3):
            await store.write(GRANT, lambda t: t.bindings.remove("a", scribe.now()))
            assert [each.key for each in await _bindings(store)] == ["default"]
            with pytest.raises(BindingNotFound):
                await store.write(GRANT, lambda t: t.bindings.remove("a", scribe.now()))
            await store.write(GRANT, lambda t: t.bindings.add(scribe.binding("a")))

    @scenario
    async def test_a_space_that_lost_all_its_bindings_has_none(self, store: Store) -> None:
        """The initial binding does not reappear: it was removed on purpose."""
        await store.write(GRANT, lambda t: t.bindings.remove("default", ControlScribe().now()))
        assert (await _bindings(store), await _targets(store)) == ([], [])

    @scenario
    async def test_of_many_who_make_the_same_binding_at_once_one_does(self, store: Store) -> None:
        scribe = ControlScribe()
        offers = [scribe.binding("same", config={"n": number}) for number in range(20)]
        made = await asyncio.gather(
            *(store.write(GRANT, lambda t, each=each: t.bindings.add(each)) for each in offers),  # type: ignore[misc]
            return_exceptions=True,
        )
        assert [type(each) for each in made if each is not None] == [BindingExists] * 19
        (winner,) = [offer for offer, end in zip(offers, made, strict=True) if end is None]
        assert await _bindings(store) == [replace(first_binding("default"), created_at=scribe.now()), winner]

    @scenario
    async def test_a_change_is_of_the_revision_that_was_read(self, store: Store) -> None:
        scribe = ControlScribe()
        made = scribe.binding("a")
        await store.write(GRANT, lambda t: t.bindings.add(made))
        changed = replace(made, config={}, enabled=False, revision=2, updated_at=scribe.clock.step())
        await store.write(GRANT, lambda t: t.bindings.replace(changed))
        assert (await _bindings(store))[0] == changed
        for revision in (1, 2, 4):
            with pytest.raises(RevisionConflict):
                await store.write(GRANT, lambda t, n=revision: t.bindings.replace(replace(changed, revision=n)))  # type: ignore[misc]
        with pytest.raises(RevisionConflict):
            await store.write(GRANT, lambda t: t.bindings.replace(replace(made, key="never", revision=2)))
        assert (await _bindings(store))[0] == changed

    @scenario
    async def test_of_many_changes_of_one_revision_one_is_made(self, store: Store) -> None:
        scribe = ControlScribe()
        made = scribe.binding("a")
        await store.write(GRANT, lambda t: t.bindings.add(made))
        offers = [replace(made, config={"n": number}, revision=2) for number in range(20)]
        ends = await asyncio.gather(
            *(store.write(GRANT, lambda t, each=each: t.bindings.replace(each)) for each in offers),  # type: ignore[misc]
            return_exceptions=True,
        )
        assert [type(each) for each in ends if each is not None] == [RevisionConflict] * 19
        (winner,) = [offer for offer, end in zip(offers, ends, strict=True) if end is None]
        assert (await _bindings(store))[0] == winner

    @scenario
    async def test_the_first_binding_is_changed_as_any_other(self, store: Store) -> None:
        scribe = ControlScribe()
        changed = replace(first_binding("default"), enabled=False, revision=2, updated_at=scribe.now())
        await store.write(GRANT, lambda t: t.bindings.replace(changed))
        (found,) = await _bindings(store)
        assert (found.enabled, found.revision, found.updated_at) == (False, 2, scribe.now())
        assert await _targets(store) == [("company", "default", "default")]

    @scenario
    async def test_targets_are_set_moved_and_cleared(self, store: Store) -> None:
        scribe = ControlScribe()
        await store.write(GRANT, lambda t: t.bindings.add(scribe.binding("a")))
        for target in (
            Target(TargetKind.AGENT, "zoë", "a"),
            Target(TargetKind.AGENT, "bo", "default"),
            Target(TargetKind.COMPANY, "default", "a"),
            Target(TargetKind.AGENT, "bo", "a"),
        ):
            await store.write(GRANT, lambda t, target=target: t.bindings.set_target(target))  # type: ignore[misc]
        assert await _targets(store) == [("company", "default", "a"), ("agent", "bo", "a"), ("agent", "zoë", "a")]
        assert await store.write(GRANT, lambda t: t.bindings.clear_target(TargetKind.AGENT, "bo"))
        assert not await store.write(GRANT, lambda t: t.bindings.clear_target(TargetKind.AGENT, "bo"))
        await store.write(GRANT, lambda t: t.bindings.remove("a", scribe.now()))
        assert await _targets(store) == []
        with pytest.raises(BindingNotFound):
            await store.write(GRANT, lambda t: t.bindings.set_target(Target(TargetKind.AGENT, "bo", "a")))
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity("e")))[1] == []

    @scenario
    async def test_the_first_target_can_be_cleared(self, store: Store) -> None:
        assert await store.write(GRANT, lambda t: t.bindings.clear_target(TargetKind.COMPANY, "default"))
        assert (await _targets(store), [each.key for each in await _bindings(store)]) == ([], ["default"])

    @scenario
    async def test_nobody_changes_bindings_over_all_spaces_at_once(self, store: Store) -> None:
        scribe = ControlScribe()
        with pytest.raises(AccessDenied):
            await store.write(EVERYTHING, lambda t: t.bindings.remove("default", scribe.now()))
        with pytest.raises(AccessDenied):
            await store.write(EVERYTHING, lambda t: t.bindings.add(scribe.binding()))

    @scenario
    async def test_a_change_that_fails_half_way_leaves_nothing(self, store: Store) -> None:
        scribe = ControlScribe()

        def half(transaction: Transaction) -> None:
            transaction.bindings.add(scribe.binding("a"))
            transaction.bindings.set_target(Target(TargetKind.AGENT, "bo", "a"))
            transaction.bindings.set_target(Target(TargetKind.AGENT, "bo", "never"))

        with pytest.raises(HoldfastError):
            await store.write(GRANT, half)
        assert await _bindings(store) == [first_binding("default")]

    # --- credentials ---

    @scenario
    async def test_credentials_are_of_a_kind_each_with_names_of_its_own(self, store: Store) -> None:
        scribe = ControlScribe()
        issued = [
            User("ana", "default", scribe.now()),
            User(
                "ana",
                "default",
                scribe.now(),
                kind=ActorKind.AGENT,
                role=ActorRole.CURATOR,
                subjects=frozenset({"b", "ü"}),
            ),
            User("ana", "default", scribe.now(), kind=ActorKind.OPERATOR, role=ActorRole.AUDITOR),
            User("bo", "default", scribe.now(), kind=ActorKind.AGENT),
        ]
        for user in issued:
            digest = key_digest(f"{user.kind}/{user.id}")
            await store.write(GRANT, lambda t, user=user, digest=digest: t.users.put(user, digest))  # type: ignore[misc]
        for user in issued:
            digest = key_digest(f"{user.kind}/{user.id}")
            assert await store.read(GRANT, lambda r, u=user: r.users.find(u.id, u.kind)) == (user, digest)  # type: ignore[misc]
            assert await store.read(EVERYTHING, lambda r, d=digest: r.users.find_by_key(d)) == user  # type: ignore[misc]
        assert await store.read(GRANT, lambda r: r.users.find("bo")) is None
        for kind, count in ((ActorKind.USER, 1), (ActorKind.AGENT, 2), (ActorKind.OPERATOR, 1)):
            listed = await store.read(GRANT, lambda r, kind=kind: list(r.users.page(None, 10, kind)))  # type: ignore[misc]
            assert listed == [user for user in issued if user.kind is kind]
            assert len(listed) == count
        again = replace(issued[1], role=ActorRole.READER, subjects=frozenset(), revoked_at=scribe.clock.step())
        await store.write(GRANT, lambda t: t.users.put(again, key_digest("new")))
        assert await store.read(GRANT, lambda r: r.users.find("ana", ActorKind.AGENT)) == (again, key_digest("new"))
        assert await store.read(GRANT, lambda r: r.users.find("ana")) == (issued[0], key_digest("user/ana"))
