"""`replay`: runs, records and compares replay fixtures and benchmarks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.exits import ExitCode, UsageError
from holdfast.cli.formatting import format_count
from holdfast.cli.governance import open_governed
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, command, group, option
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.transcript import ConversationOptions
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import DEFAULT_PROFILE
from holdfast.errors import InvalidFixture
from holdfast.private_files import open_beside
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.settings import read_settings
from holdfast.testing.replay import (
    BenchmarkReport,
    RecallBenchmark,
    ReplayFailure,
    ReplayFixture,
    ReplayRunReport,
    compare_stores,
    record_baseline,
    record_conversation,
    record_expectation,
    run_benchmark,
    run_fixture,
    run_harness,
)
from holdfast.testing.replay.benchmark import FORMAT as BENCHMARK_FORMAT
from holdfast.testing.replay.fixture import format_of, read_fixture_file
from holdfast.testing.replay.recording import MAX_TURNS
from holdfast.testing.replay.runner import IN_MEMORY

app = group("Run, record and compare replay fixtures, to see if an upgrade changes anything.")

_Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Fixtures or benchmarks, or folders of them.")]
_OptionalFiles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="Fixtures or benchmarks, or folders of them.  [default: the harness]"),
]
_ReplayStore = Annotated[str, option("--store", "PLACE", "An empty store: a path, a postgresql:// URL, or :memory:.")]


@command(app)
def run(
    files: _OptionalFiles = None,
    store: _ReplayStore = IN_MEMORY,
    profile: Annotated[
        OnlyText, option("--profile", "NAME", "The profile of the store; of a fixture by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run fixtures and benchmarks, each in a space of its own; without any, the built-in harness.

    It exits with 1 if one of them fails. The settings of the environment do not count.
    """
    if not files:
        reports: list[ReplayRunReport | BenchmarkReport] = [run_harness(store, profile or DEFAULT_PROFILE)]
    else:
        reports = [
            run_benchmark(found, store)
            if isinstance(found, RecallBenchmark)
            else run_fixture(found, store, profile=profile)
            for found in map(_read, _files_of(files))
        ]
    if as_json:
        print_json({"passed": all(report.passed for report in reports), "reports": reports})
    else:
        for report in reports:
            _print_report(report)
        failed = sum(not report.passed for report in reports)
        print(f"{len(reports) - failed} of {len(reports)} passed.")
    _exit_unless(all(report.passed for report in reports))


@command(app)
def record(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The fixture, such as cello.json; its name is the id.")],
    whose: ConversationOptions,
    chosen: LocalStoreOptions,
    limit: Annotated[int, option("--limit", "N", "At most N turns.", min=1)] = MAX_TURNS,
) -> None:
    """Record a fixture from a conversation, or record the results of an existing file again.

    With --conversation or --chat, the turns of that conversation become a new fixture. All words, names and numbers in
    them are replaced by invented words. Without, FILE must exist, and only what it expects is replaced.
    """
    if whose.conversation is None and whose.chat is None:
        found = _read(file)
        recorded = record_baseline(found) if isinstance(found, RecallBenchmark) else record_expectation(found)
        _replace_file(file, recorded.to_text())
        print(f"Recorded {on_one_line(str(file))} again; read the difference before you commit it.")
        return
    if file.exists():
        raise UsageError(f"{file} exists; name a new file, or leave --conversation out to record its results again")
    fixture = record_expectation(asyncio.run(_record(file.stem, whose, chosen, limit)))
    _replace_file(file, fixture.to_text())
    turns = sum(step["operation"] == "commit_transcript" for step in fixture.operations)
    print(f"Recorded {format_count(turns, 'turn')} to {on_one_line(str(file))}.")


@command(app)
def compare(
    files: _Files,
    store: Annotated[
        list[str], option("--store", "PLACE", "An empty store to compare with a store in memory; repeatable.")
    ],
    as_json: Json = False,
) -> None:
    """Run fixtures in memory and on other stores: all must give the same fingerprints and reports.

    It exits with 1 if a store differs, or a fixture fails.
    """
    compared = [compare_stores(fixture, [IN_MEMORY, *store]) for fixture in _only_fixtures(files)]
    if as_json:
        print_json({"passed": all(each.passed for each in compared), "comparisons": compared})
    else:
        for each in compared:
            print(f"{'same   ' if each.passed else 'DIFFERS'}  {each.fixture_id}")
            _print_failures([failure for run in each.runs for failure in run.failures])
            _print_failures(each.differences)
        print(f"{sum(each.passed for each in compared)} of {len(compared)} are the same on {len(store) + 1} stores.")
    _exit_unless(all(each.passed for each in compared))


# --- files ------------------------------------------------------------------------------------------------------------


def _files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and the JSON files of folders."""
    found = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not found:
        raise InvalidFixture("FILE", "there is no .json file in this folder")
    return found


def _read(file: Path) -> ReplayFixture | RecallBenchmark:
    text = read_fixture_file(file)
    try:
        if format_of(text) == BENCHMARK_FORMAT:
            return RecallBenchmark.from_json(text)
        return ReplayFixture.from_json(text)
    except InvalidFixture as error:
        problem = error
    raise InvalidFixture(f"{file}, {problem.field}", problem.problem)


def _only_fixtures(files: Sequence[Path]) -> list[ReplayFixture]:
    found = [_read(file) for file in _files_of(files)]
    return [each for each in found if isinstance(each, ReplayFixture)]


def _replace_file(file: Path, text: str) -> None:
    """Write a whole file or nothing."""
    handle, beside = open_beside(file.resolve())
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode())
        beside.replace(file.resolve())
    finally:
        beside.unlink(missing_ok=True)


async def _record(fixture_id: str, whose: ConversationOptions, chosen: LocalStoreOptions, limit: int) -> ReplayFixture:
    space = whose.space or read_settings().space
    identity = MemoryIdentity(space, whose.subject, whose.agent, whose.app, whose.project)
    async with open_governed(chosen, identity, whose.profile) as (engine, governance):
        runtime = TranscriptOperations(engine, LOCAL_OPERATOR, governance)
        return await record_conversation(runtime, whose.scope, fixture_id, max_turns=limit, profile=whose.profile)


# --- output -----------------------------------------------------------------------------------------------------------


def _print_report(report: ReplayRunReport | BenchmarkReport) -> None:
    word = "passed" if report.passed else "FAILED"
    if isinstance(report, BenchmarkReport):
        print(f"{word}  {report.suite}: {report.passed_cases} of {report.cases} cases")
        for result in report.results:
            _print_failures([ReplayFailure(result.measurement.name, problem) for problem in result.problems])
        return
    print(f"{word}  {report.fixture_id}: {format_count(report.operations_run, 'operation')} on {report.backend}")
    _print_failures(report.failures)


def _print_failures(failures: Iterable[ReplayFailure]) -> None:
    for failure in failures:
        print(f"  {failure.stage}: {on_one_line(failure.reason)}")


def _exit_unless(passed: bool) -> None:
    if not passed:
        raise typer.Exit(ExitCode.PROBLEM)
