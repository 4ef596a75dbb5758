"""Validates the responses of external providers, which are untrusted data.

A response that breaks the provider API, or is larger than requested, is `ProviderMalformed` as a whole. A well-formed
record of another company or memory is dropped and counted. Errors quote nothing of a response.
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
class Told(Generic[T]):
    """A validated response, with the facts to record in the operation row."""

    value: T
    touched: int = 0
    handles: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a response: records of its own provider, within the call's grant."""

    provider: str
    grant: Grant


def told(value: T) -> Told[T]:
    """Extract from a valid response the facts to record: count, record ids, usage."""
    match value:
        case ContextBundle(snippets=found, usage=usage):
            return Told(value, len(found), _ids([each.handle for each in found]), usage)
        case ListPage(items=found, usage=usage):
            return Told(value, len(found), _ids([each.handle for each in found]), usage)
        case Snippet(handle=handle):
            return Told(value, 1, _ids([handle]))
        case CaptureResult(records=records, usage=usage) | WriteResult(records=records, usage=usage):
            return Told(value, len(records), _ids(records), usage)
        case ForgetResult(forgotten=gone, usage=usage):
            return Told(value, len(gone), _ids(gone), usage)
        case CorrectResult(record=record, usage=usage):
            return Told(value, 1, _ids([record]), usage)
        case ExtractionJobPage(items=jobs, usage=usage):
            return Told(value, len(jobs), (), usage)
        case ProfileResult(summary=summary, usage=usage):
            return Told(value, int(summary is not None), (), usage)
        case TraceResult(usage=usage):
            return Told(value, 0, (), usage)
    return Told(value)


def _ids(handles: Sequence[RecordHandle]) -> tuple[str, ...]:
    return tuple(handle.record_id for handle in handles[:NAMED])


# --- responses --------------------------------------------------------------------------------------------------------


def captured(response: object, bounds: Bounds) -> Told[CaptureResult]:
    result = _of(response, CaptureResult, "a response")
    records = _handles(result.records, bounds)
    jobs = _all(result.jobs, MAX_JOBS, "jobs", lambda job: _job(job, bounds))
    return told(CaptureResult(records, jobs, checked_usage(result.usage, bounds.provider)))


def written(response: object, bounds: Bounds) -> Told[WriteResult]:
    result = _of(response, WriteResult, "a response")
    return told(WriteResult(_handles(result.records, bounds), checked_usage(result.usage, bounds.provider)))


def bundle(top_k: int) -> Callable[[object, Bounds], Told[ContextBundle]]:
    def check(response: object, bounds: Bounds) -> Told[ContextBundle]:
        result = _of(response, ContextBundle, "a response")
        found = _all(result.snippets, top_k, "snippets", lambda each: _snippet(each, bounds))
        own = tuple(each for each in found if _own(each, bounds))
        summary = _text(result.profile_summary, MAX_TEXT_CHARS, "a profile", optional=True)
        return _left(
            told(ContextBundle(own, summary, checked_usage(result.usage, bounds.provider))), len(found) - len(own)
        )

    return check


def page(limit: int, scope: Scope) -> Callable[[object, Bounds], Told[ListPage]]:
    """Check a page of a list: each record must match every given part of the scope."""

    def check(response: object, bounds: Bounds) -> Told[ListPage]:
        result = _of(response, ListPage, "a response")
        found = _all(result.items, limit, "items", lambda each: _snippet(each, bounds))
        own = tuple(each for each in found if _own(each, bounds) and within(each, scope))
        cursor = _cursor(result.next_cursor)
        return _left(told(ListPage(own, cursor, checked_usage(result.usage, bounds.provider))), len(found) - len(own))

    return check


def snippet(handle: RecordHandle) -> Callable[[object, Bounds], Told[Snippet | None]]:
    def check(response: object, bounds: Bounds) -> Told[Snippet | None]:
        if response is None:
            return Told(None)
        found = _snippet(response, bounds)
        if found.handle != handle:
            raise _malformed("returned a record other than the requested one")
        return told(found) if _own(found, bounds) else Told(None, dropped=1)

    return check


