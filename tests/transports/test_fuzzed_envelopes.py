"""Envelopes that are broken at random: each gets one of the four responses, soon, and none is a failure of ours.

Seeded, so that a failure can be repeated.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from copy import deepcopy
from dataclasses import replace
from typing import Any

from holdfast.domain.runtime_skills import NAME_PREFIX
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.testing.transport_contract import CONVERSATION, REFUSED
from holdfast.transports.adapter import AdapterCaller, TransportAdapter
from holdfast.transports.decoder import EnvelopeError, operations, read_envelope
from holdfast.transports.envelope import (
    AdapterResponse,
    EnvelopeAuth,
    ErrorKey,
    RejectedResponse,
    TransportKind,
    TransportMode,
)
from processor_time import within_limit

ENVELOPES = int(os.environ.get("HOLDFAST_ENVELOPES", "2000"))
LOCAL = EnvelopeAuth(True, "local", "operator:local")
# Waiting for the jobs of others, and reading the whole store, would take most of the time.
SEEDS = [each for each in (*CONVERSATION, *REFUSED) if each.operation not in ("recover", "capabilities", "inspect")]
HOSTILE: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 10**40, 1e308, 0.5, "", " ", "\x00", "\u202e", "é" * 300, "x" * 5_000, "../..",
    "2026-13-45T00:00:00Z", [], [[]], {}, {"": {}}, [None] * 50, {"kind": "holdfast_continuity"}, NAME_PREFIX, "’; --",
)  # fmt: skip


def broken(chance: random.Random) -> bytes:
    """Return an envelope as JSON with parts replaced, removed, added or renamed, or with cut or flipped bytes."""
    document: dict[str, Any] = json.loads(json.dumps(_plain(chance.choice(SEEDS))))
    document["idempotency_key"] = chance.choice(["key", f"key-{chance.random()}", None, "k" * 300])
    for _ in range(chance.randrange(4)):
        _break(document, chance)
    body = json.dumps(document).encode()
    match chance.randrange(20):
        case 0:
            return body[: chance.randrange(len(body))]
        case 1:
            place = chance.randrange(len(body))
            return body[:place] + bytes([chance.randrange(256)]) + body[place + 1 :]
        case 2:
            return body.replace(b'"', b'"\\ud800', 1)
        case 3:
            return b"[" * chance.randrange(1, 2_000) + body
    return body


def _plain(envelope: Any) -> dict[str, Any]:
    return {
        "operation": envelope.operation,
        "payload": envelope.payload,
        "request_id": envelope.request_id,
        "source": {"source_id": "fuzz", "chat_id": "chat-1"},
    }


def _break(document: Any, chance: random.Random) -> None:
    """Break one place, anywhere in the document."""
    place = document
    while isinstance(place, dict) and place:
        name = chance.choice(list(place))
        if isinstance(place[name], dict) and place[name] and chance.random() < 0.8:
            place = place[name]
            continue
        match chance.randrange(5):
            case 0:
                del place[name]
            case 1:
                place[f"{name}s"] = place.pop(name)
            case 2:
                added = chance.choice(["operation", "scope", "limit", "extra", "source_chat_id"])
                place[added] = deepcopy(chance.choice(HOSTILE))
            case _:
                place[name] = deepcopy(chance.choice([*HOSTILE, *operations()]))
        return


def test_a_broken_envelope_gets_a_response_and_never_fails() -> None:
    async def run() -> dict[str, int]:
        counts: dict[str, int] = {}
        builder = AsyncMemoryRuntime.builder().store(":memory:").embedder("fake").without_worker()
        async with builder.identity(subject_id="ana").open() as runtime:
            adapter, caller = TransportAdapter(runtime.governance), AdapterCaller.of(runtime)
            for number in range(ENVELOPES):
                body = broken(random.Random(number))

                async def handle(body: bytes = body, number: int = number) -> None:
                    try:
                        envelope = read_envelope(body, TransportKind.SDK, TransportMode.IN_PROCESS, LOCAL)
                    except EnvelopeError as error:
                        outcome = error.key.value
                    else:
                        outcome = await respond(adapter, caller, envelope, number)
                    counts[outcome] = counts.get(outcome, 0) + 1

                assert await within_limit(handle), number
        return counts

    async def respond(adapter: TransportAdapter, caller: AdapterCaller, envelope: Any, number: int) -> str:
        response = await adapter.handle(caller, replace(envelope, request_id=None))
        assert isinstance(response, AdapterResponse)
        json.dumps(response.to_dict())
        if isinstance(response, RejectedResponse):
            failed = (ErrorKey.RUNTIME_FAILED, ErrorKey.RUNTIME_UNAVAILABLE)
            assert response.error_key not in failed, (number, response)
            assert response.reason
        return str(response.status)

    counts = asyncio.run(run())
    assert set(counts) == {"accepted", "rejected", "duplicated", ErrorKey.INVALID_JSON}, counts
