"""Find the literal beginnings of patterns, so that a clause is compared only with the patterns that may match it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_CHARS = 14
MAX_BEGINNINGS = 200

_OPEN = re.compile(r"\((?:\?:|\?P<\w+>)?(?!\?)")
_ASIDE = re.compile(r"\(\?(?:[=!]|<[=!])")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_REPEAT = re.compile(r"\?\??|[*+]\??|\{\d+(?:,\d*)?\}\??")
_LITERAL = re.compile(r"(?:[^\W_]|[ ',:-])+(?![?*+{])|[^\W_]|[ ',:-]")


@dataclass(frozen=True, slots=True)
class _Choice:
    """A group of alternatives; it may be left out, or be followed by itself."""

    options: tuple[tuple[_Node, ...], ...]
    optional: bool
    repeated: bool


# A letter, a choice, or something else (None), at which a beginning ends.
_Node = str | _Choice | None


def beginnings_of(pattern: str) -> tuple[str, ...]:
    """Return texts, in lower case, of which one begins everything that the pattern matches."""
    texts = {text for option in _parse(pattern)[0] for text, _ in _expand(option)}
    return ("",) if "" in texts else tuple(sorted({text[:MAX_CHARS] for text in texts}))


def _parse(pattern: str, at: int = 0) -> tuple[tuple[tuple[_Node, ...], ...], int]:
    """Parse the alternatives from here to the end of their group; return them and the place of its end."""
    options: list[tuple[_Node, ...]] = []
    nodes: list[_Node] = []
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            options.append(tuple(nodes))
            nodes = []
            at += 1
        else:
            node, at = _parse_one(pattern, at)
            nodes.extend(node)
    return (*options, tuple(nodes)), at


def _parse_one(pattern: str, at: int) -> tuple[Sequence[_Node], int]:
    aside = _ASIDE.match(pattern, at)
    if aside:
        # What must or must not stand here takes no letters.
        return (), _parse(pattern, aside.end())[1] + 1
    group = _OPEN.match(pattern, at)
    if group:
        options, end = _parse(pattern, group.end())
        end += 1
    elif pattern[at] == "(":
        options, end = ((None,),), _parse(pattern, pattern.index(":", at) + 1)[1] + 1
    elif pattern[at] == "[":
        found = _CLASS.match(pattern, at)
        options, end = ((None,),), found.end() if found else len(pattern)
    elif pattern[at] == "\\":
        options, end = ((None,),), at + 2
    elif literal := _LITERAL.match(pattern, at):
        options, end = ((literal.group().lower(),),), literal.end()
    else:
        options, end = ((None,),), at + 1
    repeat = _REPEAT.match(pattern, end)
    if repeat is None and len(options) == 1:
        return options[0], end
    if repeat is None:
        return (_Choice(options, optional=False, repeated=False),), end
    mark = repeat.group()
    return (_Choice(options, optional=mark[0] in "?*" or mark.startswith("{0"), repeated=mark[0] != "?"),), repeat.end()


def _expand(nodes: Sequence[_Node]) -> set[tuple[str, bool]]:
    """Return the beginnings of a sequence, each with whether what follows the sequence may continue it."""
    texts = {("", True)}
    for node in nodes:
        grown = {entry for text, goes_on in texts for entry in _append(text, goes_on, node)}
        if len(grown) > MAX_BEGINNINGS:
            return {(text, False) for text, _ in texts}
        texts = grown
    return texts


def _append(text: str, goes_on: bool, node: _Node) -> set[tuple[str, bool]]:
    if not goes_on or node is None or len(text) >= MAX_CHARS:
        return {(text, False)}
    if isinstance(node, str):
        return {(text + node, True)}
    grown = {
        (text + more, follows and not node.repeated) for option in node.options for more, follows in _expand(option)
    }
    return grown | {(text, True)} if node.optional else grown
