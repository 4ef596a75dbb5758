"""`search` and `explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.machine import plain, print_json
from holdfast.cli.opening import opened
from holdfast.cli.options import Filters, Json, Place, StoreOptions, unfolded

Query = Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in any words.", show_default=False)]
RecordId = Annotated[
    str | None,
    typer.Option("--id", metavar="RECORD_ID", help="Say also why this memory or message did not come."),
]


@unfolded
def search(query: Query, filters: Filters, place: Place, chosen: StoreOptions, as_json: Json = False) -> None:
    """Find what was said and learned, by meaning and by words, best first.

    Finding nothing is no error. A part of the scope that is given must match.
    """
    with opened(chosen) as memory:
        hits = memory.search(query, **filters.asking(place))
    if as_json:
        print_json({"query": query, "hits": hits})
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
    with opened(chosen) as memory:
        explained = memory.explain(query, record_id=record_id, **filters.asking(place))
    if as_json:
        told = plain(explained)
        print_json({"query": query, "understood": told.pop("query"), **told})
        return
    from holdfast.cli import render

    render.show_explanation(render.console(), explained)
