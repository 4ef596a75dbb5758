"""Validates the responses of external providers, which are untrusted data.

A response that breaks the provider API, or is larger than requested, is `ProviderMalformed` as a whole. A well-formed
record of another space or memory is dropped and counted. Errors quote nothing of a response.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from holdfast.domain.access import Grant
from holdfast.domain.contract import (
    MAX_CURSOR_CHARS,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ExtractionJob,
    ExtractionJobPage,
    ExtractionStatus,
    ForgetResult,
    HookKind,
    ListPage,
    ProfileResult,
    QueryRequest,
    RecordHandle,
    Snippet,
    SourceKind,
    SourceRef,
    TraceResult,
    Usage,
    WriteResult,
    is_cursor,
)
from holdfast.domain.scope import FILTER_PARTS, Scope
from holdfast.domain.transcript import Role
from holdfast.domain.usage import checked_usage
from holdfast.errors import ProviderMalformed

T = TypeVar("T")

NAMED = 20  # record ids kept in a call's operation row
MAX_TEXT_CHARS = 200_000
MAX_ID_CHARS = 1_024
MAX_DATA_CHARS = 65_536  # of metadata, or of a trace, as JSON
MAX_RECORDS = 1_000
MAX_JOBS = 1_000


@dataclass(frozen=True, slots=True)
class ValidatedResponse(Generic[T]):
    """A validated response, with the facts to record in the operation row."""

    value: T
    record_count: int = 0
    handles: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a response: records of its own provider, within the call's grant.

    There are at most `most` of them, and each must match every given part of the scope `within`.
    """

    provider: str
    grant: Grant
    most: int = MAX_RECORDS
    within: Scope | None = None


Validator = Callable[[object, Bounds], ValidatedResponse[T]]


def describe_response(value: T, dropped: int = 0) -> ValidatedResponse[T]:
    """Extract from a valid response the facts to record: count, record ids, usage."""
    handles: Sequence[RecordHandle] = ()
    record_count = None
    match value:
        case ContextBundle(snippets=found) | ListPage(items=found):
            handles = [each.handle for each in found]
        case Snippet(handle=handle) | CorrectResult(record=handle):
            handles = [handle]
        case CaptureResult(records=records) | WriteResult(records=records) | ForgetResult(forgotten=records):
            handles = records
        case ExtractionJobPage(items=jobs):
            record_count = len(jobs)
        case ProfileResult(summary=summary):
            record_count = int(summary is not None)
    named = tuple(handle.record_id for handle in handles[:NAMED])
    usage = getattr(value, "usage", ())
    return ValidatedResponse(value, len(handles) if record_count is None else record_count, named, usage, dropped)


# --- responses --------------------------------------------------------------------------------------------------------


def validator(kind: type[T], most: int = MAX_RECORDS, within: Scope | None = None) -> Validator[T]:
    """Return the check of a response of this type: at most so many records, all within a scope."""

    def check(response: object, bounds: Bounds) -> ValidatedResponse[T]:
        result: Any = _check_type(response, kind, "a response")
        own = replace(bounds, most=most, within=within)
        checked = {name: check_part(getattr(result, name), own) for name, check_part in _RESPONSES[kind].items()}
        parts = [(getattr(result, name), part) for name, part in checked.items() if isinstance(part, tuple)]
        dropped = sum(len(part) - len(left) for part, left in parts)
        checked["usage"] = checked_usage(result.usage, bounds.provider)
        return describe_response(kind(**checked), dropped)

    return check


def query_validator(request: QueryRequest) -> Validator[ContextBundle]:
    """Return the check of a query's response, which drops the snippets that score too little."""
    check, least = validator(ContextBundle, request.top_k), request.min_score

    def check_scores(response: object, bounds: Bounds) -> ValidatedResponse[ContextBundle]:
        found = check(response, bounds)
        if least is None:
            return found
        left = tuple(each for each in found.value.snippets if each.score is None or each.score >= least)
        return describe_response(replace(found.value, snippets=left), found.dropped)

    return check_scores


def snippet_validator(handle: RecordHandle) -> Validator[Snippet | None]:
    def check(response: object, bounds: Bounds) -> ValidatedResponse[Snippet | None]:
        if response is None:
            return ValidatedResponse(None)
        found = _check_snippet(response, bounds)
        if found.handle != handle:
            raise _malformed_error("returned a record other than the requested one")
        return describe_response(found) if _is_accessible(found, bounds) else ValidatedResponse(None, dropped=1)

    return check


