"""`python -m bench.agent`: agent turns and the same three gateway calls alone, in turn; prints a table.

The model is a script that answers at once, so the time measured is our own: the session's commits, the curated files,
the context, and the gateway on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from bench.engine.corpus import Corpus
from bench.gateway.run import filled, free_port
from bench.gateway.service import serving
from holdfast.agent.loader import EngineLoader
from holdfast.agent.loop import AgentLoop
from holdfast.agent.ports import Reply
from holdfast.agent.providers.scripted import ScriptedModel
from holdfast.client.gateway import ChatMessage, GatewayClient

RESULTS = Path(__file__).parents[1] / "results" / "agent.json"
MOMENT = 1_780_000_000_000
SESSIONS = 10


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    found = measured(parser.parse_args().turns)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def measured(turns: int) -> dict[str, float]:
    place = Path(tempfile.mkdtemp(prefix="bench-agent-"))
    try:
        with serving(str(place / "gateway.db"), free_port()) as service:
            config = _configured(place, service.port, filled(service)[0])
            return asyncio.run(_measure(place, config, turns))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _configured(place: Path, port: int, key: str) -> dict[str, Any]:
    gateway = {"baseUrl": f"http://127.0.0.1:{port}", "userId": "user-0", "userKey": key, "scope": ["all_user_memory"]}
    home = place / ".holdfast"
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"memory": {"mode": "hybrid", "gateway": gateway}}))
    return gateway


async def _measure(place: Path, gateway: dict[str, Any], turns: int) -> dict[str, float]:
    prompts, answers = Corpus(5).queries(turns), Corpus(6).texts(turns)
    model = ScriptedModel(Reply(answer) for answer in answers)
    calls, runs = [], []
    async with (
        GatewayClient(gateway["baseUrl"], gateway["userId"], gateway["userKey"]) as client,
        await EngineLoader(place, model=model).load() as loaded,
    ):
        loop = AgentLoop(loaded)
        for number, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
            session = f"bench-{number % SESSIONS}"
            calls.append(await _timed(_three_calls(client, f"calls-{number % SESSIONS}", prompt, answer)))
            runs.append(await _timed(loop.run(prompt, session)))
    warm = turns // 10
    return {
        "turns": turns,
        "calls_p50_ms": statistics.median(calls[warm:]) * 1_000,
        "turn_p50_ms": statistics.median(runs[warm:]) * 1_000,
    }


async def _three_calls(client: GatewayClient, session: str, prompt: str, answer: str) -> None:
    await client.search(session, prompt, scope=["all_user_memory"])
    said = [ChatMessage("user-0", "user", MOMENT, prompt), ChatMessage("holdfast", "assistant", MOMENT + 1, answer)]
    await client.add(session, said)
    await client.flush(session)


async def _timed(work: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def table(found: dict[str, float]) -> str:
    calls, turn = found["calls_p50_ms"], found["turn_p50_ms"]
    return "\n".join(
        [
            "| what | measured | asked |",
            "| --- | --- | --- |",
            f"| search, add and flush at the gateway, p50 ms | {calls:.1f} | |",
            f"| a turn of the agent, the model's time excluded, p50 ms | {turn:.1f} | at most {1.5 * calls + 10:.1f} |",
        ]
    )


if __name__ == "__main__":
    main()
