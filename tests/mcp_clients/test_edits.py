"""Edits of configuration files: one entry, at its exact span."""

from __future__ import annotations

import json
import os
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.mcp_clients import jsonc, toml_text

EXAMPLES = int(os.environ.get("HOLDFAST_CONFIG_EDITS", "60"))
PATH = ("mcpServers", "holdfast")
ENTRY = {"command": "/opt/holdfast", "args": ["mcp", "--store", '/home/ana/größe "1".db']}

texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
gaps = st.sampled_from(["", " ", "\n", "\r\n  ", "\t", '// a "comment", {\n', "/* a , } */", "\n\n// b\n"])


@st.composite
def documents(draw: st.DrawFn, value: Any) -> str:
    """Write a value as JSON with white space, comments and trailing commas anywhere."""

    def written(value: Any) -> str:
        if isinstance(value, dict):
            parts = [f"{json.dumps(key)}{draw(gaps)}:{draw(gaps)}{written(each)}" for key, each in value.items()]
            return "{" + joined(parts) + "}"
        if isinstance(value, list):
            return "[" + joined([written(each) for each in value]) + "]"
        return json.dumps(value)

    def joined(parts: list[str]) -> str:
        spaced = [f"{draw(gaps)}{part}{draw(gaps)}" for part in parts]
        return ",".join(spaced) + ("," if parts and draw(st.booleans()) else "") + draw(gaps)

    return draw(gaps) + written(value) + draw(gaps)


@st.composite
def configurations(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    found = draw(st.dictionaries(texts, values, max_size=3))
    servers = draw(st.none() | st.dictionaries(texts, values, max_size=3))
    found.pop("mcpServers", None)
    if servers is not None:
        found["mcpServers"] = {name: each for name, each in servers.items() if name != "holdfast"}
    return draw(documents(found)), found


@settings(max_examples=EXAMPLES, deadline=None)
@given(configurations())
def test_an_entry_comes_and_goes_and_nothing_else_changes(configuration: tuple[str, dict[str, Any]]) -> None:
    text, value = configuration
    assert jsonc.parse(text) == value
    put = jsonc.set_member(text, PATH, ENTRY)
    assert jsonc.parse(put) == {**value, "mcpServers": {**value.get("mcpServers", {}), "holdfast": ENTRY}}
    # All that was there is still there, in its order.
    rest = iter(put)
    assert all(char in rest for char in text if not char.isspace())
    assert jsonc.set_member(put, PATH, ENTRY) == put
    taken = jsonc.remove_member(put, PATH)
    assert jsonc.parse(taken) == {**value, "mcpServers": value.get("mcpServers", {})}
    assert jsonc.parse(jsonc.set_member(put, PATH, {"command": "x"}))["mcpServers"]["holdfast"] == {"command": "x"}


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // mine\n  "mcpServers": {\n    "other": {"command": "a"} // stays\n  }\n}\n',
        '{\r\n\t"mcpServers": {\r\n\t\t"other": {},\r\n\t\t"another": {}\r\n\t}\r\n}',
        '{"mcpServers":{"other":{"command":"a","env":{"KEY":"s"}}},"theme":"dark"}',
        '{\n  "mcpServers": {\n    "other": {},\n    /* the last */\n  },\n}\n',
    ],
)
def test_what_was_added_to_other_servers_is_taken_away_to_the_byte(text: str) -> None:
    assert jsonc.remove_member(jsonc.set_member(text, PATH, ENTRY), PATH) == text


@pytest.mark.parametrize(
    "text", ["", "{", '{"a" 1}', "[1,,2]", "{'a': 1}", '{"a": 1} x', "{" * 200, '{"a": "\n"}', "nul"]
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        jsonc.parse(text)


TOML = (
    "",
    'model = "o5"',
    'model = "o5" # mine\n\n[mcp_servers.other]\ncommand = "a"\n\n# the end\n',
    '[projects."/home/ana"]\r\ntrust_level = "trusted"\r\n',
    'note = """\n[mcp_servers.other]\n"""\n[a]\nb = [\n  [1],\n]\n',
)


@pytest.mark.parametrize("text", TOML)
@pytest.mark.parametrize("after", ["", "\n# of tui\n[tui]\nnotifications = true\n"])
def test_a_table_comes_and_goes_and_nothing_else_changes(text: str, after: str) -> None:
    path = ("mcp_servers", "holdfast")
    value = tomllib.loads(text + after) if text.endswith("\n") else tomllib.loads(text)
    put = toml_text.set_table(text, path, ENTRY) + (after if text.endswith("\n") else "")
    servers = value.get("mcp_servers", {})
    assert toml_text.parse(put) == {**value, "mcp_servers": {**servers, "holdfast": ENTRY}}
    assert toml_text.set_table(put, path, ENTRY) == put
    changed = toml_text.set_table(put, path, {"command": "x"})
    assert toml_text.parse(changed)["mcp_servers"]["holdfast"] == {"command": "x"}
    taken = toml_text.remove_table(put, path)
    assert taken == text + ("" if text.endswith("\n") or not text else "\n") + (after if text.endswith("\n") else "")
