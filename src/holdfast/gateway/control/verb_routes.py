"""Routes that are plain calls: derived from the tables of verbs and the names that HTTP gives them.

A route's path, query and body parameters are the arguments of its verb, with their types, limits and help. A verb in a
scope of a space also takes the parts of the scope. Results are written by `control/json_views.py`, or by the route's
own model.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal, get_args, get_origin

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError, create_model
from starlette.responses import JSONResponse, Response

from holdfast.control.json_views import SCOPE_NAMES, own_docstring, response_model, to_json
from holdfast.control.schemas import Filter, ResponseModel, json_type_of, request_field, request_model
from holdfast.control.verbs import VERBS
from holdfast.domain.arguments import Argument, result_type_of
from holdfast.domain.bindings import Binding
from holdfast.domain.contract import MAX_METADATA
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.transcript import Message
from holdfast.domain.users import Issued
from holdfast.errors import InvalidInput
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import CompanyId, Where, plane_of
from holdfast.gateway.headers import IdempotencyKey, IfMatch, etag, expected_revision
from holdfast.gateway.problem_responses import refusals
from holdfast.runtime.verb_entry import Reach, VerbEntry
from holdfast.runtime.verbs import VERBS as LIBRARY_VERBS
from holdfast.wire import snake_case

_OBJECT_CHARS = 4_096
_FILTER: TypeAdapter[dict[str, Any]] = TypeAdapter(Filter, config=ConfigDict(strict=True))


# Types and defaults of parameters by name; `...` as default means required.
Fields = Mapping[str, tuple[Any, Any]]
# Finds the object whose methods are called, and the scope of the call. It takes its own parameters out of the values.
Find = Callable[[Authenticator, Request, dict[str, Any]], Awaitable[tuple[Any, Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Callers:
    """The callers of routes: the rule that admits them, the verbs that they call, and how their memory is found."""

    rule: AccessRule
    find: Find
    fields: Fields
    verbs: Mapping[str, VerbEntry] = field(default_factory=lambda: LIBRARY_VERBS)


async def _find_plane(auth: Authenticator, request: Request, values: dict[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    return await plane_of(auth, request, values.pop("company_id")), {}


COMPANY = Callers(AccessRule.COMPANY, _find_plane, {"company_id": (CompanyId, ...)}, VERBS)


@dataclass(frozen=True, slots=True)
class VerbRoute:
    """A route of one verb. `names` are those of its arguments in HTTP, where they differ from its own.

    `fields` has parameters of other types, and further ones; `without` are arguments that the route lacks. `many` is
    the name of a result that is a list. `errors` are the refusals besides 401, 403 and 422. A `model` reads the result,
    or what `view` makes of it; without one, it is written as `control/json_views.py` says. `doc` describes the route if
    its verb does more.
    """

    method: str
    path: str
    verb: str
    errors: tuple[int, ...] = ()
    status: int = 200
    name: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    many: str | None = None
    body: Literal["required", "optional", "none"] = "required"
    callers: Callers = COMPANY
    fields: Fields = field(default_factory=dict)
    without: tuple[str, ...] = ()
    model: type[BaseModel] | None = None
    view: Callable[[Any], Any] | None = None
    doc: str | None = None

    @property
    def entry(self) -> VerbEntry:
        """The verb as this route has it. Only calls of a control plane name the parts of their scope."""
        entry = self.callers.verbs[self.verb]
        reach = entry.reach if self.callers is COMPANY else Reach.COMPANY
        return replace(entry, reach=reach, hidden=(*entry.hidden, *self.without))

    @property
    def endpoint_name(self) -> str:
        return self.name or snake_case(self.entry.request.__name__)

    def public_name(self, argument: Argument) -> str:
        name = self.entry.public_name(argument)
        return self.names.get(argument.name, SCOPE_NAMES.get(name, name))


def add_routes(routes: APIRouter, auth: Authenticator, table: tuple[VerbRoute, ...]) -> None:
    for route in table:
        rule = route.callers.rule
        errors = (401, *route.errors, 422) if rule is AccessRule.USER else (401, 403, *route.errors, 422)
        explained = route.doc or route.entry.doc or own_docstring(route.entry.request) or ""
        routes.add_api_route(
            route.path,
            _endpoint(auth, route),
            methods=[route.method],
            status_code=route.status,
            name=route.endpoint_name,
            description=explained.replace("\n    ", "\n"),
            response_model=_model(route),
            responses=refusals(*errors),
            **allow(rule),
        )


def _model(route: VerbRoute) -> type[BaseModel] | None:
    found = result_type_of(route.entry.request)
    if route.status == 204 or route.model is not None:
        return route.model
    if route.many is None:
        return response_model(found)
    items: Any = list[response_model(get_args(found)[0])]  # type: ignore[misc]
    shown: dict[str, Any] = {route.many: (items, ...)}
    return create_model(f"{route.many.capitalize()}Response", __base__=ResponseModel, **shown)


def _endpoint(auth: Authenticator, route: VerbRoute) -> Any:
    inputs = _Inputs(route)

    async def endpoint(request: Request, **values: Any) -> Response:
        target, scope = await route.callers.find(auth, request, values)
        result = await getattr(target, route.verb)(**inputs.arguments(values), **scope)
        return _response(route, result)

    endpoint.__signature__ = inputs.signature  # type: ignore[attr-defined]
    endpoint.__name__ = route.endpoint_name
    return endpoint


def _response(route: VerbRoute, result: Any) -> Response:
    if route.status == 204:
        return Response(status_code=204)
    headers = {}
    if isinstance(result, Binding | Message | MemoryRecord):
        headers["ETag"] = etag(result.key if isinstance(result, Binding) else result.id, result.revision)
    elif isinstance(result, Issued):
        headers["Cache-Control"] = "no-store"
    if route.model is None:
        body = to_json(result) if route.many is None else {route.many: to_json(result)}
        return JSONResponse(body, route.status, headers)
    shown = route.model.model_validate(result if route.view is None else route.view(result), from_attributes=True)
    return Response(shown.model_dump_json(), route.status, headers, "application/json")


class _Inputs:
    """The parameters of a route, and the arguments of its verb that are made from them."""

    def __init__(self, route: VerbRoute) -> None:
        self._route = route
        self._entry = route.entry
        self._ours = {route.public_name(each): each for each in self._entry.arguments}
        self._scoped = self._entry.reach is not Reach.COMPANY
        self._in_body = route.method in ("POST", "PUT", "PATCH") and route.body != "none"
        parameters = [_parameter("request", Request), *self._parameters()]
        self.signature = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters])

    def _parameters(self) -> Iterator[Parameter]:
        body: dict[str, Any] = {}
        route, fields = self._route, {**self._route.callers.fields, **self._route.fields}
        for name, argument in self._ours.items():
            own = fields.pop(name, None)
            if f"{{{name}}}" in route.path or f"{{{name}:path}}" in route.path:
                yield _parameter(name, Annotated[own[0] if own else json_type_of(argument), Path()])
            elif argument.name == "idempotency_key":
                yield _parameter(name, IdempotencyKey, None)
            elif argument.name == "expected_revision":
                yield _parameter("if_match", IfMatch, None)
            elif self._in_body:
                body[name] = own or request_field(argument)
            elif own:
                yield _parameter(name, *own)
            elif not (self._scoped and argument.name in SCOPE_NAMES):
                yield _query(argument, name)
        yield from (_parameter(name, *about) for name, about in fields.items())
        if self._in_body and (self._scoped or body):
            yield self._body(body)
        elif self._scoped:
            yield _parameter("where", Where)

    def _body(self, shown: dict[str, Any]) -> Parameter:
        name = "".join(part.capitalize() for part in self._route.endpoint_name.split("_"))
        model: Any = request_model(f"{name}Request", self._entry, shown, own_docstring(self._entry.request))
        if self._route.body == "optional":
            return _parameter("body", Annotated[model | None, Body()], None)
        return _parameter("body", Annotated[model, Body()])

    def arguments(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the verb's method from the route's parameters."""
        given = {**values, **values.pop("where", {})}
        given.pop("where", None)
        if (body := given.pop("body", None)) is not None:
            given |= {name: getattr(body, name) for name in type(body).model_fields}
        if "if_match" in given:
            given["expected_revision"] = expected_revision(
                given.pop("if_match"), given.get("key") or given["record_id"]
            )
        parts = {theirs: part for part, theirs in SCOPE_NAMES.items()} if self._scoped else {}
        named = {}
        for name, value in given.items():
            argument = self._ours.get(name)
            if argument is None:
                if value is not None:
                    named[parts.get(name, name)] = value
            else:
                named[self._entry.public_name(argument)] = _plain(argument, value)
        return named


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    given = Parameter.empty if default is ... else default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=given)


