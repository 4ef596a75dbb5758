"""A process that dies during a metered call: `python billing_dying.py <location> <point> <passage>`."""

from __future__ import annotations

import asyncio
import sys

from desk import WHOLE, Desk
from misbehaving import HostileProvider, snippet, soon

from faults.points import die_at
from holdfast.control.memory import Query
from holdfast.domain.contract import BillingType, ContextBundle, Usage

TWO = tuple(Usage("model", billing_type=BillingType.METERED_API, input_tokens=number) for number in (10, 20))


async def die(location: str, point: str, passage: str) -> None:
    hostile = HostileProvider()
    hostile.does["query"] = soon(ContextBundle((snippet(score=0.5),), usage=TWO))
    desk = await Desk.opened(location, hostile)
    try:
        die_at(point, int(passage))
        await desk.do(Query(WHOLE, "cat"))
    finally:
        await desk.close()


if __name__ == "__main__":
    asyncio.run(die(*sys.argv[1:]))
