"""What a provider outside answered: data, and hostile until looked at here.

An answer that is not what the contract says, or larger than anything we asked for, is `ProviderMalformed` as a whole.
A record that is well-formed but somebody else's is left out and counted. Nothing of an answer stands in an error.
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
    ExtractionStatus,
    ForgetResult,
    HookKind,
    JobPage,
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

NAMED = 20  # how many of the records that were given a call's row names
MAX_TEXT_CHARS = 200_000
MAX_ID_CHARS = 1_024
MAX_DATA_CHARS = 65_536  # of metadata, or of a trace, as JSON
MAX_RECORDS = 1_000
MAX_JOBS = 1_000


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """An answer, and what is to be written down of it."""

    value: T
    touched: int = 0
    handles: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an answer must keep to: its provider's own records, and what the call's grant reaches."""

    provider: str
    grant: Grant


def told(value: T) -> Told[T]:
    """What is to be written down of an answer that is what it should be."""
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
        case JobPage(items=jobs, usage=usage):
            return Told(value, len(jobs), (), usage)
        case ProfileResult(summary=summary, usage=usage):
            return Told(value, int(summary is not None), (), usage)
        case TraceResult(usage=usage):
            return Told(value, 0, (), usage)
    return Told(value)


def _ids(handles: Sequence[RecordHandle]) -> tuple[str, ...]:
    return tuple(handle.record_id for handle in handles[:NAMED])


# --- the answers ------------------------------------------------------------------------------------------------------


def captured(answer: object, bounds: Bounds) -> Told[CaptureResult]:
    given = _of(answer, CaptureResult, "an answer")
    records = _handles(given.records, bounds)
    jobs = _all(given.jobs, MAX_JOBS, "jobs", lambda job: _job(job, bounds))
    return told(CaptureResult(records, jobs, checked_usage(given.usage, bounds.provider)))


def written(answer: object, bounds: Bounds) -> Told[WriteResult]:
    given = _of(answer, WriteResult, "an answer")
    return told(WriteResult(_handles(given.records, bounds), checked_usage(given.usage, bounds.provider)))


def bundle(top_k: int) -> Callable[[object, Bounds], Told[ContextBundle]]:
    def check(answer: object, bounds: Bounds) -> Told[ContextBundle]:
        given = _of(answer, ContextBundle, "an answer")
        found = _all(given.snippets, top_k, "snippets", lambda each: _snippet(each, bounds))
        own = tuple(each for each in found if _own(each, bounds))
        summary = _text(given.profile_summary, MAX_TEXT_CHARS, "a profile", optional=True)
        return _left(
            told(ContextBundle(own, summary, checked_usage(given.usage, bounds.provider))), len(found) - len(own)
        )

    return check


def page(limit: int, scope: Scope) -> Callable[[object, Bounds], Told[ListPage]]:
    """Of a list, every part of the scope that was given holds for each record."""

    def check(answer: object, bounds: Bounds) -> Told[ListPage]:
        given = _of(answer, ListPage, "an answer")
        found = _all(given.items, limit, "items", lambda each: _snippet(each, bounds))
        own = tuple(each for each in found if _own(each, bounds) and within(each, scope))
        cursor = _cursor(given.next_cursor)
        return _left(told(ListPage(own, cursor, checked_usage(given.usage, bounds.provider))), len(found) - len(own))

    return check


def snippet(handle: RecordHandle) -> Callable[[object, Bounds], Told[Snippet | None]]:
    def check(answer: object, bounds: Bounds) -> Told[Snippet | None]:
        if answer is None:
            return Told(None)
        found = _snippet(answer, bounds)
        if found.handle != handle:
            raise _malformed("gave another record than was asked for")
        return told(found) if _own(found, bounds) else Told(None, dropped=1)

    return check


def forgotten(handles: Sequence[RecordHandle]) -> Callable[[object, Bounds], Told[ForgetResult]]:
    def check(answer: object, bounds: Bounds) -> Told[ForgetResult]:
        given = _of(answer, ForgetResult, "an answer")
        gone, missing = _handles(given.forgotten, bounds), _handles(given.missing, bounds)
        if not {*gone, *missing} <= set(handles):
            raise _malformed("speaks of records that were not asked for")
        return told(ForgetResult(gone, missing, checked_usage(given.usage, bounds.provider)))

    return check


def corrected(answer: object, bounds: Bounds) -> Told[CorrectResult]:
    given = _of(answer, CorrectResult, "an answer")
    superseded = None if given.superseded is None else _handle(given.superseded, bounds)
    return told(CorrectResult(_handle(given.record, bounds), superseded, checked_usage(given.usage, bounds.provider)))


def profile(answer: object, bounds: Bounds) -> Told[ProfileResult]:
    given = _of(answer, ProfileResult, "an answer")
    summary = _text(given.summary, MAX_TEXT_CHARS, "a profile", optional=True)
    return told(ProfileResult(summary, checked_usage(given.usage, bounds.provider)))


def jobs(answer: object, bounds: Bounds) -> Told[JobPage]:
    given = _of(answer, JobPage, "an answer")
    items = _all(given.items, MAX_JOBS, "jobs", lambda job: _job(job, bounds))
    cursor = _cursor(given.next_cursor)
    return told(JobPage(items, cursor, checked_usage(given.usage, bounds.provider)))


def trace(answer: object, bounds: Bounds) -> Told[TraceResult]:
    given = _of(answer, TraceResult, "an answer")
    return told(TraceResult(_data(given.trace, "a trace"), checked_usage(given.usage, bounds.provider)))


# --- their parts ------------------------------------------------------------------------------------------------------


def _malformed(problem: str) -> ProviderMalformed:
    return ProviderMalformed(f"the provider {problem}; nothing of its answer was used")