def _plain(argument: Argument, value: Any) -> Any:
    """Return a value as the method takes it: a body's objects as dictionaries."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        return [each.model_dump(exclude_none=True) for each in value]
    if isinstance(value, str) and get_origin(argument.type) is Mapping:
        return _parse_filter(value, argument.name)
    return value


def _parse_filter(value: str, name: str) -> dict[str, Any]:
    try:
        return _FILTER.validate_json(value)
    except ValidationError:
        problem = f"must be a JSON object with at most {MAX_METADATA} names, each with a text, a number, true or false"
    raise InvalidInput(name, problem)


# --- types ------------------------------------------------------------------------------------------------------------


def _query(argument: Argument, name: str) -> Parameter:
    about: dict[str, Any] = {"description": argument.help or None}
    kind = json_type_of(argument)
    if argument.item is not None:
        kind, about["max_length"] = list[argument.item], len(argument.item)  # type: ignore[name-defined]
    elif get_origin(argument.type) is Mapping:
        kind = Annotated[str, StringConstraints(min_length=2, max_length=_OBJECT_CHARS)]
        about["examples"] = [json.dumps({"colour": "red"})]
    if argument.required:
        return _parameter(name, Annotated[kind, Query(**about)])
    optional = argument.optional or argument.default in (None, {})
    kind = kind | None if optional else kind
    return _parameter(name, Annotated[kind, Query(**about)], None if optional else argument.default)
