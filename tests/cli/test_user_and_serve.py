"""Users and resources through a running service, including its authentication and limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Holdfast
from .test_serve import TOKEN, Started, ended, start, started  # noqa: F401 - a fixture


@pytest.mark.usefixtures("quiet_environment")
def test_an_operator_lets_somebody_in_who_keeps_a_document(
    started: list[Started],  # noqa: F811
    tmp_path: Path,
    holdfast: Holdfast,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = start(started, tmp_path, "--json", HOLDFAST_OPERATOR_TOKEN=TOKEN)
    assert process.stdout is not None
    monkeypatch.setenv("HOLDFAST_STORE", json.loads(process.stdout.readline())["url"])
    assert holdfast("user", "create", "ana").code == 4
    monkeypatch.setenv("HOLDFAST_KEY", TOKEN)
    key = holdfast("user", "create", "ana").out.strip()
    assert holdfast("user", "create", "ana").code == 5
    monkeypatch.setenv("HOLDFAST_KEY", key)
    assert holdfast("user", "list").code == 4
    (tmp_path / "herons.md").write_text("# Birds\n\nHerons eat fish.\n")
    # Larger than the body limit of other requests.
    (tmp_path / "long.txt").write_text("Owls eat mice. " + " " * 5 * 1024 * 1024)
    ran = holdfast("resource", "add", "herons.md", "long.txt", "--json")
    assert (ran.code, ran.err) == (0, "")
    ids = [added["resource"]["id"] for added in ran.json["added"]]
    assert "Herons eat fish." in holdfast("search", "herons", "--plane", "resource", "--json").json["hits"][0]["text"]
    assert holdfast("resource", "delete", *ids, "--yes").code == 0
    assert holdfast("resource", "list", "--json").json == {"resources": []}
    monkeypatch.setenv("HOLDFAST_KEY", TOKEN)
    assert holdfast("user", "revoke", "ana", "--yes").code == 0
    monkeypatch.setenv("HOLDFAST_KEY", key)
    assert holdfast("resource", "list").code == 4
    logged = ended(process)
    assert key not in logged
    assert TOKEN not in logged
