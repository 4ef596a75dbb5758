"""`holdfast mcp install` and `uninstall`: the file of each client, as the client's documentation describes it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.exits import ExitCode, run
from holdfast.cli.program import app
from holdfast.errors import ConfigurationError, NotFound
from holdfast.mcp_clients.clients import CLIENTS, ClientProgram, Launch
from holdfast.mcp_clients.installation import backup_of, make_change, plan_install, plan_uninstall, read_launch

GOLDEN = Path(__file__).parent / "golden"
LAUNCH = Launch("/opt/holdfast/bin/holdfast", ("mcp", "--store", "/home/ana/.holdfast/memory.db"))
SECRET = "sk-of-another-server"
# Where each client looks on Linux.
PLACES = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "codex": ".codex/config.toml",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
    "gemini-cli": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "HOLDFAST_STORE", "HOLDFAST_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path


def own_text(client: ClientProgram) -> str:
    """A file that somebody has written by hand, with comments, another server and its key."""
    if client.format.name == "TOML":
        return (
            f'# my settings\nmodel = "o5"  # the big one\n\n[{client.section}.other]\ncommand = "other"\n'
            f'env = {{ KEY = "{SECRET}" }}\n\n# of the screen\n[tui]\ntheme = "dark"\n'
        )
    return (
        f'// my settings\n{{\n    "theme": "dark", // always\n    "{client.section}": {{\n        /* the other */\n'
        f'        "other": {{"command": "other", "env": {{"KEY": "{SECRET}"}}}} // stays\n    }},\n'
        '    "last": [1, 2,]\n}\n'
    )


@pytest.fixture(params=CLIENTS.values(), ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> ClientProgram:
    found: ClientProgram = request.param
    return found


def write(client: ClientProgram, text: str | bytes) -> Path:
    path = client.find_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_written_entry_is_the_golden_file(client: ClientProgram, home: Path) -> None:
    assert client.find_file() == home / PLACES[client.name]
    new = plan_install(client, LAUNCH)
    own = plan_install(client, LAUNCH, write(client, own_text(client)))
    assert new.after is not None
    assert own.after is not None
    written = f"{new.after.decode()}---\n{own.after.decode()}"
    golden = GOLDEN / f"{client.name}.txt"
    if os.environ.get("HOLDFAST_REFRESH_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(written, "utf-8")
    assert written == golden.read_text("utf-8"), "HOLDFAST_REFRESH_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("text", [None, "", "own", "bom"])
def test_uninstall_undoes_install_to_the_byte(client: ClientProgram, text: str | None) -> None:
    path = client.find_file()
    before = None
    if text is not None:
        own = own_text(client).encode()
        before = {"": b"", "own": own, "bom": b"\xef\xbb\xbf" + own.replace(b"\n", b"\r\n")}[text]
        if client.format.name == "TOML" and text == "bom":
            return  # a byte order mark is no TOML
        write(client, before).chmod(0o640)
    backup = make_change(plan_install(client, LAUNCH))
    assert read_launch(client) == LAUNCH
    assert plan_install(client, LAUNCH).is_empty
    if before is None:
        assert backup is None
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    else:
        assert backup is not None
        assert backup.read_bytes() == before
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    make_change(plan_uninstall(client))
    assert (path.read_bytes() if path.exists() else None) == before
    with pytest.raises(NotFound, match="has no server called holdfast"):
        plan_uninstall(client)


def test_what_was_changed_meanwhile_stays(client: ClientProgram) -> None:
    path = write(client, own_text(client))
    make_change(plan_install(client, LAUNCH))
    other = path.read_text().replace('"dark"', '"light"')
    path.write_text(other)
    make_change(plan_uninstall(client))
    assert path.read_text() == own_text(client).replace('"dark"', '"light"')


def test_an_entry_of_ones_own_is_replaced_and_comes_back(client: ClientProgram) -> None:
    path = write(client, own_text(client))
    make_change(plan_install(client, Launch("/somewhere/else", ("mcp",))))
    backup_of(path).unlink()
    mine = path.read_bytes()
    make_change(plan_install(client, LAUNCH))
    assert read_launch(client) == LAUNCH
    make_change(plan_uninstall(client))
    assert path.read_bytes() == mine


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"nonsense",
        b"\xff\xfe\x00",
        b"[1]",
        b'{"%s": []}',
        b'{"%s": 3}',
        b"%s = 3\n",
        b"%s = { a = {} }\n",
        b"[[%s]]\n",
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_was(client: ClientProgram, broken: bytes) -> None:
    if client.format.name == "TOML" and broken == b"[1]":
        return  # a table
    content = broken.replace(b"%s", client.section.encode())
    path = write(client, content)
    with pytest.raises(ConfigurationError, match="left as it was") as caught:
        plan_install(client, LAUNCH)
    assert "by hand" in str(caught.value)
    assert LAUNCH.command in str(caught.value)
    assert path.read_bytes() == content
    assert not backup_of(path).exists()


def test_a_change_of_another_program_is_not_overwritten(client: ClientProgram) -> None:
    path = write(client, own_text(client))
    planned = plan_install(client, LAUNCH)
    path.write_text("{}")
    with pytest.raises(ConfigurationError, match="try again"):
        make_change(planned)
    assert path.read_text() == "{}"


def test_a_link_stays_a_link(client: ClientProgram, home: Path) -> None:
    target = home / "dotfiles"
    target.write_text(own_text(client))
    path = client.find_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    make_change(plan_install(client, LAUNCH))
    assert path.is_symlink()
    assert "holdfast" in target.read_text()


# --- commands ---------------------------------------------------------------------------------------------------------


def typed(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(app, ["mcp", *arguments])
    printed = capfd.readouterr()
    return code, printed.out + printed.err


def test_a_dry_run_shows_the_difference_and_no_other_line(
    client: ClientProgram, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(client, own_text(client))
    code, shown = typed(capfd, "install", client.name, "--dry-run")
    assert code == ExitCode.OK
    assert f"{home}/.holdfast/memory.db" in shown
    assert "Nothing was changed" in shown
    assert SECRET not in shown
    assert path.read_text() == own_text(client)
    assert typed(capfd, "install", client.name)[0] == ExitCode.OK
    assert "has it already" in typed(capfd, "install", client.name)[1]
    assert SECRET not in typed(capfd, "uninstall", client.name)[1]
    assert path.read_text() == own_text(client)


def test_a_key_stays_in_its_private_file(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    key = home / "key"
    key.write_text("uk_secret\n")
    server = ("--store", "http://127.0.0.1:8010")
    assert "needs a key" in typed(capfd, "install", "cursor", *server)[1]
    key.chmod(0o644)
    assert "chmod 600" in typed(capfd, "install", "cursor", *server, "--key-file", str(key))[1]
    assert not (home / ".cursor").exists()
    key.chmod(0o600)
    code, shown = typed(capfd, "install", "cursor", *server, "--key-file", str(key), "--json")
    assert code == ExitCode.OK, shown
    written = (home / ".cursor/mcp.json").read_text()
    assert "uk_secret" not in written + shown
    entry: dict[str, Any] = json.loads(written)["mcpServers"]["holdfast"]
    assert entry["args"][-5:] == ["mcp", *server, "--key-file", str(key)]
    url = "postgresql://ana:hunter2@db/memory"
    assert "hunter2" not in typed(capfd, "install", "zed", "--store", url)[1]
    assert not (home / ".config").exists()


def test_the_entry_has_what_this_terminal_has_in_variables(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", "notes.db")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "fake")
    monkeypatch.setenv("HOLDFAST_SPACE", "acme")
    monkeypatch.chdir(home)
    assert typed(capfd, "install", "windsurf", "--subject", "ana")[0] == ExitCode.OK
    args = read_launch(CLIENTS["windsurf"]).args
    expected = ("--store", str(home / "notes.db"), "--embedder", "fake", "--subject", "ana", "--space", "acme")
    assert args[args.index("mcp") + 1 :] == expected


def test_an_unknown_client_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    code, shown = typed(capfd, "install", "claude-cod")
    assert code == ExitCode.NOT_FOUND
    assert "did you mean claude-code?" in shown


def test_the_doctor_starts_what_was_installed(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert typed(capfd, "install", "codex")[0] == ExitCode.OK
    code, shown = typed(capfd, "doctor", "codex", "--json")
    assert code == ExitCode.OK, shown
    found = json.loads(shown)
    assert found["ok"] is True
    assert [each["tool"] for each in found["calls"]] == ["remember", "recall", "search", "correct", "forget"]
    assert run(app, ["list", "--store", str(home / ".holdfast/memory.db")]) == ExitCode.OK
    assert "doctor was here" not in capfd.readouterr().out
    (home / ".codex/config.toml").write_text('[mcp_servers.holdfast]\ncommand = "/nowhere/holdfast"\n')
    code, shown = typed(capfd, "doctor", "codex")
    assert code == ExitCode.USAGE
    assert "does not start a server" in shown
