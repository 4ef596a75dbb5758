"""With any gateway fault, a run ends as it would without a gateway: in time, with the right event, and without the key.

A real server applies every fault to each of the three operations in turn. The tests then compare the run's answer, its
events and the duration of each call with those of a run without a gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from faulty import ANSWERS, KEY, MISDEEDS, OPERATIONS, REFUSED, UNACCEPTED, Faulty, faulty
from hostile import HOSTILE, RECALLED
from recorded import agent, calls, configured, curate, system_of

from holdfast.agent.config import MemoryGatewayConfig
from holdfast.agent.curated import MemoryService, MemoryStore
from holdfast.agent.gateway import (
    ADD_FAILED,
    ADD_SUCCEEDED,
    FLUSH_FAILED,
    FLUSH_SUCCEEDED,
    RECALL_FAILED,
    RECALL_SUCCEEDED,
    REFERENCE_LABEL,
    REFERENCE_RULE,
    AuditEvent,
    GatewayPersistOutcome,
    GatewayRecallOutcome,
    MemoryGatewayService,
    Record,
)
from holdfast.agent.memory import AgentMemory, Turn
from holdfast.agent.ports import Reply
from holdfast.agent.result import RunEvent

DEADLINE_SECONDS = 0.3
MARGIN_SECONDS = 0.05
# A busy machine may delay one run; a bug delays each.
ATTEMPTS = 4
PROMPT, ANSWER = "Where do I live?", "You like tea, and I do not know where."
TEA = "Likes tea."
RESULTS = [{"text": "I moved to Lisbon.", "source_scope": "current_chat"}]
WELL = {
    "search": (RECALL_SUCCEEDED, {"scopes": ["current_chat", "resources"], "results": 1}),
    "add": (ADD_SUCCEEDED, {"session_id": "chat:s", "messages": 2}),
    "flush": (FLUSH_SUCCEEDED, {"session_id": "chat:s"}),
}

UNREACHABLE, LOST = ("unreachable", None), ("lost", None)
NAME_UNKNOWN, NAME_SILENT = "no such name", "a name server that is silent"
# The result of each fault for the caller: a category, and the status if there was one.
ENDS: dict[str, tuple[str, int | None]] = {
    REFUSED: UNREACHABLE,
    UNACCEPTED: LOST,
    NAME_UNKNOWN: UNREACHABLE,
    NAME_SILENT: UNREACHABLE,
    "slow headers": LOST,
    "slow body": LOST,
    "half-open": LOST,
    "half-closed": LOST,
    "reset": LOST,
    "hung up": LOST,
    "endless": ("malformed", 200),
    "401": ("unauthorized", 401),
    "403": ("unauthorized", 403),
    "429": ("limited", 429),
    "500": ("failed", 500),
    "503": ("failed", 503),
    "redirect": ("refused", 307),
    "empty": ("malformed", 200),
    "no content": ("malformed", 204),
    "not JSON": ("malformed", 200),
    "not text": ("malformed", 200),
    "a list": ("malformed", 200),
    "a number": ("malformed", 200),
    "cut off": LOST,
    "broken chunks": LOST,
    "not HTTP": LOST,
    "endless headers": LOST,
    "deep": ("malformed", 200),
    "a long number": ("malformed", 200),
    "a million lists": ("malformed", 200),
    "10 MB": ("malformed", 200),
    "10 MB of spaces": ("malformed", 200),
    "10 MB of failure": ("failed", 500),
    "packed": ("malformed", 200),
    "results: none": ("malformed", 200),
    "results: null": ("malformed", 200),
    "results: an object": ("malformed", 200),
    "results: a text": ("malformed", 200),
    "results: of texts": ("malformed", 200),
    "results: of null": ("malformed", 200),
}
# These faults persist: they apply to the connection, and the next call needs one too.
LASTING = (REFUSED, UNACCEPTED, NAME_UNKNOWN, NAME_SILENT)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset proxy variables: a proxy would answer in the gateway's place."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def test_every_fault_that_the_server_knows_is_in_the_matrix() -> None:
    assert set(ENDS) == {REFUSED, UNACCEPTED, NAME_UNKNOWN, NAME_SILENT, *ANSWERS, *MISDEEDS}


# --- one run --------------------------------------------------------------------------------------------------------


@dataclass
class Ran:
    """The observable results of a run. `outcome` must be the same as without a gateway."""

    outcome: list[object] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    held: list[object] = field(default_factory=list)


class Timed(MemoryGatewayService):
    """Record the duration of each call."""

    def __init__(self, config: MemoryGatewayConfig, ran: Ran) -> None:
        super().__init__(config, assistant_id="holdfast")
        self._ran = ran

    async def recall_before_run(self, session_id: str, prompt: str) -> GatewayRecallOutcome:
        began = time.monotonic()
        outcome = await super().recall_before_run(session_id, prompt)
        self._ran.seconds["search"] = time.monotonic() - began
        return outcome

    async def persist_after_run(self, *given: Any, record: Record | None = None, **more: Any) -> GatewayPersistOutcome:
        since = time.monotonic()

        async def noted(event: AuditEvent) -> None:
            nonlocal since
            self._ran.seconds["add" if "_add_" in event.kind else "flush"] = time.monotonic() - since
            assert record is not None
            await record(event)
            since = time.monotonic()

        return await super().persist_after_run(*given, record=noted, **more)


Release = Callable[[], None]


async def turned(folder: Path, gateway: Faulty | None, release: Release = lambda: None) -> Ran:
    """Run a turn with memory in a host's own loop."""
    curate(folder, user=TEA)
    ran = Ran()
    service = None if gateway is None else Timed(gateway.config(timeout_seconds=DEADLINE_SECONDS), ran)

    async def record(event: AuditEvent) -> None:
        ran.events.append((event.kind, dict(event.data)))

    async with AgentMemory(MemoryService(MemoryStore(folder / ".holdfast" / "memories")), service) as memory:
        async with memory.turn(PROMPT, "s", record=record) as turn:
            turn.answer(ANSWER)
        ran.outcome, ran.systems = [turn.snapshot], [turn.system]
        ran.held = [memory, vars(memory), service, turn, vars(turn), turn.recall, turn.messages]
        release()
    return ran


