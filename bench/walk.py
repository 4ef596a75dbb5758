"""The way of a call: how many files, calls and objects `add`, `search`, an HTTP search and a control-plane query take.

    python -m bench.walk [--old ../before] [--files]

Each walk is one call on a small store after three others of its kind, so imports and caches are warm. Counted from
the call until it returns, in all threads, the writer's and readers' included:

- files: source files of `src/holdfast` in which a Python function ran.
- calls: Python functions of those files that were called. A coroutine counts once, however often it is resumed;
  comprehensions and generator expressions do not count.
- objects: instances of our own classes made by Python code (`__init__`, or `__new__` of a named tuple). Models that
  Pydantic's core makes without a Python constructor do not count.

Rows without `stores` leave out `src/holdfast/stores`. The service is composed as by `holdfast serve`, and called over
ASGI in this process. With `--old`, each checkout runs in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

WARM_UP = 3
# Rows of reads are committed within 100 ms after the call; they must not count for the next one.
QUIET_SECONDS = 0.4
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_INLINE = frozenset({"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"})
TOKEN = "operator-token-of-the-walk"


@dataclass(slots=True)
class Walk:
    """The functions and objects of one recorded call, by file."""

    calls: dict[str, int] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        return {"calls": self.calls, "objects": self.objects}


class Recorder:
    """A profile function for all threads, which records only while a call runs."""

    def __init__(self, source: Path) -> None:
        self._root = f"{source}{os.sep}"
        self._walk: Walk | None = None
        self._resumed: dict[int, FrameType] = {}
        self._files: dict[CodeType, str | None] = {}

    def start(self) -> None:
        self._resumed = {}
        self._walk = Walk()

    def stop(self) -> Walk:
        walk, self._walk = self._walk, None
        assert walk is not None
        return walk

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        walk = self._walk
        if walk is None or event != "call":
            return
        code = frame.f_code
        if code.co_name in ("__init__", "__new__"):
            self._count_object(walk, frame)
        file = self._file(code)
        if file is None or code.co_name in _INLINE:
            return
        if code.co_flags & _RESUMABLE:
            if self._resumed.get(id(frame)) is frame:
                return
            self._resumed[id(frame)] = frame
        walk.calls[file] = walk.calls.get(file, 0) + 1

    def _file(self, code: CodeType) -> str | None:
        if code not in self._files:
            inside = code.co_filename.startswith(self._root)
            self._files[code] = code.co_filename.removeprefix(self._root) if inside else None
        return self._files[code]

    def _count_object(self, walk: Walk, frame: FrameType) -> None:
        code = frame.f_code
        made = frame.f_locals.get(code.co_varnames[0]) if code.co_varnames else None
        kind = made if code.co_name == "__new__" else type(made)
        caller = frame.f_back
        if caller is not None and caller.f_code.co_name == code.co_name:
            first = caller.f_code.co_varnames[:1]
            if first and caller.f_locals.get(first[0]) is made:
                return  # the constructor of a base class
        module = getattr(kind, "__module__", "")
        if module.startswith("holdfast."):
            walk.objects[module] = walk.objects.get(module, 0) + 1


class Walker:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def walk(self, call: Callable[[int], object]) -> Walk:
        for number in range(WARM_UP):
            call(number)
        time.sleep(QUIET_SECONDS)
        self._recorder.start()
        call(WARM_UP)
        return self._recorder.stop()

    async def walk_async(self, call: Callable[[int], Awaitable[object]]) -> Walk:
        for number in range(WARM_UP):
            await call(number)
        await asyncio.sleep(QUIET_SECONDS)
        self._recorder.start()
        await call(WARM_UP)
        return self._recorder.stop()


def walk_library(walker: Walker, folder: str) -> dict[str, Walk]:
    import holdfast

    with holdfast.open(f"{folder}/library.db", work=False) as memory:
        for number in range(50):
            memory.add(f"Note {number}: the train to town {number % 17} leaves at {number % 24}.", subject="ana")
        return {
            "add": walker.walk(lambda n: memory.add(f"I met {n} friends in town {n} for tea.", subject="ana")),
            "search": walker.walk(lambda n: memory.search(f"Who was in town {n}?", subject="ana")),
        }


def walk_control_plane(walker: Walker, folder: str) -> dict[str, Walk]:
    import holdfast

    with holdfast.ControlPlane.open(f"{folder}/control.db", space="acme") as plane:
        for number in range(20):
            plane.upsert(f"Note {number}: release {number} went out on day {number % 7}.", agent="builder")
        return {"plane.query": walker.walk(lambda n: plane.query(f"When was release {n}?", agent="builder"))}


async def walk_service(walker: Walker, folder: str) -> dict[str, Walk]:
    from holdfast.app import open_engine
    from holdfast.gateway import app as gateway_app
    from holdfast.gateway.config import GatewayConfig
    from holdfast.settings import Settings

    metrics = vars(gateway_app)["Metrics"]()  # earlier checkouts have it in another module
    config = GatewayConfig(operator_token=TOKEN)
    engine = await open_engine(f"{folder}/service.db", Settings(), watcher=metrics.memory, routed=True, work=False)
    try:
        app = gateway_app.create_app(_traced_service()(engine), engine, config, metrics)

        async def post(path: str, key: str, body: object) -> Any:
            status, answer = await _post(app, path, key, json.dumps(body).encode())
            assert status < 300, answer
            return json.loads(answer)

        key = (await post("/users", TOKEN, {"user_id": "ana"}))["user_key"]
        for number in range(20):
            said = f"Note {number}: the train to town {number % 17} leaves at {number % 24}."
            message = {"sender_id": "ana", "role": "user", "timestamp": 1_780_000_000_000 + number, "content": said}
            await post("/memories/add", key, {"session_id": "chat:1", "messages": [message]})

        def search(number: int) -> Awaitable[object]:
            asked = {"query": f"Which train goes to town {number}?", "scope": ["all_user_memory"]}
            return post("/memories/search", key, asked)

        # A key of its own, with limits of its own.
        other = (await post("/users", TOKEN, {"user_id": "ben"}))["user_key"]

        def add(number: int) -> Awaitable[object]:
            message = {
                "sender_id": "ben",
                "role": "user",
                "timestamp": 1_780_000_100_000 + number,
                "content": f"Note {number}.",
            }
            return post("/memories/add", other, {"session_id": "chat:2", "messages": [message]})

        return {
            "POST /memories/search": await walker.walk_async(search),
            "POST /memories/add": await walker.walk_async(add),
        }
    finally:
        await engine.close()


def _traced_service() -> Any:
    """The wrapper that `holdfast serve` puts around its engine; earlier checkouts have it in another module."""
    try:
        from holdfast.gateway.edge.observers import TracedService
    except ImportError:
        from holdfast.gateway.edge.spans import TracedService  # type: ignore[import-not-found, no-redef]
    return TracedService


async def _post(app: Any, path: str, key: str, body: bytes) -> tuple[int, bytes]:
    headers = {"host": "127.0.0.1:8010", "content-type": "application/json", "content-length": str(len(body))}
    headers["authorization"] = f"Bearer {key}"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8010),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


def measure() -> dict[str, dict[str, Any]]:
    """Walk in this process, through the `holdfast` that it imports."""
    import holdfast

    recorder = Recorder(Path(holdfast.__file__).parent)
    # Before any store is opened: its threads take the profile function over when they start.
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    walker = Walker(recorder)
    try:
        with tempfile.TemporaryDirectory() as folder:
            walks = {
                **walk_library(walker, folder),
                **asyncio.run(walk_service(walker, folder)),
                **walk_control_plane(walker, folder),
            }
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {name: walk.figures() for name, walk in walks.items()}


def measure_checkout(checkout: Path) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--json"]
    with tempfile.TemporaryDirectory() as folder:
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    found: dict[str, dict[str, Any]] = json.loads(answer.stdout)
    return found


def _row(figures: dict[str, Any], *, stores: bool = True) -> tuple[int, int, int]:
    calls = {file: count for file, count in figures["calls"].items() if stores or not file.startswith("stores/")}
    of_stores = "holdfast.stores."
    objects = {at: count for at, count in figures["objects"].items() if stores or not at.startswith(of_stores)}
    return len(calls), sum(calls.values()), sum(objects.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="a checkout of the earlier code")
    parser.add_argument("--new", type=Path, default=Path(), help="a checkout of the later code (default: this one)")
    parser.add_argument("--files", action="store_true", help="also list the files of each walk of the later code")
    parser.add_argument("--json", action="store_true", help="print the figures of the installed code as JSON")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure()))
        return
    sides = {"old": options.old, "new": options.new}
    found = {side: measure_checkout(checkout.resolve()) for side, checkout in sides.items() if checkout is not None}
    print("| walk | files | calls | objects |\n| --- | --- | --- | --- |")
    for name in found["new"]:
        for label, stores in ((name, True), (f"{name}, without stores", False)):
            rows = [_row(found[side][name], stores=stores) for side in found]
            print(f"| {label} | {' | '.join(' → '.join(map(str, each)) for each in zip(*rows, strict=True))} |")
    if options.files:
        for name, figures in found["new"].items():
            print(f"\n{name}:")
            for file, count in sorted(figures["calls"].items()):
                print(f"  {count:5} {file}")


if __name__ == "__main__":
    main()
