"""The file format of replay fixtures: JSON with the operations of a run and what they must lead to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, cast

from holdfast.domain.json_values import to_plain
from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.errors import InvalidFixture, InvalidInput
from holdfast.wire import JsonCodec

FORMAT = "holdfast_replay_fixture"
VERSION = 1
# The most operations of a fixture that a compact runner runs.
COMPACT_OPERATIONS = 16
MAX_FILE_BYTES = 64 * 1024 * 1024
_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplayExpectation(Presentable):
    """The expected result of a run. What is empty or 0 is not checked.

    `report_fingerprint` covers all fragments in their order, so that one too many is noticed, too.
    """

    state_fingerprint: str = ""
    event_fingerprint: str = ""
    lifecycle_operations: tuple[str, ...] = ()
    min_reports: int = 0
    required_report_fragments: tuple[str, ...] = ()
    report_fingerprint: str = ""


NOTHING_EXPECTED = ReplayExpectation()


@dataclass(frozen=True, slots=True)
class ReplayFixture(Presentable):
    """Operations to run on a new memory of this profile. `store_snapshot` holds the lines of an exported space."""

    fixture_id: str
    operations: tuple[Mapping[str, Any], ...]
    profile: str = DEFAULT_PROFILE
    embedder: str = "static"
    store_snapshot: tuple[Mapping[str, Any], ...] = ()
    expected: ReplayExpectation = NOTHING_EXPECTED

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.fixture_id):
            raise InvalidFixture(
                "fixture_id", f"must be at most 64 small letters, digits and hyphens, not {self.fixture_id!r:.80}"
            )
        try:
            profile = profile_of(self.profile)
        except InvalidInput as error:
            problem = error
        else:
            object.__setattr__(self, "profile", profile.name)
            return
        raise InvalidFixture(problem.field, problem.problem)

    @property
    def is_compact(self) -> bool:
        return len(self.operations) <= COMPACT_OPERATIONS

    @classmethod
    def from_json(cls, text: str | bytes) -> ReplayFixture:
        """Read a fixture; raises `InvalidFixture` for another kind, another version or an unknown field."""
        return read_document(cls, text, FORMAT, VERSION)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> ReplayFixture:
        return cls.from_json(read_fixture_file(path))

    def to_text(self) -> str:
        """Return the content of its file."""
        return write_document(self, FORMAT, VERSION)

    def expecting(self, expected: ReplayExpectation) -> ReplayFixture:
        return replace(self, expected=expected)


@cache
def _codec(kind: Any) -> JsonCodec:
    return JsonCodec(kind, closed=True)


def read_fixture_file(path: str | PathLike[str]) -> bytes:
    """Return the content of a fixture's file."""
    file = Path(path)
    try:
        if file.is_file() and file.stat().st_size > MAX_FILE_BYTES:
            raise InvalidFixture("file", f"{file} has more than {MAX_FILE_BYTES:,} bytes")
        return file.read_bytes()
    except OSError as error:
        problem = error.strerror
    raise InvalidFixture("file", f"{file} cannot be read: {problem}")


def format_of(text: str | bytes) -> str | None:
    """Return the `format` of a document; None if it has none."""
    found = _parse(text).get("format")
    return found if isinstance(found, str) else None


def read_document(kind: type[T], text: str | bytes, expected_format: str, version: int) -> T:
    """Build a dataclass from a document, whose `format` and `version` must be these."""
    document = _parse(text)
    if document.get("format") != expected_format:
        raise InvalidFixture("format", f"must be {expected_format}, not {document.get('format')!r:.60}")
    found = document.get("version")
    if found != version or isinstance(found, bool):
        raise InvalidFixture("version", f"must be {version}, not {found!r:.40}; record it again with this Holdfast")
    body = {name: value for name, value in document.items() if name not in ("format", "version")}
    return decode(kind, body)


def decode(kind: type[T], value: object, where: str = "") -> T:
    """Build a dataclass from a JSON value; an error names the field below `where`."""
    try:
        found: T = _codec(cast("Any", kind)).decode(json.dumps(value).encode())
    except InvalidFixture:
        raise
    except InvalidInput as error:
        problem = error
    else:
        return found
    # The codec calls the whole value "request".
    names = [name for name in (where, problem.field) if name not in ("", "request")]
    raise InvalidFixture(".".join(names) or "file", problem.problem)


def write_document(value: Any, named_format: str, version: int) -> str:
    """Write a dataclass as a document. Fields with their default are left out."""
    document = {"format": named_format, "version": version, **_to_document(value)}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _to_document(value: Any) -> Any:
    if is_dataclass(value):
        return {
            each.name: _to_document(found)
            for each in fields(value)
            if (found := getattr(value, each.name)) != each.default
        }
    return [_to_document(each) for each in value] if isinstance(value, tuple | list) else to_plain(value)


def _parse(text: str | bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InvalidFixture("file", "is not a JSON object; this is no replay fixture, or is damaged")
    return document
