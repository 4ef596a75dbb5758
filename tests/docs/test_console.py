"""Every command on these pages runs, in page order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from holdfast.cli import main

ROOT = Path(__file__).parents[2] / "docs" / "how-to"
_BLOCK = re.compile(r"^ *```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PAGES = ["bind-a-provider.md", "see-what-memory-did.md", "upgrade.md"]


def commands(page: str) -> list[list[str]]:
    typed = "".join(_BLOCK.findall((ROOT / page).read_text("utf-8")))
    return [shlex.split(line.strip()[2:]) for line in typed.splitlines() if line.strip().startswith("$ ")]


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
        if command[0] == "mkdir":
            Path(command[-1]).mkdir(mode=0o700)
        if command[0] != "holdfast":
            continue
        if command[1:3] == ["store", "restore"]:  # the name of the backup has its time
            command[3] = str(next(Path(command[3]).parent.glob("holdfast-*.backup")))
        assert main(command[1:]) == 0, f"{shlex.join(command)}: {capsys.readouterr().err}"
