"""`resource`: documents stored for search."""

from __future__ import annotations

import errno
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

import holdfast
from holdfast.cli.exits import ExitCode, UsageError, code_for, print_error, require_terminal
from holdfast.cli.formatting import format_count, format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, Most, OnlyText, ScopeOptions, StoreOptions, Yes, command, group, option
from holdfast.cli.paging import iterate_pages
from holdfast.cli.progress import UploadProgress, uploads
from holdfast.cli.store_access import open_memory, run_due_jobs, warn_missing_vectors
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.forgetting import ForgetReceipt
from holdfast.domain.resources import MAX_CONTENT_BYTES, Resource
from holdfast.domain.scope import Scope
from holdfast.errors import ConfigurationError, Conflict, HoldfastError, InvalidDocument, InvalidInput, OutcomeUnknown
from holdfast.inputs import ScopeKwargs

app = group("Store documents for search: text, markdown, HTML, PDF and DOCX.")

Files = Annotated[list[Path], typer.Argument(metavar="FILE", hidden=True)]
Ids = Annotated[list[str], typer.Argument(metavar="ID", hidden=True)]
Name = Annotated[OnlyText, option("--name", "NAME", "Its name.  [default: the file's name]")]
Uri = Annotated[OnlyText, option("--uri", "URI", "Its origin; search results point there.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")]

