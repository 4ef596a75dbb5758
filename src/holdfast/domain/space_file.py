"""The file format of an exported space: JSON lines for the header, every record, and a trailer with checksums.

The trailer's `sha256` covers every byte before it. The content fingerprint covers the records only, so that two exports
of the same content have the same one, whatever their time and store.

A file without private material holds no turns: transcripts are raw text. Its header counts those that it leaves out.
Files of version 1 held the turns of the export view, and do not say what they leave out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any

from holdfast.domain.archive_format import Archived, ArchivedTurn, decode_record, encode_record, is_private
from holdfast.domain.canonical import canonical
from holdfast.domain.checks import checked_flag, checked_whole
from holdfast.domain.presentable import Presentable
from holdfast.domain.scope import check_part
from holdfast.domain.times import checked_iso_time
from holdfast.domain.transcript_turns import MAX_SEQUENCE
from holdfast.errors import InvalidInput, InvalidSnapshot

FORMAT = "holdfast_space"
VERSION = 2
_VERSIONS = (1, VERSION)
MAX_LINE_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
_KINDS = ("turn", "memory", "resource", "alias")  # in the order of the file


@dataclass(frozen=True, slots=True)
class LeftOut(Presentable):
    """The turns of a space that its file does not hold, and the number of their messages."""

    turns: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class SpaceFileHeader:
    """The first line. `left_out` is None in a file of version 1."""

    space: str
    exported_at: datetime
    include_private: bool
    left_out: LeftOut | None = LeftOut()

    @property
    def version(self) -> int:
        return 1 if self.left_out is None else VERSION


@dataclass(slots=True)
class SpaceFileWriter:
    """Makes the lines in order, and keeps the checksums and counts."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))
    size_bytes: int = 0
    _all: Any = field(default_factory=hashlib.sha256)
    _content: Any = field(default_factory=hashlib.sha256)

    def header(self, header: SpaceFileHeader) -> bytes:
        left_out = {} if header.left_out is None else {"left_out": asdict(header.left_out)}
        return self._encode_line(
            {
                "type": "header",
                "format": FORMAT,
                "version": header.version,
                "space": header.space,
                "exported_at": header.exported_at.isoformat(),
                "include_private": header.include_private,
                **left_out,
            }
        )

    def line(self, archived: Archived) -> bytes:
        value = encode_record(archived)
        self.counts[value["type"]] += 1
        line = self._encode_line(value)
        self._content.update(line)
        return line

    def trailer(self) -> bytes:
        sums = {"content_fingerprint": self.content_fingerprint, "sha256": self._all.hexdigest()}
        return self._encode_line({"type": "trailer", "counts": self.counts, **sums})

    @property
    def content_fingerprint(self) -> str:
        return str(self._content.hexdigest())

    def _encode_line(self, value: object) -> bytes:
        line = canonical(value) + b"\n"
        self._all.update(line)
        self.size_bytes += len(line)
        return line


@dataclass(frozen=True, slots=True)
class VerifiedSpaceFile:
    """The header and totals of a valid file."""

    header: SpaceFileHeader
    counts: dict[str, int]
    content_fingerprint: str

    @property
    def records(self) -> int:
        return sum(self.counts.values())


