"""`holdfast serve`: its output, its routes, its shutdown, and configurations that it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Holdfast

PROGRAM = [sys.executable, "-c", "from holdfast.cli import main; raise SystemExit(main())"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "HOLDFAST_EMBEDDER": "fake"}
PATIENCE_SECONDS = 60
TOKEN = "the-token-of-the-operator"

Started = subprocess.Popen[str]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Started]]:
    """Servers of the test, killed when it ends."""
    running: list[Started] = []
    yield running
    for process in running:
        process.kill()
        process.communicate()


def start(started: list[Started], folder: Path, *arguments: str, **environment: str) -> Started:
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", *arguments],
        cwd=folder,
        env=ENVIRONMENT | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    return process


def ended(process: Started) -> str:
    """Stop the server with SIGTERM, and return its stderr."""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    return err


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("store", ["memory.db", ":memory:"])
def test_the_three_lines_that_it_prints_work_in_any_folder(started: list[Started], tmp_path: Path, store: str) -> None:
    secret = {"HOLDFAST_OPERATOR_TOKEN": TOKEN} if store == ":memory:" else {}
    process = start(started, tmp_path, "--store", store, **secret)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"Holdfast serves {store} on http://127.0.0.1:")
    assert process.stdout.readline() == "\n"
    lines = [process.stdout.readline().strip() for _ in range(3)]
    ran = subprocess.run(
        ["sh", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=ENVIRONMENT | secret,
        cwd="/",
    )
    assert '"I moved to Lisbon last week."' in ran.stdout, ran
    logged = [json.loads(line) for line in ended(process).splitlines()]
    routes = [*(["/users"] if secret else []), "/memories/add", "/memories/recall"]
    assert [entry["route"] for entry in logged] == routes
    assert "Lisbon" not in json.dumps(logged)
    assert (tmp_path / "memory.db.operator-token").exists() is not bool(secret)


def test_as_json_it_says_where_it_is(started: list[Started], tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "token").chmod(0o600)
    options = ("--json", "--operator-token-file", "token", "--public-url", "https://memory.example.org")
    process = start(started, tmp_path, *options, "--host", "0.0.0.0", HOLDFAST_REQUEST_LOGS="false")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert (told["store"], told["public_url"]) == ("memory.db", "https://memory.example.org")
    port = int(told["url"].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: memory.example.org\r\nConnection: close\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200")
    assert ended(process) == ""


def test_a_token_file_that_everybody_can_read_is_warned_of(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("too short")
    for mode, warned in ((0o644, True), (0o640, False)):
        (tmp_path / "token").chmod(mode)
        ran = holdfast("serve", "--operator-token-file", "token", "--port", "0")
        assert (ran.code, "chmod 600" in ran.err) == (2, warned)


def test_a_token_file_that_is_none_is_said(holdfast: Holdfast, tmp_path: Path) -> None:
    missing = holdfast("serve", "--operator-token-file", "token")
    assert (missing.code, "--operator-token-file: token cannot be read" in missing.err) == (2, True)
    (tmp_path / "token").write_text(" \n")
    ran = holdfast("serve", "--operator-token-file", "token")
    assert (ran.code, "is empty" in ran.err) == (2, True)
    (tmp_path / "token").write_text("canary")
    ran = holdfast("serve", "--operator-token-file", "token")
    assert (ran.code, "canary" in ran.err) == (2, False)
    (tmp_path / "token").write_bytes(b"\xff\xfe\xfd")
    assert "is not text" in holdfast("serve", "--operator-token-file", "token").err


@pytest.mark.parametrize("port", ["65536", "99999999999", "-1"])
def test_a_port_that_there_is_not_is_said_before_a_store_is_made(holdfast: Holdfast, tmp_path: Path, port: str) -> None:
    ran = holdfast("serve", "--port", port)
    assert (ran.code, "is not a port" in ran.err, "--port" in ran.err) == (2, True, True)
    assert not (tmp_path / "memory.db").exists()


def test_a_port_that_is_taken_is_said_before_a_store_is_made(holdfast: Holdfast, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = holdfast("serve", "--port", str(taken.getsockname()[1]))
    assert (ran.code, "--port" in ran.err) == (2, True)
    assert not (tmp_path / "memory.db").exists()


def test_a_certificate_without_its_key_is_said(holdfast: Holdfast) -> None:
    assert "--tls-key" in holdfast("serve", "--tls-cert", "cert.pem").err
    assert "there is no file" in holdfast("serve", "--tls-cert", "cert.pem", "--tls-key", "key.pem").err


def test_a_store_that_cannot_be_used_frees_the_port(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("This is a letter, and no store at all. " * 100)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ran = holdfast("serve", "--port", str(port))
    assert ran.code == 6
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_what_must_be_installed_is_said(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.serve._NEEDED", ("a_package_that_is_not_there",))
    ran = holdfast("serve")
    assert (ran.code, "[serve]" in ran.err) == (2, True)
