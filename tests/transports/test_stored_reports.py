"""The stored report of a keyed call has no text that could be forgotten; a repeat gets what is still there."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.transports.adapter import AdapterCaller, TransportAdapter
from holdfast.transports.envelope import AdapterEnvelope, EnvelopeAuth, EnvelopeSource

WORD = "zanzibar"
SKILL = {
    "content": f"1. Open the page of {WORD} in the browser.\n2. Press the button of {WORD}, and wait for the light.",
    "title": f"Visit {WORD}",
    "topic": WORD,
    "summary": f"About {WORD}.",
}
REF = {
    "host_kind": "crm", "business_ref_type": "ticket", "business_ref_id": f"T-{WORD}", "relation": "origin",
    "visibility": "host_ui", "label": f"Complaint of {WORD}",
}  # fmt: skip
TURN = {"turn_id": "turn-1", "messages": [{"text": f"I was in {WORD}."}]}
NAME = f"runtime_skill__visit_{WORD}"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("commit_transcript", {"turn": TURN, "host_refs": [REF]}),
    ("write", SKILL),
    ("edit_runtime_skill", {"name": NAME, "topic": f"{WORD} by boat"}),
    ("set_runtime_skill_enabled", {"name": NAME, "enabled": False}),
    ("request_transcript_lifecycle", {"transition": "review", "reason": f"asked for by {WORD}"}),
    ("request_transcript_lifecycle", {"transition": "delete_raw", "reason": "asked for"}),
]


def test_no_text_is_stored_and_a_repeat_has_what_is_still_there(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"

    async def run() -> None:
        builder = AsyncMemoryRuntime.builder().store(place).embedder("fake").without_worker()
        async with builder.identity(subject_id="ana").open() as runtime:
            adapter, caller = TransportAdapter(runtime.governance), AdapterCaller.of(runtime)

            async def send(number: int) -> dict[str, Any]:
                operation, payload = CALLS[number]
                source, auth = EnvelopeSource("test", chat_id="chat"), EnvelopeAuth(True, "local")
                key = f"key-{number}"
                envelope = AdapterEnvelope(operation, payload, source=source, auth=auth, idempotency_key=key)
                return (await adapter.handle(caller, envelope)).to_dict()

            first = [await send(number) for number in range(len(CALLS))]
            again = [await send(number) for number in range(len(CALLS))]
            assert {answer["status"] for answer in first} == {"accepted"}, first
            assert {answer["status"] for answer in again} == {"duplicated"}
            # Host references are not stored; all else is as it was.
            unstored = {"affected_host_refs": [], "host_ref_redactions": []}
            for one, other in zip(first, again, strict=True):
                lost = unstored if "affected_host_refs" in one["report"] else {}
                assert other["report"] == {**one["report"], **lost}
            await runtime.delete_runtime_skill(NAME)
            gone = (await send(1))["report"]["procedural_evolution"]["reports"][0]
            assert (gone["action"], gone["detail"]) == ("created", None)

    asyncio.run(run())
    with sqlite3.connect(place) as store:
        bodies = [str(body) for (body,) in store.execute("SELECT body FROM answers")]
    assert len(bodies) >= len(CALLS)
    assert not [body for body in bodies if WORD in body]
