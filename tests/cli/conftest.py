"""The command line in process: calls the same `main` as the installed program."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


Holdfast = Callable[..., Ran]


@pytest.fixture
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder, no settings, and a fixed terminal."""
    for name in list(os.environ):
        if name.startswith("HOLDFAST_"):
            monkeypatch.delenv(name)
    for name, value in {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "HOLDFAST_EMBEDDER": "fake"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def holdfast(quiet_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Holdfast:
    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def ana(holdfast: Holdfast) -> Holdfast:
    """The command line with a store that holds two messages of Ana's."""
    ran = holdfast("add", "I moved to Lisbon last week.", "I love red wine.", "--subject", "ana", "--flush")
    assert ran.code == 0, ran.err
    return holdfast
