"""Processes that are cheap to start and to kill.

A `Zygote` is a process that has imported everything and has no threads; it forks one child per order. A child calls a
function of a module that it imports by name, with `tell` as first argument: each call of it writes a line to the parent
at once, so everything told before a kill is known after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import holdfast

Tell = Callable[..., None]
Line = dict[str, Any]
PATIENCE_SECONDS = 120.0
_LARGEST_ORDER = 1 << 16


class Child:
    """A process that runs one order and reports lines."""

    def __init__(self, read_fd: int) -> None:
        self._fd = read_fd
        self._buffer = b""
        self._open = True
        self.status: int | None = None
        self.pid = int(self._line()["pid"])

    def lines(self) -> Iterator[Line]:
        """The lines it reports, until it has ended."""
        while self.status is None:
            line = self._line()
            if "ended" in line:
                self.status = int(line["ended"])
                self._close()
            else:
                yield line

    def wait(self) -> list[Line]:
        """Its remaining lines."""
        return list(self.lines())

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    @property
    def killed(self) -> bool:
        assert self.status is not None, "it is still running"
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    @property
    def succeeded(self) -> bool:
        return self.status == 0

    def _line(self) -> Line:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the process does not get on"
            chunk = os.read(self._fd, 1 << 16)
            assert chunk, "the zygote died"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: Line = json.loads(line)
        return found

    def _close(self) -> None:
        if self._open:
            os.close(self._fd)
            self._open = False


class Zygote:
    """The parent's end of the zygote."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        here = Path(__file__).parents[1]
        paths = os.pathsep.join([str(here), str(here / "reliability"), *(path for path in sys.path if path)])
        # A library that starts threads when it is loaded cannot be forked.
        quiet = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **quiet, **(environment or {})},
        )
        theirs.close()
        self._children: list[Child] = []

    @classmethod
    @contextlib.contextmanager
    def opened(cls, environment: Mapping[str, str] | None = None) -> Iterator[Zygote]:
        zygote = cls(environment)
        try:
            yield zygote
        finally:
            zygote.close()

    def start(self, call: str, **arguments: Any) -> Child:
        """Call `module:function` with these arguments, which must be JSON, in a new process."""
        reading, writing = os.pipe()
        order = json.dumps({"call": call, "arguments": arguments}).encode()
        assert len(order) < _LARGEST_ORDER
        socket.send_fds(self._socket, [order], [writing])
        os.close(writing)
        child = Child(reading)
        self._children = [each for each in self._children if each.status is None] + [child]
        return child

    def run(self, call: str, **arguments: Any) -> list[Line]:
        """Call it, wait until it succeeds, and return the lines it reported."""
        child = self.start(call, **arguments)
        told = child.wait()
        assert child.succeeded, f"{call} ended with {child.status}: see its traceback above"
        return told

    def close(self) -> None:
        for child in self._children:
            if child.status is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                child._close()
        self._socket.close()
        self._process.kill()
        self._process.wait()


# --- in the zygote ----------------------------------------------------------------------------------------------------


def _serve(orders: socket.socket) -> None:
    _warm_up()
    waiting: dict[int, tuple[int, int]] = {}  # from a child's handle to its pid and the descriptor of its lines
    with selectors.DefaultSelector() as selector:
        selector.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == orders.fileno():
                    order, fds, _, _ = socket.recv_fds(orders, _LARGEST_ORDER, 1)
                    if not order:
                        return
                    pid = _forked(json.loads(order), fds[0])
                    handle = os.pidfd_open(pid)
                    waiting[handle] = (pid, fds[0])
                    selector.register(handle, selectors.EVENT_READ)
                else:
                    selector.unregister(key.fd)
                    pid, fd = waiting.pop(key.fd)
                    _, status = os.waitpid(pid, 0)
                    # Sent after its death, so it follows everything the child told.
                    with contextlib.suppress(BrokenPipeError):
                        _tell(fd, ended=status)
                    os.close(fd)
                    os.close(key.fd)


def _warm_up() -> None:
    """Import, compile and cache everything that first use would, before the first fork. Leaves no thread."""

    for apart in (
        "holdfast.stores.postgres",
        "holdfast.control.delivery_worker",
        "holdfast.runtime.transcripts.maintenance_job",
    ):
        importlib.import_module(apart)

    async def whole() -> None:
        async with holdfast.open_async(":memory:", embedder="fake", work=False) as memory:
            await memory.add("I live in Lisbon.", subject="ana")
            await memory.flush(subject="ana")
            await memory.drain()
            await memory.search("Where does Ana live?", subject="ana")
            await memory.forget(subject="ana")

    asyncio.run(whole())
    assert threading.active_count() == 1


@cache
def _imported(name: str) -> ModuleType:
    """Import a module and run its `before_forks`, once, before any of its children is forked."""
    module = importlib.import_module(name)
    getattr(module, "before_forks", lambda: None)()
    return module


def _forked(order: dict[str, Any], fd: int) -> int:
    module, _, function = order["call"].partition(":")
    found = getattr(_imported(module), function)
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _tell(fd, pid=os.getpid())
        found(lambda **line: _tell(fd, **line), **order["arguments"])
        code = 0
    except BaseException:  # noqa: BLE001 - printed to the output
        traceback.print_exc()
    finally:
        os._exit(code)


def _tell(fd: int, **line: Any) -> None:
    # One write of less than PIPE_BUF bytes is atomic, also between threads.
    os.write(fd, (json.dumps(line) + "\n").encode())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
