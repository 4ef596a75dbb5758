"""The check of names, docstrings and errors finds what it forbids, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from check_subject import problem
from check_words import findings, is_bare_participle

FORBIDDEN = {
    "def told(): ...": "told: a bare participle",
    "class Found: ...": "Found: a bare participle",
    "class Page:\n    def _checked(self): ...": "Page._checked: a bare participle",
    'def read():\n    """What was read."""': "docstring begins with a noun clause",
    '"""Whoever calls this."""': "docstring begins with a noun clause",
    'raise ValueError(f"Whether {1} holds")': "error begins with a noun clause",
    "class Page: ...\nif True:\n    class Page: ...": "class Page exists 2 times",
}


@pytest.mark.parametrize("code", FORBIDDEN)
def test_a_forbidden_form_is_found(code: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(code)
    (found,) = findings(tmp_path)
    assert FORBIDDEN[code] in found


def test_plain_code_passes(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text('class PageReader:\n    """A reader."""\n    def seed(self): ...\n')
    assert not list(findings(tmp_path))


@pytest.mark.parametrize("name", ["embed", "seed", "record_count", "is_expired", "told_apart", "PreparedQuery", "red"])
def test_verbs_nouns_and_compounds_are_no_participles(name: str) -> None:
    assert not is_bare_participle(name)


def test_a_commit_subject_is_short_and_has_no_full_stop() -> None:
    assert problem("Order recall by score") is None
    assert problem("x" * 73)
    assert problem("Order recall by score.")
    assert problem("")
