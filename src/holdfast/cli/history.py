"""`history` and `revert`: how a memory became what it is, and how to undo it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.error_names import errors_as_typed
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, OnlyText, ScopeOptions, StoreOptions, expand_options, option
from holdfast.cli.store_access import open_memory
from holdfast.domain.memory import MemoryRecord

RecordId = Annotated[str, typer.Argument(metavar="ID", hidden=True)]
Revision = Annotated[int, typer.Argument(metavar="REVISION", hidden=True)]
Reason = Annotated[OnlyText, option("--reason", "TEXT", "Who said so, or what was wrong.")]
Expected = Annotated[int | None, option("--expected-revision", "N", "Fail if the memory is at another revision.")]


@expand_options
def history(record_id: RecordId, place: ScopeOptions, chosen: StoreOptions, as_json: Json = False) -> None:
    """Show every revision of the memory ID, oldest first: who made it and why."""
    with errors_as_typed(), open_memory(chosen) as memory:
        revisions = memory.history(record_id, **place.scope_kwargs())
    if as_json:
        print_json({"revisions": revisions})
        return
    from holdfast.cli import render

    render.show_history(render.console(), revisions)


@expand_options
def revert(
    memory_id: RecordId,
    revision: Revision,
    place: ScopeOptions,
    chosen: StoreOptions,
    reason: Reason = None,
    expected_revision: Expected = None,
    as_json: Json = False,
) -> None:
    """Make revision REVISION of the memory ID current again.

    Its text, validity, evidence and marks come back as a new revision. `holdfast history ID` shows the revisions.
    """
    where = place.scope_kwargs()
    with errors_as_typed(), open_memory(chosen) as memory:
        restored: MemoryRecord = memory.revert(
            memory_id, revision, reason=reason, expected_revision=expected_revision, **where
        )
    if as_json:
        print_json({"memory": restored})
        return
    from holdfast.cli import render

    render.show_history(render.console(), [restored])
