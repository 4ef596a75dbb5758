"""Cancelling at any point ends the run, records that in its session, and closes the model's stream."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import Agent, agent, calls, configured

from holdfast.agent.ports import Reply, SessionEvent, TextPiece
from serving import HANG, USER_KEY, answering, http


def curated(path: Path) -> Path:
    return configured(path, {"mode": "curated"})


async def cancelled(running: Agent, under_way: asyncio.Event, prompt: str = "Hello?") -> SessionEvent:
    """Start a run, cancel it once `under_way` is set, and return the last event of its session."""
    task = asyncio.create_task(running.loop.run(prompt, "s"))
    await asyncio.wait_for(under_way.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)
    last = (await running.events("s"))[-1]
    assert (last.kind, last.context_visible) == ("run_cancelled", False)
    return last


def waiting(under_way: asyncio.Event) -> Callable[..., Awaitable[Any]]:
    async def wait(*_: Any) -> Any:
        under_way.set()
        await asyncio.Event().wait()

    return wait


def test_a_run_is_cancelled_while_the_model_thinks(tmp_path: Path) -> None:
    async def run() -> None:
        under_way = asyncio.Event()
        async with agent(curated(tmp_path), waiting(under_way), Reply("Here.")) as running:
            last = await cancelled(running, under_way)
            assert dict(last.data) == {"answered": False}
            assert running.model.ended == 1
            # The next run does not see the cancelled one.
            assert (await running.loop.run("And now?", "s")).text == "Here."
            assert [message.content for message in running.model.asked[1].messages[1:]] == ["And now?"]

    asyncio.run(run())


def test_closing_the_stream_closes_the_models(tmp_path: Path) -> None:
    async def run() -> None:
        async with agent(curated(tmp_path), Reply("One two three.")) as running:
            held = list[Any]()
            opened = running.model.stream
            # Hold a reference: the stream must be closed explicitly, not by the garbage collector.
            running.model.stream = lambda *given: held.append(opened(*given)) or held[-1]  # type: ignore[func-returns-value,method-assign]
            events = running.loop.stream("Count.", "s")
            assert await anext(events) == TextPiece("One ")
            assert running.model.ended == 0
            await events.aclose()
            assert running.model.ended == 1
            assert [event.kind for event in await running.events("s")] == ["user_message", "run_cancelled"]

    asyncio.run(run())


def test_a_stream_that_nobody_reads_on_is_closed_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with agent(curated(tmp_path), Reply("One two three.")) as running:
            async for _ in running.loop.stream("Count.", "s"):
                break
            for _ in range(1000):  # the event loop closes it in a separate task
                if (await running.kinds("s"))[-1] == "run_cancelled":
                    break
            assert running.model.ended == 1
            assert (await running.kinds("s"))[-1] == "run_cancelled"

    asyncio.run(run())


def test_a_run_is_cancelled_while_a_tool_works(tmp_path: Path) -> None:
    async def run() -> None:
        under_way, ended = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            """Work."""
            under_way.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with agent(curated(tmp_path), calls(("work", {})), tools=[work]) as running:
            await cancelled(running, under_way)
            assert ended.is_set()
            assert await running.kinds("s") == ["user_message", "tool_call", "run_cancelled"]

    asyncio.run(run())


def test_cancelling_again_and_again_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        under_way = asyncio.Event()
        async with agent(curated(tmp_path), waiting(under_way)) as running:
            task = asyncio.create_task(running.loop.run("Hello?", "s"))
            await under_way.wait()
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)
            assert task.cancelled()
            for _ in range(1000):  # the started write finishes after the task has ended
                if (await running.kinds("s"))[-1] == "run_cancelled":
                    break
            assert await running.kinds("s") == ["user_message", "run_cancelled"]
            assert running.model.ended == 1

    asyncio.run(run())


def test_an_error_of_whoever_watches_ends_the_run(tmp_path: Path) -> None:
    def broken(event: Any) -> None:
        raise BrokenPipeError("nobody reads")

    async def run() -> None:
        async with agent(curated(tmp_path), Reply("One two.")) as running:
            with pytest.raises(BrokenPipeError):
                await running.loop.run("Count.", "s", watch=broken)
            assert running.model.ended == 1
            assert (await running.kinds("s"))[-1] == "run_cancelled"

    asyncio.run(run())


FOUND = http(200, b'{"results": []}')


@pytest.mark.parametrize(
    ("answers", "requests", "answered"), [([HANG], 1, False), ([FOUND, HANG], 2, True), ([FOUND, FOUND, HANG], 3, True)]
)
def test_a_run_is_cancelled_while_the_gateway_does_not_answer(
    answers: list[bytes], requests: int, answered: bool, tmp_path: Path
) -> None:
    async def run(url: str, asked: list[bytes]) -> None:
        config = {"baseUrl": url, "userId": "ana", "userKey": USER_KEY, "timeoutSeconds": 60}
        async with agent(configured(tmp_path, {"mode": "hybrid", "gateway": config}), Reply("Here.")) as running:
            task = asyncio.create_task(running.loop.run("Hello?", "s"))
            for _ in range(3000):
                if len(asked) == requests:
                    break
                await asyncio.sleep(0.01)
            assert len(asked) == requests
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 30)
            events = await running.events("s")
            assert (events[-1].kind, dict(events[-1].data)) == ("run_cancelled", {"answered": answered})
            # A given answer stays in the session, whether or not the gateway stored the turn.
            assert ("assistant_message" in [event.kind for event in events]) == answered
            assert len(running.model.asked) == answered

    with answering(*answers) as (url, asked):
        asyncio.run(run(url, asked))
    assert len(asked) == requests


def test_of_a_process_that_dies_in_a_tool_the_session_tells_what_was_tried(tmp_path: Path) -> None:
    program = """
