"""`python -m bench.protocol`: the cost of `recall` over MCP, less an echo over the same SDK and transport.

Servers are processes of their own, as in use. All calls are made in turns in one run, so that the machine's other work
weighs on all alike. The figures are ratios to the same `recall` in process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import holdfast

_TOKEN = "operator-token-of-the-measurement"
_QUERY = "Where does Ana live?"
Call = Callable[[], Awaitable[Any]]


@contextmanager
def started(*command: str) -> Iterator[str]:
    """Start a server, and yield the address that it prints."""
    environment = {**os.environ, "HOLDFAST_OPERATOR_TOKEN": _TOKEN, "HOLDFAST_RATE_PER_MINUTE": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdout is not None
    try:
        yield str(json.loads(process.stdout.readline())["url"])
    finally:
        process.terminate()
        process.wait()


async def measure(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Return the median time of each call in milliseconds; all are called in each round."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 5):
        for name, call in calls.items():
            began = time.perf_counter()
            await call()
            if number >= 5:
                times[name].append(1_000 * (time.perf_counter() - began))
    return {name: statistics.median(each) for name, each in times.items()}


async def run(messages: int, rounds: int) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        store = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "memory.db")
        memory = await stack.enter_async_context(holdfast.open_async(store))
        texts = [f"Note {number}: the parcel went to shelf {number % 97}." for number in range(messages)]
        for start in range(0, messages, 500):
            await memory.add(texts[start : start + 500])
        await memory.add(["Ana moved to Lisbon last week."])
        ours = stack.enter_context(
            started("holdfast", "serve", "--store", store, "--port", "0", "--json", "--no-worker")
        )
        theirs = stack.enter_context(started("bench.protocol.echo", "http"))
        http = await stack.enter_async_context(httpx2.AsyncClient(headers={"Authorization": f"Bearer {_TOKEN}"}))
        lines = (["-m", "holdfast", "mcp", "--store", store], ["-m", "bench.protocol.echo"])
        over_http, echo_http, over_stdio, echo_stdio = [
            await stack.enter_async_context(Client(transport))
            for transport in (
                *(streamable_http_client(f"{url}/mcp", http_client=http) for url in (ours, theirs)),
                *(stdio_client(StdioServerParameters(command=sys.executable, args=args)) for args in lines),
            )
        ]
        query = {"query": _QUERY}
        return await measure(
            {
                "in process": lambda: memory.recall(_QUERY),
                "over http": lambda: over_http.call_tool("recall", query),
                "over http, echo": lambda: echo_http.call_tool("echo", query),
                "over stdio": lambda: over_stdio.call_tool("recall", query),
                "over stdio, echo": lambda: echo_stdio.call_tool("echo", query),
            },
            rounds,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.protocol", description=__doc__)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    found = asyncio.run(run(options.messages, options.rounds))
    for name, milliseconds in found.items():
        print(f"{name:18} {milliseconds:7.2f} ms")
    for way in ("over http", "over stdio"):
        print(f"{way}, less an echo: {(found[way] - found[f'{way}, echo']) / found['in process']:.2f} of in process")


if __name__ == "__main__":
    main()
