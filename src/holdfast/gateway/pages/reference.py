"""The page at `/docs`: the OpenAPI document for readers, by purpose. It is written once; a search picks parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import holdfast
from holdfast.gateway.authentication import RULE, AccessRule
from holdfast.gateway.pages.examples import ExampleWriter
from holdfast.gateway.pages.html import Markup, Part, element, inline, join, prose

Schema = Mapping[str, Any]
FIRST = ("createUser", "addMemories", "searchMemories", "recallMemories", "forgetMemories")
_START = "Start here"
_SCHEMAS = "Schemas"
# Tags of the document, in the order of the page.
_GROUPS = {
    "conversations": "Conversations and memories",
    "memories": "Conversations and memories",
    "resources": "Documents",
    "agent tools": "Tools of an agent's host",
    "users": "Users",
    "service": "Service",
    "runtime": "Runtimes of hosts",
    "records": "A space's memory",
    "bindings": "Providers and bindings",
    "hooks": "Hooks",
    "operations": "Operations",
    "jobs": "Jobs",
    "costs": "Costs",
    "credentials": "Credentials",
    "tools": "Tools for agents",
    "EverOS": "EverOS's API",
    "verbs": "Verbs of the library",
}
_INTRODUCTIONS = {
    _START: "Create a user, add what was said, search it, recall what to show a model, and forget. In each body most"
    " fields are optional.",
    _GROUPS["runtime"]: "The operations of a host's runtime, in an envelope: accepted, rejected, queued or duplicated."
    " Operations that change memory need the header `x-idempotency-key`.",
    _GROUPS["records"]: "The control plane: an operator, its agents and their users share the memory of a space.",
    _GROUPS["EverOS"]: "For clients of EverOS, with its names, limits and envelopes.",
    _GROUPS["verbs"]: "Every verb of the library and of the control plane, in the library's own words. The remote"
    " library uses these routes.",
}
_KEYS = {
    AccessRule.PUBLIC: "Public: needs no key.",
    AccessRule.USER: "Needs a user's key, and reaches only that user's memory.",
    AccessRule.OPERATOR: "Needs the operator's token, or an operator's key for its space.",
    AccessRule.KNOWN: "Needs the operator's token, or any key.",
    AccessRule.COMPANY: "Needs the operator's token or a key of the space; its role decides what it may do.",
    AccessRule.SIGN_UP: "Needs the operator's token, unless the operator lets anybody sign up.",
    AccessRule.METRICS: "Needs the operator's token.",
}


class _Entry(NamedTuple):
    """An operation or a schema: its anchor, its text for searches, and its HTML when closed and when open."""

    anchor: str
    text: str
    heading: Markup
    about: Markup

    def show(self, *, is_open: bool) -> Markup:
        # The anchor is within: a browser opens what contains the anchor of a link.
        inner = element("div", self.about, id=self.anchor, class_="about")
        return element("details", element("summary", self.heading), inner, open=is_open)


class Reference:
    """The content of the page. `document` returns the OpenAPI document, `base` is the service's URL."""

    def __init__(self, document: Callable[[], dict[str, Any]], base: str) -> None:
        self._document = document
        self._base = base

    def content(self, query: str = "") -> Markup:
        words = query.lower().split()
        found = {
            name: chosen
            for name, entries in self._groups.items()
            if (chosen := [each for each in entries if all(word in each.text for word in words)])
        }
        few = sum(map(len, found.values())) <= 3
        sections = [_section(name, entries, is_open=few and bool(words)) for name, entries in found.items()]
        if not sections:
            sections = [element("p", "Nothing in the reference contains these words.", class_="lead")]
        head = element("header", element("h1", "API reference"), self._introduction if not words else None)
        return element("div", _sidebar(query, found), element("main", head, *sections), class_="reference")

    @property
    def _introduction(self) -> Markup:
        return join(
            prose(
                f"Version {holdfast.__version__}. Send a key as `Authorization: Bearer …`, and bodies as JSON. An error"
                " is `application/problem+json`; `detail` says what to do next."
            ),
            element(
                "p",
                "The same as a document: ",
                element("a", "openapi.json", href="openapi.json"),
                inline(". In the examples, `$KEY` is a user's key and `$TOKEN` the operator's token."),
            ),
        )

    @cached_property
    def _groups(self) -> dict[str, list[_Entry]]:
        document = self._document()
        schemas = document["components"]["schemas"]
        writer = ExampleWriter(schemas, self._base)
        groups: dict[str, list[_Entry]] = {_START: [], **{name: [] for name in _GROUPS.values()}, _SCHEMAS: []}
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                first = operation["operationId"] in FIRST
                group = _START if first else _GROUPS[operation["tags"][0]]
                groups[group].append(_operation(method.upper(), path, operation, schemas, writer))
        groups[_START].sort(key=lambda each: FIRST.index(each.anchor))
        groups[_SCHEMAS] = [_schema(name, schema) for name, schema in sorted(schemas.items(), key=_by_name)]
        return groups


