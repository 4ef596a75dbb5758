"""One turn with memory, as a host with its own loop uses it."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from faulty import KEY, Faulty, faulty

import holdfast.agent
from holdfast.agent.curated import Change, CuratedAction, CuratedTarget, MemoryService, MemoryStore
from holdfast.agent.gateway import REFERENCE_RULE, AuditEvent, MemoryGatewayService
from holdfast.agent.memory import AgentMemory, Turn
from holdfast.errors import InvalidInput
from serving import USER_KEY, served, whole_chain

LISBON = {"text": "I moved to Lisbon.", "source_scope": "current_chat", "session_id": "chat:s"}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOLDFAST_HOME", raising=False)
    monkeypatch.delenv("HOLDFAST_CONFIG_PATH", raising=False)
    monkeypatch.chdir(tmp_path)


def curated(folder: Path, *entries: str) -> MemoryService:
    store = MemoryStore(folder)
    if entries:
        store.change([Change(CuratedAction.ADD, CuratedTarget.USER, content=entry) for entry in entries])
    return MemoryService(store)


def both(tmp_path: Path, gateway: Faulty, **changes: Any) -> AgentMemory:
    service = MemoryGatewayService(gateway.config(**changes), assistant_id="holdfast")
    return AgentMemory(curated(tmp_path / "memories", "Likes tea."), service)


def configure(workspace: Path, memory: dict[str, Any]) -> None:
    (workspace / ".holdfast").mkdir(exist_ok=True)
    (workspace / ".holdfast" / "config.json").write_text(json.dumps({"memory": memory}))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.md"))}


class Recorder:
    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    async def __call__(self, event: AuditEvent) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event.kind.removeprefix("memory_gateway_") for event in self.events]


# --- contents of a turn ---------------------------------------------------------------------------------------------


def test_a_turn_has_both_layers_and_tells_the_gateway_afterwards(tmp_path: Path) -> None:
    record = Recorder()

    async def run(memory: AgentMemory) -> Turn:
        async with memory, memory.turn("Where do I live?", "s", record=record) as turn:
            assert gateway.operations == ["search"], "it is asked before, and told nothing yet"
            assert record.kinds == ["recall_succeeded"]
            turn.answer("In Lisbon.")
        return turn

    with faulty([LISBON]) as gateway:
        turn = asyncio.run(run(both(tmp_path, gateway)))
    assert gateway.operations == ["search", "add", "flush"]
    assert [message["content"] for message in gateway.bodies("add")[0]["messages"]] == [
        "Where do I live?", "In Lisbon.",
    ]  # fmt: skip
    assert turn.snapshot is not None
    assert "Likes tea." in turn.system
    assert REFERENCE_RULE in turn.system
    assert "Lisbon" not in turn.system, "what was recalled is never in the system prompt"
    [message] = turn.messages
    assert message["role"] == "user"
    assert "I moved to Lisbon." in message["content"]
    assert record.kinds == ["recall_succeeded", "add_succeeded", "flush_succeeded"]
    assert "tea" not in json.dumps(gateway.asked), "nothing curated is told to a gateway"


@pytest.mark.seed("001.strategy.1")
def test_curated_mode_gives_a_frozen_snapshot_and_performs_no_http_requests(tmp_path: Path) -> None:
    with faulty([LISBON]) as gateway:
        given = {"baseUrl": gateway.url, "userId": "ana", "userKey": KEY}
        configure(tmp_path, {"mode": "curated", "gateway": given})
        curated(tmp_path / ".holdfast" / "memories", "Likes tea.")

        async def run() -> Turn:
            record = Recorder()
            async with AgentMemory.load(tmp_path) as memory, memory.turn("Hello", "s", record=record) as turn:
                assert memory.curated is not None
                assert memory.gateway is None
                await memory.curated.apply([Change(CuratedAction.ADD, CuratedTarget.USER, content="Likes coffee.")])
                turn.answer("Hello.")
            assert record.events == []
            return turn

        turn = asyncio.run(run())
        assert gateway.asked == []
    assert turn.snapshot is not None
    assert "Likes tea." in turn.system
    assert "coffee" not in turn.system, "what is written meanwhile is for the next turn"
    assert REFERENCE_RULE not in turn.system
    assert (turn.messages, turn.recall) == ([], None)


def test_memory_gateway_mode_has_no_curated_layer(tmp_path: Path) -> None:
    with faulty([LISBON]) as gateway:
        configure(
            tmp_path,
            {"mode": "memory_gateway", "gateway": {"baseUrl": gateway.url, "userId": "ana", "userKey": KEY}},
        )
        curated(tmp_path / ".holdfast" / "memories", "Likes tea.")

        async def run() -> Turn:
            async with AgentMemory.load(tmp_path) as memory, memory.turn("Hello", "s") as turn:
                assert memory.curated is None
                turn.answer("Hello.")
            return turn

        turn = asyncio.run(run())
    assert (turn.snapshot, turn.system) == (None, REFERENCE_RULE)
    assert gateway.operations == ["search", "add", "flush"]


def test_a_gateway_that_recalls_nothing_leaves_the_rule_and_no_message(tmp_path: Path) -> None:
    async def run(memory: AgentMemory) -> Turn:
        async with memory, memory.turn("Hello", "s") as turn:
            pass
        return turn

    for results, fault in (([], {}), ([LISBON], {"search": "500"})):
        with faulty(results, **fault) as gateway:
            turn = asyncio.run(run(both(tmp_path, gateway)))
        assert REFERENCE_RULE in turn.system
        assert turn.messages == []


def test_the_snapshot_does_not_wait_for_the_gateway(tmp_path: Path) -> None:
    class Watched(MemoryService):
        async def snapshot(self) -> Any:
            found = await super().snapshot()
            read.set()
            return found

    async def run() -> None:
        service = MemoryGatewayService(gateway.config(), assistant_id="holdfast")
        async with AgentMemory(Watched(MemoryStore(tmp_path)), service) as memory:
            turning = asyncio.create_task(memory.turn("Hello", "s").__aenter__())
            await asyncio.wait_for(read.wait(), 15)
            assert not turning.done(), "the gateway has not answered, and never will"
            turning.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turning

    read = asyncio.Event()
    with faulty(search="half-open") as gateway:
        asyncio.run(run())


# --- persistence ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("model"), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit()])
def test_a_turn_that_raises_is_told_to_nobody_and_raises_the_same(tmp_path: Path, error: BaseException) -> None:
    record = Recorder()

    async def turned(memory: AgentMemory) -> None:
        async with memory, memory.turn("Hello", "s", record=record) as turn:
            turn.answer("Half an ans")
            raise error

    async def run(memory: AgentMemory) -> None:
        with pytest.raises(type(error)) as raised:
            await turned(memory)
        assert raised.value is error

    with faulty() as gateway:
        asyncio.run(run(both(tmp_path, gateway)))
    assert gateway.operations == ["search"]
    assert record.kinds == ["recall_succeeded"]


@pytest.mark.parametrize("answers", [[], [""], [" \n"], ["first", " "]])
def test_a_turn_without_an_answer_is_told_to_nobody(tmp_path: Path, answers: list[str]) -> None:
    async def run(memory: AgentMemory) -> None:
        async with memory, memory.turn("Hello", "s") as turn:
            for answer in answers:
                turn.answer(answer)

    with faulty() as gateway:
        asyncio.run(run(both(tmp_path, gateway)))
    assert gateway.operations == ["search"]


def test_the_last_answer_is_the_one_that_counts(tmp_path: Path) -> None:
    async def run(memory: AgentMemory) -> None:
        async with memory, memory.turn("Hello", "s") as turn:
            turn.answer("first")
            turn.answer("second")

    with faulty() as gateway:
        asyncio.run(run(both(tmp_path, gateway)))
    assert [message["content"] for message in gateway.bodies("add")[0]["messages"]] == ["Hello", "second"]


def test_timestamps_are_of_the_prompt_and_of_the_answer(tmp_path: Path) -> None:
    async def run(memory: AgentMemory) -> None:
        async with memory:
            for _ in range(3):
                async with memory.turn("Hello", "s") as turn:
                    turn.answer("Hi.")

    with faulty() as gateway:
        asyncio.run(run(both(tmp_path, gateway)))
    moments = [message["timestamp"] for body in gateway.bodies("add") for message in body["messages"]]
    assert moments == sorted(moments)
    assert all(asked < answered for asked, answered in zip(moments[::2], moments[1::2], strict=True))
    assert moments[0] > 1_700_000_000_000


def test_persistence_changes_no_curated_file_and_the_curated_tool_calls_no_gateway(tmp_path: Path) -> None:
    with faulty([LISBON]) as gateway:
        memory = both(tmp_path, gateway)
        before = files(tmp_path / "memories")

        async def run() -> None:
            async with memory:
                async with memory.turn("Remember that I moved.", "s") as turn:
                    turn.answer("I will.")
                assert files(tmp_path / "memories") == before
                asked = len(gateway.asked)
                assert memory.curated is not None
                done = await memory.curated.apply(
                    [Change(CuratedAction.ADD, CuratedTarget.MEMORY, content="Lives in Lisbon.")]
                )
                assert done["success"]
                assert len(gateway.asked) == asked

        asyncio.run(run())


def test_what_cannot_be_recorded_is_not_swallowed(tmp_path: Path) -> None:
    """An error of the `record` callback, such as the session store's, reaches the host."""

    async def broken(event: AuditEvent) -> None:
        raise OSError("disk full")

    async def run(memory: AgentMemory) -> None:
        async with memory, memory.turn("Hello", "s", record=broken):
            raise AssertionError("the turn did not begin")

    with faulty() as gateway, pytest.raises(OSError, match="disk full"):
        asyncio.run(run(both(tmp_path, gateway)))


