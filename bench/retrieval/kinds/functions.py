"""Functions and methods of Python packages, queried by the first lines of their docstrings."""

import ast
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.retrieval.datasets import Dataset, Question, Scope
from bench.retrieval.kinds import fetch, shape
from bench.retrieval.kinds.sources import Source

FUNCTIONS_PER_PACKAGE = 420
_MIN_LINES = 3
_MIN_QUERY_WORDS = 4
_ROLE = re.compile(r":[\w:]+:`~?([^`]*)`")

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Function:
    """A function without its docstring; `summary` is the docstring's first sentence, `details` the rest."""

    name: str
    text: str
    summary: str
    details: str


def functions(source: str) -> list[Function]:
    """The functions of a module and its classes, in order; nested functions are part of the outer one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    lines = source.split("\n")
    found = [_function(lines, node, prefix) for prefix, node in _definitions(module, "")]
    return [function for function in found if function.text.count("\n") + 1 >= _MIN_LINES]


def asks(function: Function) -> bool:
    """True if the summary says something, and more than the name does."""
    said = re.findall(r"\w+", function.summary.casefold())
    named = set(re.findall(r"[a-z]+|\d+", re.sub(r"([A-Z])", r" \1", function.name).casefold()))
    is_example = function.summary.startswith(">>>")
    return len(said) >= _MIN_QUERY_WORDS and not is_example and not set(said) <= named


def package(source: Source, cache: Path, limit: int) -> dict[str, list[Function]]:
    """The functions of some modules, by module: whole modules until the limit is reached."""
    chosen: dict[str, list[Function]] = {}
    for path, text in fetch.files(source, cache):
        if sum(map(len, chosen.values())) >= limit:
            break
        if found := functions(text):
            chosen[path] = found
    return dict(sorted(chosen.items()))


def dataset(name: str, sources: Sequence[Source], cache: Path) -> Dataset:
    scopes = []
    for source in sources:
        read = package(source, cache, FUNCTIONS_PER_PACKAGE)
        sessions = [
            (path, [(f"{path}#{n}", part.text) for n, part in enumerate(parts)]) for path, parts in read.items()
        ]
        seen = Counter(function.summary.casefold() for parts in read.values() for function in parts)
        asked = [
            (function.summary, f"{path}#{n}")
            for path, parts in read.items()
            for n, function in enumerate(parts)
            if seen[function.summary.casefold()] == 1 and asks(function)
        ]
        questions = (
            Question(f"{source.label}/q{number}", query, (gold,), "docstring", counted=True)
            for number, (query, gold) in enumerate(asked)
        )
        scopes.append(Scope(source.label, shape.written_down(source.label, sessions), tuple(questions)))
    return Dataset(name, tuple(scopes))


def _definitions(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, Definition]]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, Definition):
            yield prefix, child


def _function(lines: Sequence[str], node: Definition, prefix: str) -> Function:
    docstring = ast.get_docstring(node) or ""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
    kept = list(lines[first : node.end_lineno])
    if docstring:
        del kept[node.body[0].lineno - 1 - first : (node.body[0].end_lineno or 0) - first]
    summary, _, details = _ROLE.sub(r"\1", docstring).strip().partition("\n")
    return Function(prefix + node.name, textwrap.dedent("\n".join(kept)).strip("\n"), summary.strip(), details.strip())
