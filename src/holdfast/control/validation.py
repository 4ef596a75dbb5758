"""Checks of the control plane's requests before any provider is called. Each error names its field.

The types at the end are those of arguments with a structure of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from holdfast.domain.arguments import Rule, check_moment, number, text_rule
from holdfast.domain.checks import check_enum, checked_text
from holdfast.domain.conditions import MAX_VALUE_CHARS
from holdfast.domain.contract import (
    MAX_CONTENT_CHARS,
    MAX_HANDLES,
    MAX_METADATA,
    MAX_NAME_CHARS,
    MAX_RECORDS,
    MAX_SUMMARY_CHARS,
    MAX_TYPE_CHARS,
    Data,
    FieldName,
    HookContext,
    HookKind,
    NewRecord,
    RecordHandle,
    SourceKind,
    SourcePayload,
    SourceRef,
    check_data,
    check_object,
)
from holdfast.domain.ids import checked_id
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import InvalidInput, InvalidScope, InvalidTimestamp


def check_company(scope: Scope) -> None:
    """Require a scope that names one space and nothing narrower."""
    check_one_company(scope)
    if narrower := [name for name in scope.given() if name != "space"]:
        raise InvalidScope(narrower[0], "does not apply, since this call covers a whole space; leave it out")


def check_one_company(scope: Scope) -> None:
    if not isinstance(scope, Scope):
        raise InvalidInput("scope", f"expected a Scope, got {type(scope).__name__}")
    if scope.space == EVERYWHERE:
        raise InvalidScope("space", "name one space")


def check_source(source: object, field: str) -> None:
    if source is None:
        raise InvalidInput(field, "is missing; give the kind of source, such as manual_note")
    if not isinstance(source, SourceRef):
        raise InvalidInput(field, f"expected a SourceRef, got {type(source).__name__}")
    check_enum(source.kind, SourceKind, f"{field}.kind")
    for name in ("issue_id", "comment_id", "document_key", "run_id", "activity_id", "external_ref"):
        if (value := getattr(source, name)) is not None:
            checked_text(value, f"{field}.{name}", max_chars=MAX_NAME_CHARS)


def check_source_company(source: SourceRef | None, scope: Scope) -> None:
    if source is not None and source.space != scope.space:
        raise InvalidScope("source.space", "names another space; a source must belong to the space of its scope")


def check_payload(payload: object, field: str) -> None:
    if not isinstance(payload, SourcePayload):
        raise InvalidInput(field, f"expected a SourcePayload, got {type(payload).__name__}")
    if payload.text is None and payload.object is None:
        raise InvalidInput(field, "is empty; give a text, an object, or both")
    if payload.text is not None:
        checked_text(payload.text, f"{field}.text", max_chars=MAX_CONTENT_CHARS)
    if payload.mime_type is not None:
        checked_text(payload.mime_type, f"{field}.mime_type", max_chars=MAX_TYPE_CHARS)
    check_data(payload.metadata, f"{field}.metadata")
    if payload.object is not None:
        check_object(payload.object, f"{field}.object")


def check_hook(hook: object, field: str) -> None:
    if not isinstance(hook, HookContext):
        raise InvalidInput(field, f"expected a HookContext, got {type(hook).__name__}")
    check_enum(hook.kind, HookKind, f"{field}.kind")
    checked_id(hook.hook_id, f"{field}.hook_id")
    check_moment(hook.triggered_at, f"{field}.triggered_at")
    for name in ("actor_agent_id", "run_id"):
        if (value := getattr(hook, name)) is not None:
            checked_id(value, f"{field}.{name}")


# The largest number of a filter: of 64 bits.
MAX_NUMBER = 2**63
_NUMBER = number(-MAX_NUMBER, MAX_NUMBER)
Scalar = Annotated[str, text_rule(MAX_VALUE_CHARS)] | Annotated[int, _NUMBER] | Annotated[float, _NUMBER] | bool


def check_filter(value: Any, field: str) -> None:
    """Require a metadata filter: scalar values by name."""
    check_data(value, field)
    for name, wanted in value.items():
        place = f"{field}[{name!r:.40}]"
        if isinstance(wanted, str):
            checked_text(wanted, place, max_chars=MAX_VALUE_CHARS)
        elif not isinstance(wanted, int | float | bool):
            raise InvalidInput(place, "must be a text, a number, or true or false")
        elif not isinstance(wanted, bool):
            _NUMBER.check(wanted, place)


def check_records(records: object, field: str) -> None:
    if not isinstance(records, tuple) or not 1 <= len(records) <= MAX_RECORDS:
        raise InvalidInput(field, f"give from 1 to {MAX_RECORDS} records")
    for at, record in enumerate(records):
        place = f"{field}[{at}]"
        if not isinstance(record, NewRecord):
            raise InvalidInput(place, f"expected a NewRecord, got {type(record).__name__}")
        checked_text(record.text, f"{place}.text", max_chars=MAX_CONTENT_CHARS)
        if record.summary is not None:
            checked_text(record.summary, f"{place}.summary", max_chars=MAX_SUMMARY_CHARS)
        check_data(record.metadata, f"{place}.metadata")


def check_handle(handle: object, field: str) -> None:
    if not isinstance(handle, RecordHandle):
        raise InvalidInput(field, f"expected a RecordHandle, got {type(handle).__name__}")
    checked_text(handle.provider_key, f"{field}.provider_key", max_chars=MAX_TYPE_CHARS)
    checked_text(handle.record_id, f"{field}.record_id", max_chars=MAX_NAME_CHARS)


def check_handles(handles: object, field: str) -> None:
    if not isinstance(handles, tuple) or not 1 <= len(handles) <= MAX_HANDLES:
        raise InvalidInput(field, f"give from 1 to {MAX_HANDLES} handles")
    for at, handle in enumerate(handles):
        check_handle(handle, f"{field}[{at}]")


def check_span(since: datetime | None, until: datetime | None) -> None:
    if since is not None and until is not None and since >= until:
        raise InvalidTimestamp("until", "must be later than since")


Source = Annotated[
    SourceRef, Rule(check_source, "JSON"), "Its origin: a kind, such as manual_note, or its fields as a dictionary."
]
Payload = Annotated[
    SourcePayload,
    Rule(check_payload, "JSON"),
    "The content: a text, or a dictionary with `text`, `mime_type`, `metadata` and `object`.",
]
Hook = Annotated[HookContext, Rule(check_hook, "JSON"), "The hook that triggered it."]
Metadata = Annotated[Data, "Further data about it, by name."]
MetadataFilter = Annotated[
    Mapping[FieldName, Scalar],
    Rule(check_filter, "JSON", max_length=MAX_METADATA),
    "Only records whose metadata has these values.",
]
Records = Annotated[
    tuple[NewRecord, ...],
    Rule(check_records, "JSON", 1, MAX_RECORDS),
    "Texts, or dictionaries with `text`, `summary` and `metadata`.",
]
Handle = Annotated[RecordHandle, Rule(check_handle, "ID"), "The id of the record."]
Handles = Annotated[
    tuple[RecordHandle, ...], Rule(check_handles, "ID", 1, MAX_HANDLES), "The ids of the records, or one id."
]
