"""Reading what callers give: texts, dictionaries, names. What cannot be read is refused by the name of its field."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum, StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

from holdfast.domain.access import ActorKind
from holdfast.domain.access import Role as AccessRole
from holdfast.domain.conditions import Condition
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import Plane, Validity
from holdfast.domain.resources import MAX_CONTENT_BYTES
from holdfast.domain.results import HitKind
from holdfast.domain.scope import MAX_PART_CHARS, SCOPE_PARTS, Scope
from holdfast.domain.searching import Method
from holdfast.domain.text import checked_text
from holdfast.domain.times import checked_time
from holdfast.domain.transcript import Draft, Role
from holdfast.domain.users import ROLES
from holdfast.errors import InvalidInput
from holdfast.ports import Wanted

E = TypeVar("E", bound=StrEnum)

Moment = datetime | str
Given = str | Mapping[str, Any] | Draft
DEFAULT_TOP_K = 10
_KNOWN_SCOPES = 4_096
_OPTIONAL_PARTS = SCOPE_PARTS[1:]
_MESSAGE_FIELDS = frozenset({"text", "sender", "role", "timestamp", "id", "metadata"})


class Missing(Enum):
    """What an argument is that was not given. Unlike None, it cannot come from a variable by mistake."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "not given"


MISSING = Missing.MISSING


class Where(TypedDict, total=False):
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


class Asking(Where, total=False):
    """What a search asks for besides its words: the scope, and filters on what it finds."""

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


class Credential(Where, total=False):
    """What somebody is let in as, and in which space."""

    kind: str
    role: str | None
    subjects: str | Iterable[str] | None


SCOPE_ONLY = frozenset(Where.__optional_keys__)
SEARCHABLE = frozenset(Asking.__optional_keys__)
CREDENTIALS = frozenset(Credential.__optional_keys__)


def scope_from(given: Mapping[str, Any], space: str, allowed: frozenset[str] = SCOPE_ONLY) -> Scope:
    """The scope among the given keywords. One that means nothing is refused: a mistyped subject must not share."""
    if not given.keys() <= allowed:
        unknown = min(given.keys() - allowed)
        raise InvalidInput(unknown, f"is no argument of this call, nor one of {', '.join(sorted(allowed))}")
    parts = tuple(given.get(name) for name in _OPTIONAL_PARTS)
    try:
        return _scope_of(given.get("space", space), *parts)
    except TypeError:
        # What cannot be looked up is no text either: made anew, it is refused by the name of its part.
        return Scope(given.get("space", space), *parts)


@lru_cache(maxsize=_KNOWN_SCOPES)
def _scope_of(*parts: Any) -> Scope:
    """Calls come from the same few places again and again; their parts need to be checked once."""
    return Scope(*parts)


def wanted_from(asking: Asking) -> Wanted:
    """The filters among the given keywords."""
    role, planes = asking.get("role"), planes_from(asking.get("planes"))
    return Wanted(
        top_k=asking.get("top_k", DEFAULT_TOP_K),
        kind=kind_from(asking.get("kind"), planes),
        planes=planes,
        sender=asking.get("sender"),
        role=None if role is None else chosen(Role, role, "role"),
        source=asking.get("source"),
        said_from=moment_from(asking.get("said_from"), "said_from"),
        said_to=moment_from(asking.get("said_to"), "said_to"),
        as_of=moment_from(asking.get("as_of"), "as_of"),
        valid_at=moment_from(asking.get("valid_at"), "valid_at"),
        min_score=asking.get("min_score"),
        method=chosen(Method, asking.get("method", Method.HYBRID), "method"),
        radius=asking.get("radius"),
        condition=asking.get("condition"),
    )


def drafts_from(given: Given | Iterable[Given]) -> tuple[Draft, ...]:
    if isinstance(given, str):
        return (_placed(0, lambda: Draft(given)),)
    if isinstance(given, (Mapping, Draft)):
        given = (given,)
    if not _is_many(given):
        raise InvalidInput("messages", f"expected a text, a message or several, got {type(given).__name__}")
    return tuple(_draft(message, index) for index, message in enumerate(given))


def _is_many(given: object) -> bool:
    """Bytes and dictionaries can be gone through too, and never mean several things."""
    return isinstance(given, Iterable) and not isinstance(given, bytes | bytearray | Mapping)


