"""Users belong to a space and are identified by the digest of their key. A narrower grant cannot reach them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind
from holdfast.domain.scope import Scope
from holdfast.domain.users import User, key_digest
from holdfast.errors import AccessDenied
from holdfast.ports import Store
from holdfast.testing.store_suite.control_scribe import ControlScribe
from holdfast.testing.store_suite.scribe import ANA, EVERYTHING, SPACE, Scribe, read_grant, scenario, write_grant

_OTHER = Scope(space="other")


class UserContract:
    """The promises of every store about users."""

    @scenario
    async def test_a_user_is_kept_as_it_was_put(self, store: Store) -> None:
        scribe = Scribe()
        user = User("ana", "default", scribe.clock.step())
        changed = replace(user, rotated_at=scribe.clock.step(), revoked_at=scribe.clock.step())
        for put, key in ((user, "one"), (changed, "two"), (user, "three")):
            await store.write(SPACE, lambda t, put=put, key=key: t.users.put(put, key_digest(key)))  # type: ignore[misc]
            assert await store.read(SPACE, lambda r: r.users.find("ana")) == (put, key_digest(key))
        assert await store.read(SPACE, lambda r: r.users.find_by_key(key_digest("three"))) == user
        for gone in ("one", "two", ""):
            assert await store.read(EVERYTHING, lambda r, gone=gone: r.users.find_by_key(key_digest(gone))) is None  # type: ignore[misc]
        assert await store.read(SPACE, lambda r: r.users.find("bob")) is None

    @scenario
    async def test_users_are_listed_by_id(self, store: Store) -> None:
        scribe = Scribe()
        users = [User(name, "default", scribe.clock.step()) for name in ("~", "b", "Zoë", "a", "你好", "a b")]
        for user in users:
            await store.write(SPACE, lambda t, user=user: t.users.put(user, key_digest(user.id)))  # type: ignore[misc]
        ordered = sorted(users, key=lambda user: user.id)
        assert list(await store.read(SPACE, lambda r: r.users.page(None, 10))) == ordered
        assert list(await store.read(SPACE, lambda r: r.users.page("a b", 2))) == ordered[3:5]
        assert list(await store.read(SPACE, lambda r: r.users.page("你好", 2))) == []
        assert sorted(await store.read(SPACE, lambda r: r.users.names(ActorKind.USER))) == [user.id for user in ordered]
        latest = await store.read(SPACE, lambda r: r.users.names(ActorKind.USER, users[3].created_at))
        assert sorted(latest) == sorted(user.id for user in users[3:])
        assert not await store.read(SPACE, lambda r: r.users.names(ActorKind.AGENT))

    @scenario
    async def test_operators_with_a_key_from_a_caller_without_a_credential_are_listed(self, store: Store) -> None:
        scribe = ControlScribe()
        anybody = Actor(ActorKind.OPERATOR, "loopback")

        async def make(name: str, maker: Actor, **more: Any) -> User:
            call = scribe.operation(
                action=Action.CREATE_USER,
                actor=maker,
                started_at=scribe.clock.step(),
                scope=Scope(),
                duration_micros=10,
            )
            user = User(name, "default", call.started_at + timedelta(microseconds=10), kind=ActorKind.OPERATOR, **more)
            await store.write(SPACE, lambda t: t.users.put(user, key_digest(name)))
            await store.write(SPACE, lambda t: t.operations.add(call))
            return user

        unproven = [await make(name, anybody) for name in ("a", "b")]
        await make("c", LOCAL_OPERATOR)
        await make("d", anybody, revoked_at=scribe.clock.step())
        for grant in (SPACE, EVERYTHING):
            assert list(await store.read(grant, lambda r: r.users.unproven_operators())) == unproven
        for grant in (read_grant(_OTHER), read_grant(ANA)):
            assert list(await store.read(grant, lambda r: r.users.unproven_operators())) == []

    @scenario
    async def test_users_of_another_space_are_out_of_reach(self, store: Store) -> None:
        scribe = Scribe()
        theirs = User("ana", "other", scribe.clock.step())
        await store.write(write_grant(_OTHER), lambda t: t.users.put(theirs, key_digest("k")))
        for grant in (SPACE, read_grant(ANA), read_grant(replace(ANA, space="other"))):
            assert await store.read(grant, lambda r: r.users.find("ana")) is None
            assert await store.read(grant, lambda r: r.users.find_by_key(key_digest("k"))) is None
            assert list(await store.read(grant, lambda r: r.users.page(None, 10))) == []
            assert not await store.read(grant, lambda r: r.users.names(ActorKind.USER))
            with pytest.raises(AccessDenied):
                await store.write(grant, lambda t: t.users.put(replace(theirs), key_digest("stolen")))
        assert await store.read(EVERYTHING, lambda r: r.users.find_by_key(key_digest("k"))) == theirs
        ours = replace(theirs, space="default")
        await store.write(SPACE, lambda t: t.users.put(ours, key_digest("ours")))
        assert await store.read(read_grant(_OTHER), lambda r: r.users.find("ana")) == (theirs, key_digest("k"))
        assert await store.read(SPACE, lambda r: r.users.find("ana")) == (ours, key_digest("ours"))
