"""`search` and `explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.machine import plain, print_json
from holdfast.cli.opening import opened, warn_of_waiting
from holdfast.cli.options import Filters, Json, Place, StoreOptions, unfolded

Query = Annotated[list[str], typer.Argument(metavar="QUERY", hidden=True)]
RecordId = Annotated[
    str | None,
    typer.Option("--id", metavar="RECORD_ID", help="Also show this record's rank, or why it was not found."),
]


@unfolded
def search(query: Query, filters: Filters, place: Place, chosen: StoreOptions, as_json: Json = False) -> None:
    """Search messages and memories by meaning and by words, best first.

    QUERY may be a question. Scope options that are given must match; the others match all.
    """
    text = " ".join(query)
    with opened(chosen) as memory:
        hits = memory.search(text, **filters.asking(place))
        warn_of_waiting(memory, place.where())
    if as_json:
        print_json({"query": text, "hits": hits})
        return
    from holdfast.cli import render

    if not hits:
        print("Nothing found. `holdfast store stats` shows what is there.")
    render.show_hits(render.console(), hits)


@unfolded
def explain(
    query: Query,
    filters: Filters,
    place: Place,
    chosen: StoreOptions,
    record_id: RecordId = None,
    as_json: Json = False,
) -> None:
    """Search, and show each part of each score and the evidence behind each result."""
    text = " ".join(query)
    with opened(chosen) as memory:
        explained = memory.explain(text, record_id=record_id, **filters.asking(place))
        warn_of_waiting(memory, place.where())
    if as_json:
        result = plain(explained)
        print_json({"query": text, "understood": result.pop("query"), **result})
        return
    from holdfast.cli import render

    render.show_explanation(render.console(), explained, record_id)
