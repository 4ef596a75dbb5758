"""The JSON encoding of verbs, their results and errors, shared by server and client.

A verb's fields are the request body; its result is the response. Both are our own frozen dataclasses, so they are
validated as in process. Times are UTC with microseconds, bytes base64, sets sorted lists. A request with an unknown
field or a value of another type is refused by name: a mistyped subject must not make a record shared. Unknown fields of
a response, from a newer server, are ignored. Errors keep their class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache, cached_property, reduce
from operator import getitem
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import (
    CoreConfig,
    CoreSchema,
    ErrorDetails,
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
    ValidationError,
    core_schema,
    from_json,
)

from holdfast.domain.access import Action, Actor
from holdfast.domain.arguments import alternate_names, result_type_of
from holdfast.domain.checks import LEAST_WHOLE, MOST_WHOLE
from holdfast.domain.ids import MAX_ID_CHARS, OPERATION, kind_of
from holdfast.domain.unknown_fields import explain_unknown, names_at
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.runtime.gate import CompositeRequest, Request, Write
from holdfast.runtime.verbs import VERBS as LIBRARY_VERBS

AnyRequest = Request[Any, Any]
T = TypeVar("T")

# The requests of the library's verbs. Two methods may share one.
SPOKEN: tuple[type[AnyRequest], ...] = tuple(dict.fromkeys(entry.request for entry in LIBRARY_VERBS.values()))
# Actions of the control plane that change nothing, although their requests could.
_READING = frozenset({Action.QUERY, Action.EXPLAIN, Action.LIST, Action.GET, Action.PROFILE, Action.JOBS})
_NAMED_CHARS = 60
_UNKNOWN = "unexpected_keyword_argument"
_OF_MANY = ("list", "tuple", "frozenset", "dict")
# JSON has no NaN or infinity, so such scores are encoded as strings.
_WRITTEN = CoreConfig(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings")


class JsonCodec:
    """A type's JSON codec. A `closed` one refuses unknown fields and coerces no types; an open one ignores them.

    `names` are further names of fields that a closed one accepts. A `bounded` one is for types that declare no limits:
    no text, number or list exceeds the largest that any request could need.
    """

    def __init__(
        self, kind: Any, *, closed: bool, names: Mapping[str, str] | None = None, bounded: bool = False
    ) -> None:
        self._kind = kind
        self._closed = closed
        self._bounded = bounded
        self._further = names or {}

    @cached_property
    def schema(self) -> CoreSchema:
        schema: CoreSchema = _apply_rules(TypeAdapter(self._kind).core_schema, self._other_names, closed=self._closed)
        return _apply_bounds(schema) if self._bounded else schema

    def _other_names(self, name: str) -> tuple[str, ...]:
        further = [other for own, other in self._further.items() if own == name]
        return (*alternate_names(name), *further)

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of all fields of the type and of the types in it."""
        return frozenset(_field_names(self.schema))

    @cached_property
    def _validator(self) -> SchemaValidator:
        return SchemaValidator(self.schema, _WRITTEN)

    @cached_property
    def _serializer(self) -> SchemaSerializer:
        return SchemaSerializer(self.schema, _WRITTEN)

    def encode(self, value: object) -> bytes:
        try:
            return self._serializer.to_json(value, warnings="error")
        except (PydanticSerializationError, ValueError) as error:
            problem = f"cannot be written as JSON ({type(error).__name__})"
        # Raised outside the except block, because the original error quotes the text.
        raise InvalidInput("request", problem)

    def decode(self, body: bytes) -> Any:
        """Decode a body, or raise `InvalidInput` that names the field and quotes nothing of the body."""
        try:
            return self._validator.validate_json(body, strict=self._closed)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False)
        # An unknown field often explains why another is missing.
        if (unknown := next((each for each in found if each["type"] == _UNKNOWN), None)) is not None:
            raise self._unknown_field(body, unknown["loc"])
        raise InvalidInput(field_path(found[0]["loc"], self._names), _problem(found[0]))

    def _unknown_field(self, body: bytes, loc: Sequence[int | str]) -> InvalidInput:
        where = field_path(loc[:-1], self._names)
        holder: Any = {}
        with suppress(LookupError, TypeError):  # a location may also name a variant, which is not in the body
            holder = reduce(getitem, loc[:-1], from_json(body))
        wrong = str(loc[-1])
        others = (*self._other_names(wrong), *(own for own, other in self._further.items() if other == wrong))
        if both := [name for name in others if name in holder]:
            return InvalidInput(where, f"has both {both[0]} and {wrong}, two names of one argument; give one of them")
        known = [self._further.get(each, each) for each in names_at(self._kind, loc[:-1], _field_types)]
        name, problem = explain_unknown(wrong, known)
        return InvalidInput(where if name is None else field_path([*loc[:-1], name], {*self._names, name}), problem)


