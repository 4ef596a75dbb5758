"""Edits of JSON text with comments and trailing commas, at the exact span of one member of an object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_TRIVIA = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_ATOM = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_MAX_DEPTH = 100


@dataclass(slots=True)
class _Member:
    key: str
    start: int
    value: _Node


@dataclass(slots=True)
class _Node:
    """A value with its span. An object has its members; `comma` is the end of a trailing one."""

    value: Any
    start: int
    end: int = 0
    members: list[_Member] | None = None
    comma: int | None = None

    def find(self, key: str) -> _Member | None:
        """Return the last member of that name, which is the one that programs read."""
        return next((each for each in reversed(self.members or ()) if each.key == key), None)


def parse(text: str) -> Any:
    """Return the value of JSON text with comments; raise `ValueError` if it is none."""
    return _Parser(text).document().value


def set_member(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with a member set, at a path of keys. Objects on the way to it are created."""
    root = _Parser(text).document()
    node, rest = _descend(root, path)
    if not rest and node.value == value:
        return text
    if not rest:
        return text[: node.start] + _render(value, text, node.start) + text[node.end :]
    for key in reversed(rest[1:]):
        value = {key: value}
    return _append(text, root, node, rest[0], value)


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at a path of keys; the same text if there is none."""
    node, rest = _descend(_Parser(text).document(), path[:-1])
    found = node.find(path[-1]) if not rest else None
    if found is None or node.members is None:
        return text
    place = node.members.index(found)
    start = _blank_start(text, found.start)
    if place < len(node.members) - 1 or node.comma is not None:
        end = text.index(",", _TRIVIA.match(text, found.value.end).end()) + 1  # type: ignore[union-attr]
        return text[:start] + text[end:]
    if place == 0:
        inside = text[node.start + 1 : start] + text[found.value.end : node.end - 1]
        return text[: node.start + 1] + (inside if inside.strip() else "") + text[node.end - 1 :]
    # The last member goes with the comma before it.
    before = node.members[place - 1].value.end
    comma = text.index(",", _TRIVIA.match(text, before).end())  # type: ignore[union-attr]
    return text[:comma] + text[comma + 1 : start] + text[found.value.end :]


def _descend(node: _Node, path: Sequence[str]) -> tuple[_Node, Sequence[str]]:
    """Return the deepest node on a path, and the keys that are missing below it."""
    for place, key in enumerate(path):
        if node.members is None:
            raise ValueError(f"{path[place - 1] if place else 'the file'} is not an object")
        found = node.find(key)
        if found is None:
            return node, path[place:]
        node = found.value
    return node, ()


def _append(text: str, root: _Node, node: _Node, key: str, value: Mapping[str, Any]) -> str:
    """Add a member at the end of an object, in the style of the file."""
    members, close = node.members or [], node.end - 1
    # A file whose lists end with a comma keeps its style.
    before, after = (",", "") if node.comma is None else ("", ",")
    if members and "\n" not in text[node.start : node.end]:
        last, at = members[-1].value.end, node.comma or members[-1].value.end
        member = f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}{after}"
        return f"{text[:last]}{before}{text[last:at]}{member}{text[at:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    unit, base = _indent_unit(text, root), _indent(text, node.start)
    indent = _indent(text, members[0].start) if members else base + unit
    body = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)
    member = f"{newline}{indent}{json.dumps(key)}: {body}"
    if not members:
        inside = text[node.start + 1 : close]
        return text[: node.start + 1] + member + (inside if inside.strip() else newline + base) + text[close:]
    last, at = members[-1].value.end, _blank_start(text, close)
    return text[:last] + before + text[last:at] + member + after + text[at:]


def _render(value: Mapping[str, Any], text: str, at: int) -> str:
    """Write a value in place of another one, in the style of the file."""
    if "\n" not in text:
        return json.dumps(value, ensure_ascii=False)
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _indent_unit(text, _Parser(text).document())
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + _indent(text, at))


def _indent(text: str, at: int) -> str:
    """Return the white space at the start of a place's line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _indent_unit(text: str, root: _Node) -> str:
    return (_indent(text, root.members[0].start) if root.members else "") or "  "


def _blank_start(text: str, at: int) -> int:
    """Return the start of the white space before a place."""
    return len(text[:at].rstrip())


class _Parser:
    """Reads values with their spans."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> _Node:
        self._skip()
        node = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._syntax_error()
        return node

    def _value(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        start, char = self._at, self._text[self._at : self._at + 1]
        if char == "{":
            node = self._object(depth)
        elif char == "[":
            node = self._array(depth)
        elif char == '"':
            node = _Node(self._string(), start)
        elif (atom := _ATOM.match(self._text, start)) is not None:
            self._at = atom.end()
            node = _Node(json.loads(atom[0]), start)
        else:
            raise self._syntax_error()
        node.end = self._at
        return node

    def _object(self, depth: int) -> _Node:
        node = _Node({}, self._at, members=[])
        for start in self._places(node, "}"):
            key = self._string()
            self._skip()
            self._expect(":")
            self._skip()
            value = self._value(depth + 1)
            node.value[key] = value.value
            node.members.append(_Member(key, start, value))  # type: ignore[union-attr]
        return node

    def _array(self, depth: int) -> _Node:
        node = _Node([], self._at)
        for _ in self._places(node, "]"):
            node.value.append(self._value(depth + 1).value)
        return node

    def _places(self, node: _Node, close: str) -> Iterator[int]:
        """Yield the start of each part of an object or array, and read past its end."""
        self._at += 1
        self._skip()
        while self._text[self._at : self._at + 1] != close:
            node.comma = None
            yield self._at
            self._skip()
            if self._text[self._at : self._at + 1] != close:
                self._expect(",")
                node.comma = self._at
                self._skip()
        self._at += 1

    def _string(self) -> str:
        if self._text[self._at : self._at + 1] != '"':
            raise self._syntax_error()
        value, self._at = scanstring(self._text, self._at + 1, True)
        return str(value)

    def _expect(self, char: str) -> None:
        if self._text[self._at : self._at + 1] != char:
            raise self._syntax_error()
        self._at += 1

    def _skip(self) -> None:
        self._at = _TRIVIA.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _syntax_error(self) -> ValueError:
        line = self._text.count("\n", 0, self._at) + 1
        return ValueError(f"line {line} is not JSON")