async def looped(folder: Path, gateway: Faulty | None, release: Release = lambda: None) -> Ran:
    """Run the agent: it writes to its curated files, then answers."""
    files = curate(folder, user=TEA)
    memory: dict[str, Any] = {"mode": "curated"}
    if gateway is not None:
        given = {"baseUrl": gateway.url, "userId": "ana", "userKey": KEY, "timeoutSeconds": DEADLINE_SECONDS}
        memory = {"mode": "hybrid", "gateway": given}
    script = (calls(("memory", {"action": "add", "target": "user", "content": "Has a dog."})), Reply(ANSWER))
    ran, watched = Ran(), list[RunEvent]()
    async with agent(configured(folder, memory), *script) as running:
        chosen = running.loaded.config.memory.gateway
        if chosen is not None:
            running.loaded.memory.gateway = Timed(chosen, ran)
        result = await running.loop.run(PROMPT, "s", watch=watched.append)
        release()
        events = await running.events("s")
        ran.held = [running.loaded, result, watched, events, running.model.asked]
    ran.outcome = [
        result.text, result.status, result.tool_calls, result.usage, result.error, watched,
        [(event.kind, event.content) for event in events if event.context_visible],
        [files["user"].read_text()],
    ]  # fmt: skip
    ran.systems = [system_of(asked) for asked in running.model.asked]
    hidden = [event for event in events if event.kind.startswith("memory_gateway_")]
    assert not any(event.context_visible or event.content for event in hidden)
    ran.events = [(event.kind, dict(event.data)) for event in hidden]
    return ran


