"""Parses the arguments of public calls: texts, dictionaries, names. Errors name the field."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum, StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

from holdfast.domain.access import ActorKind
from holdfast.domain.access import ActorRole as AccessRole
from holdfast.domain.checks import checked_text
from holdfast.domain.conditions import Condition
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import Plane, Validity
from holdfast.domain.resources import MAX_CONTENT_BYTES
from holdfast.domain.results import HitKind
from holdfast.domain.scope import MAX_PART_CHARS, SCOPE_PARTS, Scope
from holdfast.domain.search import Method
from holdfast.domain.times import checked_time
from holdfast.domain.transcript import Draft, Role
from holdfast.domain.users import ROLES
from holdfast.errors import InvalidInput
from holdfast.ports import SearchOptions

E = TypeVar("E", bound=StrEnum)

Moment = datetime | str
MessageInput = str | Mapping[str, Any] | Draft
DEFAULT_TOP_K = 10
_KNOWN_SCOPES = 4_096
_OPTIONAL_PARTS = SCOPE_PARTS[1:]
_MESSAGE_FIELDS = frozenset({"text", "sender", "role", "timestamp", "id", "metadata"})


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


class SearchKwargs(ScopeKwargs, total=False):
    """The keyword arguments of a search: its scope and its filters."""

    top_k: int
    kind: str | None
    planes: str | Iterable[str] | None
    sender: str | None
    role: str | None
    source: str | None
    said_from: Moment | None
    said_to: Moment | None
    as_of: Moment | None
    valid_at: Moment | None
    min_score: float | None
    method: str
    radius: float | None
    condition: Condition | None


class Credential(ScopeKwargs, total=False):
    """The keyword arguments of a credential: kind, role, subjects and space."""

    kind: str
    role: str | None
    subjects: str | Iterable[str] | None


SCOPE_ONLY = frozenset(ScopeKwargs.__optional_keys__)
SEARCHABLE = frozenset(SearchKwargs.__optional_keys__)
CREDENTIALS = frozenset(Credential.__optional_keys__)


def scope_from(keywords: Mapping[str, Any], space: str, allowed: frozenset[str] = SCOPE_ONLY) -> Scope:
    """Build the scope from keywords. Unknown ones are refused: a mistyped subject must not make a record shared."""
    if not keywords.keys() <= allowed:
        unknown = min(keywords.keys() - allowed)
        raise InvalidInput(unknown, f"is not an argument of this call; use one of {', '.join(sorted(allowed))}")
    parts = tuple(keywords.get(name) for name in _OPTIONAL_PARTS)
    try:
        return _scope_of(keywords.get("space", space), *parts)
    except TypeError:
        # An unhashable part is not text: the constructor's error names it.
        return Scope(keywords.get("space", space), *parts)


@lru_cache(maxsize=_KNOWN_SCOPES)
def _scope_of(*parts: Any) -> Scope:
    """Build a scope, cached: calls repeat the same few scopes, and validation costs time."""
    return Scope(*parts)


def search_options_from(options: SearchKwargs) -> SearchOptions:
    """Build the search options from keywords."""
    role, planes = options.get("role"), planes_from(options.get("planes"))
    return SearchOptions(
        top_k=options.get("top_k", DEFAULT_TOP_K),
        kind=kind_from(options.get("kind"), planes),
        planes=planes,
        sender=options.get("sender"),
        role=None if role is None else parse_enum(Role, role, "role"),
        source=options.get("source"),
        said_from=moment_from(options.get("said_from"), "said_from"),
        said_to=moment_from(options.get("said_to"), "said_to"),
        as_of=moment_from(options.get("as_of"), "as_of"),
        valid_at=moment_from(options.get("valid_at"), "valid_at"),
        min_score=options.get("min_score"),
        method=parse_enum(Method, options.get("method", Method.HYBRID), "method"),
        radius=options.get("radius"),
        condition=options.get("condition"),
    )


def drafts_from(messages: MessageInput | Iterable[MessageInput]) -> tuple[Draft, ...]:
    if isinstance(messages, str):
        return (_with_index(0, lambda: Draft(messages)),)
    if isinstance(messages, (Mapping, Draft)):
        messages = (messages,)
    if not _is_many(messages):
        raise InvalidInput("messages", f"expected a text, a message or several, got {type(messages).__name__}")
    return tuple(_draft(message, index) for index, message in enumerate(messages))


def _is_many(value: object) -> bool:
    """True for an iterable of several items; bytes and dictionaries count as one item."""
    return isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | Mapping)


def _draft(message: MessageInput, index: int) -> Draft:
    if isinstance(message, Draft):
        return message
    if isinstance(message, str):
        return _with_index(index, lambda: Draft(message))
    if not isinstance(message, Mapping):
        raise InvalidInput(f"messages[{index}]", f"expected a text or a dictionary, got {type(message).__name__}")
    unknown = sorted(str(name) for name in set(message) - _MESSAGE_FIELDS)
    if unknown:
        known = ", ".join(sorted(_MESSAGE_FIELDS))
        raise InvalidInput(f"messages[{index}]", f"has an unknown field {unknown[0]!r:.60}; known are {known}")
    if "text" not in message:
        raise InvalidInput(f"messages[{index}].text", "is missing")
    timestamp = message.get("timestamp")
    return _with_index(
        index,
        lambda: Draft(
            text=message["text"],
            sender=message.get("sender"),
            role=parse_enum(Role, message.get("role", Role.USER), "role"),
            said_at=None if timestamp is None else checked_time(timestamp, "timestamp"),
            external_id=message.get("id"),
            metadata=metadata_from(message.get("metadata")),
        ),
    )


def _with_index(index: int, make: Any) -> Draft:
    """Prefix an error's field with the message's index."""
    try:
        draft: Draft = make()
    except InvalidInput as error:
        raise type(error)(f"messages[{index}].{error.field}", error.problem) from None
    return draft


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


def metadata_from(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", f"expected a dictionary of texts, got {type(value).__name__}")
    return dict(value)


def parse_enum(kind: type[E], value: str, field: str, among: Iterable[E] | None = None) -> E:
    """Parse an enum value. `among` limits the values named in the error."""
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(kind if among is None else among)
        raise InvalidInput(field, f"there is no {value!r:.60}; use one of {names}") from None


def optional_parse_enum(kind: type[E], value: str | None, field: str) -> E | None:
    return None if value is None else parse_enum(kind, value, field)


def optional_enums_from(kind: type[E], value: str | Iterable[str] | None, field: str) -> frozenset[E] | None:
    return None if value is None else frozenset(parse_enum(kind, each, field) for each in as_texts(value, field))


def planes_from(value: str | Iterable[str] | None) -> frozenset[Plane] | None:
    if value is None:
        return None
    names = as_texts(value, "planes")
    if not names:
        raise InvalidInput("planes", "is an empty list; leave it out to include all planes")
    return frozenset(parse_enum(Plane, name, "planes") for name in names)


def kind_from(value: str | None, planes: frozenset[Plane] | None) -> HitKind | None:
    """Parse the kind of hit. Messages have no plane, so `planes` implies memories."""
    if value is None:
        return None if planes is None else HitKind.MEMORY
    return parse_enum(HitKind, value, "kind")


class Rights(NamedTuple):
    """A credential's rights, in the order of `CreateUser`'s fields."""

    kind: ActorKind
    role: AccessRole | None
    subjects: frozenset[str] | None


def key_holder_from(value: str) -> ActorKind:
    """Parse the kind of an actor that can have a key."""
    return parse_enum(ActorKind, value, "kind", among=ROLES)


def rights_from(credential: Credential) -> Rights:
    role, subjects = credential.get("role"), credential.get("subjects")
    return Rights(
        key_holder_from(credential.get("kind", ActorKind.USER)),
        None if role is None else parse_enum(AccessRole, role, "role"),
        None if subjects is None else frozenset(map(_name, as_texts(subjects, "subjects"))),
    )


def _name(subject: object) -> str:
    return checked_text(subject, "subjects", max_chars=MAX_PART_CHARS)


def as_texts(value: object, field: str) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable) or not _is_many(value):
        raise InvalidInput(field, f"expected a text or a list of texts, got {type(value).__name__}")
    return tuple(value)


def target_from(record_id: str | Iterable[str] | Missing, source: str | Missing, where: ScopeKwargs) -> ForgetTarget:
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
    return ForgetTarget(conversation=where.get("conversation"), subject=where.get("subject"))


def moment_from(value: Moment | None, field: str) -> datetime | None:
    return None if value is None else checked_time(value, field)


def validity_from(since: Moment | None, until: Moment | None) -> Validity:
    return Validity(moment_from(since, "valid_from"), moment_from(until, "valid_until"))
