"""Random transitions of random turns: no answer of `/memory/*` or of a runtime's tools contains withheld content."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from lives import CANARY, OWNERS, QUERY, THREADS, Life, check, everything, living

from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.transcript_turns import View
from holdfast.gateway.app import make_adapter
from holdfast.gateway.runtime_routes import ROUTES
from holdfast.mcp.session import ToolCaller
from holdfast.testing.transport_contract import Answer
from holdfast.transports.envelope import AdapterEnvelope, EnvelopeSource
from over_http import CONFIG, calling, post
from over_tools import NAMES, Send, calling_tools

LIVES = int(os.environ.get("HOLDFAST_LIVES", "1"))
STEPS = 16
WARDEN = Actor(ActorKind.OPERATOR, "warden", "default")


@asynccontextmanager
async def over_http(life: Life, owner: MemoryIdentity, actor: Actor) -> AsyncIterator[Send]:
    async with calling(life.engine, actor) as http:

        async def send(envelope: AdapterEnvelope) -> Answer:
            return await post(http, envelope)

        yield send


@asynccontextmanager
async def over_tools(life: Life, owner: MemoryIdentity, actor: Actor) -> AsyncIterator[Send]:
    fixed = {"subject_id": owner.subject_id, "agent_id": owner.agent_id}
    whose = {name: value for name, value in fixed.items() if value is not None}
    async with calling_tools(ToolCaller(life.engine, actor, "default", make_adapter(CONFIG), whose)) as send:
        yield send


# The way to a runtime, and the operations that it has.
WAYS: dict[str, tuple[Any, frozenset[str]]] = {
    "HTTP": (over_http, frozenset(ROUTES)),
    "tools": (over_tools, frozenset(NAMES)),
}


@pytest.mark.parametrize("seed", range(LIVES))
@pytest.mark.parametrize("way", WAYS)
def test_what_is_withheld_is_told_by_nothing_over_a_transport(location: str, seed: int, way: str) -> None:
    async def whole() -> None:
        async with living(location, seed) as life:
            for _ in range(STEPS):
                await life.step()
            shown: set[str] = set()
            for owner in OWNERS:
                shown |= await look(life, owner, WARDEN, way)
            shown |= await look(life, OWNERS[-1], Actor(ActorKind.AGENT, "ana"), way)
            assert shown, "the property says nothing about answers that hold nothing"

    asyncio.run(whole())


async def look(life: Life, owner: MemoryIdentity, actor: Actor, way: str) -> set[str]:
    """Check all answers, and return the canaries that they show."""
    shut = life.withheld("masked", "raw_deleted") | life.withheld(of=owner)
    closed = shut | life.withheld("archived", "masked", "raw_deleted", private=True)
    inner = shut | life.withheld("masked", "raw_deleted", private=True)
    source = EnvelopeSource(owner_id=owner.subject_id, agent_id=owner.agent_id)
    shown: set[str] = set()
    calling_over, operations = WAYS[way]
    async with calling_over(life, owner, actor) as send:
        for where in THREADS:
            elsewhere = {each for turn in life.turns if turn.where != where for each in turn.withheld(turn.state)}

            scope = {"channel": where.channel, "conversation_id": where.conversation_id}

            async def told(operation: str, key: str | None = None, *, named: Any = scope, **payload: Any) -> str:
                if operation not in operations:
                    return ""
                sent = payload if operation in ("replay", "export") else {**payload, "scope": named}
                answer = await send(AdapterEnvelope(operation, sent, source=source, idempotency_key=key))
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
