"""Parses the arguments of public calls: texts, dictionaries, names. Errors name the field."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from holdfast.domain.access import ActorKind
from holdfast.domain.checks import Scalar, checked_text
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Plane, Validity
from holdfast.domain.message_shapes import Messages as Messages
from holdfast.domain.message_shapes import drafts_of
from holdfast.domain.resources import MAX_CONTENT_BYTES
from holdfast.domain.results import HitKind
from holdfast.domain.scope import MAX_PART_CHARS, Scope
from holdfast.domain.times import checked_time
from holdfast.domain.transcript import Draft
from holdfast.domain.users import ROLES
from holdfast.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)

Moment = datetime | date | str | float
Texts = str | Iterable[str]
_KNOWN_SCOPES = 4_096
# An error names at most so many values.
_MOST_NAMED = 12


class Missing(Enum):
    """The value of an omitted argument. Unlike None, it cannot come from an unset variable by mistake."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "not given"


MISSING = Missing.MISSING


class ScopeKwargs(TypedDict, total=False):
    """The parts of a scope, as keyword arguments."""

    space: str
    app: str | None
    project: str | None
    agent: str | None
    subject: str | None
    channel: str | None
    conversation: str | None
    run: str | None
    issue: str | None
    namespace: str | None


def scope_of(*parts: Any) -> Scope:
    """Build a scope from its parts, in the order of `SCOPE_PARTS`."""
    try:
        return _scope_of(*parts)
    except TypeError:
        # An unhashable part is not text: the constructor's error names it.
        return Scope(*parts)


@lru_cache(maxsize=_KNOWN_SCOPES)
def _scope_of(*parts: Any) -> Scope:
    """Build a scope, cached: calls repeat the same few scopes, and validation costs time."""
    return Scope(*parts)


def drafts_from(messages: Messages) -> tuple[Draft, ...]:
    return drafts_of(messages, _now)


def _now() -> datetime:
    return datetime.now(UTC)


def _is_many(value: object) -> bool:
    """True for an iterable of several items; bytes and dictionaries count as one item."""
    return isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | Mapping)


def content_from(content: object) -> tuple[bytes, str | None]:
    """Return a document's bytes and, for a path, the file's name. A text is its own content."""
    if isinstance(content, str):
        checked_text(content, "content", max_chars=MAX_CONTENT_BYTES)
        return content.encode(), None
    if isinstance(content, bytes):
        return content, None
    if not isinstance(content, os.PathLike):
        raise InvalidInput("content", f"expected a text, bytes or a path, got {type(content).__name__}")
    path = Path(content)
    try:
        with path.open("rb") as file:
            # One byte over the limit is enough for the size check to refuse it.
            return file.read(MAX_CONTENT_BYTES + 1), path.name
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a valid path"
        raise InvalidInput("content", f"the file cannot be read: {why}; give the path of a readable file") from None


def metadata_from(value: object) -> dict[str, Scalar]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", f"expected a dictionary, got {type(value).__name__}")
    return dict(value)


def parse_enum(kind: type[E], value: str, field: str, among: Iterable[E] | None = None) -> E:
    """Parse an enum value. `among` limits the values named in the error."""
    try:
        return kind(value)
    except ValueError:
        names = [str(each.value) for each in (kind if among is None else among)]
        if len(names) <= _MOST_NAMED:
            choices = f"use one of {', '.join(names)}"
        else:
            from difflib import get_close_matches  # slow to import

            near = get_close_matches(str(value), names, _MOST_NAMED // 2, 0)
            choices = f"the nearest of the {len(names)} are {', '.join(near)}"
        raise InvalidInput(field, f"there is no {value!r:.60}; {choices}") from None


def optional_parse_enum(kind: type[E], value: str | None, field: str) -> E | None:
    return None if value is None else parse_enum(kind, value, field)


def optional_enums_from(kind: type[E], value: str | Iterable[str] | None, field: str) -> frozenset[E] | None:
    return None if value is None else frozenset(parse_enum(kind, each, field) for each in as_texts(value, field))


def planes_from(value: Texts) -> frozenset[Plane]:
    names = as_texts(value, "planes")
    if not names:
        raise InvalidInput("planes", "is an empty list; leave it out to include all planes")
    return frozenset(parse_enum(Plane, name, "planes") for name in names)


def kind_from(value: str | None, planes: Texts | None) -> HitKind | None:
    """Parse the kind of hit. Messages have no plane, so `planes` implies memories."""
    if value is None:
        return None if planes is None else HitKind.MEMORY
    return parse_enum(HitKind, value, "kind")


def key_holder_from(value: str) -> ActorKind:
    """Parse the kind of an actor that can have a key."""
    return parse_enum(ActorKind, value, "kind", among=ROLES)


def subjects_from(value: Texts) -> frozenset[str]:
    return frozenset(map(_name, as_texts(value, "subjects")))


def evidence_from(value: Texts) -> tuple[MessageId, ...]:
    return tuple(map(MessageId, as_texts(value, "evidence")))


def _name(subject: object) -> str:
    return checked_text(subject, "subjects", max_chars=MAX_PART_CHARS)


def as_texts(value: object, field: str) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable) or not _is_many(value):
        raise InvalidInput(field, f"expected a text or a list of texts, got {type(value).__name__}")
    return tuple(value)


def target_from(
    record_id: Texts | Missing, source: str | Missing, conversation: str | None, subject: str | None
) -> ForgetTarget:
    """Return a forget's target: the given ids or source, else the scope's conversation or subject."""
    # None comes from a variable that was never set: it must not turn "this message" into "all of Ana".
    for name, value in (("record_id", record_id), ("source", source)):
        if value is None:
            raise InvalidInput(name, "is None; leave it out to forget a whole conversation or subject")
    named = () if isinstance(record_id, Missing) else as_texts(record_id, "record_id")
    if not isinstance(record_id, Missing) and not named:
        raise InvalidInput("record_id", "is an empty list; give at least one id")
    # With ids or a source, the scope only narrows the target.
    if named or not isinstance(source, Missing):
        return ForgetTarget(ids=named, source=None if isinstance(source, Missing) else source)
    return ForgetTarget(conversation=conversation, subject=subject)


def moment_from(value: Moment | None, field: str) -> datetime | None:
    return None if value is None else checked_time(value, field)


def validity_from(since: Moment | None, until: Moment | None) -> Validity:
    return Validity(moment_from(since, "valid_from"), moment_from(until, "valid_until"))
