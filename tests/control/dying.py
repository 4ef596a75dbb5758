"""A process that dies in an external call: `python dying.py <location> <point> <verb> <idempotency key>`."""

from __future__ import annotations

import asyncio
import sys

from desk import NOTE, WHOLE, Desk, text
from misbehaving import HostileProvider

from faults.points import die_at
from holdfast.control.memory import Capture, Query


async def die(location: str, point: str, verb: str, key: str) -> None:
    desk = await Desk.opened(location, HostileProvider())
    try:
        die_at(point)
        if verb == "capture":
            await desk.do(Capture(WHOLE, NOTE, text("The cat sat."), idempotency_key=key))
        else:
            await desk.do(Query(WHOLE, "cat"))
    finally:
        await desk.close()


if __name__ == "__main__":
    asyncio.run(die(*sys.argv[1:]))
