"""Processes that are killed during maintenance. They find this module by its name."""

from __future__ import annotations

import asyncio
import os
import signal

from writers import CHAT, Host, Proposing, hosting, repeating

from faults.zygote import Tell
from holdfast import failpoints
from holdfast.domain.runtime_api.transcripts import CanonicalTurnDelta, TurnMessage


async def finalized(host: Host) -> None:
    """Commit a turn, and queue its maintenance."""
    report = await host.finalize_turn_and_maintain(
        CanonicalTurnDelta(
            turn_id="t1",
            delivery_status="delivered",
            input_messages=(TurnMessage("I live in Porto."),),
            assistant_message="Lovely.",
            conversation=CHAT,
        )
    )
    assert report.maintenance.job_id is not None


def die_while_maintaining(tell: Tell, location: str, point: str) -> None:
    """Kill the process at the point: the commit of the turn itself, or one of the job that learns from it."""

    def die(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    async def whole() -> None:
        async with hosting(location, curator=Proposing(repeating)) as host:
            if point == "commit.after":
                failpoints.arm(die)
            await finalized(host)
            failpoints.arm(die)
            await host.recover()

    asyncio.run(whole())
