"""The loop against a real gateway: the model's input, the stored turns, and runs while the gateway fails."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded import (
    ADD,
    FLUSH,
    LEGS,
    SEARCH,
    Recorded,
    agent,
    calls,
    configured,
    curate,
    outside_of,
    recorded,
    system_of,
)

from holdfast.agent.gateway import REFERENCE_LABEL, REFERENCE_RULE
from holdfast.agent.loop import MAX_CALLS_PER_REPLY, TOOL_LIMIT_ANSWER
from holdfast.agent.ports import ReasoningPiece, Reply, Role, TextPiece, TokenUsage
from holdfast.agent.result import AgentRunResult, Layer, RunStatus
from holdfast.agent.tools import Tool
from holdfast.errors import InvalidInput, InvalidScope, InvalidText, ModelMisconfigured, ModelUnavailable
from serving import USER_KEY

TEA = "Ana likes green tea."
LISBON = "I moved to Lisbon in March."
QUESTION = "Where in Lisbon can I get tea?"
ANSWER = "At the tea house by the river."
GATEWAY_MODES = pytest.mark.parametrize("mode", ["hybrid", "memory_gateway"])
CURATED_MODES = pytest.mark.parametrize("mode", ["curated", "hybrid"])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("gateway") / "memory.db") as running:
        yield running


@pytest.fixture
def gateway(service: Recorded) -> Recorded:
    service.forget()
    service.failing.clear()
    return service


def workspace(path: Path, mode: str, gateway: Recorded | None = None, **agent: Any) -> Path:
    """A folder with curated entries, in every mode."""
    memory = {"mode": mode, **({"gateway": gateway.config()} if gateway else {})}
    curate(path, user=TEA, memory="The build runs on Tuesdays.")
    return configured(path, memory, **agent)


def noting(gateway: Recorded, reply: Reply) -> Any:
    """A reply that also adds its request to the journal."""

    def line(messages: Any, tools: Any) -> Reply:
        gateway.journal.append("model")
        return reply

    return line


# --- input of the model ---------------------------------------------------------------------------------------------


@pytest.mark.seed("000.loop.1", "001.loop.8")
@CURATED_MODES
def test_the_curated_snapshot_and_the_memory_tool_are_there_in_curated_and_hybrid_mode(
    mode: str, gateway: Recorded, tmp_path: Path
) -> None:
    async def run() -> None:
        replies = (
            calls(("memory", {"action": "add", "target": "user", "content": "Lives in Lisbon."})),
            Reply(ANSWER),
        )
        async with agent(workspace(tmp_path, mode, gateway), *replies, Reply("Again.")) as running:
            await running.loop.run(QUESTION, "one")
            for asked in running.model.asked:
                assert TEA in system_of(asked)
                assert "The build runs on Tuesdays." in system_of(asked)
                assert "memory" in [tool.name for tool in asked.tools]
                # The snapshot is frozen: the tool's writes appear in the next run.
                assert "Lives in Lisbon." not in system_of(asked)
            await running.loop.run(QUESTION, "one")
            assert "Lives in Lisbon." in system_of(running.model.asked[-1])

    asyncio.run(run())


@pytest.mark.seed("000.loop.2", "001.loop.1")
@GATEWAY_MODES
def test_the_gateway_is_searched_before_the_model_is_called_with_the_snapshot_still_in_the_system_prompt(
    mode: str, gateway: Recorded, tmp_path: Path
) -> None:
    async def run() -> None:
        async with agent(workspace(tmp_path, mode, gateway), noting(gateway, Reply(ANSWER))) as running:
            await running.loop.run(QUESTION, "before")
            assert (TEA in system_of(running.model.asked[0])) == (mode == "hybrid")

    asyncio.run(run())
    assert gateway.journal[:2] == [SEARCH, "model"]
    assert gateway.bodies(SEARCH) == [
        {
            "user_id": "ana", "user_key": USER_KEY, "conversation_id": "before", "query": QUESTION,
            "scope": ["current_chat", "resources"], "top_k": 8, "app_id": "default", "project_id": "default",
        }
    ]  # fmt: skip


@pytest.mark.seed("000.loop.3", "001.loop.2")
@GATEWAY_MODES
def test_what_the_gateway_recalls_stands_before_the_prompt_and_outside_the_system_prompt(
    mode: str, gateway: Recorded, tmp_path: Path
) -> None:
    skill = tmp_path / ".holdfast" / "skills" / "letters"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: letters\ndescription: Letters.\n---\nBegin with the date.\n")

    async def run() -> None:
        session = f"recall-{mode}"
        await gateway.remember(session, LISBON)
        folder = workspace(tmp_path, mode, gateway)
        async with agent(folder, Reply("Yes."), Reply(ANSWER)) as running:
            await running.loop.run("Are you there?", session)
            await running.loop.run(QUESTION, session, skills=["letters"])
        asked = running.model.asked[1]
        skill, reference, before, answer, prompt = outside_of(asked)
        assert "Begin with the date." in skill.content
        assert reference.role is Role.USER
        assert reference.content.startswith(REFERENCE_LABEL)
        assert LISBON in reference.content
        assert (before.content, answer.content, prompt.content) == ("Are you there?", "Yes.", QUESTION)
        assert LISBON not in system_of(asked)

    asyncio.run(run())


@pytest.mark.seed("000.loop.4", "001.loop.3")
def test_the_rule_for_what_was_recalled_is_in_the_system_prompt_only_while_a_gateway_is_active(
    gateway: Recorded, tmp_path: Path
) -> None:
    async def system(name: str, memory: dict[str, Any]) -> str:
        async with agent(configured(tmp_path / name, memory), Reply(ANSWER)) as running:
            await running.loop.run(QUESTION, "rule")
            return system_of(running.model.asked[0])

    async def run() -> None:
        for mode in ("hybrid", "memory_gateway"):
            assert REFERENCE_RULE in await system(mode, {"mode": mode, "gateway": gateway.config()})
        assert REFERENCE_RULE not in await system("curated", {"mode": "curated", "gateway": gateway.config()})
        assert REFERENCE_RULE not in await system("implicit", {})

    asyncio.run(run())


@pytest.mark.seed("001.loop.9")
def test_in_gateway_mode_the_memory_tool_is_neither_registered_nor_shown(gateway: Recorded, tmp_path: Path) -> None:
    async def run() -> None:
        tried = calls(("memory", {"action": "add", "target": "user", "content": "Lives in Lisbon."}))
        async with agent(workspace(tmp_path, "memory_gateway", gateway), tried, Reply(ANSWER)) as running:
            result = await running.loop.run(QUESTION, "tools")
            assert running.loaded.tools.names == ("session_search",)
            assert [tool.name for tool in running.model.asked[0].tools] == ["session_search"]
            assert [(use.name, use.ok) for use in result.tool_calls] == [("memory", False)]
            assert "memory tool" not in system_of(running.model.asked[0])
        assert (tmp_path / ".holdfast" / "memories" / "USER.md").read_text() == TEA + "\n"

    asyncio.run(run())


# --- persistence ----------------------------------------------------------------------------------------------------


@pytest.mark.seed("000.loop.5", "001.loop.4")
@GATEWAY_MODES
def test_add_and_flush_come_once_each_after_the_final_answer(mode: str, gateway: Recorded, tmp_path: Path) -> None:
    async def run() -> None:
        replies = (noting(gateway, calls(("session_search", {"query": "tea"}))), noting(gateway, Reply(ANSWER)))
        async with agent(workspace(tmp_path, mode, gateway), *replies) as running:
            await running.loop.run(QUESTION, "order")

    asyncio.run(run())
    assert gateway.journal == [SEARCH, "model", "model", ADD, FLUSH]
    (added,), (flushed,) = gateway.bodies(ADD), gateway.bodies(FLUSH)
    where = {"user_id": "ana", "user_key": USER_KEY, "session_id": "chat:order", "app_id": "default"}
    assert {**where, "project_id": "default"} == flushed
    first, second = (message.pop("timestamp") for message in added["messages"])
    assert 0 < first < second
    assert added == {
        **flushed,
        "messages": [
            {"sender_id": "ana", "role": "user", "content": QUESTION},
            {"sender_id": "holdfast", "role": "assistant", "content": ANSWER},
        ],
    }


@pytest.mark.seed("000.loop.6", "001.loop.5")
@GATEWAY_MODES
def test_nothing_of_tools_system_prompt_thoughts_curated_entries_recall_or_skills_is_sent_to_be_added(
    mode: str, gateway: Recorded, tmp_path: Path
) -> None:
    skill = tmp_path / ".holdfast" / "skills" / "letters"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: letters\ndescription: Letters.\n---\nskill-canary\n")

    def weather(place: str) -> str:
        """The weather."""
        return "result-canary"

    async def run() -> AgentRunResult:
        session = f"payload-{mode}"
        await gateway.remember(session, "Lisbon tea recall-canary")
        folder = workspace(tmp_path, mode, gateway, instructions="system-canary", skills=["letters"])
        curate(folder, memory="curated-canary")
        called = calls(("weather", {"place": "argument-canary"}), text="interim-canary")
        replies = (
            [ReasoningPiece("thought-canary"), TextPiece("interim-canary"), called],
            [ReasoningPiece("thought-canary"), TextPiece(ANSWER), Reply(ANSWER)],
        )
        async with agent(folder, *replies, tools=[weather]) as running:
            result = await running.loop.run(QUESTION, session)
            given = repr(running.model.asked)
            shown = ["system", "skill", "recall", "result", "argument"]
            assert not [name for name in shown if f"{name}-canary" not in given]
            assert ("curated-canary" in given) == (mode == "hybrid")
            # Thoughts are not stored anywhere.
            assert "thought-canary" not in repr(await running.events(session))
            return result

    result = asyncio.run(run())
    assert result.text == ANSWER
    (added,) = gateway.bodies(ADD)
    assert [message["content"] for message in added["messages"]] == [QUESTION, ANSWER]
    assert "canary" not in json.dumps(added)


@pytest.mark.seed("000.loop.7", "001.loop.6")
@GATEWAY_MODES
@pytest.mark.parametrize("failing", [{SEARCH: 500}, {ADD: 500}, {FLUSH: 401}, dict.fromkeys(LEGS, 503)])
def test_a_gateway_that_fails_changes_neither_the_result_nor_curated_memory(
    mode: str, failing: dict[str, int], gateway: Recorded, tmp_path: Path
) -> None:
    async def run(folder: Path, session: str) -> tuple[AgentRunResult, str, str]:
        kept = calls(("memory", {"action": "add", "target": "user", "content": "Lives in Lisbon."}))
        async with agent(workspace(folder, mode, gateway), kept, Reply(ANSWER)) as running:
            result = await running.loop.run(QUESTION, session)
            files = (folder / ".holdfast" / "memories" / "USER.md").read_text()
            return replace(result, run_id="", session_id=""), system_of(running.model.asked[0]), files

    well = asyncio.run(run(tmp_path / "well", f"fail-{mode}"))
    gateway.forget()
    gateway.failing.update(failing)
    assert asyncio.run(run(tmp_path / "ill", f"fail-{mode}-2")) == well
    assert ("Lives in Lisbon." in well[2]) == (mode == "hybrid")
    assert gateway.journal == ([SEARCH, ADD] if ADD in failing else [SEARCH, ADD, FLUSH])


@pytest.mark.seed("000.loop.8", "001.loop.7")
@GATEWAY_MODES
def test_the_hidden_events_tell_what_came_of_each_call_and_hold_no_credentials(
    mode: str, gateway: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def told(session: str, **failing: int) -> dict[str, Any]:
        gateway.failing.clear()
        gateway.failing.update({f"/memories/{name}": status for name, status in failing.items()})
        folder = workspace(tmp_path / session, mode, gateway)
        async with agent(folder, Reply(ANSWER)) as running:
            result = await running.loop.run(QUESTION, session)
            events = await running.events(session)
            state = (folder / ".holdfast" / "sessions" / "state.db").parent
            for text in (repr(events), repr(result), repr(running.loaded), caplog.text):
                assert USER_KEY not in text
            assert not [path for path in state.iterdir() if USER_KEY.encode() in path.read_bytes()]
            found = [event for event in events if event.kind.startswith("memory_gateway_")]
            assert not [event for event in found if event.context_visible or event.content]
            return {event.kind.removeprefix("memory_gateway_"): dict(event.data) for event in found}

    async def run() -> None:
        chat = f"events-{mode}"
        where = {"session_id": f"chat:{chat}"}
        scopes = ["current_chat", "resources"]
        assert await told(chat) == {
            "recall_succeeded": {"scopes": scopes, "results": 0},
            "add_succeeded": {**where, "messages": 2},
            "flush_succeeded": where,
        }
        ill = await told(f"{chat}-2", search=500, add=401)
        assert ill == {
            "recall_failed": {"operation": "search", "category": "failed", "status": 500},
            "add_failed": {"operation": "add", "category": "unauthorized", "status": 401},
        }
        half = await told(f"{chat}-3", flush=429)
        assert half["flush_failed"] == {"operation": "flush", "category": "limited", "status": 429, "added": True}
        assert half["add_succeeded"]["messages"] == 2

    asyncio.run(run())


@pytest.mark.seed("000.loop.9")
def test_what_the_memory_tool_does_calls_no_gateway(gateway: Recorded, tmp_path: Path) -> None:
    async def run() -> None:
        changes = [
            {"action": "add", "target": "memory", "content": "curated-canary"},
            {"action": "replace", "target": "memory", "old_text": "curated-canary", "content": "curated-canary-2"},
            {"action": "remove", "target": "memory", "old_text": "curated-canary-2"},
        ]
        seen = list[list[str]]()

        def then(reply: Reply) -> Any:
            def line(messages: Any, tools: Any) -> Reply:
                seen.append(list(gateway.journal))
                return reply

            return line

        replies = [then(calls(("memory", change))) for change in changes]
        async with agent(workspace(tmp_path, "hybrid", gateway), *replies, then(Reply(ANSWER))) as running:
            result = await running.loop.run(QUESTION, "curated-tool")
        assert [use.ok for use in result.tool_calls] == [True, True, True]
        assert seen == [[SEARCH]] * 4

    asyncio.run(run())
    assert gateway.journal == [SEARCH, ADD, FLUSH]
    assert "canary" not in json.dumps(gateway.sent)


@pytest.mark.seed("000.loop.10")
def test_keeping_a_turn_at_the_gateway_changes_no_curated_file(gateway: Recorded, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "hybrid", gateway)
    files = list((folder / ".holdfast" / "memories").iterdir())
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in files}

    async def run() -> None:
        async with agent(folder, Reply(ANSWER)) as running:
            await running.loop.run("Remember that I moved to Lisbon.", "isolated")

    asyncio.run(run())
    assert gateway.journal == [SEARCH, ADD, FLUSH]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in files} == before
    assert {path.name for path in files} == {"MEMORY.md", "USER.md"}


@pytest.mark.seed("000.loop.11")
@pytest.mark.parametrize("mode", ["curated", "degraded"])
def test_curated_mode_and_a_degraded_implicit_hybrid_call_no_gateway(
    mode: str, gateway: Recorded, tmp_path: Path
) -> None:
    config = gateway.config()
    if mode == "degraded":
        del config["userKey"]
    memory = {"gateway": config, **({"mode": "curated"} if mode == "curated" else {})}

    async def run() -> None:
        async with agent(configured(tmp_path, memory), Reply(ANSWER)) as running:
            result = await running.loop.run(QUESTION, "nobody")
            assert (result.text, result.status) == (ANSWER, RunStatus.COMPLETED)
            assert await running.kinds("nobody") == ["user_message", "run_completed", "assistant_message"]
            assert len(running.loaded.warnings) == (mode == "degraded")
            assert "memory" in running.loaded.tools

    asyncio.run(run())
    assert gateway.journal == []


# --- runs -----------------------------------------------------------------------------------------------------------


def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


def curated(path: Path, **config: Any) -> Path:
    return configured(path, {"mode": "curated"}, **config)


def test_a_run_calls_tools_until_the_model_answers(tmp_path: Path) -> None:
    async def run() -> None:
        first = replace(calls(("add", {"left": 2, "right": 3}), ("add", {"left": "x"})), usage=TokenUsage(10, 1))
        second = replace(calls(("nothing", {})), usage=TokenUsage(20, 2))
        async with agent(
            curated(tmp_path), first, second, Reply(ANSWER, usage=TokenUsage(30, 3)), tools=[add]
        ) as running:
            result = await running.loop.run("2 + 3?")
            assert (result.text, result.status, result.error) == (ANSWER, RunStatus.COMPLETED, None)
            assert result.usage == TokenUsage(60, 6)
            assert [(use.name, use.ok) for use in result.tool_calls] == [
                ("add", True),
                ("add", False),
                ("nothing", False),
            ]
            asked = running.model.asked[1].messages
            assert asked[-3].tool_calls == first.tool_calls
            assert [(each.role, each.tool_call_id) for each in asked[-2:]] == [("tool", "call_0"), ("tool", "call_1")]
            assert asked[-2].content == "5"
            assert "left" in asked[-1].content
            assert len(running.model.asked[2].messages) == len(asked) + 2
            assert await running.kinds(result.session_id) == [
                "user_message", "tool_call", "tool_call", "tool_result", "tool_result", "tool_call", "tool_result",
                "run_completed", "assistant_message",
            ]  # fmt: skip
            events = await running.events(result.session_id)
            assert [event.kind for event in events if event.context_visible] == ["user_message", "assistant_message"]
            assert {event.run_id for event in events} == {result.run_id}

    asyncio.run(run())


@pytest.mark.parametrize("last", ["I got as far as this.", " "])
def test_a_run_that_reaches_its_tool_limit_answers_without_tools_and_is_kept(
    last: str, gateway: Recorded, tmp_path: Path
) -> None:
    async def run() -> None:
        again = calls(("add", {"left": 1, "right": 1}))
        at_last = replace(again, text=last)
        folder = workspace(tmp_path, "hybrid", gateway, maxToolRounds=2)
        async with agent(folder, again, again, at_last, tools=[add]) as running:
            result = await running.loop.run(QUESTION, "limit")
            assert (result.status, result.text) == (RunStatus.TOOL_LIMIT, last.strip() or TOOL_LIMIT_ANSWER)
            assert [len(asked.tools) > 0 for asked in running.model.asked] == [True, True, False]
            assert "No more tools" in system_of(running.model.asked[2])
            assert len(result.tool_calls) == 2
        assert gateway.bodies(ADD)[0]["messages"][1]["content"] == result.text

    asyncio.run(run())
    assert gateway.journal == [SEARCH, ADD, FLUSH]


def test_an_agent_that_may_call_no_tools_is_shown_none(tmp_path: Path) -> None:
    async def run() -> None:
        async with agent(curated(tmp_path, maxToolRounds=0), Reply(ANSWER)) as running:
            assert (await running.loop.run(QUESTION)).status is RunStatus.COMPLETED
            assert running.model.asked[0].tools == ()
            assert "tool" not in system_of(running.model.asked[0])

    asyncio.run(run())


def test_of_very_many_calls_at_once_only_some_are_made(tmp_path: Path) -> None:
    made = list[int]()

    def count(number: int) -> None:
        """Count."""
        made.append(number)

    async def run() -> None:
        many = calls(*(("count", {"number": number}) for number in range(100)))
        async with agent(curated(tmp_path), many, Reply(ANSWER), tools=[count]) as running:
            result = await running.loop.run(QUESTION)
            assert made == list(range(MAX_CALLS_PER_REPLY))
            assert len(result.tool_calls) == 100
            assert [each.role for each in running.model.asked[1].messages].count(Role.TOOL) == 100

    asyncio.run(run())


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ModelUnavailable("the model is away"), "model_unavailable"),
        (ModelMisconfigured("no such model"), "model_misconfigured"),
        (Reply("  "), "model_unavailable"),
        ([TextPiece("half an ans")], "model_unavailable"),
    ],
)
@pytest.mark.parametrize("when", ["at once", "after a tool"])
def test_a_model_that_fails_fails_the_run_and_nothing_is_kept_at_the_gateway(
    failure: Any, code: str, when: str, gateway: Recorded, tmp_path: Path
) -> None:
    async def run() -> None:
        before = [] if when == "at once" else [calls(("add", {"left": 1, "right": 1}))]
        folder = workspace(tmp_path, "hybrid", gateway)
        async with agent(folder, *before, failure, Reply(ANSWER), tools=[add]) as running:
            session = f"failed-{code}"
            result = await running.loop.run(QUESTION, session)
            assert (result.status, result.text) == (RunStatus.FAILED, "")
            assert result.error is not None
            assert result.error.code == code
            assert gateway.journal == [SEARCH]
            last = (await running.events(session))[-1]
            assert (last.kind, last.data["code"], last.context_visible) == ("run_failed", code, False)
            # The next run does not see the failed one.
            await running.loop.run("And now?", session)
            given = [message.content for message in running.model.asked[-1].messages]
            assert QUESTION not in given
            assert given[-1] == "And now?"

    asyncio.run(run())


def test_an_error_that_is_nobodys_business_is_raised_and_noted_by_its_kind(tmp_path: Path) -> None:
    async def run() -> None:
        async with agent(curated(tmp_path), RuntimeError("hunter2")) as running:
            with pytest.raises(RuntimeError, match="hunter2"):
                await running.loop.run(QUESTION, "broken")
            last = (await running.events("broken"))[-1]
            assert (last.kind, dict(last.data)) == ("run_failed", {"code": "unexpected", "kind": "RuntimeError"})
            assert "hunter2" not in repr(await running.events("broken"))

    asyncio.run(run())


def test_a_run_begins_a_session_of_its_own_or_goes_on_with_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with agent(curated(tmp_path, historyMessages=4), *(Reply(f"Answer {n}.") for n in range(5))) as running:
            first, other = await running.loop.run("Prompt 0?"), await running.loop.run("Prompt 1?")
            assert first.session_id != other.session_id
            assert first.run_id != other.run_id
            assert len(outside_of(running.model.asked[1])) == 1
            for number in (2, 3, 4):
                again = await running.loop.run(f"Prompt {number}?", first.session_id)
                assert again.session_id == first.session_id
            assert [message.content for message in outside_of(running.model.asked[4])] == [
                "Prompt 2?", "Answer 2.", "Prompt 3?", "Answer 3.", "Prompt 4?",
            ]  # fmt: skip

    asyncio.run(run())


def test_a_session_is_remembered_by_an_agent_that_starts_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with agent(curated(tmp_path), Reply(ANSWER)) as running:
            session = (await running.loop.run(QUESTION)).session_id
        async with agent(tmp_path, Reply("As I said.")) as running:
            await running.loop.run("Where again?", session)
            given = [message.content for message in outside_of(running.model.asked[0])]
            assert given == [QUESTION, ANSWER, "Where again?"]

    asyncio.run(run())


def test_runs_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    async def run() -> None:
        def line(messages: Any, tools: Any) -> Reply:
            return Reply(f"You said {messages[-1].content}")

        async with agent(curated(tmp_path), *[line] * 10) as running:
            results = await asyncio.gather(*(running.loop.run(f"number {n}", f"s{n % 3}") for n in range(10)))
            assert [result.text for result in results] == [f"You said number {n}" for n in range(10)]
            events = [event for name in ("s0", "s1", "s2") for event in await running.events(name)]
            for result in results:
                own = [event.content for event in events if event.run_id == result.run_id and event.context_visible]
                assert own == [result.text.removeprefix("You said "), result.text]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("prompt", "session", "skills", "error"),
    [
        (" ", None, (), InvalidText),
        ("a\x00b", None, (), InvalidText),
        (7, None, (), InvalidText),
        ("Hello", "", (), InvalidScope),
        ("Hello", "a\nb", (), InvalidScope),
        ("Hello", "x" * 1000, (), InvalidScope),
        ("Hello", None, ["unknown"], InvalidInput),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_happens(
    prompt: Any, session: Any, skills: Any, error: type[Exception], tmp_path: Path
) -> None:
    async def run() -> None:
        async with agent(curated(tmp_path), Reply(ANSWER)) as running:
            with pytest.raises(error):
                await running.loop.run(prompt, session, skills=skills)
            assert running.model.asked == []
            assert await running.loaded.sessions.sessions() == ()

    asyncio.run(run())


def test_the_text_of_a_model_is_made_fit_to_be_kept(tmp_path: Path) -> None:
    async def run() -> None:
        odd = Reply("", (replace(calls(("add", {})).tool_calls[0], name="a\ud800", arguments="\ud800\x00"),))
        async with agent(curated(tmp_path), odd, Reply("a\x00b\ud800c\n")) as running:
            result = await running.loop.run(QUESTION, "odd")
            assert result.text == "a\ufffdb?c"
            assert (await running.events("odd"))[-1].content == result.text

    asyncio.run(run())


# --- other sessions, skills, and sources of an answer ---------------------------------------------------------------


@pytest.mark.parametrize("mode", ["curated", "hybrid", "memory_gateway"])
def test_session_search_finds_what_was_said_in_other_sessions_in_all_modes(
    mode: str, gateway: Recorded, tmp_path: Path
) -> None:
    async def run() -> None:
        replies = (
            Reply("The ferry leaves at nine."),
            calls(("session_search", {"query": "ferry"})),
            Reply("At nine."),
        )
        async with agent(workspace(tmp_path, mode, gateway), *replies) as running:
            await running.loop.run("When does the ferry leave?", f"old-{mode}")
            result = await running.loop.run("The ferry again?", f"new-{mode}")
            told = running.model.asked[-1].messages[-1].content
            assert "The ferry leaves at nine." in told
            assert "The ferry again?" not in told
            found = result.explained.of(Layer.SESSIONS)
            assert {source.origin["session_id"] for source in found} == {f"old-{mode}"}

    asyncio.run(run())


def skill(root: Path, name: str) -> None:
    folder = root / ".holdfast" / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n---\nThe rules of {name}.\n")


def test_skills_are_activated_by_config_by_the_caller_and_by_the_model(tmp_path: Path) -> None:
    for name in ("letters", "maps", "poems"):
        skill(tmp_path, name)

    async def run() -> None:
        replies = (
            calls(("activate_skill", {"name": "poems"}), ("activate_skill", {"name": "maps"})),
            Reply(ANSWER),
        )
        async with agent(curated(tmp_path, skills=["letters"]), *replies, Reply("Again.")) as running:
            await running.loop.run(QUESTION, "skills", skills=["maps"])
            first, second = (outside_of(asked) for asked in running.model.asked)
            assert [message.content.partition("\n")[0][:15] for message in first[:-1]] == [
                "[Skill: letters",
                "[Skill: maps] T",
            ]
            assert "The rules of poems." in second[2].content
            assert second[3].content == QUESTION
            assert "- poems: About poems." in system_of(running.model.asked[0])
            assert "The rules of" not in system_of(running.model.asked[1])
            hidden = [event for event in await running.events("skills") if event.kind == "skill_activated"]
            assert [dict(event.data) for event in hidden] == [
                {"skill": "letters", "by": "owner"},
                {"skill": "maps", "by": "owner"},
                {"skill": "poems", "by": "model"},
            ]
            assert not [event for event in hidden if event.context_visible]
            # A skill that the model activated is active for that run only.
            await running.loop.run("And now?", "skills")
            assert "The rules of poems." not in repr(running.model.asked[2].messages)
            assert "The rules of letters." in repr(running.model.asked[2].messages)

    asyncio.run(run())


def test_a_result_explains_what_the_model_was_given_and_what_is_in_the_answer(
    gateway: Recorded, tmp_path: Path
) -> None:
    async def run() -> None:
        await gateway.remember("why", LISBON)
        async with agent(workspace(tmp_path, "hybrid", gateway), Reply("You moved in March.")) as running:
            result = await running.loop.run("When was it that I moved to Lisbon?", "why")
        curated, (recalled, *_) = result.explained.of(Layer.CURATED), result.explained.of(Layer.GATEWAY)
        assert [(source.text, source.origin) for source in curated] == [
            (TEA, {"target": "user", "entry": 1}),
            ("The build runs on Tuesdays.", {"target": "memory", "entry": 1}),
        ]
        assert (recalled.text, recalled.shared) == (LISBON, ("march",))
        assert recalled.origin["session_id"] == "chat:why"
        assert {"id", "score", "source_scope"} <= set(recalled.origin)
        assert LISBON in [source.text for source in result.explained.used_sources]
        assert not [source for source in curated if source.is_used]

    asyncio.run(run())


def test_tools_can_be_given_as_they_are(tmp_path: Path) -> None:
    async def run() -> None:
        named = Tool.of(add, "plus", "Add.")
        async with agent(
            curated(tmp_path), calls(("plus", {"left": 1, "right": 1})), Reply(ANSWER), tools=[named]
        ) as running:
            assert (await running.loop.run(QUESTION)).tool_calls[0].ok

    asyncio.run(run())