def _by_name(item: tuple[str, Any]) -> tuple[bool, str]:
    """Schemas of verbs, which have a prefix, come last."""
    return "." in item[0], item[0].lower()


def _sidebar(query: str, found: Mapping[str, list[_Entry]]) -> Markup:
    field = element(
        "input", type="search", name="q", value=query, placeholder="Search", maxlength="100", aria_label="Search"
    )
    links = [
        element("li", element("a", name, " ", element("small", str(len(entries))), href=f"#{_anchor(name)}"))
        for name, entries in found.items()
    ]
    everything = element("p", element("a", "Show everything", href="docs")) if query else None
    home = element("a", "Holdfast", href="./", class_="home")
    return element("nav", home, element("form", field, action="docs", role="search"), everything, element("ul", *links))


def _section(name: str, entries: list[_Entry], *, is_open: bool) -> Markup:
    introduction = _INTRODUCTIONS.get(name)
    return element(
        "section",
        element("h2", name, id=_anchor(name)),
        prose(introduction) if introduction else None,
        *(each.show(is_open=is_open) for each in entries),
    )


def _anchor(name: str) -> str:
    return "-".join(part for part in "".join(c if c.isalnum() else " " for c in name.lower()).split())


# --- operations -------------------------------------------------------------------------------------------------------


def _operation(method: str, path: str, operation: Schema, schemas: Schema, writer: ExampleWriter) -> _Entry:
    description = operation.get("description", "")
    does = description.partition("\n\n")[0].partition(". ")[0].rstrip(".")
    more = description.removeprefix(does).removeprefix(".").strip()
    heading = join(
        element("span", method, class_=f"method {method.lower()}"),
        element("code", path),
        element("span", inline(does), class_="does"),
    )
    body = _body_schema(operation)
    about = join(
        prose(more) if more else None,
        element("p", _KEYS[AccessRule(operation[RULE])], " ", _name(operation["operationId"]), class_="quiet"),
        element("pre", writer.command(method, path, operation)),
        _table("Parameters", map(_parameter, operation.get("parameters", ()))),
        _table("Body", _fields(_resolve(body, schemas)), note=_reference(body)),
        _table("Responses", (_response(status, each) for status, each in operation["responses"].items())),
    )
    text = " ".join(
        (method, path, operation["operationId"], description, *_resolve(body, schemas).get("properties", ()))
    )
    return _Entry(operation["operationId"], text.lower(), heading, about)


def _name(operation_id: str) -> Markup:
    return join("Generated clients call it ", element("code", operation_id), ".")


def _body_schema(operation: Schema) -> Schema:
    content = operation.get("requestBody", {}).get("content", {})
    found: Schema = next((each["schema"] for each in content.values()), {})
    return next((each for each in found.get("anyOf", ()) if "$ref" in each), found)


def _resolve(schema: Schema, schemas: Schema) -> Schema:
    found: Schema = schemas[_ref(schema)] if "$ref" in schema else schema
    return found


def _parameter(parameter: Schema) -> tuple[Part, ...]:
    where = {"query": "in the query", "path": "in the path", "header": "a header"}[parameter["in"]]
    about = {"description": parameter.get("description", ""), **parameter["schema"]}
    kind = join(_optional_type(parameter["schema"]), element("small", where))
    return _name_cell(parameter["name"], parameter.get("required", False)), kind, _explanation(about)