def forget_validator(handles: Sequence[RecordHandle]) -> Validator[ForgetResult]:
    def check(response: object, bounds: Bounds) -> ValidatedResponse[ForgetResult]:
        found = validator(ForgetResult)(response, bounds)
        if not {*found.value.forgotten, *found.value.missing} <= set(handles):
            raise _malformed_error("returned records that were not requested")
        return found

    return check


# --- parts of responses -----------------------------------------------------------------------------------------------


def _malformed_error(problem: str) -> ProviderMalformed:
    return ProviderMalformed(f"the provider {problem}; its response was discarded")


def _check_type(value: object, kind: type[T], named: str) -> T:
    if type(value) is not kind:
        raise _malformed_error(f"returned {_kind(value)} for {named}, not {kind.__name__}")
    return value


def _kind(value: object) -> str:
    return f"{type(value).__name__:.60}"


def _check_items(values: object, most: int, named: str, check: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(values, tuple | list):
        raise _malformed_error(f"returned {_kind(values)} for {named}, not a tuple")
    if len(values) > most:
        raise _malformed_error(f"returned {len(values):,} {named}; at most {most:,} are allowed")
    return tuple(check(each) for each in values)


def _check_text(value: object, most: int, named: str, *, optional: bool = False) -> Any:
    if value is None and optional:
        return None
    if not isinstance(value, str):
        raise _malformed_error(f"returned {_kind(value)} for {named}, not text")
    if len(value) > most:
        raise _malformed_error(f"returned {len(value):,} characters for {named}; at most {most:,} are allowed")
    # A NUL or a lone surrogate can be neither stored nor sent.
    if "\x00" in value or (not value.isprintable() and any("\ud800" <= char <= "\udfff" for char in value)):
        raise _malformed_error(f"returned invalid characters for {named}")
    return str(value)


def _check_cursor(value: object, bounds: Bounds) -> str | None:
    if value is None or is_cursor(value):
        return None if value is None else str(value)
    raise _malformed_error(f"returned a cursor that is not visible ASCII of at most {MAX_CURSOR_CHARS:,} characters")


def _normalize_json(value: object, named: str) -> dict[str, Any]:
    """Normalize a dictionary through JSON; refuse what JSON cannot represent."""
    if not isinstance(value, Mapping):
        raise _malformed_error(f"returned {_kind(value)} for {named}, not a dictionary")
    try:
        written = json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        written = None
    if written is None or len(written) > MAX_DATA_CHARS:
        raise _malformed_error(f"returned {named} that is too large or is not JSON")
    data: dict[str, Any] = json.loads(written)
    return data


def _check_datetime(value: object, named: str) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise _malformed_error(f"returned {_kind(value)} for {named}, not a datetime with a UTC offset")
    return value


def _check_enum(value: object, kind: type[T], named: str) -> T:
    if not isinstance(value, kind):
        raise _malformed_error(f"returned {_kind(value)} for {named}, not a {kind.__name__}")
    return value


def _check_handle(value: object, bounds: Bounds) -> RecordHandle:
    handle = _check_type(value, RecordHandle, "a handle")
    record_id = _check_text(handle.record_id, MAX_ID_CHARS, "a record's id")
    if handle.provider_key != bounds.provider or not record_id:
        raise _malformed_error("returned a handle of another provider, or an empty one")
    return RecordHandle(bounds.provider, record_id)


def _check_handles(values: object, bounds: Bounds) -> tuple[RecordHandle, ...]:
    return _check_items(values, bounds.most, "records", lambda each: _check_handle(each, bounds))


def _check_source(value: object) -> SourceRef | None:
    if value is None:
        return None
    source = _check_type(value, SourceRef, "a source")
    _check_enum(source.kind, SourceKind, "a source's kind")
    _check_text(source.space, MAX_ID_CHARS, "a source's space")
    for name in ("issue_id", "comment_id", "document_key", "run_id", "activity_id", "external_ref"):
        _check_text(getattr(source, name), MAX_ID_CHARS, "a part of a source", optional=True)
    return source


def _check_scope(value: object) -> Scope | None:
    # The constructor of `Scope` has validated its parts.
    return None if value is None else _check_type(value, Scope, "a scope")


def _check_snippet(value: object, bounds: Bounds) -> Snippet:
    snippet = _check_type(value, Snippet, "a record")
    score = snippet.score
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float) or not _is_finite(score)):
        raise _malformed_error("returned a score that is not a finite number")
    return Snippet(
        handle=_check_handle(snippet.handle, bounds),
        text=_check_text(snippet.text, MAX_TEXT_CHARS, "a record's text"),
        score=None if score is None else float(score),
        summary=_check_text(snippet.summary, MAX_TEXT_CHARS, "a record's summary", optional=True),
        source=_check_source(snippet.source),
        scope=_check_scope(snippet.scope),
        recorded_at=_check_datetime(snippet.recorded_at, "a record's time"),
        metadata=_normalize_json(snippet.metadata, "a record's metadata"),
        sender=_check_text(snippet.sender, MAX_ID_CHARS, "a record's sender", optional=True),
        role=None if snippet.role is None else _check_type(snippet.role, Role, "a role"),
        said_at=_check_datetime(snippet.said_at, "the time when a record was said"),
    )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _check_snippets(values: object, bounds: Bounds) -> tuple[Snippet, ...]:
    """Check the records; drop those that are out of bounds."""
    found = _check_items(values, bounds.most, "records", lambda each: _check_snippet(each, bounds))
    return tuple(each for each in found if _is_accessible(each, bounds))