_TEXT_TYPES = {
    **dict.fromkeys((".md", ".markdown"), "text/markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "text/html"),
}
# Errors of one file only; any other error would hit the next file too.
_OF_ONE_FILE = (InvalidInput, Conflict, ConfigurationError, OutcomeUnknown)


@dataclass(frozen=True, slots=True)
class AddedFile:
    file: str
    resource: Resource
    reused: bool


@dataclass(frozen=True, slots=True)
class FailedFile:
    file: str
    code: str
    message: str


@dataclass(slots=True)
class FileResults:
    """The result of each file so far."""

    added: list[AddedFile] = field(default_factory=list)
    failed: list[FailedFile] = field(default_factory=list)
    exit_code: ExitCode = ExitCode.OK

    def fail(self, path: Path, error: HoldfastError | OSError) -> None:
        """Record a failure. The exit code is the one that all failures share, else PROBLEM."""
        if isinstance(error, OSError):
            failure, code = FailedFile(str(path), "io_error", error.strerror or str(error)), ExitCode.PROBLEM
        else:
            failure, code = FailedFile(str(path), error.code, str(error)), code_for(error)
        self.exit_code = code if not self.failed or self.exit_code is code else ExitCode.PROBLEM
        self.failed.append(failure)


@command(app)
def add(
    files: Files,
    place: ScopeOptions,
    chosen: StoreOptions,
    name: Name = None,
    uri: Uri = None,
    as_json: Json = False,
) -> None:
    """Store documents, so that `search` finds their text. The same file in the same scope is stored once.

    Each FILE is text, markdown, HTML, PDF or DOCX, of 25 MB at most. A file that fails does not stop the others; the
    exit code reports it.
    """
    if len(files) > 1 and (name is not None or uri is not None):
        raise UsageError("--name and --uri belong to one file; give one with them")
    where = place.scope_kwargs()
    Scope(**where)  # a wrong scope is not the error of a single file
    outcome = FileResults()
    usable = _check_files(files, outcome)
    try:
        if usable:
            _add_all(usable, chosen, where, name, uri, outcome, quiet=as_json)
    finally:
        _print_results(outcome, as_json)
    raise typer.Exit(outcome.exit_code)


@command(app, "list")
def list_(place: ScopeOptions, chosen: StoreOptions, limit: Most = None, as_json: Json = False) -> None:
    """List resources, newest first: each with its id, name, type and size."""
    where = place.scope_kwargs()
    with open_memory(chosen) as memory:
        found = iterate_pages(lambda limit, cursor: memory.resources(limit=limit, cursor=cursor, **where), limit)
        if as_json:
            print_json({"resources": list(found)})
            return
        lines = (f"{format_time(one.recorded_at)}  {_line(one)}" for one in found)
        from holdfast.cli import render

        render.show_lines(lines, "There are no resources here; `holdfast resource add FILE` adds one.")


@command(app)
def delete(
    ids: Ids,
    place: ScopeOptions,
    chosen: StoreOptions,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Permanently delete resources with all their text. If an ID does not exist, nothing is deleted.

    It shows what it will delete and asks first. Without a terminal to ask on, it needs --yes.
    """
    require_terminal(yes or dry_run, "add --yes, or look first with --dry-run")
    where = place.scope_kwargs()
    receipts: list[ForgetReceipt] = []
    with open_memory(chosen) as memory:
        doomed = [memory.resource(resource_id, **where) for resource_id in dict.fromkeys(ids)]
        if not as_json:
            print(f"This forgets {format_count(len(doomed), 'resource')}, with all their text:")
            for one in doomed:
                print(f"  {_line(one)}")
        if not dry_run and (yes or typer.confirm("Forget all of it for good?", err=True)):
            receipts += [memory.delete_resource(one.id, **where) for one in doomed]
            run_due_jobs(memory, chosen)
    if as_json:
        print_json({"resources": doomed, "receipts": receipts})
    else:
        _show(receipts)
    if not receipts and not dry_run:
        raise typer.Exit(ExitCode.PROBLEM)


# --- adding -----------------------------------------------------------------------------------------------------------


def _check_files(files: list[Path], outcome: FileResults) -> dict[Path, int]:
    """The usable files with their sizes. Checked before the store is opened: a typo leaves no empty store."""
    sizes: dict[Path, int] = {}
    for path in files:
        try:
            sizes[path] = _size(path)
        except OSError as error:
            outcome.fail(path, error)
    return sizes


def _size(path: Path) -> int:
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, f"is a folder; name the files in it, such as {path / '*.md'}", str(path))
    return found.st_size


def _add_all(
    sizes: dict[Path, int],
    chosen: StoreOptions,
    where: ScopeKwargs,
    name: str | None,
    uri: str | None,
    outcome: FileResults,
    *,
    quiet: bool,
) -> None:
    with (
        uploads(list(sizes.values()), quiet=quiet) as bar,
        open_memory(chosen, create=True, sending=bar.report_sent) as memory,
    ):
        for path in sizes:
            try:
                outcome.added.append(_add_file(memory, path, where, name, uri, bar))
            except (*_OF_ONE_FILE, OSError) as error:
                outcome.fail(path, error)
        if any(not added.reused for added in outcome.added):
            warn_missing_vectors(memory, where)


def _add_file(
    memory: holdfast.Memory, path: Path, where: ScopeKwargs, name: str | None, uri: str | None, bar: UploadProgress
) -> AddedFile:
    bar.begin(path.name)
    try:
        content = _read(path)
        # With another name, the suffix that tells the text format may be missing. Others are recognized by content.
        media_type = None if name is None else _TEXT_TYPES.get(path.suffix.lower())
        added = memory.add_resource(
            content, name=path.name if name is None else name, media_type=media_type, external_uri=uri, **where
        )
    except OutcomeUnknown as error:
        raise OutcomeUnknown(f"{error}; adding the same file again is safe, it is stored once") from error
    finally:
        bar.end()
    return AddedFile(str(path), added.resource, added.reused)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_CONTENT_BYTES + 1)
    if len(content) > MAX_CONTENT_BYTES:
        raise InvalidDocument("content", f"has more than {MAX_CONTENT_BYTES >> 20} MB, which is the limit; split it")
    return content


# --- output -----------------------------------------------------------------------------------------------------------


def _print_results(outcome: FileResults, as_json: bool) -> None:
    """Print the results; nothing if no file was reached."""
    if as_json and (outcome.added or outcome.failed):
        print_json({"added": outcome.added, "failed": outcome.failed})
    elif not as_json:
        for one in outcome.added:
            done = "Already there:" if one.reused else "Stored:"
            print(f"{done} {on_one_line(one.file)} as {_line(one.resource)}")
    for failure in outcome.failed:
        print_error(failure.code, f"{failure.file}: {failure.message}", None, as_json)


def _line(one: Resource) -> str:
    size = f"{format_count(one.bytes, 'byte')}, {format_count(one.chunks, 'chunk')}"
    line = f"{one.id}  {one.name}  {one.media_type}, {size}"
    return on_one_line(line if one.external_uri is None else f"{line}, from {one.external_uri}")


def _show(receipts: list[ForgetReceipt]) -> None:
    if not receipts:
        print("Nothing was deleted.")
        return
    from holdfast.cli import render

    for receipt in receipts:
        render.show_receipt(render.console(), receipt)