def _field_types(kind: Any) -> Mapping[str, Any] | None:
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return None
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _apply_rules(schema: Any, other_names: Callable[[str], tuple[str, ...]], *, closed: bool) -> Any:
    """Apply our own rules to every datetime, set and dataclass in the schema."""
    if isinstance(schema, list):
        return [_apply_rules(part, other_names, closed=closed) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: _apply_rules(part, other_names, closed=closed) for name, part in schema.items()}
    if result.get("type") in _OF_MANY:
        if closed:
            # Only the first error is reported; finding the others would waste time.
            result["fail_fast"] = True
        else:
            # Limits are for requests: an answer of a newer server may have more.
            result.pop("max_length", None)
    match result.get("type"):
        case "datetime":
            aware = core_schema.datetime_schema(tz_constraint="aware", microseconds_precision="error")
            return core_schema.no_info_after_validator_function(_to_utc, aware)
        case "frozenset":
            items = core_schema.list_schema(result["items_schema"])
            result["serialization"] = core_schema.plain_serializer_function_ser_schema(sorted, return_schema=items)
        case "dataclass-field" if closed and (others := other_names(result["name"])):
            # The schema shows the first.
            result["validation_alias"] = [[name] for name in (result["name"], *others)]
        case "dataclass":
            unknown = "forbid" if closed else "ignore"
            result["config"] = {**result.get("config", {}), **_WRITTEN, "extra_fields_behavior": unknown}
    return result


# The largest snapshot of a profile, and more entries than any list of a request may have.
_MAX_CHARS, _MAX_ENTRIES = 32 * 1024 * 1024, 10_000
_BOUNDS: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"max_length": _MAX_CHARS} for kind in ("str", "bytes")},
    **{kind: {"max_length": _MAX_ENTRIES} for kind in _OF_MANY},
    "int": {"ge": LEAST_WHOLE, "le": MOST_WHOLE},
    "float": {"ge": -sys.float_info.max, "le": sys.float_info.max},
}


