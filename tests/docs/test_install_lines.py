"""Every line that installs Holdfast works in a clone: the package is on no index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(path for folder in ("docs", "deploy", "examples", "bench") for path in sorted((ROOT / folder).rglob("*.md"))),
]
# The project's name as a requirement: `pip install holdfast`, `uv add 'holdfast[serve]'`, `pipx run holdfast`.
_FROM_AN_INDEX = re.compile(r"(?:pip|pipx|uv|uvx|poetry)\b[^\n`|&]*[\s'\"]holdfast(?=[\s'\"`=<>~\[]|$)|holdfast\[")
_EXTRAS = re.compile(r"['\"]?\.+\[([\w,]+)\]")
_KNOWN = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("line", ["$ pip install 'holdfast[serve]'", "pip install -U holdfast", "uv add holdfast"])
def test_a_line_that_needs_an_index_is_found(line: str) -> None:
    assert _FROM_AN_INDEX.search(line)


def test_no_page_installs_from_an_index() -> None:
    found = {str(page.relative_to(ROOT)): _FROM_AN_INDEX.findall(page.read_text("utf-8")) for page in PAGES}
    assert {page: lines for page, lines in found.items() if lines} == {}


def test_every_extra_that_a_page_names_exists() -> None:
    named = {
        extra for page in PAGES for found in _EXTRAS.findall(page.read_text("utf-8")) for extra in found.split(",")
    }
    assert {"serve", "postgres", "onnx", "agent", "approximate"} <= named
    assert named <= set(_KNOWN)
