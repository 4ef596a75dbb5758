"""References to secrets in a binding's configuration: which of its values must be some, by its provider's schema.

A provider marks a secret in its JSON Schema with `"secret": true`. Whatever the provider itself thinks of it, a value
there is a reference (`env://NAME`, `file://PATH`) or nothing. Where a schema leaves open what a value is, any mark is
one.
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
# Longer names than any provider's are cut: they may be values.
_MOST_NAME_CHARS = 64

_Schemas = list[Mapping[str, Any]]


def is_reference(value: object) -> bool:
    """Whether it has the form of one; whether there is such a secret is found out when it is needed."""
    if not isinstance(value, str) or not value.isprintable():
        return False
    return any(value.startswith(scheme) and len(value) > len(scheme) for scheme in (ENV, FILE))


def check_references(schema: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """`InvalidConfiguration` if something is given where a reference belongs, and is none. Never tells the value."""
    for path, value in secrets_in(schema, config):
        if not is_reference(value):
            raise InvalidConfiguration(f"config.{path}", NO_REFERENCE)


def secrets_in(schema: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is given for the secrets of a configuration, by path, as `key`, `server.key` or `keys[1]`."""
    yield from _within("", config, _applying(schema, [schema]), schema)


def _within(path: str, value: object, schemas: _Schemas, root: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    if any(each.get(MARK) is True for each in schemas):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            below = f"{path}.{name!s:.{_MOST_NAME_CHARS}}" if path else f"{name!s:.{_MOST_NAME_CHARS}}"
            yield from _within(
                below, inner, _applying(root, [at for each in schemas for at in _of_name(each, name)]), root
            )
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            of_place = [at for each in schemas for at in _of_place(each, place)]
            yield from _within(f"{path}[{place}]", inner, _applying(root, of_place), root)


def _of_name(schema: Mapping[str, Any], name: object) -> list[Any]:
    """The schemas of one property."""
    own, patterns = _mapping(schema.get("properties")), _mapping(schema.get("patternProperties"))
    found = [own[name]] if name in own else []
    found += [each for pattern, each in patterns.items() if re.search(pattern, str(name))]
    return found or [schema.get("additionalProperties")]


def _of_place(schema: Mapping[str, Any], place: int) -> list[Any]:
    """The schemas of one entry of a list. Before `prefixItems` there were lists of `items`."""
    items = schema.get("items")
    first = schema.get("prefixItems") or (items if isinstance(items, list) else [])
    return [first[place]] if place < len(first) else [items, schema.get("additionalItems")]


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _applying(root: Mapping[str, Any], given: list[Any]) -> _Schemas:
    """All that these schemas say of a value themselves: with what they refer to, and every alternative."""
    found: _Schemas = []
    waiting = list(given)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or any(schema is each for each in found):
            continue
        found.append(schema)
        for name in _ALTERNATIVES:
            waiting += schema.get(name) or ()
        if "$ref" in schema:
            waiting.append(_referred(root, schema["$ref"]))
    return found


def _referred(root: Mapping[str, Any], pointer: object) -> Any:
    """A schema elsewhere in the same document. If it is not there, nobody can say what is a secret."""
    found: Any = root
    if isinstance(pointer, str) and pointer.startswith("#"):
        for part in pointer[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return found
    raise ProviderMisconfigured("the provider's schema refers to something that is not in it; see to the provider")
