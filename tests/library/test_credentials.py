"""Credentials with kinds and roles: who may issue which, what a key states, and that none is stored. On both stores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Actor, ActorKind, Issued, Memory
from holdfast.domain.access import ActorRole
from holdfast.domain.users import KEY_PREFIXES, ROLES, key_digest
from holdfast.errors import AccessDenied, HoldfastError, InvalidInput, NotFound, UserExists
from holdfast.testing.full_repr import full_repr
from probes import engine_of, trail_of

KINDS = tuple(ROLES)
WALLED = Actor(ActorKind.OPERATOR, "chief", "acme", role=ActorRole.ADMIN)


@pytest.fixture
def place(store_place: str) -> str:
    return store_place


@pytest.fixture
def whole(place: str) -> Iterator[Memory]:
    """A memory for an operator who is not confined to a space."""
    with holdfast.open(place, embedder="fake", work=False) as opened:
        yield opened


def actor_of(memory: Memory, key: str | None) -> Actor | None:
    assert key is not None
    return memory._portal.run(engine_of(memory._behind).actor_of(key))


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_says_what_kind_it_is_and_lets_in_as_that(whole: Memory, kind: ActorKind) -> None:
    for role in ROLES[kind]:
        issued = whole.create_user(f"one-{role}", kind=kind, role=role, space="acme")
        assert issued.key is not None
        assert issued.key.startswith(KEY_PREFIXES[kind])
        assert actor_of(whole, issued.key) == Actor(kind, f"one-{role}", "acme", role=role)


def test_an_agent_speaks_for_the_subjects_mounted_on_it(whole: Memory) -> None:
    key = whole.create_user("writer", kind="agent", subjects=["ana", "ben"], space="acme").key
    found = actor_of(whole, key)
    assert found == Actor(ActorKind.AGENT, "writer", "acme", frozenset({"ana", "ben"}), ActorRole.MEMBER)

    rotated = whole.rotate_user("writer", kind="agent", space="acme")
    assert actor_of(whole, key) is None
    assert actor_of(whole, rotated.key) == found
    narrowed = whole.rotate_user("writer", kind="agent", role="reader", subjects=[], space="acme")
    assert actor_of(whole, narrowed.key) == Actor(ActorKind.AGENT, "writer", "acme", role=ActorRole.READER)


def test_one_name_may_be_a_user_an_agent_and_an_operator_each_with_a_key_of_its_own(whole: Memory) -> None:
    keys = {kind: whole.create_user("sam", kind=kind, space="acme").key for kind in KINDS}
    assert len(set(keys.values())) == 3
    whole.revoke_user("sam", kind="agent", space="acme")
    assert actor_of(whole, keys[ActorKind.AGENT]) is None
    for kind in (ActorKind.USER, ActorKind.OPERATOR):
        found = actor_of(whole, keys[kind])
        assert found is not None
        assert (found.kind, found.id) == (kind, "sam")
        (listed,) = whole.users(kind=kind, space="acme").items
        assert listed.revoked_at is None
    assert [one.kind for one in whole.users(space="acme").items] == [ActorKind.USER]
    assert whole.users(kind="agent", space="elsewhere").items == ()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"kind": "device"}, "kind"),
        ({"kind": "system"}, "kind"),
        ({"kind": "robot"}, "kind"),
        ({"kind": "agent", "role": "admin"}, "role"),
        ({"kind": "agent", "role": "boss"}, "role"),
        ({"kind": "user", "role": "curator"}, "role"),
        ({"kind": "operator", "role": "member"}, "role"),
        ({"kind": "user", "subjects": ["ben"]}, "subjects"),
        ({"kind": "operator", "subjects": "ben"}, "subjects"),
        ({"kind": "agent", "subjects": [""]}, "subjects"),
        ({"kind": "agent", "subjects": [["ana"]]}, "subjects"),
        ({"kind": "agent", "subjects": 5}, "subjects"),
        ({"kind": "agent", "subjects": [str(number) for number in range(101)]}, "subjects"),
    ],
    ids=str,
)
def test_a_credential_that_makes_no_sense_is_refused_by_the_name_of_what_is_wrong(
    whole: Memory, given: dict[str, object], named: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        whole.create_user("x", **given)  # type: ignore[arg-type]
    assert refused.value.field == named
    assert trail_of(whole)[-1].outcome == "refused"


def made(memory: Memory, kind: ActorKind, name: str) -> Issued:
    return memory.create_user(name, kind=kind)


def test_an_operator_of_a_company_lets_in_its_agents_and_users_and_makes_no_operators(
    whole: Memory, place: str
) -> None:
    for kind in KINDS:
        whole.create_user("there", kind=kind, space="acme")
    chief = whole.create_user("chief", kind="operator", space="acme")
    with holdfast.open(place, embedder="fake", work=False, space="acme", actor=WALLED) as own:
        for kind in (ActorKind.AGENT, ActorKind.USER):
            assert own.create_user("new", kind=kind).created
            assert own.rotate_user("new", kind=kind).rotated
            assert own.revoke_user("new", kind=kind).revoked_at is not None
        for refused in (
            lambda: own.create_user("new", kind="operator"),
            lambda: own.create_user("new", kind="operator", role="auditor"),
            lambda: own.rotate_user("there", kind="operator"),
            lambda: own.revoke_user("there", kind="operator"),
            lambda: own.rotate_user("chief", kind="operator", role="admin"),
            lambda: own.create_user("chief", kind="operator", presented_key=chief.key),
        ):
            with pytest.raises(AccessDenied, match="belongs to one space"):
                refused()
            assert trail_of(own)[-1].outcome == "refused"
        again = own.rotate_user("chief", kind="operator")
        assert actor_of(own, chief.key) is None
        assert actor_of(own, again.key) == WALLED
        assert [one.id for one in own.users(kind="operator").items] == ["chief", "there"]
        assert own.revoke_user("chief", kind="operator").revoked_at is not None
        assert actor_of(own, again.key) is None


@pytest.mark.parametrize(("kind", "role"), [(kind, role) for kind in KINDS for role in ROLES[kind] if role != "admin"])
def test_nobody_but_admins_makes_credentials_and_of_the_others_only_auditors_see_them(
    whole: Memory, place: str, kind: ActorKind, role: ActorRole
) -> None:
    whole.create_user("victim", space="acme")
    actor = Actor(kind, "sam", "acme", role=role)
    with holdfast.open(place, embedder="fake", work=False, space="acme", actor=actor) as own:
        for refused in (
            lambda: own.create_user("new"),
            lambda: own.rotate_user("victim"),
            lambda: own.revoke_user("victim"),
        ):
            with pytest.raises(AccessDenied):
                refused()
        if role is ActorRole.AUDITOR:
            assert [one.id for one in own.users().items] == ["victim"]
            return
        with pytest.raises(AccessDenied):
            own.users()


def test_an_operator_of_one_company_reaches_no_other(whole: Memory, place: str) -> None:
    whole.create_user("writer", kind="agent", space="other")
    with holdfast.open(place, embedder="fake", work=False, space="acme", actor=WALLED) as own:
        for refused in (
            lambda: own.create_user("spy", kind="agent", space="other"),
            lambda: own.rotate_user("writer", kind="agent", space="other"),
            lambda: own.revoke_user("writer", kind="agent", space="other"),
            lambda: own.users(kind="agent", space="other"),
        ):
            with pytest.raises(AccessDenied):
                refused()
        with pytest.raises(NotFound):
            own.rotate_user("writer", kind="agent")
    assert [one.revoked_at for one in whole.users(kind="agent", space="other").items] == [None]


def test_a_repeated_call_makes_one_credential_and_tells_its_key_once(whole: Memory) -> None:
    first = whole.create_user("writer", kind="agent", idempotency_key="k", space="acme")
    again = whole.create_user("writer", kind="agent", idempotency_key="k", space="acme")
    assert again == Issued(first.user, None, created=True)
    with pytest.raises(UserExists, match="holdfast credential rotate"):
        whole.create_user("writer", kind="agent", space="acme")
    with pytest.raises(HoldfastError, match="idempotency_key"):
        whole.create_user("writer", kind="operator", idempotency_key="k", space="acme")


def test_credentials_are_listed_page_by_page_by_kind(whole: Memory) -> None:
    for kind, number in itertools.product(KINDS, range(5)):
        whole.create_user(f"{kind}-{number}", kind=kind, space="acme")
    for kind in KINDS:
        found, cursor = [], None
        while True:
            page = whole.users(kind=kind, limit=2, cursor=cursor, space="acme")
            found += [one.id for one in page.items]
            if (cursor := page.next_cursor) is None:
                break
        assert found == [f"{kind}-{number}" for number in range(5)]
    cursor = whole.users(kind="agent", limit=2, space="acme").next_cursor
    with pytest.raises(HoldfastError, match="cursor"):
        whole.users(kind="user", limit=2, cursor=cursor, space="acme")


def test_no_key_is_in_any_representation_or_in_the_bytes_of_the_store(tmp_path: Path) -> None:
    keys: list[str] = []
    with holdfast.open(tmp_path / "m.db", embedder="fake", work=False) as memory:
        for kind in KINDS:
            for issued in (memory.create_user("sam", kind=kind), memory.rotate_user("sam", kind=kind)):
                assert issued.key is not None
                keys.append(issued.key)
                assert issued.key not in repr(issued) + str(issued)
            with pytest.raises(UserExists) as refused:
                memory.create_user("sam", kind=kind, presented_key=keys[-2])
            assert not any(key in repr(refused.value) for key in keys)
        trail = full_repr(trail_of(memory))
    for key in keys:
        assert key not in trail
        for file in tmp_path.iterdir():
            assert key.encode() not in file.read_bytes()
    # The digest is stored, so the search above looked in the right place.
    assert any(key_digest(keys[-1]) in file.read_bytes() for file in tmp_path.iterdir())