RUNS = {"a turn": turned, "the loop": looped}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Each kind of run without a gateway."""
    return {kind: asyncio.run(run(tmp_path_factory.mktemp("without"), None)) for kind, run in RUNS.items()}


@contextmanager
def resolving(gateway: Faulty, operation: str, fault: str) -> Iterator[Callable[[], None]]:
    """Make the system's name lookup fail from `operation` on. The yielded function releases blocked lookups."""
    real, going_on = socket.getaddrinfo, threading.Event()
    first = OPERATIONS.index(operation)

    def look_up(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        if host not in ("gateway.test", b"gateway.test"):
            return real(host, port, *arguments, **options)
        if len(gateway.asked) >= first:
            if fault == NAME_SILENT:
                going_on.wait(30)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real("127.0.0.1", port, *arguments, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", look_up)
        try:
            yield going_on.set
        finally:
            going_on.set()


def broken(run: Callable[..., Any], folder: Path, operation: str, fault: str) -> tuple[Ran, Faulty]:
    """Run while `fault` applies to `operation`."""
    if fault in (NAME_UNKNOWN, NAME_SILENT):
        with faulty(RESULTS, host="gateway.test") as gateway, resolving(gateway, operation, fault) as release:
            return asyncio.run(run(folder, gateway, release)), gateway
    with faulty(RESULTS, **{operation: fault}) as gateway:
        return asyncio.run(run(folder, gateway)), gateway


def expected(operation: str, fault: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of such a run, in order."""
    events: list[tuple[str, dict[str, Any]]] = []
    for number, each in enumerate(OPERATIONS):
        hit = each == operation or (fault in LASTING and number > OPERATIONS.index(operation))
        if hit and not _is_fine(each, fault):
            kind = {"search": RECALL_FAILED, "add": ADD_FAILED, "flush": FLUSH_FAILED}[each]
            category, status = ENDS[fault]
            told: dict[str, Any] = {"operation": each, "category": category}
            events.append((kind, told | ({"status": status} if status else {}) | _added(each)))
            if each == "add":
                return events
        else:
            events.append(WELL[each])
    return events


def _is_fine(operation: str, fault: str) -> bool:
    """The client ignores other content in an answer to `add` or `flush`."""
    return operation != "search" and fault.startswith("results: ")


def _added(operation: str) -> dict[str, bool]:
    return {"added": True} if operation == "flush" else {}


# --- the matrix -----------------------------------------------------------------------------------------------------


@pytest.mark.seed("000.loop.7", "001.loop.6", "000.loop.8", "001.loop.7")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", ENDS)
@pytest.mark.parametrize("kind", RUNS)
def test_recall_add_and_flush_failures_change_neither_the_result_nor_what_is_curated_and_are_over_in_time(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    undisturbed: dict[str, Ran],
    kind: str,
    fault: str,
    operation: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    run, without = RUNS[kind], undisturbed[kind]
    late: dict[str, float] = {}
    for attempt in range(ATTEMPTS):
        caplog.clear()
        ran, gateway = broken(run, tmp_path / str(attempt), operation, fault)
        assert ran.outcome == without.outcome
        assert [plain(system) for system in ran.systems] == [plain(system) for system in without.systems]
        assert all(REFERENCE_RULE in system for system in ran.systems)
        assert ran.events == expected(operation, fault)
        _no_key(ran, caplog)
        _nothing_twice(gateway)
        assert set(ran.seconds) == set(OPERATIONS[: len(ran.events)])
        late = {each: took for each, took in ran.seconds.items() if took > DEADLINE_SECONDS + MARGIN_SECONDS}
        if not late:
            return
    raise AssertionError(f"after {ATTEMPTS} attempts still late: {late}")


def plain(system: str) -> str:
    """A system prompt without the reference rule, which it holds whenever there is a gateway."""
    return " ".join(system.replace(REFERENCE_RULE, "").split())


def _no_key(ran: Ran, caplog: pytest.LogCaptureFixture) -> None:
    logged = [f"{record.getMessage()} {record.args} {record.exc_info} {vars(record)}" for record in caplog.records]
    assert KEY not in json.dumps(ran.events)
    assert KEY not in "".join(logged)
    assert KEY not in repr(ran.held)
    complaints = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert complaints == [], "a gateway's trouble is told by events, and nothing is left behind that others complain of"


def _nothing_twice(gateway: Faulty) -> None:
    assert len(gateway.operations) == len(set(gateway.operations))


def test_the_log_in_which_no_key_is_found_holds_what_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with faulty(RESULTS) as gateway:
        ran = asyncio.run(looped(tmp_path, gateway))
    assert ran.events == [WELL[each] for each in OPERATIONS]
    assert {"httpx2", "httpcore2"} <= {record.name.partition(".")[0] for record in caplog.records}
    assert all(body["user_key"] == KEY for _, body in gateway.asked), "it was there to be seen"
    _no_key(ran, caplog)


# --- results with hostile text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*HOSTILE, *RECALLED])
def test_hostile_text_that_is_recalled_stays_in_its_line_and_out_of_the_system_prompt(
    tmp_path: Path, name: str
) -> None:
    text = (HOSTILE | RECALLED)[name]
    results = [{"text": f"before {text}", "source_scope": text, "session_id": text}, {"text": "after"}]
    files = curate(tmp_path, user=TEA)
    before = files["user"].read_text()

    async def run(gateway: Faulty) -> None:
        given = {"baseUrl": gateway.url, "userId": "ana", "userKey": KEY}
        async with agent(configured(tmp_path, {"mode": "hybrid", "gateway": given}), Reply(ANSWER)) as running:
            result = await running.loop.run(PROMPT, "s")
            assert result.text == ANSWER
            [asked] = running.model.asked
            said = [event.content for event in await running.events("s")]
        assert text.strip() not in system_of(asked)
        assert plain(system_of(asked)).count(TEA) == 1
        [reference] = [message for message in asked.messages if message.content.startswith(REFERENCE_LABEL)]
        assert reference.role == "user"
        lines = reference.content.splitlines()
        assert [line[:3] for line in lines[1:]] == ["1. ", "2. "]
        assert lines[1].startswith("1. [")
        assert lines[2] == "2. [memory] after"
        assert not any(char in reference.content for char in "\x1b\u202e\u200b\U000e0067\U000e0154")
        assert [content for content in said if content] == [PROMPT, ANSWER], "what was recalled is kept in no session"
        assert [message["content"] for message in gateway.bodies("add")[0]["messages"]] == [PROMPT, ANSWER]

    with faulty(results) as gateway:
        asyncio.run(run(gateway))
    assert files["user"].read_text() == before


# --- missing TLS ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [True, False])
def test_a_gateway_that_does_not_speak_tls_as_it_should_cannot_be_reached_and_costs_no_more(
    tmp_path: Path, answers: bool
) -> None:
    """The server answers in plain HTTP, or not at all. The client sends it nothing, above all not the key."""
    heard: list[bytes] = []

    def answer(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while answers:
                with listening.accept()[0] as connection:
                    heard.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n")

    took: dict[str, float] = {}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=answer, args=(listening,), daemon=True)
        server.start()
        gateway = Faulty(f"https://127.0.0.1:{listening.getsockname()[1]}", {}, [])
        for attempt in range(ATTEMPTS):
            ran = asyncio.run(looped(tmp_path / str(attempt), gateway))
            assert [(kind, data["category"]) for kind, data in ran.events] == [
                (RECALL_FAILED, "unreachable"), (ADD_FAILED, "unreachable"),
            ]  # fmt: skip
            took = ran.seconds
            if max(took.values()) <= DEADLINE_SECONDS + MARGIN_SECONDS:
                break
        listening.shutdown(socket.SHUT_RDWR)
        server.join(10)
    assert max(took.values()) <= DEADLINE_SECONDS + MARGIN_SECONDS, f"after {ATTEMPTS} attempts still late: {took}"
    assert bool(heard) == answers
    assert KEY.encode() not in b"".join(heard)


# --- unresolved host names ------------------------------------------------------------------------------------------


def test_a_host_that_does_not_exist_is_a_gateway_that_cannot_be_reached(tmp_path: Path) -> None:
    """Use the machine's own resolver."""
    gateway = Faulty("http://gateway.invalid:8010", {}, [])
    ran = asyncio.run(turned(tmp_path, gateway))
    assert [(kind, data["category"]) for kind, data in ran.events] == [
        (RECALL_FAILED, "unreachable"), (ADD_FAILED, "unreachable"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "proxies",
    [{}, {"no_proxy": "localhost"}, {"http_proxy": "http://127.0.0.1:9", "no_proxy": "gateway.test"}],
    ids=["none", "none, but for one host", "one, but not for this host"],
)
def test_a_name_server_that_is_silent_holds_up_neither_other_work_nor_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str]
) -> None:
    """Run more turns at once than an event loop has threads; other work needs those threads."""
    for name, value in proxies.items():
        monkeypatch.setenv(name, value)

    async def many() -> list[Turn]:
        service = MemoryGatewayService(gateway.config(timeout_seconds=DEADLINE_SECONDS), assistant_id="holdfast")
        async with AgentMemory(MemoryService(MemoryStore(tmp_path)), service) as memory:

            async def one(number: int) -> Turn:
                async with memory.turn(PROMPT, f"s{number}") as turn:
                    turn.answer("Somewhere.")
                return turn

            return await asyncio.gather(*map(one, range(40)))

    gateway = Faulty("http://gateway.test:8010", {}, [])
    with resolving(gateway, "search", NAME_SILENT):
        turns = asyncio.run(many())
        # The loop is closed and its threads have ended; the lookup is still running.
        still = [thread for thread in threading.enumerate() if thread.name == "holdfast-name"]
        assert len(still) == 1, "one lookup serves all who wait for it"
    assert all(turn.recall and turn.recall.event.data["category"] == "unreachable" for turn in turns)
    still[0].join(15)
    assert not still[0].is_alive()