def forgotten(handles: Sequence[RecordHandle]) -> Callable[[object, Bounds], Told[ForgetResult]]:
    def check(response: object, bounds: Bounds) -> Told[ForgetResult]:
        result = _of(response, ForgetResult, "a response")
        gone, missing = _handles(result.forgotten, bounds), _handles(result.missing, bounds)
        if not {*gone, *missing} <= set(handles):
            raise _malformed("returned records that were not requested")
        return told(ForgetResult(gone, missing, checked_usage(result.usage, bounds.provider)))

    return check


def corrected(response: object, bounds: Bounds) -> Told[CorrectResult]:
    result = _of(response, CorrectResult, "a response")
    superseded = None if result.superseded is None else _handle(result.superseded, bounds)
    return told(CorrectResult(_handle(result.record, bounds), superseded, checked_usage(result.usage, bounds.provider)))


def profile(response: object, bounds: Bounds) -> Told[ProfileResult]:
    result = _of(response, ProfileResult, "a response")
    summary = _text(result.summary, MAX_TEXT_CHARS, "a profile", optional=True)
    return told(ProfileResult(summary, checked_usage(result.usage, bounds.provider)))


def jobs(response: object, bounds: Bounds) -> Told[ExtractionJobPage]:
    result = _of(response, ExtractionJobPage, "a response")
    items = _all(result.items, MAX_JOBS, "jobs", lambda job: _job(job, bounds))
    cursor = _cursor(result.next_cursor)
    return told(ExtractionJobPage(items, cursor, checked_usage(result.usage, bounds.provider)))


def trace(response: object, bounds: Bounds) -> Told[TraceResult]:
    result = _of(response, TraceResult, "a response")
    return told(TraceResult(_data(result.trace, "a trace"), checked_usage(result.usage, bounds.provider)))


# --- parts of responses -----------------------------------------------------------------------------------------------


def _malformed(problem: str) -> ProviderMalformed:
    return ProviderMalformed(f"the provider {problem}; its response was discarded")


def _of(value: object, kind: type[T], named: str) -> T:
    if type(value) is not kind:
        raise _malformed(f"returned {_kind(value)} for {named}, not {kind.__name__}")
    return value


def _kind(value: object) -> str:
    return f"{type(value).__name__:.60}"