def verify_space_file(lines: Iterable[bytes], target_space: str) -> VerifiedSpaceFile:
    """Validate a file without importing it; raises `InvalidSnapshot` that names the wrong line.

    Records are not only counted and hashed but built, as for that space: what passes here can be stored.
    """
    everything, content = hashlib.sha256(), hashlib.sha256()
    counts = dict.fromkeys(_KINDS, 0)
    header: SpaceFileHeader | None = None
    trailer: dict[str, Any] | None = None
    sha256, last = "", 0
    for number, line in enumerate(lines, 1):
        if trailer is not None:
            raise InvalidSnapshot(f"line {number}", "is after the trailer; the file is damaged, export it again")
        value = _parse_line(line, number)
        if header is None:
            header = _parse_header(value)
        elif value.get("type") == "trailer":
            trailer = value
            sha256 = everything.hexdigest()
        else:
            kind = _check_record(value, number, target_space, header)
            last = _check_order(kind, last, number)
            counts[kind] += 1
            content.update(line)
        everything.update(line)
    if header is None or trailer is None:
        problem = "has no trailer, so it is incomplete" if header else "is empty"
        raise InvalidSnapshot("file", f"{problem}; export it again")
    expected = {"counts": counts, "content_fingerprint": content.hexdigest(), "sha256": sha256, "type": "trailer"}
    if trailer != expected:
        wrong = next(name for name in (*expected, *trailer) if trailer.get(name) != expected.get(name))
        raise InvalidSnapshot(wrong, "does not match the content; the file is damaged, export it again")
    return VerifiedSpaceFile(header, counts, content.hexdigest())


def is_header(line: bytes) -> bool:
    """True if this is the first line of an exported space, of any version."""
    try:
        value = _parse_line(line, 1)
    except InvalidSnapshot:
        return False
    return value.get("type") == "header" and value.get("format") == FORMAT


def read_records(lines: Iterable[bytes], target_space: str) -> Iterator[Archived]:
    """Yield the records of a verified file."""
    for number, line in enumerate(lines, 1):
        value = _parse_line(line, number)
        if value.get("type") not in ("header", "trailer"):
            yield decode_record(value, target_space)


def _parse_line(line: bytes, number: int) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise InvalidSnapshot(f"line {number}", "has no line end; the file is incomplete, export it again")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidSnapshot(f"line {number}", "is not a JSON object; this is not an exported space, or is damaged")
    return value


def _parse_header(value: dict[str, Any]) -> SpaceFileHeader:
    if value.get("type") != "header" or value.get("format") != FORMAT:
        raise InvalidSnapshot("format", f"this is not an exported space: its first line does not have {FORMAT}")
    version = value.get("version")
    if version not in _VERSIONS or isinstance(version, bool):
        raise InvalidSnapshot("version", f"must be at most {VERSION}, not {version!r:.40}; use a newer Holdfast")
    try:
        check_part("space", value.get("space"))
        exported_at = checked_iso_time(value.get("exported_at"), "exported_at")
        include_private = checked_flag(value.get("include_private"), "include_private")
        left_out = None if version == 1 else _parse_left_out(value.get("left_out"))
        return SpaceFileHeader(value["space"], exported_at, include_private, left_out)
    except InvalidInput as error:
        problem = error
    raise InvalidSnapshot(f"line 1, {problem.field}", problem.problem)


def _parse_left_out(value: object) -> LeftOut:
    names = [part.name for part in fields(LeftOut)]
    if not isinstance(value, dict) or set(value) != set(names):
        raise InvalidInput("left_out", f"must be an object with {' and '.join(names)}")
    return LeftOut(*(checked_whole(value[name], f"left_out.{name}", 0, MAX_SEQUENCE) for name in names))


def _check_record(value: dict[str, Any], number: int, space: str, header: SpaceFileHeader) -> str:
    try:
        found = decode_record(value, space)
    except InvalidInput as error:
        problem = error
    else:
        if not header.include_private and is_private(found):
            raise InvalidSnapshot(f"line {number}", "is private, but the header says include_private is false")
        if header.version > 1 and not header.include_private and isinstance(found, ArchivedTurn):
            raise InvalidSnapshot(f"line {number}", "is a turn, but the header says include_private is false")
        return str(value["type"])
    raise InvalidSnapshot(f"line {number}, {problem.field}", problem.problem)


def _check_order(kind: str, last: int, number: int) -> int:
    place = _KINDS.index(kind)
    if place < last:
        raise InvalidSnapshot(f"line {number}", f"a {kind} comes after a {_KINDS[last]}; the file is damaged")
    return place
