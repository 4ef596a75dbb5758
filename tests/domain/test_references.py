"""Configuration values that must be references to secrets: all that the provider's schema marks, at any depth."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.secret_references import check_references, secrets_in
from holdfast.errors import InvalidConfiguration, ProviderMisconfigured

CANARY = "sk-live-123"
MARKED: dict[str, Any] = {"type": "string", "secret": True}
SERVER: dict[str, Any] = {"type": "object", "properties": {"key": MARKED, "name": {"type": "string"}}}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


PLACES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a property": (of(key=MARKED), {"key": CANARY}, "key"),
    "one that may be left out": (of(key={"anyOf": [MARKED, {"type": "null"}]}), {"key": CANARY}, "key"),
    "one of several forms": (of(key={"oneOf": [{"type": "integer"}, MARKED]}), {"key": 7}, "key"),
    "all of several": (of(key={"allOf": [{"minLength": 3}, {"secret": True}]}), {"key": CANARY}, "key"),
    "an alternative within another": (of(key={"anyOf": [{"oneOf": [MARKED]}]}), {"key": CANARY}, "key"),
    "an object": (of(server=SERVER), {"server": {"name": "a", "key": CANARY}}, "server.key"),
    "an object that is one of several": (of(server={"anyOf": [SERVER]}), {"server": {"key": CANARY}}, "server.key"),
    "a list": (of(keys={"type": "array", "items": MARKED}), {"keys": ["env://A", CANARY]}, "keys[1]"),
    "a list of objects": (of(all={"items": SERVER}), {"all": [{"name": "a"}, {"key": CANARY}]}, "all[1].key"),
    "the first of a list": (of(pair={"prefixItems": [MARKED, {}]}), {"pair": [CANARY, "b"]}, "pair[0]"),
    "a list as it was written once": (of(pair={"items": [{}, MARKED]}), {"pair": ["b", CANARY]}, "pair[1]"),
    "names that nobody knows beforehand": ({"additionalProperties": MARKED}, {"any": CANARY}, "any"),
    "names of a pattern": ({"patternProperties": {"_key$": MARKED}}, {"name": "a", "my_key": CANARY}, "my_key"),
    "what is written elsewhere": (
        {**of(server={"$ref": "#/$defs/Server"}), "$defs": {"Server": SERVER}},
        {"server": {"key": CANARY}}, "server.key",
    ),
    "what refers to itself": (
        {**of(tree={"$ref": "#/$defs/Tree"}), "$defs": {"Tree": of(key=MARKED, next={"$ref": "#/$defs/Tree"})}},
        {"tree": {"next": {"next": {"key": CANARY}}}}, "tree.next.next.key",
    ),
    "an object in the place of a text": (of(key=MARKED), {"key": {"value": CANARY}}, "key"),
    "nothing in it": (of(key=MARKED), {"key": ""}, "key"),
}  # fmt: skip


@pytest.mark.parametrize("where", PLACES)
def test_what_a_schema_marks_takes_a_reference_and_nothing_else(where: str) -> None:
    schema, config, path = PLACES[where]
    with pytest.raises(InvalidConfiguration) as told:
        check_references(schema, config)
    assert told.value.field == f"config.{path}"
    assert CANARY not in str(told.value)


def test_references_nothing_and_what_is_not_marked_pass() -> None:
    schema = of(key=MARKED, second=MARKED, server=SERVER, colour={"type": "string"}, on={"secret": False})
    config = {"key": "env://A", "second": None, "server": {"key": "file://b", "name": CANARY}, "colour": "red", "on": 1}
    check_references(schema, config)
    assert list(secrets_in(schema, config)) == [("key", "env://A"), ("server.key", "file://b")]


def test_a_name_that_may_be_a_value_is_cut() -> None:
    with pytest.raises(InvalidConfiguration) as told:
        check_references({"additionalProperties": MARKED}, {"x" * 500: CANARY})
    assert told.value.field == "config." + "x" * 64


@pytest.mark.parametrize("pointer", ["#/$defs/Gone", "https://example.org/schema", "#/properties/a/b", 7])
def test_a_schema_that_cannot_be_followed_lets_nothing_pass(pointer: Any) -> None:
    with pytest.raises(ProviderMisconfigured, match="schema"):
        check_references(of(a={"$ref": pointer}), {"a": "env://A"})


def test_a_schema_that_turns_in_a_circle_comes_to_an_end() -> None:
    round_about = {"$ref": "#/$defs/B"}
    schema = {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"anyOf": [round_about]}, "B": {"$ref": "#/$defs/A"}}}
    check_references(schema, {"a": CANARY})