def _draft(given: Given, index: int) -> Draft:
    if isinstance(given, Draft):
        return given
    if isinstance(given, str):
        return _placed(index, lambda: Draft(given))
    if not isinstance(given, Mapping):
        raise InvalidInput(f"messages[{index}]", f"expected a text or a dictionary, got {type(given).__name__}")
    unknown = sorted(str(name) for name in set(given) - _MESSAGE_FIELDS)
    if unknown:
        known = ", ".join(sorted(_MESSAGE_FIELDS))
        raise InvalidInput(f"messages[{index}]", f"has an unknown field {unknown[0]!r:.60}; known are {known}")
    if "text" not in given:
        raise InvalidInput(f"messages[{index}].text", "is missing")
    timestamp = given.get("timestamp")
    return _placed(
        index,
        lambda: Draft(
            text=given["text"],
            sender=given.get("sender"),
            role=chosen(Role, given.get("role", Role.USER), "role"),
            said_at=None if timestamp is None else checked_time(timestamp, "timestamp"),
            external_id=given.get("id"),
            metadata=metadata_from(given.get("metadata")),
        ),
    )


def _placed(index: int, make: Any) -> Draft:
    """Say which of many messages is wrong."""
    try:
        draft: Draft = make()
    except InvalidInput as error:
        raise type(error)(f"messages[{index}].{error.field}", error.problem) from None
    return draft


def content_from(given: object) -> tuple[bytes, str | None]:
    """What a document holds, and the name of the file if it is one. A text is its own content."""
    if isinstance(given, str):
        checked_text(given, "content", max_chars=MAX_CONTENT_BYTES)
        return given.encode(), None
    if isinstance(given, bytes):
        return given, None
    if not isinstance(given, os.PathLike):
        raise InvalidInput("content", f"expected a text, bytes or a path, got {type(given).__name__}")
    path = Path(given)
    try:
        with path.open("rb") as file:
            # One byte more than can be read at all is enough to be refused.
            return file.read(MAX_CONTENT_BYTES + 1), path.name
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no path"
        raise InvalidInput("content", f"the file cannot be read: {why}; give the path of one that can") from None


def metadata_from(given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput("metadata", f"expected a dictionary of texts, got {type(given).__name__}")
    return dict(given)


def chosen(kind: type[E], value: str, field: str, among: Iterable[E] | None = None) -> E:
    """What is meant by this text. `among` are those that are told of, where not all of the kind make sense."""
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(kind if among is None else among)
        raise InvalidInput(field, f"there is no {value!r:.60}; use one of {names}") from None


def planes_from(given: str | Iterable[str] | None) -> frozenset[Plane] | None:
    if given is None:
        return None
    names = several(given, "planes")
    if not names:
        raise InvalidInput("planes", "is an empty list; leave it out to ask for all")
    return frozenset(chosen(Plane, name, "planes") for name in names)


def kind_from(given: str | None, planes: frozenset[Plane] | None) -> HitKind | None:
    """Messages have no plane: who asks for planes asks for memories."""
    if given is None:
        return None if planes is None else HitKind.MEMORY
    return chosen(HitKind, given, "kind")


class Rights(NamedTuple):
    """What a credential is, as `CreateUser` takes it."""

    kind: ActorKind
    role: AccessRole | None
    subjects: frozenset[str] | None


def holder_from(given: str) -> ActorKind:
    """The kinds of actors that can have a key."""
    return chosen(ActorKind, given, "kind", among=ROLES)


def rights_from(given: Credential) -> Rights:
    role, subjects = given.get("role"), given.get("subjects")
    return Rights(
        holder_from(given.get("kind", ActorKind.USER)),
        None if role is None else chosen(AccessRole, role, "role"),
        None if subjects is None else frozenset(map(_name, several(subjects, "subjects"))),
    )


def _name(subject: object) -> str:
    return checked_text(subject, "subjects", max_chars=MAX_PART_CHARS)


def several(given: object, field: str) -> tuple[str, ...]:
    """One text or many, as many."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or not _is_many(given):
        raise InvalidInput(field, f"expected a text or a list of texts, got {type(given).__name__}")
    return tuple(given)


def target_from(record_id: str | Iterable[str] | Missing, source: str | Missing, where: Where) -> ForgetTarget:
    """What a forget is of: the ids or the source that were given, else the conversation or the subject of the scope."""
    # None comes from a variable that was never set: it must not turn "this message" into "all of Ana".
    for name, given in (("record_id", record_id), ("source", source)):
        if given is None:
            raise InvalidInput(name, "is None; leave it out to forget a conversation or a subject whole")
    named = () if isinstance(record_id, Missing) else several(record_id, "record_id")
    if not isinstance(record_id, Missing) and not named:
        raise InvalidInput("record_id", "is an empty list; give at least one id")
    # Beside ids or a source, the scope only narrows: it is not what is forgotten.
    if named or not isinstance(source, Missing):
        return ForgetTarget(ids=named, source=None if isinstance(source, Missing) else source)
    return ForgetTarget(conversation=where.get("conversation"), subject=where.get("subject"))


def moment_from(given: Moment | None, field: str) -> datetime | None:
    return None if given is None else checked_time(given, field)


def validity_from(since: Moment | None, until: Moment | None) -> Validity:
    return Validity(moment_from(since, "valid_from"), moment_from(until, "valid_until"))
