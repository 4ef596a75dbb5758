"""`forget`: shows a preview, asks, and prints a receipt."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

import holdfast
from holdfast.cli.exits import ExitCode, require_terminal
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, OnlyText, ScopeOptions, StoreOptions, Yes, expand_options, option
from holdfast.cli.store_access import open_memory, run_due_jobs
from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.results import Record
from holdfast.errors import NotFound
from holdfast.inputs import MISSING, ScopeKwargs, target_from

_SHOWN = 5

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", hidden=True)]
Source = Annotated[OnlyText, option("--source", "NAME", "Everything from this source.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be forgotten.")]


@expand_options
def forget(
    place: ScopeOptions,
    chosen: StoreOptions,
    ids: Ids = None,
    source: Source = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Permanently forget memories or messages by ID, or a whole conversation, subject or source.

    It shows what it will delete and asks first. Afterwards the text is gone from the store, its indexes and its log,
    and --as-of does not bring it back. If a conversation has a subject, give --subject; without it, only one that
    belongs to nobody is forgotten. Without a terminal to ask on, it needs --yes.
    """
    where = place.scope_kwargs()
    named, origin = ids or MISSING, MISSING if source is None else source
    target_from(named, origin, place.conversation, place.subject)  # an invalid target is reported first
    require_terminal(yes or dry_run, "add --yes, or look first with --dry-run")
    with open_memory(chosen) as memory:
        preview = memory.forget_preview(named, source=origin, **where)
        if preview.empty:
            raise NotFound("nothing matches, so there is nothing to forget; check the names")
        if not as_json:
            from holdfast.cli import render

            render.show_preview(render.console(), preview, _sample_records(memory, preview, where))
        receipt = None
        if not dry_run and (yes or typer.confirm("Forget all of it for good?", err=True)):
            receipt = memory.forget(named, source=origin, token=preview.token, **where)
            run_due_jobs(memory, chosen)
    _conclude(preview, receipt, dry_run=dry_run, as_json=as_json)


def _sample_records(memory: holdfast.Memory, preview: ForgetPreview, where: ScopeKwargs) -> list[Record]:
    """The first records of the preview. Memories outlive their conversation, so they are looked up without it."""
    found, owner = [], {part: value for part, value in where.items() if part in ("space", "subject", "agent")}
    for record_id in preview.ids[:_SHOWN]:
        with contextlib.suppress(NotFound):  # shared with others, and not visible in this scope
            found.append(memory.get(record_id, **owner))  # type: ignore[arg-type]
    return found


def _conclude(preview: ForgetPreview, receipt: ForgetReceipt | None, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"preview": preview, "receipt": receipt})
    elif receipt is not None:
        from holdfast.cli import render

        render.show_receipt(render.console(), receipt)
    else:
        print("Nothing was forgotten.")
    if receipt is None and not dry_run:
        raise typer.Exit(ExitCode.PROBLEM)
