"""`operations`: the audit trail, at a prompt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from holdfast import ControlPlane
from holdfast.errors import AccessDenied

from .conftest import Holdfast
from .terminal import at_a_terminal


@pytest.fixture
def busy(holdfast: Holdfast, quiet_environment: Path) -> Holdfast:
    """The command line with a store that holds a write and queries of the company acme."""
    with ControlPlane.open(quiet_environment / "memory.db", space="acme", embedder="fake", work=False) as plane:
        plane.upsert("Releases go out on Tuesdays.", agent="builder", run="r1", source={"kind": "run", "run_id": "r1"})
        plane.query("When are releases?", agent="builder", run="r2", intent="agent_preamble")
        plane.query("Who is Ben?", agent="tester")
    return holdfast


def test_operations_are_listed_newest_first_and_by_filters(busy: Holdfast) -> None:
    listed = busy("operations", "list", "--space", "acme")
    shown = re.findall(r"^op_\w+\n((?:    .*\n)+)", listed.out, re.MULTILINE)
    facts = [dict(fact.split(" ", 1) for fact in " ".join(one.split()).split(", ")) for one in shown]
    assert [(one["type"], one["action"], one["outcome"]) for one in facts] == [
        ("query", "query", "succeeded"),
        ("query", "query", "succeeded"),
        ("record_upsert", "record_upsert", "succeeded"),
    ]
    assert [(one["agent"], one.get("run")) for one in facts] == [("tester", None), ("builder", "r2"), ("builder", "r1")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", one["when"]) for one in facts)
    found = busy("operations", "list", "--space", "acme", "--agent", "builder", "--type", "query", "--json").json
    (one,) = found["operations"]
    assert (one["scope"]["run_id"], one["record_count"], one["outcome"]) == ("r2", 1, "succeeded")
    by = ("--run", "r1", "--source-kind", "run", "--binding", "default", "--outcome", "succeeded")
    assert len(busy("operations", "list", "--space", "acme", *by, "--json").json["operations"]) == 1
    later = busy("operations", "list", "--space", "acme", "--since", "2100-01-01")
    assert later.out == "There are no such operations.\n"
    assert len(busy("operations", "list", "--space", "acme", "--limit", "2", "--json").json["operations"]) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_screen_too_narrow_for_the_table_breaks_no_id(busy: Holdfast, quiet_environment: Path) -> None:
    found = busy("operations", "list", "--space", "acme", "--json").json["operations"]
    with at_a_terminal(quiet_environment, "operations", "list", "--space", "acme") as terminal:
        assert terminal.end() == 0
    lines = terminal.shown.splitlines()
    assert {one["operation_id"] for one in found} <= set(lines)
    told = " ".join(line.strip() for line in lines)
    for agent in ("agent builder, run r2", "agent tester"):
        of = "type query, action query, outcome succeeded, binding default, who operator:local"
        assert f"{of}, {agent}, records " in told
    assert max(map(len, lines)) <= 100


def test_one_operation_is_shown_whole(busy: Holdfast) -> None:
    found = busy("operations", "list", "--space", "acme", "--type", "record_upsert", "--json").json["operations"][0]
    shown = busy("operations", "show", found["operation_id"], "--space", "acme")
    for said in ("record_upsert", "space acme, agent builder, run r1", "default", "local", "operator:local"):
        assert said in shown.out
    assert "Tuesdays" not in shown.out
    assert (
        busy("operations", "show", found["operation_id"], "--space", "acme", "--json").json["operation_id"]
        == found["operation_id"]
    )


def test_who_looked_is_shown_only_if_it_is_asked_for(busy: Holdfast) -> None:
    of_memory = busy("operations", "list", "--space", "acme", "--json").json["operations"]
    assert [one["type"] for one in of_memory] == ["query", "query", "record_upsert"]
    everything = busy("operations", "list", "--space", "acme", "--all", "--json").json["operations"]
    looks = [one for one in everything if one["action"] == "read_operations"]
    assert looks
    assert {one["type"] for one in looks} == {None}
    assert [one for one in everything if one["type"]] == of_memory
    by_action = busy("operations", "list", "--space", "acme", "--action", "read_operations", "--json").json
    assert {one["action"] for one in by_action["operations"]} == {"read_operations"}
    one = busy("operations", "show", looks[0]["operation_id"], "--space", "acme")
    assert "type     -" in one.out
    assert busy("operations", "show", of_memory[0]["operation_id"], "--space", "acme", "--json").json["type"] == "query"


def test_what_was_done_to_memory_comes_in_one_order_whatever_it_was(busy: Holdfast) -> None:
    with ControlPlane.open("memory.db", space="acme", embedder="fake", work=False) as plane:
        for number in range(4):
            plane.upsert(f"Room {number} is free.", agent="builder")
            plane.query("Which room?", agent="builder")
            plane.list(agent="builder")
    everything = busy("operations", "list", "--space", "acme", "--all", "--limit", "1000", "--json").json
    wanted = [one["operation_id"] for one in everything["operations"] if one["type"]]
    for limit in (1, 5, len(wanted)):
        few = busy("operations", "list", "--space", "acme", "--limit", str(limit), "--json").json["operations"]
        assert [one["operation_id"] for one in few] == wanted[:limit]


def test_metrics_say_how_well_memory_serves(busy: Holdfast) -> None:
    shown = busy("operations", "metrics", "--space", "acme")
    assert "recall hit rate      -" in shown.out
    assert "empty query rate     50.0% (1 of 2)" in shown.out
    told = busy("operations", "metrics", "--space", "acme", "--json").json
    assert told["bindings"][0]["succeeded"] == 3
    assert told["empty_query_rate"] == 0.5


def test_a_company_sees_its_own_alone(busy: Holdfast) -> None:
    assert "record_upsert" not in busy("operations", "list", "--space", "other").out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("list", "--type", "gossip"), 2, "--type: there is no 'gossip'; use one of capture"),
        (("list", "--outcome", "fine"), 2, "--outcome: "),
        (("list", "--source-kind", "gossip"), 2, "--source-kind: "),
        (("list", "--action", "gossip"), 2, "--action: "),
        (("list", "--since", "yesterday"), 2, "--since: is not an ISO 8601 time"),
        (("list", "--limit", "0"), 2, "--limit"),
        (("list", "--binding", "No Key"), 2, "--binding: "),
        (("show", "op_none"), 3, "there is no operation 'op_none'"),
        (("show",), 2, "ID"),
        (("metrics", "--until", "never"), 2, "--until: "),
        (("list", "--store", "none.db"), 6, "there is no store"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value)[:20],
)
def test_what_cannot_be_shown_says_why(busy: Holdfast, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = busy("operations", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_a_refusal_is_in_the_trail(holdfast: Holdfast, quiet_environment: Path) -> None:
    from holdfast import Actor, ActorKind

    agent = Actor(ActorKind.AGENT, "tester", "acme")
    with ControlPlane.open(quiet_environment / "memory.db", space="acme", actor=agent, embedder="fake") as plane:
        with pytest.raises(AccessDenied):
            plane.query("secrets", agent="builder")
    shown = holdfast("operations", "list", "--space", "acme", "--outcome", "refused")
    assert "refused (access_denied)" in shown.out
    assert "agent:tester" in shown.out
