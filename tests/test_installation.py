"""The command that installs an extra works where this copy of the package came from."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import holdfast
from holdfast.installation import install_command

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("origin", "arguments"),
    [
        (None, ["holdfast[serve]"]),
        ({"url": "{clone}", "dir_info": {"editable": True}}, ["-e", "{folder}[serve]"]),
        ({"url": "{clone}", "dir_info": {}}, ["{folder}[serve]"]),
        ({"url": "file:///gone", "dir_info": {}}, [".[serve]"]),
        (
            {"url": "https://git.example/holdfast", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            [f"holdfast[serve] @ git+https://git.example/holdfast@{COMMIT}"],
        ),
        ({"url": "file:///w/holdfast.whl", "archive_info": {}}, ["holdfast[serve] @ file:///w/holdfast.whl"]),
    ],
    ids=["index", "editable", "clone", "removed clone", "git", "wheel"],
)
def test_an_extra_is_installed_from_where_the_package_came(
    origin: dict[str, object] | None, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    recorded = tmp_path / "site" / f"holdfast-{holdfast.__version__}.dist-info"
    recorded.mkdir(parents=True)
    (recorded / "METADATA").write_text(f"Metadata-Version: 2.1\nName: holdfast\nVersion: {holdfast.__version__}\n")
    if origin is not None:
        (recorded / "direct_url.json").write_text(json.dumps(origin).replace("{clone}", clone.as_uri()))
    monkeypatch.syspath_prepend(tmp_path / "site")
    command = shlex.split(install_command("serve"), comments=True)
    assert command[command.index("install") + 1 :] == [each.replace("{folder}", str(clone)) for each in arguments]


def test_the_installer_is_that_of_this_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "pip"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not install_command("onnx").startswith("pip install")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert install_command("onnx").startswith("pip install")