def test_curated_files_that_fail_fail_the_turn_and_leave_no_call_behind(tmp_path: Path) -> None:
    class Broken(MemoryService):
        async def snapshot(self) -> Any:
            raise OSError("unreadable")

    async def run() -> None:
        service = MemoryGatewayService(gateway.config(), assistant_id="holdfast")
        async with AgentMemory(Broken(MemoryStore(tmp_path)), service) as memory:
            with pytest.raises(OSError, match="unreadable"):
                async with memory.turn("Hello", "s"):
                    raise AssertionError("the turn did not begin")
            await asyncio.sleep(0)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait(others, timeout=15) if others else None
            assert asyncio.all_tasks() == {asyncio.current_task()}

    with faulty(search="half-open") as gateway:
        asyncio.run(run())


@pytest.mark.parametrize("operation", ["search", "add", "flush"])
def test_cancelling_a_turn_in_a_call_ends_it_at_once_and_shows_no_key(tmp_path: Path, operation: str) -> None:
    record = Recorder()

    async def turned(memory: AgentMemory) -> None:
        async with memory.turn("Hello", "s", record=record) as turn:
            turn.answer("Hi.")

    async def run() -> BaseException:
        # The deadline is far away: only the cancellation ends the turn.
        async with both(tmp_path, gateway, timeout_seconds=600) as memory:
            running = asyncio.create_task(turned(memory))
            for _ in range(1_500):
                if operation in gateway.operations:
                    break
                await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.wait([running], timeout=15)
            try:
                running.result()
            except asyncio.CancelledError as error:
                return error
        raise AssertionError("it was not cancelled")

    with faulty(**{operation: "half-open"}) as gateway:
        error = asyncio.run(run())
        assert KEY not in whole_chain(error)
    assert gateway.operations == ["search", "add", "flush"][: ["search", "add", "flush"].index(operation) + 1]
    assert record.kinds == ["recall_succeeded", "add_succeeded"][: len(gateway.operations) - 1]