def _all(values: object, most: int, named: str, check: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(values, tuple | list):
        raise _malformed(f"returned {_kind(values)} for {named}, not a tuple")
    if len(values) > most:
        raise _malformed(f"returned {len(values):,} {named}; at most {most:,} are allowed")
    return tuple(check(each) for each in values)


def _text(value: object, most: int, named: str, *, optional: bool = False) -> Any:
    if value is None and optional:
        return None
    if not isinstance(value, str):
        raise _malformed(f"returned {_kind(value)} for {named}, not text")
    if len(value) > most:
        raise _malformed(f"returned {len(value):,} characters for {named}; at most {most:,} are allowed")
    # A NUL or a lone surrogate can be neither stored nor sent.
    if "\x00" in value or (not value.isprintable() and any("\ud800" <= char <= "\udfff" for char in value)):
        raise _malformed(f"returned invalid characters for {named}")
    return str(value)


def _cursor(value: object) -> str | None:
    if value is None or is_cursor(value):
        return None if value is None else str(value)
    raise _malformed(f"returned a cursor that is not visible ASCII of at most {MAX_CURSOR_CHARS:,} characters")


def _data(value: object, named: str) -> dict[str, Any]:
    """Normalize a dictionary through JSON; refuse what JSON cannot represent."""
    if not isinstance(value, Mapping):
        raise _malformed(f"returned {_kind(value)} for {named}, not a dictionary")
    try:
        written = json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        written = None
    if written is None or len(written) > MAX_DATA_CHARS:
        raise _malformed(f"returned {named} that is too large or is not JSON")
    data: dict[str, Any] = json.loads(written)
    return data


def _moment(value: object, named: str) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise _malformed(f"returned {_kind(value)} for {named}, not a datetime with a UTC offset")
    return value


def _enum(value: object, kind: type[T], named: str) -> T:
    if not isinstance(value, kind):
        raise _malformed(f"returned {_kind(value)} for {named}, not a {kind.__name__}")
    return value


def _handle(value: object, bounds: Bounds) -> RecordHandle:
    handle = _of(value, RecordHandle, "a handle")
    record_id = _text(handle.record_id, MAX_ID_CHARS, "a record's id")
    if handle.provider_key != bounds.provider or not record_id:
        raise _malformed("returned a handle of another provider, or an empty one")
    return RecordHandle(bounds.provider, record_id)


def _handles(values: object, bounds: Bounds) -> tuple[RecordHandle, ...]:
    return _all(values, MAX_RECORDS, "records", lambda each: _handle(each, bounds))


def _source(value: object) -> SourceRef | None:
    if value is None:
        return None
    source = _of(value, SourceRef, "a source")
    _enum(source.kind, SourceKind, "a source's kind")
    _text(source.space, MAX_ID_CHARS, "a source's company")
    for name in ("issue_id", "comment_id", "document_key", "run_id", "activity_id", "external_ref"):
        _text(getattr(source, name), MAX_ID_CHARS, "a part of a source", optional=True)
    return source


def _scope(value: object) -> Scope | None:
    # The constructor of `Scope` has validated its parts.
    return None if value is None else _of(value, Scope, "a scope")


def _snippet(value: object, bounds: Bounds) -> Snippet:
    snippet = _of(value, Snippet, "a record")
    score = snippet.score
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float) or not _finite(score)):
        raise _malformed("returned a score that is not a finite number")
    return Snippet(
        handle=_handle(snippet.handle, bounds),
        text=_text(snippet.text, MAX_TEXT_CHARS, "a record's text"),
        score=None if score is None else float(score),
        summary=_text(snippet.summary, MAX_TEXT_CHARS, "a record's summary", optional=True),
        source=_source(snippet.source),
        scope=_scope(snippet.scope),
        recorded_at=_moment(snippet.recorded_at, "a record's time"),
        metadata=_data(snippet.metadata, "a record's metadata"),
    )


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _own(found: Snippet, bounds: Bounds) -> bool:
    """True if a record belongs to the calling company, and to a memory that the grant reaches."""
    space = bounds.grant.scope.space
    if found.source is not None and found.source.space != space:
        return False
    return found.scope is None or (found.scope.space == space and bounds.grant.reaches(found.scope.partition))


def within(found: Snippet, scope: Scope) -> bool:
    """True if no given part of the scope contradicts the record's scope, as far as its provider reports one."""
    if found.scope is None:
        return True
    parts = [(getattr(scope, name), getattr(found.scope, name)) for name in FILTER_PARTS]
    return all(wanted is None or given is None or wanted == given for wanted, given in parts)


def _left(response: Told[T], dropped: int) -> Told[T]:
    return replace(response, dropped=dropped) if dropped else response


def _job(value: object, bounds: Bounds) -> ExtractionJob:
    job = _of(value, ExtractionJob, "a job")
    source = _source(job.source)
    if source is not None and source.space != bounds.grant.scope.space:
        raise _malformed("returned a job of another company")
    return ExtractionJob(
        provider_job_id=_text(job.provider_job_id, MAX_ID_CHARS, "a job's id"),
        status=_enum(job.status, ExtractionStatus, "a job's status"),
        hook_kind=None if job.hook_kind is None else _enum(job.hook_kind, HookKind, "a job's hook"),
        source=source,
        error=_text(job.error, MAX_ID_CHARS, "a job's error", optional=True),
        submitted_at=_moment(job.submitted_at, "a job's submission time"),
        started_at=_moment(job.started_at, "a job's start time"),
        finished_at=_moment(job.finished_at, "a job's end time"),
    )
