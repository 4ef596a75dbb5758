"""A host that must answer for what it keeps: commit a delivered turn, project it for a model, mask it on request."""

import tempfile
from pathlib import Path

from holdfast.sdk import CanonicalTurnDelta, MemoryRuntime, MemoryScope, MemoryTranscriptLifecycleRequest

trip = MemoryScope("web", conversation_id="trip")
turn = CanonicalTurnDelta("turn-1", "delivered", ("I fly to Porto on 3 May.",), "Noted.", trip)

with tempfile.TemporaryDirectory() as folder:
    runtime = MemoryRuntime.open(Path(folder) / "host.db", subject="ana")
    runtime.finalize_turn_and_maintain(turn)
    runtime.recover()  # without a model, rules learn in the background; this waits for them
    print(runtime.project("When does Ana fly?").system_memory_block)

    masked = runtime.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest("mask", reason="Ana asked"))
    print("masked turns:", masked.affected_turns)
    print("memories learned from them, which stay:", [ref.store_key for ref in masked.derived_memory_refs])
    runtime.close()