# --- opening an agent's memory --------------------------------------------------------------------------------------


@pytest.mark.seed("000.config.4")
def test_a_complete_explicit_hybrid_config_initializes_both_layers(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / ".holdfast" / "gateway.key").write_text(USER_KEY)

    async def run(prompt: str, answer: str) -> Turn:
        async with holdfast.agent.AgentMemory.load(tmp_path) as memory:
            assert memory.curated is not None
            assert memory.gateway is not None
            async with memory.turn(prompt, "42") as turn:
                turn.answer(answer)
        return turn

    with served(str(tmp_path / "memory.db")) as server:
        given = {"baseUrl": server.url, "userId": "ana", "userKeyFile": "gateway.key"}
        configure(tmp_path, {"mode": "hybrid", "gateway": given})
        assert asyncio.run(run("I moved to Lisbon.", "Noted.")).messages == []
        turn = asyncio.run(run("Where did I move to?", "To Lisbon."))
    assert "I moved to Lisbon." in turn.messages[0]["content"]


@pytest.mark.seed("000.config.2")
def test_implicit_hybrid_without_credentials_logs_one_warning_and_works_without_a_gateway(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure(tmp_path, {"gateway": {"userKey": KEY}})
    memory = AgentMemory.load()
    assert memory.curated is not None
    assert memory.gateway is None
    assert [(record.name, record.levelname) for record in caplog.records] == [("holdfast.agent", "WARNING")]
    assert KEY not in caplog.text


@pytest.mark.seed("000.config.3")
def test_explicit_curated_mode_needs_no_gateway_and_warns_of_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    configure(tmp_path, {"mode": "curated"})
    memory = AgentMemory.load()
    assert memory.curated is not None
    assert memory.gateway is None
    assert caplog.records == []


@pytest.mark.parametrize(
    ("prompt", "session", "field"),
    [("", "s", "prompt"), (" ", "s", "prompt"), (None, "s", "prompt"), ("a", "", "session"), ("a", None, "session")],
)
def test_a_turn_that_cannot_be_one_is_refused_before_anything_is_sent(
    tmp_path: Path, prompt: Any, session: Any, field: str
) -> None:
    async def run(memory: AgentMemory) -> None:
        async with memory, memory.turn(prompt, session):
            raise AssertionError("the turn did not begin")

    with faulty() as gateway, pytest.raises(InvalidInput) as refused:
        asyncio.run(run(both(tmp_path, gateway)))
    assert (refused.value.field, gateway.asked) == (field, [])


def test_an_answer_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Turn(None, None).answer(None)  # type: ignore[arg-type]


def test_importing_holdfast_loads_nothing_of_the_agent() -> None:
    code = (
        "import sys, holdfast; holdfast.open(':memory:', embedder='fake').close()\n"
        "assert not [n for n in sys.modules if n.startswith('holdfast.agent')]\n"
        "import holdfast.agent; assert 'holdfast.agent.memory' not in sys.modules\n"
        "assert holdfast.agent.AgentMemory.load"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = holdfast.agent.Nothing