def _is_accessible(found: Snippet, bounds: Bounds) -> bool:
    """True if a record belongs to the calling space, to a memory that the grant reaches, and to the wanted scope."""
    space = bounds.grant.scope.space
    if found.source is not None and found.source.space != space:
        return False
    if found.scope is not None and (found.scope.space != space or not bounds.grant.reaches(found.scope.partition)):
        return False
    return bounds.within is None or matches_scope(found, bounds.within)


def matches_scope(found: Snippet, scope: Scope) -> bool:
    """True if no given part of the scope contradicts the record's scope, as far as its provider reports one."""
    if found.scope is None:
        return True
    parts = [(getattr(scope, name), getattr(found.scope, name)) for name in FILTER_PARTS]
    return all(wanted is None or given is None or wanted == given for wanted, given in parts)


def _check_job(value: object, bounds: Bounds) -> ExtractionJob:
    job = _check_type(value, ExtractionJob, "a job")
    source = _check_source(job.source)
    if source is not None and source.space != bounds.grant.scope.space:
        raise _malformed_error("returned a job of another space")
    return ExtractionJob(
        provider_job_id=_check_text(job.provider_job_id, MAX_ID_CHARS, "a job's id"),
        status=_check_enum(job.status, ExtractionStatus, "a job's status"),
        hook_kind=None if job.hook_kind is None else _check_enum(job.hook_kind, HookKind, "a job's hook"),
        source=source,
        error=_check_text(job.error, MAX_ID_CHARS, "a job's error", optional=True),
        submitted_at=_check_datetime(job.submitted_at, "a job's submission time"),
        started_at=_check_datetime(job.started_at, "a job's start time"),
        finished_at=_check_datetime(job.finished_at, "a job's end time"),
    )


def _check_jobs(values: object, bounds: Bounds) -> tuple[ExtractionJob, ...]:
    return _check_items(values, MAX_JOBS, "jobs", lambda job: _check_job(job, bounds))


def _check_superseded(value: object, bounds: Bounds) -> RecordHandle | None:
    return None if value is None else _check_handle(value, bounds)


def _check_profile(value: object, bounds: Bounds) -> Any:
    return _check_text(value, MAX_TEXT_CHARS, "a profile", optional=True)


def _check_trace(value: object, bounds: Bounds) -> dict[str, Any]:
    return _normalize_json(value, "a trace")


# The checks of the parts of each response, besides its usage.
_RESPONSES: Mapping[type, Mapping[str, Callable[[object, Bounds], Any]]] = {
    CaptureResult: {"records": _check_handles, "jobs": _check_jobs},
    WriteResult: {"records": _check_handles},
    ContextBundle: {"snippets": _check_snippets, "profile_summary": _check_profile},
    ListPage: {"items": _check_snippets, "next_cursor": _check_cursor},
    ForgetResult: {"forgotten": _check_handles, "missing": _check_handles},
    CorrectResult: {"superseded": _check_superseded, "record": _check_handle},
    ProfileResult: {"summary": _check_profile},
    ExtractionJobPage: {"items": _check_jobs, "next_cursor": _check_cursor},
    TraceResult: {"trace": _check_trace},
}
