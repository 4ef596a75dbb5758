"""`store`: creates, checks, backs up and maintains the store."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import typer

import holdfast
from holdfast.app import repair_store
from holdfast.cli.events import events
from holdfast.cli.exits import ExitCode
from holdfast.cli.flush import flush, print_pending_vectors
from holdfast.cli.formatting import format_count, format_size, format_time_with_seconds
from holdfast.cli.json_output import plain, print_json
from holdfast.cli.options import Json, LocalStore, LocalStoreOptions, ScopeOptions, StoreOptions, command, group, option
from holdfast.cli.progress import progress, spinner
from holdfast.cli.store_access import (
    close_kept_memory,
    examine_location,
    location,
    open_memory,
    require_local_store,
    widest_scope,
)
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import MemoryCall, memory_command
from holdfast.domain.jobs import Job
from holdfast.domain.location import redact_location
from holdfast.domain.manifest import MENDS, REBUILDS, RepairAction, StoreRepair
from holdfast.domain.results import UNCHECKED, Stats, Verification
from holdfast.domain.scope import EVERYWHERE
from holdfast.errors import InvalidInput
from holdfast.settings import read_settings

app = group("Create, measure, check, copy, back up and repair the store.")


@command(app)
def init(chosen: LocalStoreOptions, as_json: Json = False) -> None:
    """Create an empty store. An existing one is not changed."""
    place = redact_location(location(chosen))
    before = examine_location(chosen)
    created = before is None or not before.schema
    with open_memory(chosen, create=True) as memory:
        embedder = memory.stats(space=EVERYWHERE).embedder
    if as_json:
        print_json({"store": place, "created": created, "embedder": embedder})
    elif created:
        add = suggest_command(chosen, "add", "I moved to Lisbon.")
        print(f"Created {on_one_line(place)}. Put something in: {add} --subject ana")
    else:
        print(f"{on_one_line(place)} is a store already; nothing was changed.")


@command(app)
def check(chosen: LocalStoreOptions, as_json: Json = False) -> None:
    """Show the store's engine, schema and size. Changes nothing. Exit code 1 if it cannot be used as it is."""
    found = examine_location(chosen)
    ready = found is not None and found.ready
    if as_json:
        print_json(
            {"ready": ready, **(plain(found) if found else {"store": redact_location(location(chosen)), "schema": 0})}
        )
    elif found is None or not found.schema:
        place = on_one_line(redact_location(location(chosen)))
        print(f"There is no store at {place} yet; `holdfast store init` creates it.")
    else:
        print(f"{on_one_line(found.store)}: {found.engine}, schema {found.schema} of {found.newest},", end=" ")
        print(f"{format_size(found.bytes)}.")
        if found.unfinished:
            print("It is the target of an incomplete copy; resume it: `holdfast store copy FROM TO`.")
        elif not ready:
            print("Its schema is older; `holdfast store migrate` brings it up to date, and so does opening it.")
    if not ready:
        raise typer.Exit(ExitCode.PROBLEM)


@command(app)
def migrate(chosen: LocalStoreOptions, as_json: Json = False) -> None:
    """Bring the store's schema up to date. Opening a store does so too; this does nothing else."""
    before = examine_location(chosen)
    with open_memory(chosen):
        after = examine_location(chosen)
    assert after is not None
    if as_json:
        print_json({"store": after.store, "from": before.schema if before else 0, "to": after.schema})
    elif before is not None and before.schema == after.schema:
        print(f"The schema of {on_one_line(after.store)} is up to date ({after.schema}).")
    else:
        print(f"Brought {on_one_line(after.store)} from schema {before.schema if before else 0} to {after.schema}.")


@command(app)
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A path or a URL, such as memory.db.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="A path or a URL, such as postgresql://host/name.")],
    replace: Annotated[bool, typer.Option("--replace", help="First remove everything that TO holds.")] = False,
    as_json: Json = False,
) -> None:
    """Copy a whole store, also between files and PostgreSQL, and verify the copy. Resumes an interrupted copy."""
    close_kept_memory()
    started = time.monotonic()
    with progress("copying", quiet=as_json) as advance:
        copied = holdfast.copy(source, target, replace=replace, tell=advance, settings=read_settings())
    seconds = time.monotonic() - started
    if as_json:
        print_json(
            {
                "from": redact_location(source),
                "to": redact_location(target),
                **plain(copied),
                "seconds": round(seconds, 3),
            }
        )
        return
    went = "Resumed and copied" if copied.resumed else "Copied"
    print(
        f"{went} {format_count(copied.records, 'record')} ({format_count(copied.rows, 'row')}) in {seconds:,.1f} s.",
        end=" ",
    )
    print("Counts and contents agree.")


