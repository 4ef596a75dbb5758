"""docs/reference/seed-tests.md matches the tests: every requirement has tests, and all of them are listed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "seed-tests.md"
# The number of requirements in each part of the two documents.
PARTS = {
    "000.config": 7,
    "000.client": 4,
    "000.service": 5,
    "000.loop": 11,
    "001.config": 4,
    "001.client": 4,
    "001.strategy": 5,
    "001.loop": 9,
}


def listed() -> set[tuple[str, str]]:
    """Return the pairs of requirement and test on the page."""
    rows = re.findall(r"^\| (\d{3}\.\w+\.\d+) \| [^|]+ \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {(requirement, name) for requirement, cell in rows for name in re.findall(r"`([^`]+)`", cell)}


def marked() -> set[tuple[str, str]]:
    """Return the pairs of requirement and test marked in the tests."""
    return {pair for path in sorted((ROOT / "tests").rglob("test_*.py")) for pair in _marks(path)}


def _marks(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.seed":
                for argument in decorator.args:
                    yield ast.literal_eval(argument), f"{path.relative_to(ROOT / 'tests').as_posix()}::{node.name}"


def test_every_requirement_has_a_test() -> None:
    wanted = {f"{part}.{number + 1}" for part, count in PARTS.items() for number in range(count)}
    assert {requirement for requirement, _ in marked()} == wanted


def test_the_page_lists_exactly_the_tests_that_are_marked() -> None:
    assert listed() == marked()
