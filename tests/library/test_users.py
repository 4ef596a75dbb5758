"""Users and their keys: shown once, stored as a digest, valid until rotated or revoked."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import holdfast
from holdfast import Actor, ActorKind, Issued, Memory
from holdfast.domain.scope import Scope
from holdfast.domain.users import key_digest
from holdfast.errors import (
    AccessDenied,
    IdempotencyConflict,
    InvalidCursor,
    InvalidInput,
    InvalidScope,
    InvalidText,
    NotFound,
    UserExists,
)
from holdfast.ports import KeyDirectory
from holdfast.runtime.users import CreateUser
from holdfast.testing.full_repr import full_repr
from probes import SteppingClock, engine_of, trail_of


def actor_of(memory: Memory, key: str) -> Actor | None:
    directory: KeyDirectory = engine_of(memory._behind)
    return memory._portal.run(directory.actor_of(key))


def key_of(issued: Issued) -> str:
    assert issued.key is not None
    return issued.key


def test_a_new_user_gets_a_key_and_is_known_by_it(memory: Memory) -> None:
    issued = memory.create_user("ana")
    assert (issued.created, issued.rotated, issued.user.id, issued.user.space) == (True, False, "ana", "default")
    assert key_of(issued).startswith("uk_")
    assert len(key_of(issued)) >= 40
    assert actor_of(memory, key_of(issued)) == issued.user.actor


def test_nobody_has_a_key_that_was_never_given(memory: Memory) -> None:
    key = key_of(memory.create_user("ana"))
    for wrong in ("", "uk_", key[:-1], key + "x", key.upper(), "\x00", "\ud800", "ana", "k" * 100_000):
        assert actor_of(memory, wrong) is None


def test_who_holds_the_key_gets_no_new_one(memory: Memory) -> None:
    first = memory.create_user("ana")
    again = memory.create_user("ana", presented_key=key_of(first))
    assert again == Issued(first.user)
    assert actor_of(memory, key_of(first)) == first.user.actor


@pytest.mark.parametrize("presented", [None, "uk_wrong"])
def test_who_does_not_is_refused(memory: Memory, presented: str | None) -> None:
    first = memory.create_user("ana")
    with pytest.raises(UserExists, match="current key"):
        memory.create_user("ana", presented_key=presented)
    assert actor_of(memory, key_of(first)) == first.user.actor


def test_somebody_elses_key_is_not_ones_own(memory: Memory) -> None:
    memory.create_user("ana")
    bobs = key_of(memory.create_user("bob"))
    with pytest.raises(UserExists):
        memory.create_user("ana", presented_key=bobs)


def test_a_rotated_key_is_nobodys(timed: Memory, clock: SteppingClock) -> None:
    first = timed.create_user("ana")
    clock.advance(hours=1)
    second = timed.rotate_user("ana")
    assert (second.created, second.rotated) == (False, True)
    assert second.user.created_at == first.user.created_at
    assert second.user.rotated_at is not None
    assert actor_of(timed, key_of(first)) is None
    assert actor_of(timed, key_of(second)) == second.user.actor
    with pytest.raises(UserExists):
        timed.create_user("ana", presented_key=key_of(first))


def test_a_revoked_user_is_let_in_no_longer_and_comes_back_by_rotation_alone(memory: Memory) -> None:
    key = key_of(memory.create_user("ana"))
    revoked = memory.revoke_user("ana")
    assert revoked.revoked_at is not None
    assert actor_of(memory, key) is None
    with pytest.raises(UserExists):
        memory.create_user("ana", presented_key=key)
    assert memory.revoke_user("ana") == revoked
    back = memory.rotate_user("ana")
    assert back.user.revoked_at is None
    assert actor_of(memory, key) is None
    assert actor_of(memory, key_of(back)) == back.user.actor


def test_nobody_is_made_by_rotating_or_revoking(memory: Memory) -> None:
    for call in (memory.rotate_user, memory.revoke_user):
        with pytest.raises(NotFound, match=r"no user of this id"):
            call("nobody")
    assert memory.users().items == ()


def test_users_of_spaces_are_apart(memory: Memory) -> None:
    here, there = memory.create_user("ana"), memory.create_user("ana", space="there")
    assert here.created
    assert there.created
    assert memory.users().items == (here.user,)
    assert memory.users(space="there").items == (there.user,)
    assert actor_of(memory, key_of(there)) == there.user.actor
    with pytest.raises(UserExists):
        memory.create_user("ana", space="there", presented_key=here.key)


def test_a_list_is_paged_by_id(memory: Memory) -> None:
    names = sorted(["ana", "Zoë", "bob", "1", "~", "你好", "a b"])
    for name in names:
        memory.create_user(name)
    memory.revoke_user("bob")
    found, cursor = [], None
    while True:
        page = memory.users(limit=3, cursor=cursor)
        assert len(page.items) <= 3
        found += [user.id for user in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert found == names
    first = memory.users(limit=3).next_cursor
    with pytest.raises(InvalidCursor, match="another query"):
        memory.users(space="there", cursor=first)
    with pytest.raises(InvalidCursor, match="malformed"):
        memory.users(cursor="x")


def test_a_key_is_not_shown_and_not_kept(memory: Memory, store_place: str, tmp_path: Path) -> None:
    issued = memory.create_user("ana", idempotency_key="once")
    rotated = memory.rotate_user("ana")
    for made in (issued, rotated):
        assert key_of(made) not in repr(made)
        assert key_of(made) not in full_repr(trail_of(memory))
    memory.close()
    if "://" not in store_place:
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        for made in (issued, rotated):
            assert key_of(made).encode() not in held
        assert key_digest(key_of(rotated)) in held


def test_an_error_does_not_hold_the_key_that_was_given(memory: Memory) -> None:
    memory.create_user("ana")
    with pytest.raises(UserExists) as refused:
        memory.create_user("ana", presented_key="uk_canary")
    assert "canary" not in str(refused.value)


def test_made_again_under_a_key_it_answers_without_the_users_key(memory: Memory) -> None:
    first = memory.create_user("ana", idempotency_key="k")
    again = memory.create_user("ana", idempotency_key="k")
    assert (again.user, again.created, again.key) == (first.user, True, None)
    assert actor_of(memory, key_of(first)) == first.user.actor
    rotated = memory.rotate_user("ana", idempotency_key="r")
    assert memory.rotate_user("ana", idempotency_key="r") == Issued(rotated.user, None, rotated=True)
    assert actor_of(memory, key_of(rotated)) == rotated.user.actor
    revoked = memory.revoke_user("ana", idempotency_key="v")
    assert memory.revoke_user("ana", idempotency_key="v") == revoked
    with pytest.raises(IdempotencyConflict):
        memory.create_user("bob", idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        memory.revoke_user("ana", idempotency_key="r")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("", InvalidScope),
        (" ", InvalidScope),
        ("a\x00", InvalidScope),
        ("\ud800", InvalidScope),
        ("x" * 257, InvalidScope),
    ],
)
def test_an_id_is_a_name_like_any_other(memory: Memory, wrong: str, error: type[Exception]) -> None:
    for call in (memory.create_user, memory.rotate_user, memory.revoke_user):
        with pytest.raises(error, match="user_id"):
            call(wrong)


def test_users_belong_to_a_whole_space(memory: Memory) -> None:
    with pytest.raises(TypeError, match="subject"):
        memory.create_user("ana", subject="ana")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="subject: users belong"):
        CreateUser(Scope(subject="ana"), "ana")
    with pytest.raises((InvalidInput, AccessDenied)):
        memory.create_user("ana", space="*")
    with pytest.raises(InvalidText, match="presented_key"):
        memory.create_user("ana", presented_key="")


@pytest.mark.parametrize("kind", [ActorKind.USER, ActorKind.AGENT, ActorKind.DEVICE])
def test_only_operators_look_after_users(store_place: str, kind: ActorKind) -> None:
    with holdfast.open(store_place, embedder="fake", work=False, actor=Actor(kind, "ana")) as memory:
        for call in (
            lambda: memory.create_user("ana"),
            lambda: memory.rotate_user("ana"),
            lambda: memory.revoke_user("ana"),
            memory.users,
        ):
            with pytest.raises(AccessDenied, match="ask an operator"):
                call()


def test_an_operator_of_one_space_makes_no_users_of_another(store_place: str) -> None:
    warden = Actor(ActorKind.OPERATOR, "warden", space="north")
    with holdfast.open(store_place, embedder="fake", work=False, actor=warden, space="north") as memory:
        assert memory.create_user("ana").user.space == "north"
        with pytest.raises(AccessDenied):
            memory.create_user("ana", space="south")


def test_of_many_who_ask_at_once_one_gets_a_key(memory: Memory) -> None:
    def ask(_: int) -> Issued | None:
        try:
            return memory.create_user("ana")
        except UserExists:
            return None

    with ThreadPoolExecutor(8) as threads:
        made = [issued for issued in threads.map(ask, range(24)) if issued is not None]
    assert len(made) == 1
    assert actor_of(memory, key_of(made[0])) == made[0].user.actor


def test_users_are_counted_and_there_after_opening_again(store_place: str) -> None:
    with holdfast.open(store_place, embedder="fake", work=False) as memory:
        issued = memory.create_user("ana")
        memory.create_user("bob", space="there")
        assert (memory.stats().users, memory.stats(space="*").users, memory.stats(subject="ana").users) == (1, 2, 0)
    with holdfast.open(store_place, embedder="fake", work=False) as memory:
        assert actor_of(memory, key_of(issued)) == issued.user.actor
        assert memory.verify().checked["credentials"] == 2


def test_a_key_is_looked_up_from_many_tasks_at_once(store_place: str) -> None:
    async def whole() -> None:
        async with holdfast.open_async(store_place, embedder="fake", work=False) as memory:
            issued = [await memory.create_user(f"user-{number}") for number in range(20)]
            directory: KeyDirectory = memory._service  # type: ignore[assignment]
            found = await asyncio.gather(*(directory.actor_of(str(made.key)) for made in issued))
            assert found == [made.user.actor for made in issued]

    asyncio.run(whole())
