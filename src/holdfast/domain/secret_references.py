"""References to secrets in a binding's configuration, located by the provider's JSON Schema.

A provider marks a secret in its schema with `"secret": true`. A value there must be a reference (`env://NAME`,
`file://PATH`), whatever the provider would accept. If a schema has alternatives, a mark in any of them counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.errors import InvalidConfiguration, ProviderMisconfigured

ENV, FILE = "env://", "file://"
MARK = "secret"
NO_REFERENCE = "takes a reference to a secret, never the secret itself: env://NAME or file://PATH"
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
# Very long names are cut: they may be secret values in the wrong place.
_MOST_NAME_CHARS = 64

_Schemas = list[Mapping[str, Any]]


def is_reference(value: object) -> bool:
    """True if it has the form of a reference. The secret itself is read on first use."""
    if not isinstance(value, str) or not value.isprintable():
        return False
    return any(value.startswith(scheme) and len(value) > len(scheme) for scheme in (ENV, FILE))


def check_references(schema: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Raise `InvalidConfiguration` if a secret is not given by reference. The error never holds the value."""
    for path, value in secrets_in(schema, config):
        if not is_reference(value):
            raise InvalidConfiguration(f"config.{path}", NO_REFERENCE)


def secrets_in(schema: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a configuration's secrets by path, such as `key`, `server.key` or `keys[1]`."""
    yield from _walk("", config, _expand_schemas(schema, [schema]), schema)


def _walk(path: str, value: object, schemas: _Schemas, root: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    if any(each.get(MARK) is True for each in schemas):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            below = f"{path}.{name!s:.{_MOST_NAME_CHARS}}" if path else f"{name!s:.{_MOST_NAME_CHARS}}"
            yield from _walk(
                below,
                inner,
                _expand_schemas(root, [at for each in schemas for at in _property_schemas(each, name)]),
                root,
            )
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            of_place = [at for each in schemas for at in _item_schemas(each, place)]
            yield from _walk(f"{path}[{place}]", inner, _expand_schemas(root, of_place), root)


def _property_schemas(schema: Mapping[str, Any], name: object) -> list[Any]:
    """Return the schemas of one property."""
    own, patterns = _mapping(schema.get("properties")), _mapping(schema.get("patternProperties"))
    found = [own[name]] if name in own else []
    found += [each for pattern, each in patterns.items() if re.search(pattern, str(name))]
    return found or [schema.get("additionalProperties")]


def _item_schemas(schema: Mapping[str, Any], place: int) -> list[Any]:
    """Return the schemas of one list entry. Older drafts have a list of `items` instead of `prefixItems`."""
    items = schema.get("items")
    first = schema.get("prefixItems") or (items if isinstance(items, list) else [])
    return [first[place]] if place < len(first) else [items, schema.get("additionalItems")]


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _expand_schemas(root: Mapping[str, Any], schemas: list[Any]) -> _Schemas:
    """Expand schemas by their references and all their alternatives."""
    found: _Schemas = []
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or any(schema is each for each in found):
            continue
        found.append(schema)
        for name in _ALTERNATIVES:
            waiting += schema.get(name) or ()
        if "$ref" in schema:
            waiting.append(_resolve_pointer(root, schema["$ref"]))
    return found


def _resolve_pointer(root: Mapping[str, Any], pointer: object) -> Any:
    """Resolve a reference within the document. Raises if it is missing: a secret could not be recognized then."""
    found: Any = root
    if isinstance(pointer, str) and pointer.startswith("#"):
        for part in pointer[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return found
    raise ProviderMisconfigured("the provider's schema has a $ref that is not in the schema; fix the provider")