def _of(value: object, kind: type[T], named: str) -> T:
    if type(value) is not kind:
        raise _malformed(f"gave {_kind(value)} for {named}, not {kind.__name__}")
    return value


def _kind(value: object) -> str:
    return f"{type(value).__name__:.60}"


def _all(given: object, most: int, named: str, check: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(given, tuple | list):
        raise _malformed(f"gave {_kind(given)} for {named}, not a tuple")
    if len(given) > most:
        raise _malformed(f"gave {len(given):,} {named}; at most {most:,} were asked for")
    return tuple(check(each) for each in given)


def _text(value: object, most: int, named: str, *, optional: bool = False) -> Any:
    if value is None and optional:
        return None
    if not isinstance(value, str):
        raise _malformed(f"gave {_kind(value)} for {named}, not text")
    if len(value) > most:
        raise _malformed(f"gave {len(value):,} characters for {named}; at most {most:,} are taken")
    # A NUL or a lone surrogate cannot be kept, nor sent on.
    if "\x00" in value or (not value.isprintable() and any("\ud800" <= char <= "\udfff" for char in value)):
        raise _malformed(f"gave characters for {named} that are no text")
    return str(value)


def _cursor(value: object) -> str | None:
    if value is None or is_cursor(value):
        return None if value is None else str(value)
    raise _malformed(f"gave a cursor that is not visible ASCII of at most {MAX_CURSOR_CHARS:,} characters")


def _data(value: object, named: str) -> dict[str, Any]:
    """As it is in JSON: what has no form there is nothing that we could pass on."""
    if not isinstance(value, Mapping):
        raise _malformed(f"gave {_kind(value)} for {named}, not a dictionary")
    try:
        written = json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        written = None
    if written is None or len(written) > MAX_DATA_CHARS:
        raise _malformed(f"gave {named} that is too large, or is no JSON")
    data: dict[str, Any] = json.loads(written)
    return data


def _moment(value: object, named: str) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise _malformed(f"gave {_kind(value)} for {named}, not a moment with its offset")
    return value


def _enum(value: object, kind: type[T], named: str) -> T:
    if not isinstance(value, kind):
        raise _malformed(f"gave {_kind(value)} for {named}, not a {kind.__name__}")
    return value


def _handle(value: object, bounds: Bounds) -> RecordHandle:
    given = _of(value, RecordHandle, "a handle")
    record_id = _text(given.record_id, MAX_ID_CHARS, "a record's id")
    if given.provider_key != bounds.provider or not record_id:
        raise _malformed("gave the handle of another provider, or none")
    return RecordHandle(bounds.provider, record_id)


def _handles(given: object, bounds: Bounds) -> tuple[RecordHandle, ...]:
    return _all(given, MAX_RECORDS, "records", lambda each: _handle(each, bounds))


def _source(value: object) -> SourceRef | None:
    if value is None:
        return None
    given = _of(value, SourceRef, "a source")
    _enum(given.kind, SourceKind, "a source's kind")
    _text(given.space, MAX_ID_CHARS, "a source's company")
    for name in ("issue_id", "comment_id", "document_key", "run_id", "activity_id", "external_ref"):
        _text(getattr(given, name), MAX_ID_CHARS, "a part of a source", optional=True)
    return given


def _scope(value: object) -> Scope | None:
    # Its own constructor checks what is in it.
    return None if value is None else _of(value, Scope, "a scope")


def _snippet(value: object, bounds: Bounds) -> Snippet:
    given = _of(value, Snippet, "a record")
    score = given.score
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float) or not _finite(score)):
        raise _malformed("gave a score that is no finite number")
    return Snippet(
        handle=_handle(given.handle, bounds),
        text=_text(given.text, MAX_TEXT_CHARS, "a record's text"),
        score=None if score is None else float(score),
        summary=_text(given.summary, MAX_TEXT_CHARS, "a record's summary", optional=True),
        source=_source(given.source),
        scope=_scope(given.scope),
        recorded_at=_moment(given.recorded_at, "when a record was made"),
        metadata=_data(given.metadata, "a record's metadata"),
    )


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _own(found: Snippet, bounds: Bounds) -> bool:
    """Whether a record is of the company that asked, and of a memory in it that the call reaches."""
    space = bounds.grant.scope.space
    if found.source is not None and found.source.space != space:
        return False
    return found.scope is None or (found.scope.space == space and bounds.grant.reaches(found.scope.partition))


def within(found: Snippet, scope: Scope) -> bool:
    """Whether each part of the scope that was given holds for the record, as far as its provider tells."""
    if found.scope is None:
        return True
    parts = [(getattr(scope, name), getattr(found.scope, name)) for name in FILTER_PARTS]
    return all(wanted is None or given is None or wanted == given for wanted, given in parts)


def _left(answer: Told[T], dropped: int) -> Told[T]:
    return replace(answer, dropped=dropped) if dropped else answer


def _job(value: object, bounds: Bounds) -> ExtractionJob:
    given = _of(value, ExtractionJob, "a job")
    source = _source(given.source)
    if source is not None and source.space != bounds.grant.scope.space:
        raise _malformed("gave a job of another company")
    return ExtractionJob(
        provider_job_id=_text(given.provider_job_id, MAX_ID_CHARS, "a job's id"),
        status=_enum(given.status, ExtractionStatus, "a job's status"),
        hook_kind=None if given.hook_kind is None else _enum(given.hook_kind, HookKind, "a job's hook"),
        source=source,
        error=_text(given.error, MAX_ID_CHARS, "a job's error", optional=True),
        submitted_at=_moment(given.submitted_at, "when a job was queued"),
        started_at=_moment(given.started_at, "when a job began"),
        finished_at=_moment(given.finished_at, "when a job ended"),
    )
