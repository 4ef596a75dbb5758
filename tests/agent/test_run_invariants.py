"""With any model output and any gateway behaviour, every run ends in one of three ways and keeps its invariants."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import ADD, FLUSH, LEGS, SEARCH, Recorded, agent, calls, configured, recorded

from holdfast.agent.loop import TOOL_LIMIT_ANSWER
from holdfast.agent.ports import Reply, Role, SessionEvent, TextPiece
from holdfast.agent.result import AgentRunResult, RunStatus
from holdfast.errors import ModelUnavailable
from serving import USER_KEY

CALLS = st.sampled_from(
    [
        ("add", {"left": 1, "right": 2}),
        ("add", {"left": "one"}),
        ("fail", {}),
        ("nothing", {}),
        ("memory", {"action": "add", "target": "user", "content": "Likes tea."}),
        ("memory", {"action": "remove", "target": "user", "old_text": "No such entry"}),
        ("session_search", {"query": "tea"}),
    ]
)
TEXTS = st.sampled_from(["An answer.", "Ünïcödé 🍵", "", " \n"])
TOOLS = st.builds(lambda text, named: calls(*named, text=text), TEXTS, st.lists(CALLS, min_size=1, max_size=3))
ENDS = st.one_of(
    TEXTS.map(Reply),
    st.just(ModelUnavailable("away")),
    st.just([TextPiece("half an ans")]),
    st.just(Reply("Fine.")),
)


@dataclass(frozen=True)
class Expected:
    status: RunStatus
    text: str
    asked: int
    called: int


def expected(script: list[Any], limit: int) -> Expected:
    """A reference loop in a few lines: the result that a run of this script must have."""
    called = 0
    for number, line in enumerate(script, 1):
        last = number > limit
        if not isinstance(line, Reply):
            return Expected(RunStatus.FAILED, "", number, called)
        if line.tool_calls and not last:
            called += len(line.tool_calls)
            continue
        text = line.text.strip() or (TOOL_LIMIT_ANSWER if last and limit else "")
        if not text:
            return Expected(RunStatus.FAILED, "", number, called)
        return Expected(RunStatus.TOOL_LIMIT if last and limit else RunStatus.COMPLETED, text, number, called)
    raise AssertionError("the script has no end")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("gateway") / "memory.db") as running:
        yield running


def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


def fail() -> None:
    """Fail."""
    raise RuntimeError("as it does")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TOOLS, max_size=4), ENDS, st.integers(0, 3), st.sets(st.sampled_from(LEGS)))
def test_every_run_keeps_its_promises(
    gateway: Recorded,
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[Reply],
    end: Any,
    limit: int,
    failing: set[str],
) -> None:
    gateway.forget()
    gateway.failing.clear()
    gateway.failing.update(dict.fromkeys(failing, 500))
    script = [*rounds, end]
    want = expected(script, limit)
    memory = {"mode": "hybrid", "gateway": gateway.config()}
    folder = configured(tmp_path_factory.mktemp("work"), memory, maxToolRounds=limit)

    async def run() -> tuple[AgentRunResult, tuple[SessionEvent, ...], int]:
        async with agent(folder, *script, tools=[add, fail]) as running:
            result = await running.loop.run("Tea?", "one")
            return result, await running.events("one"), len(running.model.asked)

    result, events, asked = asyncio.run(run())
    assert Expected(result.status, result.text, asked, len(result.tool_calls)) == want
    assert (result.error is not None) == (want.status is RunStatus.FAILED)
    # The gateway: one search; one add of both messages if there is an answer; one flush if the add succeeded.
    kept = [] if want.status is RunStatus.FAILED else [ADD] if ADD in failing else [ADD, FLUSH]
    assert gateway.journal == [SEARCH, *kept]
    assert [[each["content"] for each in body["messages"]] for body in gateway.bodies(ADD)] == [
        ["Tea?", want.text] for path in kept if path == ADD
    ]
    # The session: the prompt and the answer, if any, are visible; the rest is hidden. Each call has one result.
    visible = [(event.role, event.content) for event in events if event.context_visible]
    assert visible == [(Role.USER, "Tea?"), *([(Role.ASSISTANT, want.text)] if want.text else [])]
    kinds = [event.kind for event in events]
    assert kinds.count("tool_call") == kinds.count("tool_result") == want.called
    ends = [kind for kind in kinds if kind.startswith("run_")]
    assert ends == ["run_failed" if want.status is RunStatus.FAILED else "run_completed"]
    assert len([kind for kind in kinds if kind.startswith("memory_gateway_")]) == len(gateway.journal)
    assert USER_KEY not in repr((result, events))
