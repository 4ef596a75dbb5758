"""`python -m bench.protocol.choices`: how often a small model picks the right tool, for each list of tools.

A list is what a server answers to `tools/list`. The model sees the names and descriptions, and answers with one of the
names: its output is limited to them. It is a weak model (SmolLM2, 135 million parameters), so this compares lists, and
says nothing about what better models do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from bench.protocol.requests import REQUESTS, RIGHT

_DESCRIPTION_CHARS = 300
_SHOTS = (("What time is it in Rome?", "clock"), ("Add 2 and 3.", "calculator"))
_OTHERS = {"clock": "Tell the time in a city.", "calculator": "Calculate with numbers."}
Tools = dict[str, str]


async def list_tools(command: Sequence[str]) -> Tools:
    """Return the descriptions of a server's tools, by name."""
    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    async with Client(stdio_client(server), mode="legacy") as client:
        return {tool.name: " ".join((tool.description or "").split()) for tool in (await client.list_tools()).tools}


def choose(http: httpx2.Client, tools: Tools, request: str) -> str:
    """Return the name that the model answers with."""
    shown = "\n".join(f"- {name}: {text[:_DESCRIPTION_CHARS]}" for name, text in {**_OTHERS, **tools}.items())
    system = f"You answer with the name of the one function that serves the request.\nFunctions:\n{shown}"
    shots = [
        {"role": role, "content": text}
        for asked, answered in _SHOTS
        for role, text in (("user", asked), ("assistant", answered))
    ]
    body = {
        "messages": [{"role": "system", "content": system}, *shots, {"role": "user", "content": request}],
        "grammar": "root ::= " + " | ".join(json.dumps(name) for name in tools),
        "max_tokens": 20,
        "temperature": 0.0,
        "cache_prompt": True,
    }
    answer = http.post("/chat/completions", json=body).raise_for_status().json()
    return str(answer["choices"][0]["message"]["content"]).strip()


def measure(http: httpx2.Client, tools: Tools, right: dict[str, frozenset[str]], orders: int) -> dict[str, float]:
    """Return the share of right choices by need. The order of the tools changes: a weak model prefers some places."""
    found: Counter[str] = Counter()
    for order in range(orders):
        names = list(tools)
        random.Random(order).shuffle(names)
        for need, requests in REQUESTS.items():
            shuffled = {name: tools[name] for name in names}
            found[need] += sum(choose(http, shuffled, request) in right[need] for request in requests)
    return {need: found[need] / (len(requests) * orders) for need, requests in REQUESTS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.protocol.choices", description=__doc__)
    parser.add_argument("--model-url", required=True, help="an OpenAI-compatible endpoint of llama.cpp")
    parser.add_argument("--server", action="append", required=True, metavar="NAME=COMMAND")
    parser.add_argument("--orders", type=int, default=3, help="orders in which each list is shown")
    parser.add_argument("--output", type=Path, default=Path("bench/results/protocol-choices.json"))
    options = parser.parse_args()
    results = {}
    with httpx2.Client(base_url=options.model_url, timeout=600) as http:
        for server in options.server:
            name, _, command = server.partition("=")
            tools = asyncio.run(list_tools(command.split()))
            shares = measure(http, tools, dict(RIGHT[name]), options.orders)
            results[name] = {"tools": len(tools), "all": sum(shares.values()) / len(shares), **shares}
            print(name, {key: round(value, 2) for key, value in results[name].items()}, flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
