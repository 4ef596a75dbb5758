"""Implements `ports.DocumentLoader`: detects a file's type, parses it in a sandbox, and cuts it into chunks."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import threading
from itertools import islice
from pathlib import Path

from holdfast.documents.blocks import DEEPEST_HEADING, DocumentBlock, ParsedDocument, build_document, paragraphs
from holdfast.documents.chunking import split_into_chunks
from holdfast.documents.decoding import decode_text
from holdfast.documents.file_types import FileType, detect_type
from holdfast.documents.limits import MEGABYTE, Limits
from holdfast.documents.sandbox import run_program
from holdfast.domain.resources import Document
from holdfast.errors import ConfigurationError, DocumentsBusy, InvalidDocument
from holdfast.loops import ThreadPool, running_loop

_PROGRAM = Path(__file__).with_name("__main__.py")
_LIBRARIES = {
    FileType.MARKDOWN: "markdown_it",
    FileType.HTML: "selectolax",
    FileType.PDF: "pypdf",
    FileType.DOCX: "docx",
}
# Documents have their own thread pool, so that they do not block other work.
_AT_ONCE = 2
# Each waiting call holds its document in memory, and a slot that another call needs.
_WAITING = 8


class DocumentReader:
    """Reads at most two documents at a time, with a bounded queue; more are refused at once.

    `close` is not needed: its threads end with the process.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._threads = ThreadPool(_AT_ONCE, "holdfast-documents")
        self._places = threading.BoundedSemaphore(_AT_ONCE + _WAITING)

    async def read(self, content: bytes, media_type: str | None, name: str) -> Document:
        if running_loop() is None:
            return self._read(content, media_type, name)
        if not self._places.acquire(blocking=False):
            raise DocumentsBusy("too many documents are being read; trying again is safe")
        try:
            reading = self._threads.submit(self._read, content, media_type, name)
        except BaseException:
            self._places.release()
            raise
        # Release when the read ends, not when the caller leaves: the thread keeps reading.
        reading.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(reading)

    def _read(self, content: bytes, media_type: str | None, name: str) -> Document:
        limits = self._limits
        if len(content) > limits.max_bytes:
            size, most = len(content) / MEGABYTE, limits.max_bytes / MEGABYTE
            raise InvalidDocument("content", f"has {size:,.1f} MB; at most {most:,.3g} MB can be read: split it")
        if not content:
            raise InvalidDocument("content", "is empty; there is nothing to store")
        kind = detect_type(content, media_type, name)
        found = self._parse(kind, content, media_type)
        if not found.blocks:
            is_scan = kind is FileType.PDF
            advice = (
                ": its pages are images; send a PDF with a text layer" if is_scan else "; there is nothing to store"
            )
            raise InvalidDocument("content", f"holds no text{advice}")
        chunks = tuple(islice(split_into_chunks(found.blocks), limits.max_chunks + 1))
        if len(chunks) > limits.max_chunks:
            raise InvalidDocument("content", f"gives more than {limits.max_chunks:,} chunks; split it")
        return Document(kind.value, found.title, chunks, sum(len(block.text) for block in found.blocks))

    def _parse(self, kind: FileType, content: bytes, media_type: str | None) -> ParsedDocument:
        limits = self._limits
        if kind in (FileType.TEXT, FileType.MARKDOWN, FileType.HTML):
            text = decode_text(content, media_type, html=kind is FileType.HTML)
            if kind is FileType.TEXT:
                return build_document(None, map(DocumentBlock, paragraphs(text)), limits.max_characters)
            content = text.encode("utf-8", "replace")
        _check_installation(kind)
        limit_arguments = [kind.value, *map(str, (limits.max_characters, limits.memory_bytes, limits.cpu_seconds))]
        # -P and -s: import from the same places as this process, never from the current directory.
        program = [sys.executable, "-P", "-s", "-B", str(_PROGRAM), *limit_arguments]
        return parse_output(run_program(program, content, limits), limits.max_characters)


def _check_installation(kind: FileType) -> None:
    library = _LIBRARIES[kind]
    if importlib.util.find_spec(library) is None:
        problem = f"reading {kind.value} needs {library}; install it with: pip install 'holdfast[serve]'"
        raise ConfigurationError(problem)
    if importlib.util.find_spec("resource") is None:
        problem = f"{kind.value} is read only where a process can be limited, as on Linux and macOS; send plain text"
        raise ConfigurationError(problem)


def parse_output(answer: bytes, max_characters: int) -> ParsedDocument:
    """Validate the child's output as untrusted: the document may control it."""
    try:
        output = json.loads(answer)
        if "problem" in output:
            raise InvalidDocument("content", _text(output["problem"])[:400])
        blocks = [DocumentBlock(_text(text), _level(level)) for level, text in output["blocks"]]
        return build_document(output["title"], blocks, max_characters)
    except (ValueError, TypeError, KeyError, RecursionError):
        problem = "is damaged: its reader returned invalid output; save it again, or send its text instead"
        raise InvalidDocument("content", problem) from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a block is a text")
    return value


def _level(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= DEEPEST_HEADING:
        raise ValueError("a level is a small number")
    return value
