"""Every command on the pages of the control plane runs, in page order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from holdfast.cli import main

ROOT = Path(__file__).parents[2] / "docs" / "how-to"
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = ["bind-a-provider.md", "see-what-memory-did.md"]


def commands(page: str) -> list[list[str]]:
    typed = "".join(_BLOCK.findall((ROOT / page).read_text("utf-8")))
    return [shlex.split(line[2:]) for line in typed.splitlines() if line.startswith("$ holdfast ")]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_runs_in_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "fake")
    assert main(["store", "init"]) == 0
    found = commands(page)
    assert len(found) > 5
    for command in found:
        assert main(command[1:]) == 0, f"{shlex.join(command)}: {capsys.readouterr().err}"
