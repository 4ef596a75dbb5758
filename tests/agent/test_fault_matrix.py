"""Whatever a gateway does, a run ends as it would without one, in time, with the right event, and without the key.

Every fault is done by a real server to each of the three operations in turn. A run's answer, its events and how long
each call took are then held against those of a run without a gateway.
"""

from __future__ import annotations

import asyncio
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

from holdfast.agent.curated import Action, MemoryService, MemoryStore, Operation, Target
from holdfast.agent.gateway import REFERENCE_RULE, AuditEvent, MemoryGatewayService
from holdfast.agent.memory import AgentMemory, Turn

DEADLINE_SECONDS = 0.3
MARGIN_SECONDS = 0.05
# A busy machine may hold up one run; what is wrong in the code holds up each.
ATTEMPTS = 4
PROMPT = "Where do I live?"
RESULTS = [{"text": "I moved to Lisbon.", "source_scope": "current_chat"}]
WELL = {
    "search": ("recall_succeeded", {"scopes": ["current_chat", "resources"], "results": 1}),
    "add": ("add_succeeded", {"session_id": "chat:s", "messages": 2}),
    "flush": ("flush_succeeded", {"session_id": "chat:s"}),
}

UNREACHABLE, LOST = ("unreachable", None), ("lost", None)
NAME_UNKNOWN, NAME_SILENT = "no such name", "a name server that is silent"
# How each ends for whoever calls: a category, and the status if there was one.
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
# Once there, they stay: they are done to the connection, and the next call needs one too.
LASTING = (REFUSED, UNACCEPTED, NAME_UNKNOWN, NAME_SILENT)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would answer in the gateway's place."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def test_every_fault_that_the_server_knows_is_in_the_matrix() -> None:
    assert set(ENDS) == {REFUSED, UNACCEPTED, NAME_UNKNOWN, NAME_SILENT, *ANSWERS, *MISDEEDS}


# --- one run --------------------------------------------------------------------------------------------------------


@dataclass
class Ran:
    """What is to be seen of a run from outside."""

    answer: str
    system: str
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    held: list[object] = field(default_factory=list)


def model(turn: Turn) -> str:
    """It is told all, and answers by what it knows without a gateway."""
    assert "Likes tea." in turn.system
    return f"You like tea. You asked: {PROMPT}"


async def turned(folder: Path, gateway: Faulty | None, release: Callable[[], None] = lambda: None) -> Ran:
    """A turn around which there is memory."""
    store = MemoryStore(folder)
    store.change([Operation(Action.ADD, Target.USER, content="Likes tea.")])
    service = None
    if gateway is not None:
        service = MemoryGatewayService(gateway.config(timeout_seconds=DEADLINE_SECONDS), assistant_id="holdfast")
    ran = Ran("", "")

    async def record(event: AuditEvent) -> None:
        nonlocal since
        kind = event.kind.removeprefix("memory_gateway_")
        ran.seconds[OPERATIONS[len(ran.events)]] = time.monotonic() - since
        ran.events.append((kind, dict(event.data)))
        since = time.monotonic()

    async with AgentMemory(MemoryService(store), service) as memory:
        since = time.monotonic()
        async with memory.turn(PROMPT, "s", record=record) as turn:
            ran.answer, ran.system = model(turn), turn.system
            turn.answer(ran.answer)
            since = time.monotonic()
        ran.held = [memory, vars(memory), service, turn, vars(turn), turn.recall, turn.messages]
        release()
    return ran


@contextmanager
def resolving(gateway: Faulty, operation: str, fault: str) -> Iterator[Callable[[], None]]:
    """The system's lookup, which fails in this way from `operation` on. What it yields lets it go on."""
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


def broken(folder: Path, operation: str, fault: str) -> tuple[Ran, Faulty]:
    """A run during which `fault` is done to `operation`."""
    if fault in (NAME_UNKNOWN, NAME_SILENT):
        with faulty(RESULTS, host="gateway.test") as gateway, resolving(gateway, operation, fault) as release:
            return asyncio.run(turned(folder, gateway, release)), gateway
    with faulty(RESULTS, **{operation: fault}) as gateway:
        return asyncio.run(turned(folder, gateway)), gateway


def expected(operation: str, fault: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of such a run, in order."""
    events: list[tuple[str, dict[str, Any]]] = []
    for number, each in enumerate(OPERATIONS):
        hit = each == operation or (fault in LASTING and number > OPERATIONS.index(operation))
        if hit and not _is_fine(each, fault):
            kind = {"search": "recall_failed", "add": "add_failed", "flush": "flush_failed"}[each]
            category, status = ENDS[fault]
            told: dict[str, Any] = {"operation": each, "category": category}
            events.append((kind, told | ({"status": status} if status else {}) | _added(each)))
            if each == "add":
                return events
        else:
            events.append(WELL[each])
    return events


def _is_fine(operation: str, fault: str) -> bool:
    """Nobody asks what else an answer to `add` or `flush` holds."""
    return operation != "search" and fault.startswith("results: ")


def _added(operation: str) -> dict[str, bool]:
    return {"added": True} if operation == "flush" else {}


# --- the matrix -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", ENDS)
def test_a_fault_changes_neither_the_answer_nor_what_is_curated_and_is_over_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str, operation: str
) -> None:
    caplog.set_level(logging.DEBUG)
    without = asyncio.run(turned(tmp_path, None))
    for attempt in range(ATTEMPTS):
        caplog.clear()
        ran, gateway = broken(tmp_path, operation, fault)
        assert ran.answer == without.answer
        assert ran.system == f"{without.system}\n\n{REFERENCE_RULE}"
        assert ran.events == expected(operation, fault)
        _no_key(ran, caplog)
        _nothing_twice(gateway)
        late = {each: took for each, took in ran.seconds.items() if took > DEADLINE_SECONDS + MARGIN_SECONDS}
        if not late:
            return
        if attempt == ATTEMPTS - 1:
            raise AssertionError(f"after {ATTEMPTS} attempts still late: {late}")


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
        ran = asyncio.run(turned(tmp_path, gateway))
    assert ran.events == [WELL[each] for each in OPERATIONS]
    assert {"httpx2", "httpcore2"} <= {record.name.partition(".")[0] for record in caplog.records}
    assert all(body["user_key"] == KEY for _, body in gateway.asked), "it was there to be seen"
    _no_key(ran, caplog)


# --- names that are not found ---------------------------------------------------------------------------------------


def test_a_host_that_does_not_exist_is_a_gateway_that_cannot_be_reached(tmp_path: Path) -> None:
    """By the machine's own resolver, whatever it is."""
    gateway = Faulty("http://gateway.invalid:8010", {}, [])
    ran = asyncio.run(turned(tmp_path, gateway))
    assert [(kind, data["category"]) for kind, data in ran.events] == [
        ("recall_failed", "unreachable"), ("add_failed", "unreachable"),
    ]  # fmt: skip


def test_a_name_server_that_is_silent_holds_up_neither_other_work_nor_the_end(tmp_path: Path) -> None:
    """Many turns at once: more than an event loop has threads, which all else there needs."""

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
        # Here the loop is closed, and its threads have ended; the lookup has not.
        still = [thread for thread in threading.enumerate() if thread.name == "holdfast-name"]
        assert len(still) == 1, "one lookup serves all who wait for it"
    assert all(turn.recall and turn.recall.event.data["category"] == "unreachable" for turn in turns)
    still[0].join(15)
    assert not still[0].is_alive()
