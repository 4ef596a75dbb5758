"""`space`: exports all data of a space to a file, and imports it into another store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.exits import ExitCode
from holdfast.cli.formatting import format_count, format_size
from holdfast.cli.governance import open_governed
from holdfast.cli.json_output import plain, print_json
from holdfast.cli.options import Json, LocalStoreOptions, Space, expand_options, group
from holdfast.cli.progress import progress
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.runtime_api.exchange import (
    MemorySpaceExportReport,
    MemorySpaceExportRequest,
    MemorySpaceImportReport,
    MemorySpaceImportRequest,
)
from holdfast.domain.space_file import LeftOut
from holdfast.errors import InvalidInput
from holdfast.sdk.transfer import TransferOperations
from holdfast.settings import read_settings

app = group("Export or import all data of one space as a file.")

_File = Annotated[Path, typer.Argument(metavar="FILE", help="Such as space.jsonl.")]


@expand_options
def export_space(
    file: _File,
    chosen: LocalStoreOptions,
    space: Space = None,
    include_private: Annotated[
        bool,
        typer.Option("--include-private", help="Include raw transcripts, private memories, evidence and aliases."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Export a space to a file, one record per line. Transcripts and private data are left out unless requested."""
    request = MemorySpaceExportRequest(include_private, file)

    async def run_export() -> MemorySpaceExportReport:
        async with open_governed(chosen, _tenant(space)) as (engine, governance):
            operations = TransferOperations(engine, LOCAL_OPERATOR, governance)
            return await operations.export_space(request, tell=advance)

    with progress("exporting", quiet=as_json) as advance:
        report = asyncio.run(run_export())
    if as_json:
        print_json(plain(report))
        return
    counts = report.counts
    print(f"Exported {format_count(counts.messages, 'message')} in {format_count(counts.turns, 'turn')},", end=" ")
    print(f"{_memories(counts.memories)} and {format_count(counts.resources, 'resource')}", end=" ")
    print(f"of {on_one_line(report.space)} to {on_one_line(str(file))} ({format_size(report.size_bytes)}).")
    if not counts.turns and not counts.memories and not report.left_out.turns:
        print("That space is empty; --space names another.")
    if counts.redacted:
        print(f"{format_count(counts.redacted, 'message')} withheld: masked or deleted.")
    if report.left_out.turns:
        print(f"{_left_out(report.left_out)} left out, so this is no backup;", end=" ")
        print("--include-private exports them, too.")
    print(f"Fingerprint {report.content_fingerprint}")


@expand_options
def import_space(file: _File, chosen: LocalStoreOptions, space: Space = None, as_json: Json = False) -> None:
    """Import a file that `export` made. It is checked before anything is written; importing again is safe."""
    if not file.exists():  # checked before a store is created
        raise InvalidInput("FILE", f"there is no file at {file}; `holdfast export` makes one")

    async def run_import() -> MemorySpaceImportReport:
        async with open_governed(chosen, _tenant(space), create=True) as (engine, governance):
            operations = TransferOperations(engine, LOCAL_OPERATOR, governance)
            return await operations.import_space(MemorySpaceImportRequest(file), tell=advance)

    with progress("importing", quiet=as_json) as advance:
        report = asyncio.run(run_import())
    if as_json:
        print_json(plain(report))
    else:
        taken = report.taken
        print(f"Imported {format_count(taken.messages, 'message')} in {format_count(taken.turns, 'turn')},", end=" ")
        print(f"{_memories(taken.memories)} and {format_count(taken.resources, 'resource')}", end=" ")
        print(f"into {on_one_line(report.space)}. {taken.known:,} were there already.")
        if taken.forgotten:
            print(f"{taken.forgotten:,} were forgotten here earlier, and were not imported.")
        if report.left_out is not None and report.left_out.turns:
            print(f"The file was exported without {_left_out(report.left_out)}.")
    if not report.accepted:
        raise typer.Exit(ExitCode.PROBLEM)


app.command("export")(export_space)
app.command("import")(import_space)


def _left_out(left_out: LeftOut) -> str:
    return f"{format_count(left_out.turns, 'turn')} with {format_count(left_out.messages, 'message')}"


def _memories(number: int) -> str:
    return f"{number:,} {'memory' if number == 1 else 'memories'}"


def _tenant(space: str | None) -> MemoryIdentity:
    return MemoryIdentity(space or read_settings().space)
