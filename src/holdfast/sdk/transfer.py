"""The runtime's operations that move memory: continuity snapshots, and whole spaces as files."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from holdfast.domain.access import Action
from holdfast.domain.checks import checked_instance
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.runtime_api.exchange import (
    MemoryExportReport,
    MemoryExportRequest,
    MemoryImportReport,
    MemoryImportRequest,
    MemorySpaceExportReport,
    MemorySpaceExportRequest,
    MemorySpaceImportReport,
    MemorySpaceImportRequest,
)
from holdfast.domain.space_file import MAX_HEADER_BYTES, MAX_LINE_BYTES, is_header
from holdfast.errors import InvalidInput, InvalidSnapshot
from holdfast.pending_call import pending_methods
from holdfast.private_files import open_beside
from holdfast.runtime.transcripts.export import ExportContinuity
from holdfast.runtime.transcripts.import_ import ImportContinuity
from holdfast.runtime.transcripts.space import ExportSpace, ImportSpace, Tell, ignore_progress
from holdfast.sdk.operations import Operations, request_from


@pending_methods("runtime")
class TransferOperations(Operations):
    async def export(self, request: MemoryExportRequest | str | None = None) -> MemoryExportReport:
        """Export a continuity snapshot of a chat (a text is its id): its owner's memories and its last turns."""
        options = MemoryExportRequest() if request is None else request_from(request, MemoryExportRequest, "chat_id")

        def make(governance: Governance) -> ExportContinuity:
            checked_instance(options, MemoryExportRequest)
            chat = None if options.chat_id is None else MemoryScope(chat_id=options.chat_id)
            return ExportContinuity(governance, options, self._resolve_scope(options.scope or chat))

        return await self._perform(Action.EXPORT, make)

    async def import_(self, request: MemoryImportRequest | str) -> MemoryImportReport:
        """Import a continuity snapshot, or its document, all or nothing. Repeats of the same one change nothing."""
        wanted = request_from(request, MemoryImportRequest, "snapshot")
        return await self._perform(
            Action.IMPORT,
            lambda governance: ImportContinuity(governance, checked_instance(wanted, MemoryImportRequest)),
        )

    async def export_space(
        self, request: MemorySpaceExportRequest | str | None = None, *, tell: Tell = ignore_progress
    ) -> MemorySpaceExportReport:
        """Export all records of the space as a file with checksums; a text is its path.

        `tell` receives progress: done, total.
        """
        options = (
            MemorySpaceExportRequest() if request is None else request_from(request, MemorySpaceExportRequest, "path")
        )
        with contextlib.ExitStack() as stack:

            def make(governance: Governance) -> ExportSpace:
                checked_instance(options, MemorySpaceExportRequest)
                # Inside the gate, so that an unwritable path is audited.
                out = stack.enter_context(_output(options.path, governance.budget.snapshot_bytes))
                outs.append(out)
                return ExportSpace(governance, options.include_private, out.write, options.mode_input, tell)

            outs: list[_Output] = []
            try:
                report = await self._perform(Action.EXPORT_SPACE, make)
            except BaseException:
                # The store's thread may still be writing.
                for out in outs:
                    out.stopped = True
                raise
            return outs[0].publish(report)

    async def import_space(
        self, request: MemorySpaceImportRequest | str, *, tell: Tell = ignore_progress
    ) -> MemorySpaceImportReport:
        """Import a space from a complete file, or its path. A repeated import continues where it stopped."""
        wanted = request_from(request, MemorySpaceImportRequest, "path")
        return await self._perform(
            Action.IMPORT_SPACE,
            lambda governance: ImportSpace(
                governance, _open_source(wanted, governance.budget.snapshot_bytes), wanted.mode_input, tell
            ),
        )


class _Output:
    """The output of an export: a temporary file that is renamed when complete, or a bounded buffer in memory."""

    def __init__(self, stream: BinaryIO, path: Path | None, most: int | None, beside: Path | None = None) -> None:
        self.stopped = False
        self._stream = stream
        self._path = path
        self._most = most
        self._beside = beside
        self._size = 0

    def write(self, line: bytes) -> None:
        if self.stopped:
            raise InvalidInput("export", "was stopped")
        self._size += len(line)
        if self._most is not None and self._size > self._most:
            raise InvalidInput("path", f"is needed: the space has more than {self._most:,} bytes")
        self._stream.write(line)

    def publish(self, report: MemorySpaceExportReport) -> MemorySpaceExportReport:
        """Publish the output under its name, and return the report with its content or path."""
        if not report.accepted:
            return report
        if self._path is None or self._beside is None:
            assert isinstance(self._stream, io.BytesIO)
            return replace(report, content=self._stream.getvalue())
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._beside.replace(self._path.resolve())
        return replace(report, path=str(self._path))


@contextlib.contextmanager
def _output(path: str | PathLike[str] | None, most: int) -> Iterator[_Output]:
    if path is None:
        yield _Output(io.BytesIO(), None, most)
        return
    target = _path(path)
    try:
        _check_replaceable(target)
        handle, beside = open_beside(target.resolve())
    except OSError as error:
        problem = error.strerror
    else:
        with contextlib.ExitStack() as stack:
            stack.callback(beside.unlink, missing_ok=True)
            yield _Output(stack.enter_context(os.fdopen(handle, "wb")), target, None, beside)
        return
    raise InvalidInput("path", f"{target} cannot be written: {problem}")


def _check_replaceable(target: Path) -> None:
    """Refuse to replace anything but an earlier export, such as a store or device named by mistake."""
    if target.is_dir():
        raise InvalidInput("path", f"{target} is a directory; name a file in it")
    if not target.exists():
        return
    if not target.is_file():
        raise InvalidInput("path", f"{target} is not a regular file; name a new one")
    with target.open("rb") as stream:
        first = stream.readline(MAX_HEADER_BYTES)
    if first and not is_header(first):
        raise InvalidInput("path", f"{target} exists and is not an exported space; name another file")


def _open_source(given: object, most: int) -> Callable[[], Iterator[bytes]]:
    request = checked_instance(given, MemorySpaceImportRequest)
    if (request.path is None) is (request.content is None):
        raise InvalidInput("path", "or the content must be given, and not both")
    if request.content is not None:
        if not isinstance(request.content, bytes):
            raise InvalidInput("content", f"expected bytes, got {type(request.content).__name__}")
        if len(request.content) > most:
            raise InvalidSnapshot("content", f"has more than {most:,} bytes; give the path of a file instead")
        content = request.content
        return lambda: _split(io.BytesIO(content))
    source = _path(request.path)
    try:
        if source.exists() and not source.is_file():
            raise InvalidInput("path", f"{source} is not a regular file; it is read twice, so save it to a file first")
        source.open("rb").close()
    except OSError as error:
        raise InvalidInput("path", f"{source} cannot be read: {error.strerror}") from None
    return lambda: _read(source)


def _read(source: Path) -> Iterator[bytes]:
    with source.open("rb") as stream:
        yield from _split(stream)


def _split(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(MAX_LINE_BYTES):
        yield line


def _path(path: object) -> Path:
    if not isinstance(path, str | PathLike) or not str(path).strip() or "\x00" in str(path):
        raise InvalidInput("path", "must be the path of a file")
    return Path(path)