import asyncio, os, sys
from holdfast.agent import AgentLoop, EngineLoader
from holdfast.agent.ports import Reply, ToolCall
from holdfast.agent.providers.scripted import ScriptedModel

def die() -> None:
    "Die."
    os.kill(os.getpid(), 9)

async def run():
    model = ScriptedModel([Reply("", (ToolCall("1", "die", "{}"),))])
    await AgentLoop(await EngineLoader(sys.argv[1], model=model, tools=[die]).load()).run("Hello?", "s")

asyncio.run(run())
"""
    died = subprocess.run([sys.executable, "-c", program, curated(tmp_path)], timeout=60)
    assert died.returncode == -9

    async def run() -> None:
        async with agent(tmp_path, Reply("Here.")) as running:
            assert await running.kinds("s") == ["user_message", "tool_call"]
            assert (await running.loop.run("And now?", "s")).text == "Here."
            assert [message.content for message in running.model.asked[0].messages[1:]] == ["And now?"]

    asyncio.run(run())


def test_of_a_process_that_dies_while_it_flushes_the_session_has_the_add(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from holdfast.agent import AgentLoop, EngineLoader
from holdfast.agent.ports import Reply
from holdfast.agent.providers.scripted import ScriptedModel

async def run():
    await AgentLoop(await EngineLoader(sys.argv[1], model=ScriptedModel([Reply("Here.")])).load()).run("Hello?", "s")

asyncio.run(run())
"""
    added = http(200, b'{"session_id": "chat:s", "status": "accumulated", "message_count": 2}')
    with answering(FOUND, added, HANG) as (url, asked):
        config = {"baseUrl": url, "userId": "ana", "userKey": USER_KEY, "timeoutSeconds": 60}
        workspace = configured(tmp_path, {"mode": "hybrid", "gateway": config})
        running = subprocess.Popen([sys.executable, "-c", program, workspace])
        for _ in range(6000):
            if len(asked) == 3 or running.poll() is not None:
                break
            time.sleep(0.01)
        running.kill()
        assert (len(asked), running.wait(60)) == (3, -9)

    async def run() -> None:
        async with agent(workspace, Reply("Here.")) as again:
            events = await again.events("s")
            assert [event.kind for event in events if event.kind.startswith("memory_gateway")] == [
                "memory_gateway_recall_succeeded",
                "memory_gateway_add_succeeded",
            ]

    asyncio.run(run())
