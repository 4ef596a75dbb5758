"""A host that must answer for what it keeps: commit a delivered turn, project it for a model, mask it on request."""

import tempfile
from pathlib import Path

from holdfast.sdk import (
    CanonicalTurnDelta,
    MemoryProjectionRequest,
    MemoryRuntime,
    MemoryScope,
    MemoryTranscriptLifecycleRequest,
    TurnMessage,
)

with tempfile.TemporaryDirectory() as folder:
    runtime = MemoryRuntime.builder().store(str(Path(folder) / "host.db")).identity(subject_id="ana").open()
    scope = MemoryScope("web", conversation_id="trip")
    messages = (TurnMessage("I fly to Porto on 3 May."),)
    runtime.finalize_turn_and_maintain(CanonicalTurnDelta("turn-1", "delivered", messages, "Noted.", scope))

    request = MemoryProjectionRequest("When does Ana fly?")
    print(runtime.project(request).system_memory_block)
    masked = runtime.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest("mask", reason="Ana asked"))
    print("masked:", masked.affected_turns, "- still projected:", runtime.project(request).audit.injected)
    runtime.close()