_PLAIN = "Successful Response"  # FastAPI's description of a result


def _response(status: str, response: Schema) -> tuple[Part, ...]:
    schemas = [each["schema"] for each in response.get("content", {}).values() if each.get("schema")]
    name = "else" if status == "default" else status
    description = response.get("description", "")
    return element("code", name), join(*map(_type, schemas[:1])), inline("" if description == _PLAIN else description)


# --- schemas ----------------------------------------------------------------------------------------------------------


def _schema(name: str, schema: Schema) -> _Entry:
    description = schema.get("description", "")
    fields = _table("Fields", _fields(schema))
    about = join(prose(description), fields if fields.html else element("p", _type(schema)))
    text = " ".join((name, description, *schema.get("properties", ())))
    return _Entry(f"schema-{name}", text.lower(), element("code", name), about)


def _fields(schema: Schema) -> Iterator[tuple[Part, ...]]:
    """Rows of a table: required fields first."""
    required = schema.get("required", ())
    for name, about in sorted(schema.get("properties", {}).items(), key=lambda item: item[0] not in required):
        kind = _type(about) if name in required else _optional_type(about)
        yield _name_cell(name, name in required), kind, _explanation(about)


def _name_cell(name: str, required: bool) -> Markup:
    return join(element("code", name), element("small", "required", class_="required") if required else None)


def _table(title: str, rows: Iterable[tuple[Part, ...]], note: Part = None) -> Markup:
    written = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    if not written:
        return join(element("h4", title), element("p", note)) if note else Markup("")
    return join(element("h4", title, " ", note), element("div", element("table", *written), class_="wide"))


def _explanation(schema: Schema) -> Markup:
    """The description, limits and default of a value."""
    parts = [inline(schema["description"])] if schema.get("description") else []
    parts += [join(each) for each in _limits(schema)]
    if schema.get("default") not in (None, [], {}):
        parts.append(join("Default ", element("code", str(schema["default"])), "."))
    return join(*(join(each, " ") for each in parts))


_LIMITS = {
    "characters": ("minLength", "maxLength"),
    "items": ("minItems", "maxItems"),
    "names": ("minProperties", "maxProperties"),
    "": ("minimum", "maximum"),
}


def _limits(schema: Schema) -> Iterator[str]:
    """Sentences about the limits of a value, or of the first of several kinds of values that has limits."""
    kinds = [schema, *schema.get("anyOf", ())]
    for unit, (least, most) in _LIMITS.items():
        low, high = (next((_number(each[name]) for each in kinds if name in each), None) for name in (least, most))
        number = f"{low:,} to {high:,}" if low not in (None, high) and high is not None else ""
        if not number and high is not None:
            number = f"{high:,}" if low == high else f"At most {high:,}"
        elif not number and low is not None:
            number = f"At least {low:,}"
        if number:
            yield f"{number} {unit}".rstrip() + "."


_TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false"}


def _number(value: float) -> float:
    """Limits of numbers are written as 0.0, too."""
    return int(value) if value == int(value) else value


def _ref(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _reference(schema: Schema) -> Part:
    return _type(schema) if "$ref" in schema else None


def _optional_type(schema: Schema) -> Markup:
    """The type of a value that may be missing, and so need not be null."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return _type({"anyOf": kinds} if kinds else schema)


def _type(schema: Schema) -> Markup:
    if "$ref" in schema:
        return element("a", _ref(schema), href=f"#schema-{_ref(schema)}")
    if several := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        names = dict.fromkeys(map(_type, several))
        return join(*(part for index, name in enumerate(names) for part in ((" or " if index else ""), name)))
    if (values := schema.get("enum") or ([schema["const"]] if "const" in schema else None)) is not None:
        return join(*(join(" · " if index else "", element("code", str(each))) for index, each in enumerate(values)))
    kind = schema.get("type", "any value")
    if kind == "array":
        return join("list of ", _type(schema.get("items", {})))
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return join("object of ", _type(schema["additionalProperties"]))
    if schema.get("format") == "date-time":
        return join("time")
    kinds: list[str] = kind if isinstance(kind, list) else [kind]
    return join(" or ".join(_TYPES.get(each, each) for each in kinds))
