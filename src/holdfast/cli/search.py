"""`search`, `explain` and `recall`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast.cli.error_names import errors_as_typed
from holdfast.cli.json_output import plain, print_json
from holdfast.cli.options import Json, OnlyText, ScopeOptions, StoreOptions, expand_options, option
from holdfast.cli.search_filters import RecallOptions, SearchFilters
from holdfast.cli.store_access import open_memory, warn_missing_vectors

Query = Annotated[list[str], typer.Argument(metavar="QUERY", hidden=True)]
RecordId = Annotated[OnlyText, option("--id", "RECORD_ID", "Also show this record's rank, or why it was not found.")]


@expand_options
def search(
    query: Query, filters: SearchFilters, place: ScopeOptions, chosen: StoreOptions, as_json: Json = False
) -> None:
    """Search messages and memories by meaning and by words, best first.

    QUERY may be a question. Scope options that are given must match; the others match all.
    """
    text = " ".join(query)
    with errors_as_typed(), open_memory(chosen) as memory:
        hits = memory.search(text, **filters.keywords(), **place.scope_kwargs())
        warn_missing_vectors(memory, place.scope_kwargs())
    if as_json:
        print_json({"query": text, "hits": hits})
        return
    from holdfast.cli import render

    if not hits:
        print("Nothing found. `holdfast store stats` shows what is there.")
    render.show_hits(render.console(), hits)


@expand_options
def explain(
    query: Query,
    filters: SearchFilters,
    place: ScopeOptions,
    chosen: StoreOptions,
    record_id: RecordId = None,
    as_json: Json = False,
) -> None:
    """Search, and show each part of each score and the evidence behind each result."""
    text = " ".join(query)
    with errors_as_typed(), open_memory(chosen) as memory:
        explained = memory.explain(text, record_id=record_id, **filters.keywords(), **place.scope_kwargs())
        warn_missing_vectors(memory, place.scope_kwargs())
    if as_json:
        result = plain(explained)
        print_json({"query": text, "understood": result.pop("query"), **result})
        return
    from holdfast.cli import render

    render.show_explanation(render.console(), explained, record_id)


@expand_options
def recall(
    query: Query, options: RecallOptions, place: ScopeOptions, chosen: StoreOptions, as_json: Json = False
) -> None:
    """Print what to show a model: what bears on the query, best first, each thing once, as one message.

    If nothing bears on the query, it prints nothing, and says why on standard error.
    """
    text = " ".join(query)
    with errors_as_typed(), open_memory(chosen) as memory:
        recalled = memory.recall(text, **options.keywords(), **place.scope_kwargs())
        warn_missing_vectors(memory, place.scope_kwargs())
    if as_json:
        print_json({"query": text, **plain(recalled)})
        return
    if recalled.message:
        print(recalled.message)
    else:
        print(f"Nothing recalled: {recalled.reason}.", file=sys.stderr)
