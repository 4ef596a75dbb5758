"""Parses the control plane's arguments: sources, payloads, records, ids, hooks. Errors name the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, overload

from holdfast.domain.contract import (
    ANY_PROVIDER,
    HookKind,
    NewRecord,
    RecordHandle,
    SourceKind,
    SourcePayload,
    SourceRef,
)
from holdfast.errors import InvalidInput
from holdfast.inputs import as_texts, parse_enum

T = TypeVar("T")

Source = SourceRef | Mapping[str, Any] | str
Payload = SourcePayload | Mapping[str, Any] | str
Record = NewRecord | Mapping[str, Any] | str
Records = Record | Iterable[Record]
Handle = str | RecordHandle
Handles = Handle | Iterable[Handle]
Hooks = Mapping[HookKind, bool] | Mapping[str, bool]


@overload
def source_from(value: Source, space: str) -> SourceRef: ...
@overload
def source_from(value: Source | None, space: str) -> SourceRef | None: ...
def source_from(value: Source | None, space: str) -> SourceRef | None:
    """Parse a source: a `SourceRef`, its fields as a dictionary, or only its kind."""
    if value is None or isinstance(value, SourceRef):
        return value
    if isinstance(value, str):
        value = {"kind": value}
    parts = _parse_fields(SourceRef, value, "source", without=("space",))
    kind = parse_enum(SourceKind, _require(parts, "kind", "source"), "source.kind")
    return SourceRef(**{**parts, "kind": kind, "space": space})


def payload_from(value: Payload) -> SourcePayload:
    """Parse a payload: a `SourcePayload`, its fields as a dictionary, or only its text."""
    if isinstance(value, SourcePayload):
        return value
    if isinstance(value, str):
        return SourcePayload(text=value)
    return SourcePayload(**_parse_fields(SourcePayload, value, "payload"))


def records_from(value: Records) -> tuple[NewRecord, ...]:
    if isinstance(value, str | Mapping | NewRecord):
        value = (value,)
    if not isinstance(value, Iterable):
        raise InvalidInput("records", f"expected a text, a record or several, got {type(value).__name__}")
    return tuple(_parse_record(each, f"records[{index}]") for index, each in enumerate(value))


def handle_from(value: Handle) -> RecordHandle:
    """Parse a record id or handle; a bare id belongs to the provider that serves the call."""
    return value if isinstance(value, RecordHandle) else RecordHandle(ANY_PROVIDER, value)


def handles_from(value: Handles) -> tuple[RecordHandle, ...]:
    if isinstance(value, RecordHandle):
        return (value,)
    return tuple(handle_from(each) for each in as_texts(value, "record_ids"))


def hooks_from(value: Hooks) -> dict[HookKind, bool]:
    if not isinstance(value, Mapping):
        raise InvalidInput("hooks", f"expected a dictionary of true or false, got {type(value).__name__}")
    return {parse_enum(HookKind, name, "hooks"): enabled for name, enabled in value.items()}


def _parse_record(value: Record, field: str) -> NewRecord:
    if isinstance(value, NewRecord):
        return value
    if isinstance(value, str):
        return NewRecord(value)
    named = _parse_fields(NewRecord, value, field)
    _require(named, "text", field)
    return NewRecord(**named)


def _parse_fields(kind: type[T], mapping: object, field: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a dataclass's fields from a dictionary. A mistyped name is refused, not ignored."""
    if not isinstance(mapping, Mapping):
        raise InvalidInput(field, f"expected a dictionary, got {type(mapping).__name__}")
    known = [each.name for each in fields(kind) if each.name not in without]  # type: ignore[arg-type]
    for name in mapping:
        if name not in known:
            raise InvalidInput(field, f"has an unknown field {name!r:.60}; known are {', '.join(known)}")
    return {name: value for name, value in mapping.items() if value is not None}


def _require(values: Mapping[str, Any], name: str, field: str) -> Any:
    if name not in values:
        raise InvalidInput(f"{field}.{name}", "is missing")
    return values[name]