def _apply_bounds(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_apply_bounds(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounds = _BOUNDS.get(schema["type"], {}) if isinstance(schema.get("type"), str) else {}
    return {**bounds, **{name: _apply_bounds(part) for name, part in schema.items()}}


def _field_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if schema.get("type") == "dataclass-field":
            yield from (schema["name"], *alternate_names(schema["name"]))
        for name, part in schema.items():
            if name != "metadata":
                yield from _field_names(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _field_names(part)


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999 in UTC") from None


@dataclass(frozen=True)
class WireVerb:
    """A verb on the wire."""

    name: str
    request_type: type[AnyRequest]
    answer_type: Any

    @property
    def action(self) -> Action:
        return self.request_type.action

    @property
    def writes(self) -> bool:
        """True if it may have changed something when its outcome is unknown."""
        if issubclass(self.request_type, CompositeRequest):
            return self.action not in _READING
        return issubclass(self.request_type, Write)

    @cached_property
    def request(self) -> JsonCodec:
        return JsonCodec(self.request_type, closed=True)

    @cached_property
    def answer(self) -> JsonCodec:
        return JsonCodec(self.answer_type, closed=False)


# The library's verbs by their action.
VERBS: dict[Action, WireVerb] = {
    request.action: WireVerb(request.action, request, result_type_of(request)) for request in SPOKEN
}


@cache
def control_verbs() -> dict[str, WireVerb]:
    """Return the control plane's verbs by name, such as `list_operations`. They are loaded when they are first used."""
    from holdfast.control.bindings import ClearTarget, ListBindings, SetTarget
    from holdfast.control.verbs import VERBS as CONTROL_VERBS

    requests: list[type[AnyRequest]] = [entry.request for entry in CONTROL_VERBS.values()]
    requests += [ListBindings, SetTarget, ClearTarget]
    names = {snake_case(request.__name__): request for request in requests}
    return {name: WireVerb(name, request, result_type_of(request)) for name, request in names.items()}


def snake_case(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


@cache
def all_verbs() -> dict[str, WireVerb]:
    return {**{str(action): spoken for action, spoken in VERBS.items()}, **control_verbs()}


def wire_verb(request: AnyRequest) -> WireVerb:
    """Return the verb of a request: the library's, else the control plane's."""
    found = VERBS.get(request.action)
    if found is not None and found.request_type is type(request):
        return found
    return control_verbs()[snake_case(type(request).__name__)]


@dataclass(frozen=True, slots=True)
class Greeting:
    """A server's introduction to a client: its version, the key's actor, and its verbs."""

    holdfast: str
    actor: Actor
    verbs: tuple[str, ...]


GREETING = JsonCodec(Greeting, closed=False)


@cache
def openapi_definitions(template: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the OpenAPI schemas of requests and of responses, and the definitions that they refer to by `template`."""
    verbs = all_verbs()
    requests = {name: spoken.request for name, spoken in verbs.items()}
    return describe_codecs(requests, {name: spoken.answer for name, spoken in verbs.items()}, template)


def describe_codecs(
    requests: Mapping[str, JsonCodec], answers: Mapping[str, JsonCodec], template: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the OpenAPI schemas of these codecs, and the definitions that they refer to by `template`."""
    inputs: list[tuple[Any, Any, CoreSchema]] = [(name, "validation", each.schema) for name, each in requests.items()]
    inputs += [(name, "serialization", each.schema) for name, each in answers.items()]
    found, shared = GenerateJsonSchema(ref_template=template).generate_definitions(inputs)
    described = {name: found[name, "validation"] for name in requests}
    definitions = {str(name): schema for name, schema in shared.items()}
    return described, {name: found[name, "serialization"] for name in answers}, definitions


# --- errors -----------------------------------------------------------------------------------------------------------


def _descendants(kind: type[HoldfastError]) -> Iterable[type[HoldfastError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _descendants(child)


# Only errors of our own module: the other side does not know third-party subclasses.
ERRORS: dict[str, type[HoldfastError]] = {
    kind.code: kind for kind in _descendants(HoldfastError) if kind.__module__ == HoldfastError.__module__
}


def error_body(error: HoldfastError) -> dict[str, Any]:
    """Return an error as JSON: its code, message and field."""
    body: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.field is not None:
        body["field"] = error.field
    return body


def error_from(body: object) -> HoldfastError | None:
    """Rebuild an error from `error_body` or an RFC 9457 problem, with its operation id; None if it is not ours."""
    if not isinstance(body, Mapping):
        return None
    code, message = body.get("code"), body.get("message", body.get("detail"))
    kind = ERRORS.get(code) if isinstance(code, str) else None
    if kind is None or not isinstance(message, str):
        return None
    if not issubclass(kind, InvalidInput):
        error = kind(message)
    else:
        field, problem = _field_and_problem(body, message)
        error = kind(field, problem.removeprefix(f"{field}: "))
    if isinstance(row := body.get("operation_id"), str) and kind_of(row) == OPERATION:
        error.operation_id = row[:MAX_ID_CHARS]
    return error


def _field_and_problem(body: Mapping[str, Any], message: str) -> tuple[str, str]:
    """Return the field and its problem. If several fields are named, the first counts."""
    if isinstance(body.get("field"), str):
        return body["field"], message
    several = body.get("fields", body.get("errors"))
    first = several[0] if isinstance(several, list) and several else None
    if isinstance(first, Mapping) and isinstance(first.get("field"), str):
        return first["field"], str(first.get("problem", message))
    return "request", message


def decode_error(body: bytes) -> HoldfastError | None:
    """Rebuild an error from a response body; None if it holds none."""
    try:
        return error_from(from_json(body))
    except ValueError:
        return None


def field_path(loc: Sequence[int | str], known: Container[str]) -> str:
    """Format a location such as `messages[0].timestamp`. A name that is not ours is quoted: `metadata['colour']`."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part in known:
            path += f"{'.' if path else ''}{part}"
        else:
            path += f"[{part!r:.{_NAMED_CHARS}}]"
    return path or "request"


PROBLEMS = {
    "missing": "is missing",
    "json_invalid": "is not valid JSON; check its syntax",
    "timezone_aware": "needs an offset from UTC, such as 2026-11-15T09:30:00Z",
    "datetime_parsing": "is not an ISO 8601 time such as 2026-11-15T09:30:00Z",
    "datetime_from_date_parsing": "is not an ISO 8601 time such as 2026-11-15T09:30:00Z",
    "datetime_type": "expected an ISO 8601 time such as 2026-11-15T09:30:00Z",
    "dataclass_type": "expected an object",
    "dataclass_exact_type": "expected an object",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "tuple_type": "expected a list",
    "frozen_set_type": "expected a list",
    "dict_type": "expected an object",
}


def _problem(issue: ErrorDetails) -> str:
    if issue["type"] == "too_long":
        return f"has too many items; at most {issue['ctx']['max_length']:,} are allowed in one call"
    found = PROBLEMS.get(issue["type"], issue["msg"].removeprefix("Value error, "))
    return f"{found[:1].lower()}{found[1:]}"
