"""`holdfast credential`: keys for a company's agents, users and operators, printed once, with nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from holdfast.app import open_engine
from holdfast.domain.access import Actor, ActorKind, ActorRole
from holdfast.settings import Settings

from .conftest import Holdfast


async def owner(location: str, key: str) -> Actor | None:
    """The actor that the store authenticates by this key."""
    engine = await open_engine(location, Settings(), embedder="fake", work=False)
    try:
        return await engine.actor_of(key)
    finally:
        await engine.close()


def key_of(out: str, prefix: str) -> str:
    """The key, which must be the whole output."""
    key = out.removesuffix("\n")
    assert key.startswith(prefix)
    assert out == f"{key}\n"
    return key


def test_an_agent_comes_gets_another_role_goes_and_comes_again(holdfast: Holdfast, tmp_path: Path) -> None:
    made = holdfast("credential", "create", "writer", "--subject", "ana", "--subject", "ben", "--space", "acme")
    assert made.code == 0, made.err
    first = key_of(made.out, "ak_")
    assert "Created the agent writer (member) of acme" in made.err
    subjects = frozenset({"ana", "ben"})
    assert asyncio.run(owner("memory.db", first)) == Actor(
        ActorKind.AGENT, "writer", "acme", subjects, ActorRole.MEMBER
    )

    rotated = holdfast("credential", "rotate", "writer", "--role", "curator", "--space", "acme")
    second = key_of(rotated.out, "ak_")
    assert asyncio.run(owner("memory.db", first)) is None
    assert asyncio.run(owner("memory.db", second)) == Actor(
        ActorKind.AGENT, "writer", "acme", subjects, ActorRole.CURATOR
    )

    revoked = holdfast("credential", "revoke", "writer", "--space", "acme", "--yes")
    assert (revoked.code, revoked.err) == (0, "")
    assert "`holdfast credential rotate writer --kind agent --space acme`" in revoked.out
    assert asyncio.run(owner("memory.db", second)) is None
    shown = holdfast("credential", "list", "--space", "acme")
    heading, _, row, folded = (re.split(r" {2,}", line.strip()) for line in shown.out.splitlines())
    assert heading == ["created", "kind", "name", "role", "acts for", "new key", "revoked"]
    assert row[1:5] == ["agent", "writer", "curator", "ana, ben"]
    # Piped, the line would be wider than 100 columns: the zones of the three times are on the next one.
    assert all(re.fullmatch(r"[\d-]+ [\d:]+", row[column]) for column in (0, 5, 6))
    assert folded == ["UTC"] * 3
    for key in (first, second):
        assert key not in made.err + rotated.err + revoked.out + shown.out
        for file in tmp_path.iterdir():
            assert key.encode() not in file.read_bytes()


def test_all_kinds_are_listed_each_with_its_role(holdfast: Holdfast) -> None:
    for kind in ("operator", "agent", "user"):
        assert holdfast("credential", "create", f"one {kind}", "--kind", kind).code == 0
    listed = holdfast("credential", "list", "--json").json["credentials"]
    assert [(one["kind"], one["id"], one["role"], one["subjects"]) for one in listed] == [
        ("agent", "one agent", "member", []),
        ("operator", "one operator", "admin", []),
        ("user", "one user", None, []),
    ]
    assert [one["kind"] for one in holdfast("credential", "list", "--kind", "user", "--json").json["credentials"]] == [
        "user"
    ]
    few = holdfast("credential", "list", "--limit", "2", "--json")
    assert len(few.json["credentials"]) == 2
    assert json.loads(few.err)["warning"] == {"message": "there is more; raise --limit to see it"}
    assert holdfast("credential", "list", "--limit", "3").err == ""
    assert "There are no keys" in holdfast("credential", "list", "--space", "other").out
    assert "key" not in json.dumps(listed)


def test_one_that_is_there_is_not_created_again(holdfast: Holdfast) -> None:
    key = key_of(holdfast("credential", "create", "o'hara", "--kind", "operator").out, "ok_")
    again = holdfast("credential", "create", "o'hara", "--kind", "operator")
    assert (again.code, again.out) == (5, "")
    assert "holdfast credential rotate 'o'\"'\"'hara' --kind operator" in again.err
    assert key not in again.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--kind", "robot"], "there is no 'robot'; use one of user, agent, operator\n"),
        (["--kind", "device"], "--kind: "),
        (["--role", "admin"], "agents are one of member, curator, reader"),
        (["--kind", "user", "--subject", "ana"], "--subject: can be mounted on agents only"),
        (["--space", "*"], "belongs to one space"),
        (["--space", ""], "--space: "),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(holdfast: Holdfast, given: list[str], said: str) -> None:
    ran = holdfast("credential", "create", "x", *given)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_revoking_asks_first(holdfast: Holdfast) -> None:
    assert holdfast("credential", "create", "writer").code == 0
    unasked = holdfast("credential", "revoke", "writer")
    assert unasked.code == 2
    assert "--yes" in unasked.err
    assert holdfast("credential", "revoke", "nobody", "--yes").code == 3
