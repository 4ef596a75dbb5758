"""`store`: looking after the file."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import typer

import holdfast
from holdfast.cli.exits import ExitCode
from holdfast.cli.machine import plain, print_json
from holdfast.cli.opening import location, opened
from holdfast.cli.options import Json, Place, StoreOptions, unfolded
from holdfast.cli.progress import Advance, progress
from holdfast.cli.safety import on_one_line
from holdfast.domain.results import Stats
from holdfast.domain.scope import EVERYWHERE
from holdfast.errors import StoreError

_POLL_SECONDS = 0.2

app = typer.Typer(help="Create, measure, check and mend the store.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def store(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
@unfolded
def init(chosen: StoreOptions, as_json: Json = False) -> None:
    """Create an empty store. One that is there already is left as it is."""
    path = location(chosen)
    created = not Path(path).exists()
    with opened(chosen, create=True) as memory:
        embedder = memory.stats(space=EVERYWHERE).embedder
    if as_json:
        print_json({"store": path, "created": created, "embedder": embedder})
    elif created:
        print(f'Created {on_one_line(path)}. Put something in: holdfast add "I moved to Lisbon." --subject ana')
    else:
        print(f"{on_one_line(path)} is a store already; nothing was changed.")


@app.command()
@unfolded
def stats(place: Place, chosen: StoreOptions, as_json: Json = False) -> None:
    """Count what is there: in the whole store, or in the scope that is given."""
    where = place.where() or {"space": EVERYWHERE}
    with opened(chosen) as memory:
        counted = memory.stats(**where)
    if as_json:
        print_json({"store": location(chosen), **plain(counted)})
        return
    from holdfast.cli import render

    render.show_facts(render.console(), {"store": location(chosen), **facts(counted)})
    if counted.pending_vectors:
        print("Those without vectors are found by words only; `holdfast store flush` makes the vectors.")


def facts(counted: Stats) -> dict[str, str]:
    jobs = ", ".join(f"{number:,} {status}" for status, number in counted.jobs.items())
    return {
        "messages": f"{counted.messages:,}",
        "memories": f"{counted.memories:,}",
        "conversations": f"{counted.conversations:,}",
        "partitions": f"{counted.partitions:,}",
        "tombstones": f"{counted.tombstones:,}",
        "without vectors": f"{counted.pending_vectors:,}",
        "jobs": jobs or "none",
        "embedder": counted.embedder,
    }


@app.command()
@unfolded
def verify(chosen: StoreOptions, as_json: Json = False) -> None:
    """Check the whole store for damage. Exit code 1 if there is any."""
    with opened(chosen) as memory:
        verification = memory.verify()
    if as_json:
        print_json({"store": location(chosen), "ok": verification.ok, **plain(verification)})
    else:
        for finding in verification.findings:
            print(on_one_line(f"damaged: {finding.check}: {finding.problem}"))
        checked = ", ".join(f"{number:,} {name}" for name, number in verification.checked.items())
        print(f"Checked {checked}: {'all is well' if verification.ok else 'restore the store from a backup'}.")
    if not verification.ok:
        raise typer.Exit(ExitCode.PROBLEM)


@app.command()
@unfolded
def rebuild(chosen: StoreOptions, as_json: Json = False) -> None:
    """Make all indexes anew from the texts. Search goes on meanwhile."""
    with opened(chosen, work=True) as memory, progress("rebuilding", quiet=as_json) as advance:
        with _watched(memory, advance):
            rebuilt = memory.rebuild()
    if as_json:
        print_json(rebuilt)
    else:
        print(f"Rebuilt the indexes of {rebuilt.records:,} records.")
    if rebuilt.pending_vectors:
        print_waiting(rebuilt.pending_vectors, as_json)
        raise typer.Exit(ExitCode.PROBLEM)


@app.command()
@unfolded
def flush(place: Place, chosen: StoreOptions, as_json: Json = False) -> None:
    """Finish what is waiting: seal the conversation, make missing vectors, learn from what was said."""
    with opened(chosen, work=True) as memory:
        flushed = memory.flush(**place.where())
        memory.drain()
        counted = memory.stats(space=EVERYWHERE)
    if as_json:
        print_json({**plain(flushed), "pending_vectors": counted.pending_vectors, "queued": counted.jobs.get("queued", 0)})
    else:
        print(f"Sealed {flushed.messages:,} messages of conversation {on_one_line(flushed.conversation)}.")
    if counted.pending_vectors:
        print_waiting(counted.pending_vectors, as_json)
        raise typer.Exit(ExitCode.PROBLEM)


def print_waiting(pending: int, as_json: bool) -> None:
    if not as_json:
        print(f"{pending:,} records still wait for vectors; `holdfast doctor` says whether the embedder answers.")


@contextlib.contextmanager
def _watched(memory: holdfast.Memory, advance: Advance) -> Iterator[None]:
    """Looks from a second thread at how far the store has come, while the first waits for it."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_POLL_SECONDS):
            with contextlib.suppress(StoreError):
                now = memory.stats(space=EVERYWHERE)
                total = now.messages + now.memories
                advance(total - now.pending_vectors, total)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
