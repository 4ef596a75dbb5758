"""`search`, `explain`, `recall` and `browse`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import holdfast
from holdfast.cli.json_output import plain
from holdfast.cli.store_access import warn_missing_vectors
from holdfast.cli.verb_commands import CliOption, MemoryCall, memory_command

if TYPE_CHECKING:
    from holdfast.domain.results import Browsed, Explanation, Hit, Recall

_QUERY = CliOption("QUERY", words=True)


def _search(memory: holdfast.Memory, call: MemoryCall) -> Any:
    """Search by the command's verb, and warn of records that cannot be found by meaning."""
    found = getattr(memory, call.verb)(**call.arguments, **call.where)
    warn_missing_vectors(memory, call.where)
    return found


def _with_query(found: Any, call: MemoryCall) -> dict[str, Any]:
    return {"query": call.arguments["query"], **plain(found)}


@memory_command(
    "search",
    options={"query": _QUERY},
    perform=_search,
    document=lambda hits, call: {"query": call.arguments["query"], "hits": hits},
)
def search(hits: list[Hit], call: MemoryCall) -> None:
    """Search messages and memories by meaning and by words, best first.

    QUERY may be a question. Scope options that are given must match; the others match all.
    """
    from holdfast.cli import render

    if not hits:
        print("Nothing found. `holdfast store stats` shows what is there.")
    render.show_hits(render.console(), hits)


def _explanation(explained: Explanation, call: MemoryCall) -> dict[str, Any]:
    result = plain(explained)
    return {"query": call.arguments["query"], "understood": result.pop("query"), **result}


@memory_command(
    "explain",
    options={
        "query": _QUERY,
        "record_id": CliOption("--id", "Also show this record's rank, or why it was not found.", noun="RECORD_ID"),
    },
    perform=_search,
    document=_explanation,
)
def explain(explained: Explanation, call: MemoryCall) -> None:
    """Search, and show each part of each score and the evidence behind each result."""
    from holdfast.cli import render

    render.show_explanation(render.console(), explained, call.arguments.get("record_id"))


@memory_command("recall", options={"query": _QUERY}, perform=_search, document=_with_query)
def recall(recalled: Recall, call: MemoryCall) -> None:
    """Print what to show a model: what bears on the query, best first, each thing once, as one message.

    If nothing bears on the query, it prints nothing, and says why on standard error.
    """
    if recalled.message:
        print(recalled.message)
    else:
        print(f"Nothing recalled: {recalled.reason}.", file=sys.stderr)


@memory_command("browse")
def browse(found: Browsed, call: MemoryCall) -> None:
    """List messages and memories by the time they were said or recorded, from any offset, with the total.

    `holdfast list` reads all pages without gaps; new records shift the offsets of this one.
    """
    from holdfast.cli import render

    if not found.items:
        print(f"Nothing here: {found.total:,} in total.")
        return
    offset = call.values["offset"]
    render.show_records(render.console(), found.items)
    last = offset + len(found.items)
    print(f"{offset + 1:,} to {last:,} of {found.total:,}")
