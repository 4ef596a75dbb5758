"""`flush`: finish what was added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import holdfast
from holdfast.cli.formatting import format_count
from holdfast.cli.json_output import plain
from holdfast.cli.store_access import run_due_jobs, widest_scope
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import MemoryCall, memory_command

if TYPE_CHECKING:
    from holdfast.domain.results import Flushed, Stats


@dataclass(frozen=True, slots=True)
class FlushOutcome:
    """The result of a flush, and the store afterwards."""

    flushed: Flushed
    left: Stats

    @property
    def pending(self) -> int:
        return self.left.pending_vectors


def _flush(memory: holdfast.Memory, call: MemoryCall) -> FlushOutcome:
    flushed = memory.flush(**call.where)
    run_due_jobs(memory, call.chosen)
    return FlushOutcome(flushed, memory.stats(**widest_scope(call.chosen)))


def _document(done: FlushOutcome, call: MemoryCall) -> dict[str, Any]:
    return {
        **plain(done.flushed),
        "pending_vectors": done.pending,
        "queued": done.left.jobs.get("queued", 0),
    }


@memory_command("flush", perform=_flush, document=_document, failed=lambda done, _: done.pending > 0)
def flush(done: FlushOutcome, call: MemoryCall) -> None:
    """Finish pending work: seal the conversation, make missing vectors, extract memories."""
    count, conversation = format_count(done.flushed.messages, "message"), on_one_line(done.flushed.conversation)
    print(f"Sealed {count} of conversation {conversation}.")
    print_pending_vectors(done.pending)


def print_pending_vectors(pending: int) -> None:
    if pending:
        print(f"{pending:,} records still wait for vectors; `holdfast doctor` says whether the embedder answers.")
