"""Serving over stdin and stdout, to the one client that started this process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from typing import BinaryIO, TextIO, cast

import anyio
from mcp.server.stdio import stdio_server

from holdfast.mcp.server import create_server
from holdfast.mcp.session import ToolCaller
from holdfast.mcp.tool_choices import ToolChoice

MAX_LINE_BYTES = 4 * 1024 * 1024
# Not JSON: the protocol answers a line that is too long as it answers any line that it cannot read.
_TOO_LONG = "a line that is too long\n"


async def serve_stdio(
    caller: ToolCaller, choice: ToolChoice, stdin: BinaryIO | None = None, stdout: TextIO | None = None
) -> None:
    """Serve one caller until stdin ends. Other streams may take the place of stdin and stdout."""
    server = create_server(choice, lambda _: caller)
    lines = cast("anyio.AsyncFile[str]", InputLines(_own_stdin() if stdin is None else stdin))
    answers = None if stdout is None else anyio.wrap_file(stdout)
    async with stdio_server(stdin=lines, stdout=answers) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _own_stdin() -> BinaryIO:
    """Return a reader of stdin that Python does not close at its end, while the thread still waits for a line."""
    return os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)


class InputLines:
    """The lines of a stream, read by a daemon thread: a process that is told to stop does not wait for the next one.

    Lines are bounded, and at most one waits: a client that sends faster than it is answered waits too.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[str | None] = asyncio.Queue(1)

        def read() -> None:
            line: str | None = ""
            while line is not None:
                line = self._read_line()
                try:
                    asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
                except (RuntimeError, CancelledError):  # the loop has ended
                    return

        threading.Thread(target=read, name="stdin", daemon=True).start()
        while (line := await lines.get()) is not None:
            yield line

    def _read_line(self) -> str | None:
        try:
            line = self._stream.readline(MAX_LINE_BYTES + 1)
            if len(line) <= MAX_LINE_BYTES or line.endswith(b"\n"):
                return line.decode("utf-8", "replace") if line else None
            while line and not line.endswith(b"\n"):
                line = self._stream.readline(MAX_LINE_BYTES)
        except (OSError, ValueError):  # closed
            return None
        return _TOO_LONG
