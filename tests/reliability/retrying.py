"""Send the same calls repeatedly from processes that die in between. Runs in separate processes."""

from __future__ import annotations

import asyncio
import random

import holdfast
from faults import points
from faults.zygote import Tell
from holdfast.domain.memory import MemoryRecord
from holdfast.errors import RevisionConflict
from holdfast.library import AsyncMemory


def send(tell: Tell, location: str, rounds: list[list[object]], times: int, point: str | None, passage: int) -> None:
    """Send each round's call `times` times concurrently; report the answers, or die at the point if one is given."""

    async def whole() -> None:
        if point is not None:
            points.die_at(point, passage)
        async with holdfast.open_async(location, embedder="fake", work=False) as memory:
            for key, remembers in rounds:
                calls = [_call(memory, str(key), bool(remembers)) for _ in range(times)]
                tell(key=key, ids=sorted(set(await asyncio.gather(*calls))))

    asyncio.run(whole())


async def _call(memory: AsyncMemory, key: str, remembers: bool) -> str:
    if remembers:
        return str((await memory.remember(f"fact {key}", subject="ana", idempotency_key=key)).id)
    added = await memory.add([f"first {key}", f"second {key}"], subject="ana", idempotency_key=key)
    return " ".join(map(str, added.message_ids))


def count_up(tell: Tell, location: str, counter: str, writers: int, seed: int) -> None:
    """Run `writers` tasks that each add one by compare-and-set, retrying until it succeeds."""
    chance = random.Random(seed)

    async def one(memory: AsyncMemory) -> None:
        while True:
            current = await memory.get(counter, subject="ana")
            assert isinstance(current, MemoryRecord)
            await asyncio.sleep(chance.uniform(0, 0.002))
            text = str(int(current.text) + 1)
            try:
                await memory.correct(counter, text, subject="ana", expected_revision=current.revision)
            except RevisionConflict:
                continue
            return

    async def whole() -> None:
        async with holdfast.open_async(location, embedder="fake", work=False) as memory:
            await asyncio.gather(*(one(memory) for _ in range(writers)))
        tell(counted=writers)

    asyncio.run(whole())
