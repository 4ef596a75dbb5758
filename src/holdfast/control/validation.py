"""Validates the control plane's requests before any provider is called. Each error names its field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from holdfast.domain.bindings import checked_key
from holdfast.domain.checks import checked_seconds, checked_text
from holdfast.domain.contract import (
    MAX_CONTENT_CHARS,
    MAX_HANDLES,
    MAX_RECORDS,
    MAX_SUMMARY_CHARS,
    HookContext,
    HookKind,
    NewRecord,
    RecordHandle,
    SourceKind,
    SourcePayload,
    SourceRef,
    is_cursor,
)
from holdfast.domain.ids import checked_id
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import InvalidCursor, InvalidInput, InvalidScope, InvalidText, InvalidTimestamp

E = TypeVar("E", bound=Enum)

MAX_OBJECT_CHARS = 100_000  # of an object, as JSON
MAX_DATA_CHARS = 65_536  # of metadata, as JSON
MAX_NAME_CHARS = 1_024
MAX_TYPE_CHARS = 256


def check_company(scope: Scope) -> None:
    """Require a scope that names one company and nothing narrower."""
    check_one_company(scope)
    if narrower := [name for name in scope.given() if name != "space"]:
        raise InvalidScope(narrower[0], "does not apply, since this call covers a whole company; leave it out")


def check_one_company(scope: Scope) -> None:
    if not isinstance(scope, Scope):
        raise InvalidInput("scope", f"expected a Scope, got {type(scope).__name__}")
    if scope.space == EVERYWHERE:
        raise InvalidScope("space", "name one company")


def check_binding_key(key: str | None) -> None:
    if key is not None:
        checked_key(key, "binding_key")


def check_source(source: SourceRef | None, scope: Scope) -> None:
    if source is None:
        return
    if not isinstance(source, SourceRef):
        raise InvalidInput("source", f"expected a SourceRef, got {type(source).__name__}")
    check_enum(source.kind, SourceKind, "source.kind")
    if source.space != scope.space:
        raise InvalidScope("source.space", "names another company; a source must belong to the company of its scope")
    for name in ("issue_id", "comment_id", "document_key", "run_id", "activity_id", "external_ref"):
        if (value := getattr(source, name)) is not None:
            checked_text(value, f"source.{name}", max_chars=MAX_NAME_CHARS)


def check_payload(payload: SourcePayload) -> None:
    if not isinstance(payload, SourcePayload):
        raise InvalidInput("payload", f"expected a SourcePayload, got {type(payload).__name__}")
    if payload.text is None and payload.object is None:
        raise InvalidInput("payload", "is empty; give a text, an object, or both")
    if payload.text is not None:
        checked_text(payload.text, "payload.text", max_chars=MAX_CONTENT_CHARS)
    if payload.mime_type is not None:
        checked_text(payload.mime_type, "payload.mime_type", max_chars=MAX_TYPE_CHARS)
    check_data(payload.metadata, "payload.metadata")
    if payload.object is not None:
        check_data(payload.object, "payload.object", MAX_OBJECT_CHARS)


def check_hook(hook: HookContext | None) -> None:
    if hook is None:
        return
    if not isinstance(hook, HookContext):
        raise InvalidInput("hook", f"expected a HookContext, got {type(hook).__name__}")
    check_enum(hook.kind, HookKind, "hook.kind")
    checked_id(hook.hook_id, "hook.hook_id")
    if not isinstance(hook.triggered_at, datetime) or hook.triggered_at.utcoffset() is None:
        raise InvalidTimestamp("hook.triggered_at", "must be a datetime with a UTC offset")
    for name in ("actor_agent_id", "run_id"):
        if (value := getattr(hook, name)) is not None:
            checked_id(value, f"hook.{name}")


def check_data(value: object, field: str, most: int = MAX_DATA_CHARS) -> None:
    """Require a dictionary that JSON can represent and that is not too large."""
    if not isinstance(value, Mapping):
        raise InvalidInput(field, f"expected an object, got {type(value).__name__}")
    if not value:
        return
    if not all(isinstance(name, str) for name in value):
        raise InvalidInput(field, "must have text keys")
    try:
        written = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(field, "cannot be written as JSON") from None
    if len(written) > most:
        raise InvalidText(field, f"has {len(written):,} characters as JSON; at most {most:,} are allowed")
    checked_text(written, field)


def check_filter(value: object) -> None:
    """Require a metadata filter: scalar values by name."""
    check_data(value, "metadata_filter")
    assert isinstance(value, Mapping)
    for name, wanted in value.items():
        if not isinstance(wanted, str | int | float | bool):
            raise InvalidInput(f"metadata_filter.{name:.40}", "must be a text, a number, or true or false")


def check_records(records: object) -> None:
    if not isinstance(records, tuple) or not 1 <= len(records) <= MAX_RECORDS:
        raise InvalidInput("records", f"give from 1 to {MAX_RECORDS} records")
    for at, record in enumerate(records):
        place = f"records[{at}]"
        if not isinstance(record, NewRecord):
            raise InvalidInput(place, f"expected a NewRecord, got {type(record).__name__}")
        checked_text(record.text, f"{place}.text", max_chars=MAX_CONTENT_CHARS)
        if record.summary is not None:
            checked_text(record.summary, f"{place}.summary", max_chars=MAX_SUMMARY_CHARS)
        check_data(record.metadata, f"{place}.metadata")


def check_handle(handle: object, field: str = "handle") -> None:
    if not isinstance(handle, RecordHandle):
        raise InvalidInput(field, f"expected a RecordHandle, got {type(handle).__name__}")
    checked_text(handle.provider_key, f"{field}.provider_key", max_chars=256)
    checked_text(handle.record_id, f"{field}.record_id", max_chars=MAX_NAME_CHARS)


def check_handles(handles: Sequence[Any]) -> None:
    if not isinstance(handles, tuple) or not 1 <= len(handles) <= MAX_HANDLES:
        raise InvalidInput("handles", f"give from 1 to {MAX_HANDLES} handles")
    for at, handle in enumerate(handles):
        check_handle(handle, f"handles[{at}]")


def check_enum(value: object, kind: type[E], field: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be one of {', '.join(str(each.value) for each in kind)}")


def check_moment(value: object, field: str) -> None:
    if value is not None and (not isinstance(value, datetime) or value.utcoffset() is None):
        raise InvalidTimestamp(field, "must be a datetime with a UTC offset")


def check_cursor(value: object) -> None:
    if value is not None and not is_cursor(value):
        raise InvalidCursor("cursor", "is malformed; pass on the `next_cursor` of a page unchanged")


def check_seconds(value: object) -> None:
    if value is not None:
        checked_seconds(value, "timeout_seconds")


def missing(field: str) -> InvalidInput:
    return InvalidInput(field, "is missing")


def check_span(since: datetime | None, until: datetime | None) -> None:
    check_moment(since, "since")
    check_moment(until, "until")
    if since is not None and until is not None and since >= until:
        raise InvalidTimestamp("until", "must be later than since")