@command(app)
def backup(
    folder: Annotated[str, option("--to", "FOLDER", "The folder, which must exist. The name is by the time, in UTC.")],
    source: Annotated[str | None, typer.Argument(metavar="STORE", help="The store; the same as --store.")] = None,
    store: LocalStore = None,
    keep: Annotated[
        int | None, option("--keep", "N", "Keep the newest N backups of this store.  [default: all]")
    ] = None,
    keep_days: Annotated[
        int | None, option("--keep-days", "N", "Keep those of the last N days.  [default: all]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Back up the whole store into a new file, while it is in use, and verify the file.

    With --keep or --keep-days, older backups are removed: only files that this command made of the same store, and
    never the newest. A store on PostgreSQL is backed up into such a file, too.
    """
    if source is not None and store is not None:
        raise InvalidInput("--store", "names the store, and so does the argument; give one of them")
    place = location(LocalStoreOptions(source or store))
    with progress("backing up", quiet=as_json) as advance:
        made = holdfast.backup(place, folder, keep=keep, keep_days=keep_days, tell=advance, settings=read_settings())
    if as_json:
        print_json({"store": redact_location(place), **plain(made)})
        return
    print(
        f"Backed up {format_count(made.records, 'record')} ({format_size(made.bytes)}) to {on_one_line(made.path)}."
        " Counts and contents agree."
    )
    for path in made.removed:
        print(on_one_line(f"Removed {path}."))


@command(app)
def restore(
    backup: Annotated[str, typer.Argument(metavar="BACKUP", help="A file that `holdfast store backup` made.")],
    store: LocalStore = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace everything that the store holds.")] = False,
    as_json: Json = False,
) -> None:
    """Verify a backup, and make the store what it was then. Stop all processes that use the store first."""
    place = location(LocalStoreOptions(store))
    close_kept_memory()
    with progress("restoring", quiet=as_json) as advance:
        restored = holdfast.restore(backup, place, replace=replace, tell=advance, settings=read_settings())
    if as_json:
        print_json({"backup": backup, "store": redact_location(place), **plain(restored)})
        return
    moment = format_time_with_seconds(restored.made_at)
    print(
        f"Restored {format_count(restored.records, 'record')} to {on_one_line(redact_location(place))}, as of {moment}."
        " What was forgotten since is there again: forget it again."
    )


@command(app)
def stats(place: ScopeOptions, chosen: StoreOptions, as_json: Json = False) -> None:
    """Count the contents of the whole store, or of the given scope."""
    where = place.scope_kwargs() or widest_scope(chosen)
    with open_memory(chosen) as memory:
        found = memory.stats(**where)
    if as_json:
        print_json({"store": redact_location(location(chosen)), **plain(found)})
        return
    from holdfast.cli import render

    render.show_facts({"store": redact_location(location(chosen)), **facts(found)})
    if found.without_vectors:
        print("Records without vectors are found by words only; `holdfast flush` makes the vectors.")
    if found.stale_vectors:
        print("Records with stale vectors are found by the old ones; `holdfast flush` makes new ones.")


def facts(found: Stats) -> dict[str, object]:
    jobs = ", ".join(f"{number:,} {status}" for status, number in found.jobs.items())
    return {
        "messages": found.messages,
        "memories": found.memories,
        "conversations": found.conversations,
        "resources": found.resources,
        "users": found.users,
        "partitions": found.partitions,
        "tombstones": found.tombstones,
        "without vectors": found.without_vectors,
        **({"stale vectors": found.stale_vectors} if found.stale_vectors else {}),
        "jobs": jobs or "none",
        "embedder": found.embedder,
    }


@command(app)
def verify(chosen: StoreOptions, as_json: Json = False) -> None:
    """Check the whole store for damage. Exit code 1 if there is any."""
    with open_memory(chosen) as memory:
        verification = memory.verify()
    if as_json:
        print_json({"store": redact_location(location(chosen)), "ok": verification.ok, **plain(verification)})
    else:
        for finding in verification.findings:
            print(on_one_line(f"damaged: {finding.check}: {finding.problem}"))
        counts = dict(verification.checked)
        unchecked = counts.pop(UNCHECKED, 0)
        checked = ", ".join(f"{name} {number:,}" for name, number in counts.items())
        from holdfast.cli import render

        render.show_paragraph(f"Checked {checked}. {_advice(verification)}.")
        if unchecked:
            print(
                f"Unchecked: {format_count(unchecked, 'row')} from before there were checksums, which may be damaged;"
                " `holdfast worker` adds their checksums."
            )
    if not verification.ok:
        raise typer.Exit(ExitCode.PROBLEM)


def _advice(verification: Verification) -> str:
    if verification.ok:
        return "All is well"
    if all(
        finding.check in REBUILDS or MENDS.get(finding.check) is RepairAction.REINDEX
        for finding in verification.findings
    ):
        return "No messages or memories are lost: `holdfast store rebuild` rebuilds the indexes"
    if all(finding.check in MENDS for finding in verification.findings):
        return "No messages or memories are lost: `holdfast store repair --apply` repairs it"
    if any(MENDS.get(finding.check) is RepairAction.REINDEX for finding in verification.findings):
        return "Run `holdfast store rebuild` and verify again: it repairs indexes, perhaps all of this"
    return "Restore the store from a backup"


@command(app)
def repair(
    chosen: LocalStoreOptions,
    apply: Annotated[bool, typer.Option("--apply", help="Make the safe repairs, not only list them.")] = False,
    as_json: Json = False,
) -> None:
    """Find damage, and list the repairs; --apply makes those that lose nothing. Exit code 1 if
    something is left.
    """
    path = require_local_store(chosen)
    with spinner("checking the store", quiet=as_json):
        found = asyncio.run(repair_store(path, read_settings(), embedder=chosen.embedder, apply=apply))
    if as_json:
        print_json({"store": redact_location(location(chosen)), "sound": found.is_sound, **plain(found)})
    else:
        _print_repair(found)
    if not found.is_sound:
        raise typer.Exit(ExitCode.PROBLEM)


_DONE = {
    RepairAction.REINDEX: ("records need new vectors", "records got new vectors"),
    RepairAction.DROP_ORPHAN_VECTORS: ("orphan vectors can be removed", "orphan vectors were removed"),
    RepairAction.DROP_ORPHAN_LINKS: ("orphan links can be removed", "orphan links were removed"),
    RepairAction.RELEASE_STUCK_JOBS: ("stuck jobs can be queued again", "stuck jobs were queued again"),
    RepairAction.PRUNE_EVENTS: ("events exceed the log's limit", "old events were removed"),
    RepairAction.RESTRICT_FILES: ("files can be read by others and can be made private", "files were made private"),
}


def _print_repair(found: StoreRepair) -> None:
    for mend, count in found.mends.items():
        if count:
            print(f"{count:,} {_DONE[mend][found.applied]}.")
    for problem in found.beyond_repair:
        print(on_one_line(f"cannot be repaired: {problem}"))
    for file in found.foreign_files:
        print(on_one_line(f"{file} can be read by others, and only its owner can change that"))
    for thread in found.threads:
        for issue in thread.issues:
            print(on_one_line(f"  {thread.thread.conversation}: {issue.kind}: {issue.detail}"))
    print(f"Checked {format_count(found.checked_turns, 'turn')} and every table.", end=" ")
    if found.beyond_repair:
        print("Restore from a backup what cannot be repaired.")
    elif found.is_sound:
        print("All is well.")
    elif any(found.mends.values()) and not found.applied:
        print("`holdfast store repair --apply` does this; no messages or memories are lost.")
    else:
        print("The owner of those files must make them private: chmod go= FILE.")


@command(app)
def rebuild(chosen: StoreOptions, as_json: Json = False) -> None:
    """Rebuild all indexes from the texts. Search keeps working meanwhile."""
    with open_memory(chosen) as memory:
        there = memory.stats(space=EVERYWHERE)
        with spinner(f"rebuilding {format_count(there.messages + there.memories, 'record')}", quiet=as_json):
            rebuilt = memory.rebuild()
    if as_json:
        print_json(rebuilt)
    else:
        print(f"Rebuilt the indexes of {format_count(rebuilt.records, 'record')}.")
    _require_vectors(rebuilt.pending_vectors, as_json)


app.command("flush")(flush)


def _list_jobs(memory: holdfast.Memory, call: MemoryCall) -> tuple[Job, ...]:
    return memory.jobs(**call.arguments, **(call.where or widest_scope(call.chosen)))


@memory_command("jobs", perform=_list_jobs, document=lambda found, _: {"jobs": found})
def jobs(found: tuple[Job, ...], call: MemoryCall) -> None:
    """List background jobs, newest first, with their progress."""
    from holdfast.cli import render

    render.show_lines(map(_job_line, found), "There are no background jobs, and there were none.")


def _job_line(job: Job) -> str:
    progress = f", {job.done:,} of {job.total:,}" if job.total else ""
    problem = f": {on_one_line(job.error)}" if job.error else ""
    return f"{job.created_at:%Y-%m-%d %H:%M:%S}  {job.kind}  {job.status}, attempt {job.attempt}{progress}{problem}"


app.command("jobs")(jobs)
app.command("events")(events)


def _require_vectors(pending: int, as_json: bool) -> None:
    """Exit with a problem if records wait for vectors."""
    if not as_json:
        print_pending_vectors(pending)
    if pending:
        raise typer.Exit(ExitCode.PROBLEM)
