"""Reading what callers of the control plane give: sources, payloads, records. What cannot be read is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from holdfast.domain.contract import NewRecord, SourceKind, SourcePayload, SourceRef
from holdfast.errors import InvalidInput
from holdfast.inputs import chosen

T = TypeVar("T")

Source = SourceRef | Mapping[str, Any] | str
Payload = SourcePayload | Mapping[str, Any] | str
Record = NewRecord | Mapping[str, Any] | str


def source_from(given: Source | None, space: str) -> SourceRef | None:
    """A `SourceRef`, its fields by name, or its kind alone."""
    if given is None or isinstance(given, SourceRef):
        return given
    if isinstance(given, str):
        given = {"kind": given}
    named = _named(SourceRef, given, "source", without=("space",))
    kind = chosen(SourceKind, _needed(named, "kind", "source"), "source.kind")
    return SourceRef(**{**named, "kind": kind, "space": space})


def needed_source(given: Source, space: str) -> SourceRef:
    found = source_from(given, space)
    if found is None:
        raise InvalidInput("source", "is missing; say where it comes from, such as manual_note")
    return found


def payload_from(given: Payload) -> SourcePayload:
    """A `SourcePayload`, its fields by name, or its text alone."""
    if isinstance(given, SourcePayload):
        return given
    if isinstance(given, str):
        return SourcePayload(text=given)
    return SourcePayload(**_named(SourcePayload, given, "payload"))


def records_from(given: Record | Iterable[Record]) -> tuple[NewRecord, ...]:
    if isinstance(given, str | Mapping | NewRecord):
        given = (given,)
    if not isinstance(given, Iterable):
        raise InvalidInput("records", f"expected a text, a record or several, got {type(given).__name__}")
    return tuple(_record(each, f"records[{index}]") for index, each in enumerate(given))


def _record(given: Record, field: str) -> NewRecord:
    if isinstance(given, NewRecord):
        return given
    if isinstance(given, str):
        return NewRecord(given)
    named = _named(NewRecord, given, field)
    _needed(named, "text", field)
    return NewRecord(**named)


def _named(kind: type[T], given: object, field: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a dataclass of ours, out of a dictionary. A mistyped one must not be taken for one left out."""
    if not isinstance(given, Mapping):
        raise InvalidInput(field, f"expected a dictionary, got {type(given).__name__}")
    known = [each.name for each in fields(kind) if each.name not in without]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise InvalidInput(field, f"has an unknown field {name!r:.60}; known are {', '.join(known)}")
    return {name: value for name, value in given.items() if value is not None}


def _needed(given: Mapping[str, Any], name: str, field: str) -> Any:
    if name not in given:
        raise InvalidInput(f"{field}.{name}", "is missing")
    return given[name]
