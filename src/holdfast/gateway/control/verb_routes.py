"""Routes that are plain calls: derived from the verbs of `control/verbs.py` and the names that HTTP gives them.

A route's path, query and body parameters are the arguments of its verb, with their types, limits and help. A verb in a
scope also takes the parts of the scope. Results are written by `control/json_views.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import Annotated, Any, get_args, get_origin

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError, create_model
from starlette.responses import JSONResponse, Response

from holdfast.control.json_views import SCOPE_NAMES, own_docstring, response_model, to_json
from holdfast.control.schemas import MAX_METADATA, Filter, ResponseModel, json_type_of, request_field, request_model
from holdfast.control.verbs import VERBS
from holdfast.domain.arguments import Argument, result_type_of
from holdfast.domain.bindings import Binding
from holdfast.errors import InvalidInput
from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.control.dependencies import CompanyId, Where, plane_of, route_options, router_of
from holdfast.gateway.headers import IdempotencyKey, IfMatch, etag, expected_revision
from holdfast.runtime.verb_entry import Reach, VerbEntry

_OBJECT_CHARS = 4_096
_FILTER: TypeAdapter[dict[str, Any]] = TypeAdapter(Filter, config=ConfigDict(strict=True))


@dataclass(frozen=True, slots=True)
class VerbRoute:
    """A route of one verb. `names` are those of its arguments in HTTP, where they differ from its own.

    `many` is the name of a result that is a list. `errors` are the refusals besides 401, 403 and 422. With `in_query` a
    POST has no body.
    """

    method: str
    path: str
    verb: str
    errors: tuple[int, ...] = ()
    status: int = 200
    name: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    many: str | None = None
    in_query: bool = False

    @property
    def entry(self) -> VerbEntry:
        return VERBS[self.verb]

    def public_name(self, argument: Argument) -> str:
        name = self.entry.public_name(argument)
        return self.names.get(argument.name, SCOPE_NAMES.get(name, name))


def add_routes(auth: Authenticator, tag: str, table: tuple[VerbRoute, ...]) -> APIRouter:
    routes = router_of(tag)
    for route in table:
        routes.add_api_route(
            route.path,
            _endpoint(auth, route),
            methods=[route.method],
            status_code=route.status,
            name=route.name or _snake_case(route.entry.request.__name__),
            description=(own_docstring(route.entry.request) or "").replace("\n    ", "\n"),
            **route_options(_model(route), *route.errors),
        )
    return routes


def _snake_case(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


def _model(route: VerbRoute) -> type[BaseModel] | None:
    found = result_type_of(route.entry.request)
    if route.status == 204:
        return None
    if route.many is None:
        return response_model(found)
    items: Any = list[response_model(get_args(found)[0])]  # type: ignore[misc]
    shown: dict[str, Any] = {route.many: (items, ...)}
    return create_model(f"{route.many.capitalize()}Response", __base__=ResponseModel, **shown)


def _endpoint(auth: Authenticator, route: VerbRoute) -> Any:
    inputs = _Inputs(route)

    async def endpoint(request: Request, company_id: str, **values: Any) -> Response:
        plane = await plane_of(auth, request, company_id)
        result = await getattr(plane, route.verb)(**inputs.arguments(values))
        if route.status == 204:
            return Response(status_code=204)
        headers = {"ETag": etag(result.key, result.revision)} if isinstance(result, Binding) else None
        body = to_json(result) if route.many is None else {route.many: to_json(result)}
        return JSONResponse(body, status_code=route.status, headers=headers)

    endpoint.__signature__ = inputs.signature  # type: ignore[attr-defined]
    endpoint.__name__ = route.name or _snake_case(route.entry.request.__name__)
    return endpoint


class _Inputs:
    """The parameters of a route, and the arguments of its verb that are made from them."""

    def __init__(self, route: VerbRoute) -> None:
        self._route = route
        self._scoped = route.entry.reach is not Reach.COMPANY
        self._in_body = route.method in ("POST", "PUT", "PATCH") and not route.in_query
        parameters = [_parameter("request", Request), _parameter("company_id", CompanyId), *self._parameters()]
        self.signature = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters])

    def _parameters(self) -> Iterator[Parameter]:
        body: dict[str, Any] = {}
        for argument in self._route.entry.arguments:
            name = self._route.public_name(argument)
            if f"{{{name}}}" in self._route.path or f"{{{name}:path}}" in self._route.path:
                yield _parameter(name, Annotated[json_type_of(argument), Path()])
            elif argument.name == "idempotency_key":
                yield _parameter(name, IdempotencyKey, None)
            elif argument.name == "expected_revision":
                yield _parameter("if_match", IfMatch, None)
            elif self._in_body:
                body[name] = request_field(argument)
            elif not (self._scoped and argument.name in SCOPE_NAMES):
                yield _query(argument, name)
        if self._in_body and (self._scoped or body):
            request = self._route.entry.request
            model = request_model(f"{request.__name__}Request", self._route.entry, body, own_docstring(request))
            yield _parameter("body", Annotated[model, Body()])
        elif self._scoped:
            yield _parameter("where", Where)

    def arguments(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the verb's method from the route's parameters."""
        given = {**values, **values.pop("where", {})}
        given.pop("where", None)
        if (body := given.pop("body", None)) is not None:
            given |= {name: getattr(body, name) for name in type(body).model_fields}
        if "if_match" in given:
            given["expected_revision"] = expected_revision(given.pop("if_match"), given["key"])
        ours = {self._route.public_name(each): each for each in self._route.entry.arguments}
        parts = {theirs: part for part, theirs in SCOPE_NAMES.items()} if self._scoped else {}
        named = {}
        for name, value in given.items():
            argument = ours.get(name)
            if argument is None:
                if value is not None:
                    named[parts.get(name, name)] = value
            else:
                named[self._route.entry.public_name(argument)] = _plain(argument, value)
        return named


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


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
