"""`forget`: a preview, a question, a receipt."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

import holdfast
from holdfast.cli.exits import ExitCode, Usage
from holdfast.cli.machine import print_json
from holdfast.cli.opening import do_what_is_due, opened
from holdfast.cli.options import Json, Place, StoreOptions, Yes, unfolded
from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.results import Record
from holdfast.errors import NotFound
from holdfast.inputs import MISSING, Where, target_from

_SHOWN = 5

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", hidden=True)]
Source = Annotated[str | None, typer.Option("--source", metavar="NAME", help="All that came from this source.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be forgotten.")]


@unfolded
def forget(
    place: Place,
    chosen: StoreOptions,
    ids: Ids = None,
    source: Source = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Forget for good: some memories or messages by ID, or a conversation, a subject or a source whole.

    It shows what it will touch and asks first. Afterwards the text is gone from the store, its indexes and its log,
    and --as-of does not bring it back. A conversation is its subject's: name it with --subject, else nobody's is meant.
    Without a terminal to ask on, it needs --yes.
    """
    where = place.where()
    named, origin = ids or MISSING, MISSING if source is None else source
    target_from(named, origin, where)  # what is no target at all is told first
    if not (yes or dry_run or sys.stdin.isatty()):
        raise Usage("there is no terminal to ask on; add --yes, or look first with --dry-run")
    with opened(chosen) as memory:
        preview = memory.forget_preview(named, source=origin, **where)
        if preview.empty:
            raise NotFound("nothing there matches, so there is nothing to forget; check the names")
        if not as_json:
            _show(preview, _some(memory, preview, where))
        receipt = None
        if not dry_run and (yes or typer.confirm("Forget all of it for good?", err=True)):
            receipt = memory.forget(named, source=origin, token=preview.token, **where)
            do_what_is_due(memory, chosen)
    _conclude(preview, receipt, dry_run=dry_run, as_json=as_json)


def _some(memory: holdfast.Memory, preview: ForgetPreview, where: Where) -> list[Record]:
    """The first of what goes. What was learned outlives its conversation, so it is looked up without one."""
    found = []
    for record_id in preview.ids[:_SHOWN]:
        with contextlib.suppress(NotFound):  # shared with others, and not to be seen from here
            found.append(memory.get(record_id, **_lasting(where)))
    return found


def _lasting(where: Where) -> Where:
    return {part: where[part] for part in ("space", "subject", "agent") if part in where}  # type: ignore[return-value]


def _show(preview: ForgetPreview, some: list[Record]) -> None:
    from holdfast.cli import render

    render.show_preview(render.console(), preview, some)


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
