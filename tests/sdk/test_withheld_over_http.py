"""Random transitions of random turns: no answer of `/memory/*` contains withheld content, for each kind of key."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from lives import CANARY, OWNERS, QUERY, THREADS, Life, check, everything, living

from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.transcript_turns import View
from holdfast.transports.envelope import AdapterEnvelope, EnvelopeSource
from over_http import calling, post

LIVES = int(os.environ.get("HOLDFAST_LIVES", "1"))
STEPS = 16
WARDEN = Actor(ActorKind.OPERATOR, "warden", "default")


@pytest.mark.parametrize("seed", range(LIVES))
def test_what_is_withheld_is_told_by_nothing_over_http(location: str, seed: int) -> None:
    async def whole() -> None:
        async with living(location, seed) as life:
            for _ in range(STEPS):
                await life.step()
            shown: set[str] = set()
            for owner in OWNERS:
                shown |= await look(life, owner, WARDEN)
            shown |= await look(life, OWNERS[-1], Actor(ActorKind.AGENT, "ana"))
            assert shown, "the property says nothing about answers that hold nothing"

    asyncio.run(whole())


async def look(life: Life, owner: MemoryIdentity, actor: Actor) -> set[str]:
    """Check all answers, and return the canaries that they show."""
    shut = life.withheld("masked", "raw_deleted") | life.withheld(of=owner)
    closed = shut | life.withheld("archived", "masked", "raw_deleted", private=True)
    inner = shut | life.withheld("masked", "raw_deleted", private=True)
    source = EnvelopeSource(owner_id=owner.subject_id, agent_id=owner.agent_id)
    shown: set[str] = set()
    async with calling(life.engine, actor) as http:
        for where in THREADS:
            elsewhere = {each for turn in life.turns if turn.where != where for each in turn.withheld(turn.state)}

            scope = {"channel": where.channel, "conversation_id": where.conversation_id}

            async def told(operation: str, key: str | None = None, *, named: Any = scope, **payload: Any) -> str:
                sent = payload if operation in ("replay", "export") else {**payload, "scope": named}
                answer = await post(http, AdapterEnvelope(operation, sent, source=source, idempotency_key=key))
                shown.update(CANARY.findall(str(answer)))
                return str(answer)

            check(closed | elsewhere, "recall", await told("recall", query=QUERY, limit=200))
            check(closed | elsewhere, "project", await told("project", user_query=QUERY, system_max_len=16_000))
            check(closed | elsewhere, "inspect", await told("inspect", query=QUERY))
            chat = {"chat_id": where.conversation_id, "limit": 64, "channel": where.channel}
            check(everything(life.turns), "a ledger", await told("replay", **chat), await told("repair_transcript"))
            for view, hidden in (
                (View.RAW_OWNER_ONLY, everything(life.turns)), (View.MODEL_CONTEXT, closed), (View.HOST_UI, inner),
                (View.OPERATOR_AUDIT, inner), (View.EXPORT, inner),
            ):  # fmt: skip
                page = await told("replay_transcript", view=view, limit=64)
                check(hidden | elsewhere, view, page, await told("export_transcript", view=view, limit=64))
            for mode in ("bootstrap", "full_restore"):
                check(inner, "a snapshot", await told("export", chat_id=where.conversation_id, mode=mode))
            asked = await told("export", chat_id=where.conversation_id, include_private=True)
            check(everything(life.turns), "a private snapshot", asked)
            reviewed = await told("request_transcript_lifecycle", f"{actor}{where}", transition="review", reason="look")
            check(inner, "a review", reviewed)

    return shown
