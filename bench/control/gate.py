"""Cost of the control plane: a `Query` served by the provider `local`, beside a direct `Search` of the engine.

    python -m bench.control.gate [--sizes 100 5000 50000] [--rounds 400] [--postgres URL]

Both are calls of one engine, made in turn with the same questions over the same partition, and both write their
operation row. The difference is the resolution of the binding, the grant beneath the gate, the provider and the wider
row. The target is a ratio of medians of at most 1.3.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from holdfast.app import Engine, open_engine
from holdfast.control.memory import Query
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.scope import Scope
from holdfast.domain.search import SearchOptions
from holdfast.domain.transcript import Draft
from holdfast.runtime.add import Add
from holdfast.runtime.search import Search
from holdfast.settings import Settings

TARGET = 1.3
TOP_K = 5
BATCH = 500
AGENT = Actor(ActorKind.AGENT, "bot", "acme")
SCOPE = Scope(space="acme", agent="bot")
_SUBJECTS = "The deploy|The invoice|Her flight|The server|Our contract|The printer|A customer|The backup".split("|")
_VERBS = "was moved to|failed because of|depends on|was paid by|is waiting for|was replaced with".split("|")
_OBJECTS = "Lisbon|the vault|a broken cable|the new firewall|last month's budget|node seven|a tall ladder".split("|")


def sentence(chance: random.Random) -> str:
    words = (chance.choice(_SUBJECTS), chance.choice(_VERBS), chance.choice(_OBJECTS))
    return f"{' '.join(words)} on day {chance.randrange(10_000)}."


async def fill(engine: Engine, size: int) -> None:
    chance = random.Random(size)
    scope = Scope(space="acme", agent="bot", conversation="notes")
    for start in range(0, size, BATCH):
        drafts = tuple(Draft(sentence(chance)) for _ in range(min(BATCH, size - start)))
        await engine.perform(AGENT, Add.action, lambda drafts=drafts: Add(scope, drafts), space="acme")  # type: ignore[misc]


async def measured(engine: Engine, rounds: int) -> dict[str, float]:
    chance = random.Random(1)

    async def direct(query: str) -> object:
        make = lambda: Search(SCOPE, query, SearchOptions(top_k=TOP_K))  # noqa: E731
        return await engine.perform(AGENT, Search.action, make, space="acme")

    async def controlled(query: str) -> object:
        return await engine.perform(AGENT, Query.action, lambda: Query(SCOPE, query, TOP_K), space="acme")

    ways = {"direct": direct, "controlled": controlled}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 20):
        query = sentence(chance)
        names = list(ways) if turn % 2 else list(ways)[::-1]
        for name in names:
            started = time.perf_counter()
            await ways[name](query)
            if turn >= 20:
                times[name].append(time.perf_counter() - started)
    found = {f"{name}_us": round(median(each) * 1e6, 1) for name, each in times.items()}
    pairs = [after / before for before, after in zip(times["direct"], times["controlled"], strict=True)]
    ratio = median(times["controlled"]) / median(times["direct"])
    return {**found, "ratio": round(ratio, 3), "ratio_of_pairs": round(median(pairs), 3)}


async def run(size: int, rounds: int, url: str | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        engine = await open_engine(url or str(Path(folder) / "memory.db"), Settings(), work=False)
        try:
            await fill(engine, size)
            return await measured(engine, rounds)
        finally:
            await engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 5_000, 50_000])
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--postgres", help="an empty store on a server, instead of files; one size only")
    given = parser.parse_args()
    kept = True
    for size in given.sizes:
        found = asyncio.run(run(size, given.rounds, given.postgres))
        kept = kept and found["ratio"] <= TARGET
        print(json.dumps({"records": size, "target": TARGET, **found}), flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
