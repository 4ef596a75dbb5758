"""Implements `ports.DocumentLoader`: detects a file's type, parses it, and cuts it into chunks.

Plain text and markdown are read here, in time linear in their size; all other types in a sandboxed process.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from holdfast.documents.blocks import (
    DocumentBlock,
    build_document,
    clean_title,
    has_controls,
    lines_of,
    paragraphs,
)
from holdfast.documents.chunking import cut_document, too_many_chunks
from holdfast.documents.decoding import declared_encodings, decode_text
from holdfast.documents.fair_pool import FairPool, Shares
from holdfast.documents.file_types import FileType, detect_type
from holdfast.documents.kernel import Barrier, available_barriers
from holdfast.documents.limits import CHUNK_CHARS, MEGABYTE, Limits
from holdfast.documents.markdown import read_markdown
from holdfast.documents.sandbox import run_program
from holdfast.domain.resources import Document
from holdfast.errors import ConfigurationError, InvalidDocument
from holdfast.installation import install_command
from holdfast.loops import running_loop

T = TypeVar("T")
_PROGRAM = Path(__file__).with_name("__main__.py")
_LIBRARIES = {FileType.HTML: "lxml", FileType.PDF: "pypdf", FileType.DOCX: "docx"}
_PLAIN = (FileType.TEXT, FileType.MARKDOWN)
# Plain texts have a lane of their own: they are short work, and need not wait for other documents.
_PLAIN_SHARES = Shares(at_once=1, at_once_each=1, waiting=256, waiting_each=32)
# One place is always another caller's. A waiting document is in memory.
_SHARES = Shares(at_once=2, at_once_each=1, waiting=64, waiting_each=8)
# All threads share the interpreter, and a caller's search may need it.
_WORK_SECONDS, _PAUSE_SECONDS = 0.002, 0.0003


class DocumentReader:
    """Reads the documents of many callers, in turn, with bounded queues; more are refused at once.

    Where the kernel offers no barrier, it reads plain texts alone, unless `unconfined` documents are allowed.
    """

    def __init__(
        self, limits: Limits | None = None, *, unconfined: bool = False, barriers: Barrier | None = None
    ) -> None:
        self._limits = limits or Limits()
        self._unconfined = unconfined
        self._barriers = barriers
        self._plain = FairPool("holdfast-texts", _PLAIN_SHARES)
        self._sandboxed = FairPool("holdfast-documents", _SHARES)

    async def read(self, content: bytes, media_type: str | None, name: str, caller: str) -> Document:
        kind = self._check(content, media_type, name)
        if running_loop() is None:
            return self._read(kind, content, media_type)
        pool = self._plain if kind in _PLAIN else self._sandboxed
        return await asyncio.wrap_future(pool.submit(caller, partial(self._read, kind, content, media_type)))

    async def run_in_turn(self, caller: str, work: Callable[[], T]) -> T:
        if running_loop() is None:
            return work()
        return await asyncio.wrap_future(self._plain.submit(caller, partial(_run_and_pause, work)))

    def _check(self, content: bytes, media_type: str | None, name: str) -> FileType:
        if len(content) > self._limits.max_bytes:
            size, most = len(content) / MEGABYTE, self._limits.max_bytes / MEGABYTE
            raise InvalidDocument("content", f"has {size:,.1f} MB; at most {most:,.3g} MB can be read: split it")
        if not content:
            raise InvalidDocument("content", "is empty; there is nothing to store")
        return detect_type(content, media_type, name)

    def _read(self, kind: FileType, content: bytes, media_type: str | None) -> Document:
        read = self._read_plain if kind in _PLAIN else self._read_sandboxed
        document = read(kind, content, media_type)
        if not document.chunks:
            is_scan = kind is FileType.PDF
            advice = (
                ": its pages are images; send a PDF with a text layer" if is_scan else "; there is nothing to store"
            )
            raise InvalidDocument("content", f"holds no text{advice}")
        return document

    def _read_plain(self, kind: FileType, content: bytes, media_type: str | None) -> Document:
        limits = self._limits
        if len(content) > limits.max_plain_bytes:
            raise InvalidDocument("content", f"holds more than {limits.max_characters:,} characters of text; split it")
        text = decode_text(content, declared_encodings(content, media_type, html=False))
        lines = _with_pauses(lines_of(text))
        if kind is FileType.MARKDOWN:
            found = read_markdown(lines, limits.max_characters)
        else:
            found = build_document(None, map(DocumentBlock, paragraphs(lines)), limits.max_characters)
        chunks = cut_document(_with_pauses(found.blocks), limits.max_chunks)
        return Document(kind.value, found.title, chunks, found.characters)

    def _read_sandboxed(self, kind: FileType, content: bytes, media_type: str | None) -> Document:
        _check_installation(kind)
        barriers = available_barriers() if self._barriers is None else self._barriers
        if barriers is Barrier.NONE and not self._unconfined:
            problem = f"{kind.value} is read only behind a barrier of the kernel, and this system has none"
            raise ConfigurationError(f"{problem}; send plain text, or see `holdfast doctor`")
        limits = self._limits
        numbers = limits.max_characters, limits.max_chunks, limits.memory_bytes, limits.cpu_seconds, barriers.value
        encodings = declared_encodings(content, media_type, html=True) if kind is FileType.HTML else ()
        # -P and -s: import from the same places as this process, never from the current directory.
        program = [sys.executable, "-P", "-s", "-B", str(_PROGRAM), kind.value, *map(str, numbers), *encodings]
        return parse_output(kind, run_program(program, content, limits, barriers), limits)


def _run_and_pause(work: Callable[[], T]) -> T:
    result = work()
    time.sleep(_PAUSE_SECONDS)
    return result


def _with_pauses(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, and now and then let other threads run."""
    started = time.monotonic()
    for item in items:
        yield item
        if time.monotonic() - started > _WORK_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            started = time.monotonic()


def _check_installation(kind: FileType) -> None:
    library = _LIBRARIES[kind]
    if importlib.util.find_spec(library) is None:
        problem = f"reading {kind.value} needs {library}; install it with: {install_command('serve')}"
        raise ConfigurationError(problem)
    if importlib.util.find_spec("resource") is None:
        problem = f"{kind.value} is read only where a process can be limited, as on Linux and macOS; send plain text"
        raise ConfigurationError(problem)


def parse_output(kind: FileType, answer: bytes, limits: Limits) -> Document:
    """Validate the child's output as untrusted: the document may control it."""
    lines = _with_pauses(answer.split(b"\n"))
    try:
        head = json.loads(next(lines))
        if "problem" in head:
            raise InvalidDocument("content", _text(head["problem"])[:400])
        title = clean_title(head["title"])
        characters = _count(head["characters"], limits.max_characters)
        chunks = tuple(_chunk(json.loads(line)) for line in islice(lines, limits.max_chunks + 1))
    except (ValueError, TypeError, KeyError, RecursionError):
        problem = "is damaged: its reader returned invalid output; save it again, or send its text instead"
        raise InvalidDocument("content", problem) from None
    if len(chunks) > limits.max_chunks:
        raise too_many_chunks(limits.max_chunks)
    return Document(kind.value, title, chunks, characters)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a text")
    return value


def _count(value: object, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"expected a number up to {most}")
    return value


def _chunk(value: object) -> str:
    chunk = _text(value)
    if not chunk.strip() or len(chunk) > CHUNK_CHARS or has_controls(chunk):
        raise ValueError("a chunk is a short clean text")
    return chunk
