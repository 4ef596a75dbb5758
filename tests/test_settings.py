"""Settings come from the environment; secrets may come from files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import ConfigurationError
from holdfast.settings import read_settings


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HOLDFAST_"):
            monkeypatch.delenv(name)


def test_a_folder_of_files_gives_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "holdfast_operator_token").write_text("from-the-file\n")
    (tmp_path / "HOLDFAST_STORE").write_text("postgresql://holdfast:secret@db/memory")
    monkeypatch.setenv("HOLDFAST_SECRETS_DIR", str(tmp_path))
    settings = read_settings()
    assert settings.operator_token is not None
    assert settings.operator_token.get_secret_value() == "from-the-file"
    assert settings.store == "postgresql://holdfast:secret@db/memory"
    assert "from-the-file" not in repr(settings)
    monkeypatch.setenv("HOLDFAST_STORE", "elsewhere.db")
    assert read_settings().store == "elsewhere.db"


def test_a_folder_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_SECRETS_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigurationError, match="HOLDFAST_SECRETS_DIR"):
        read_settings()


def test_a_file_that_is_no_text_is_said_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "holdfast_operator_token").write_bytes(b"\xff\xfe canary")
    monkeypatch.setenv("HOLDFAST_SECRETS_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError) as told:
        read_settings()
    assert "canary" not in str(told.value)


def test_a_wrong_value_is_told_by_its_name_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "holdfast_rate_per_minute").write_text("canary")
    monkeypatch.setenv("HOLDFAST_SECRETS_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match="HOLDFAST_RATE_PER_MINUTE") as told:
        read_settings()
    assert "canary" not in str(told.value)
