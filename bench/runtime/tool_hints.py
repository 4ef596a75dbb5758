"""The time of a recall with hints of tools beside that of one without, of the same memory, in the same run.

`python -m bench.runtime.tool_hints [--skills 10000] [--observations 1000000] [--rounds 300]`: one subject with that
many runtime skills, and observations of 100 tools and 100 tasks, reported 64 at a time. A runtime with tool registries
and one that has them switched off take turns, with the same queries. Both are timed from call to answer, embedding
included. The first of each are not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.engine.corpus import Corpus
from bench.runtime.projection import timed
from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.memory import Plane
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.retrieval import MemoryRecallRequest
from holdfast.domain.runtime_api.tools import AgentToolUsageFeedback
from holdfast.domain.runtime_api.writing import MemoryWriteRequest
from holdfast.domain.tool_experience import MAX_OBSERVATIONS, AgentToolObservation
from holdfast.domain.tool_registries import AgentTool, AgentToolRegistry, ToolRegistryRef, registry_fingerprint
from holdfast.library import AsyncMemory
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.sdk.tools import ToolOperations
from holdfast.sdk.writing import WritingOperations
from holdfast.settings import read_settings

SUBJECT, REGISTRY = "ana", "host-tools"
TOOLS, TASKS = 100, 100
# Calls of one feedback are of this many tools and tasks.
GROUPS = 4
_AT_ONCE = 500
_WARM_UP = 20


class Runtime(RetrievalOperations, ToolOperations, WritingOperations):
    """The operations of a runtime that this measures."""


def runtime_of(engine: Engine, *switched_off: str) -> Runtime:
    profile = profile_of(DEFAULT_PROFILE)
    circumstances = Circumstances(switched_off=frozenset(switched_off))
    return Runtime(
        engine,
        LOCAL_OPERATOR,
        Governance(MemoryIdentity(subject_id=SUBJECT), profile, catalogue(profile, circumstances)),
    )


async def fill_skills(memory: AsyncMemory, count: int, corpus: Corpus) -> None:
    for done in range(0, count, _AT_ONCE):
        texts = corpus.texts(min(_AT_ONCE, count - done))
        await asyncio.gather(*(memory.remember(text, subject=SUBJECT, plane=Plane.PROCEDURAL) for text in texts))
        print(f"\r{done + len(texts):,} skills", end="", file=sys.stderr)
    print(file=sys.stderr)


async def fill_experience(runtime: Runtime, count: int, chance: random.Random) -> None:
    tools = tuple(AgentTool(f"tool_{number}", f"schema_{number}", risk_tags=("writes",)) for number in range(TOOLS))
    registry = AgentToolRegistry(REGISTRY, tools)
    await runtime.upsert_agent_tool_registry(registry)
    ref = ToolRegistryRef(REGISTRY, registry_fingerprint(registry))
    for done in range(0, count, MAX_OBSERVATIONS):
        size = min(MAX_OBSERVATIONS, count - done)
        about = [(chance.randrange(TOOLS), chance.randrange(TASKS)) for _ in range(GROUPS)]
        calls = [_call(done + number, *about[number % GROUPS], chance) for number in range(size)]
        feedback = AgentToolUsageFeedback(ref, calls)
        await runtime.write(MemoryWriteRequest.agent_tool_usage_feedback(feedback))
        if done % (100 * MAX_OBSERVATIONS) == 0:
            print(f"\r{done:,} observations", end="", file=sys.stderr)
    print(file=sys.stderr)


def _call(number: int, tool: int, task: int, chance: random.Random) -> AgentToolObservation:
    outcome = "succeeded" if chance.random() < 0.8 else "failed"
    summary = f"Call {number} was done within a minute."
    return AgentToolObservation(
        f"call-{number}", REGISTRY, f"tool_{tool}", f"schema_{tool}", f"task_{task}", outcome, summary
    )


async def measured(engine: Engine, rounds: int, corpus: Corpus) -> dict[str, Any]:
    hinting, plain = runtime_of(engine), runtime_of(engine, "agent_tool_registries")
    times: dict[Runtime, list[float]] = {hinting: [], plain: []}
    hints, chance = 0, random.Random(7)
    for query in corpus.queries(rounds + _WARM_UP):
        request = MemoryRecallRequest(query)
        for runtime in chance.sample((hinting, plain), 2):
            report = await timed(lambda it=runtime, request=request: it.recall(request), times[runtime])  # type: ignore[misc]
            hints += len(report.agent_tool_hints)
    with_hints, without = times[hinting][_WARM_UP:], times[plain][_WARM_UP:]
    return {
        "hints": hints // (rounds + _WARM_UP),
        "without_p50_ms": statistics.median(without),
        "with_p50_ms": statistics.median(with_hints),
        "ratio_p50": statistics.median(with_hints) / statistics.median(without),
    }


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


async def run(skills: int, observations: int, rounds: int, folder: Path) -> dict[str, Any]:
    corpus = Corpus(7)
    engine = await open_engine(str(folder / "memory.db"), read_settings(), work=False)
    try:
        await fill_skills(AsyncMemory(engine), skills, corpus)
        before = _bytes_in(folder)
        start = time.perf_counter()
        await fill_experience(runtime_of(engine), observations, random.Random(7))
        seconds = time.perf_counter() - start
        grown = _bytes_in(folder) - before
        report = (await runtime_of(engine).list_agent_tool_registries()).report.registries[0]
        return {
            "skills": skills,
            "observations": observations,
            "tools_and_tasks": report.governed + report.deferred,
            "experience_mb": grown / 1e6,
            "observations_per_second": observations / seconds,
            "rounds": rounds,
            **await measured(engine, rounds, corpus),
        }
    finally:
        await engine.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--skills", type=int, default=10_000)
    options.add_argument("--observations", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=300)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(given.skills, given.observations, given.rounds, Path(folder)))
    for name, value in found.items():
        print(f"{name:25} {value:,.2f}" if isinstance(value, float) else f"{name:25} {value:,}")


if __name__ == "__main__":
    main()
