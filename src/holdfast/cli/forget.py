"""`forget`: shows a preview, asks, and prints a receipt."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

import typer

import holdfast
from holdfast.cli.exits import require_terminal
from holdfast.cli.options import DryRun, Yes, parts_of_shell
from holdfast.cli.shell_editor import clear_history_file
from holdfast.cli.store_access import open_memory, run_due_jobs
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import HIDDEN, CliOption, MemoryCall, memory_command
from holdfast.errors import NotFound
from holdfast.inputs import MISSING, ScopeKwargs, target_from
from holdfast.settings import read_settings

if TYPE_CHECKING:
    from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
    from holdfast.domain.results import Record

_SHOWN = 5
# The command shows the preview and forgets exactly that.
_FROM_SCREEN = {"token": HIDDEN, "expected_revision": HIDDEN}


class PreviewAndReceipt(NamedTuple):
    """The preview, and the receipt if anything was forgotten."""

    preview: ForgetPreview
    receipt: ForgetReceipt | None


def _forget(call: MemoryCall) -> PreviewAndReceipt:
    where = call.where
    named = call.arguments.get("record_id", MISSING)
    origin = call.arguments.get("source", MISSING)
    # An invalid target is reported first. In a shell, what `use` sets narrows a target, and is none by itself.
    set_by_shell = parts_of_shell.get()
    conversation = None if "conversation" in set_by_shell else where.get("conversation")
    target_from(named, origin, conversation, None if "subject" in set_by_shell else where.get("subject"))
    yes, dry_run = call.values["yes"], call.values["dry_run"]
    require_terminal(yes or dry_run, "add --yes, or look first with --dry-run")
    with open_memory(call.chosen) as memory:
        preview = memory.forget_preview(named, source=origin, **where)
        if preview.empty:
            raise NotFound("nothing matches, so there is nothing to forget; check the names")
        if not call.as_json:
            from holdfast.cli import render

            render.show_preview(render.console(), preview, _sample_records(memory, preview, where))
        receipt = None
        if not dry_run and (yes or typer.confirm("Forget all of it for good?", err=True)):
            receipt = memory.forget(named, source=origin, token=preview.token, **where)
            run_due_jobs(memory, call.chosen)
    # It may quote what is forgotten, in whatever words.
    if receipt is not None and clear_history_file(history := read_settings().shell_history) and not call.as_json:
        print(on_one_line(f"Cleared the history of `holdfast shell`, {history}."))
    return PreviewAndReceipt(preview, receipt)


@memory_command(
    "forget",
    options={"source": CliOption(help="Everything from this source."), **_FROM_SCREEN},
    extra={"yes": (Yes, False), "dry_run": (DryRun, False)},
    run=_forget,
    document=lambda outcome, _: outcome._asdict(),
    failed=lambda outcome, call: outcome.receipt is None and not call.values["dry_run"],
)
def forget(outcome: PreviewAndReceipt, call: MemoryCall) -> None:
    """Permanently forget memories or messages by ID, or a whole conversation, subject or source.

    It shows what it will delete and asks first. Afterwards the text is gone from the store, its indexes and its log,
    and --as-of does not bring it back. If a conversation has a subject, give --subject; without it, only one that
    belongs to nobody is forgotten. Without a terminal to ask on, it needs --yes.
    """
    if outcome.receipt is None:
        print("Nothing was forgotten.")
        return
    from holdfast.cli import render

    render.show_receipt(render.console(), outcome.receipt)


def _sample_records(memory: holdfast.Memory, preview: ForgetPreview, where: ScopeKwargs) -> list[Record]:
    """The first records of the preview. Memories outlive their conversation, so they are looked up without it."""
    found, owner = [], {part: value for part, value in where.items() if part in ("space", "subject", "agent")}
    for record_id in preview.ids[:_SHOWN]:
        with contextlib.suppress(NotFound):  # shared with others, and not visible in this scope
            found.append(memory.get(record_id, **owner))  # type: ignore[arg-type]
    return found
