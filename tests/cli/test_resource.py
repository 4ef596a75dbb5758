"""`resource`: files are added independently, their text is found, and a deletion removes all of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.domain.resources import MAX_CONTENT_BYTES
from postgres import ON_POSTGRES
from serving import HANG_UP, OPERATOR_KEY, USER_KEY, Served, answering, http, served

from .conftest import Holdfast
from .test_process import ENVIRONMENT, PATIENCE_SECONDS, PROGRAM, Terminal, start

HERONS = "# Birds\n\nHerons eat fish.\n"


@pytest.fixture
def files(quiet_environment: Path) -> Path:
    (quiet_environment / "herons.md").write_text(HERONS)
    (quiet_environment / "owls.txt").write_text("Owls eat mice.")
    (quiet_environment / "page.html").write_text("<html><body><p>Storks eat frogs.</p></body></html>")
    (quiet_environment / "none.pdf").write_text("This is no PDF.")
    (quiet_environment / "folder").mkdir()
    return quiet_environment


@pytest.fixture
def server(quiet_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    (quiet_environment / "there").mkdir()
    with served(str(quiet_environment / "there" / "served.db")) as running:
        monkeypatch.setenv("HOLDFAST_STORE", running.url)
        monkeypatch.setenv("HOLDFAST_KEY", USER_KEY)
        yield running


@pytest.fixture(params=["file", ON_POSTGRES, "server"])
def where(request: pytest.FixtureRequest, files: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ana's memory. On a server a user's calls imply that user; elsewhere they must name her. These tests always do."""
    if request.param == "server":
        return str(request.getfixturevalue("server").url)
    place = "memory.db" if request.param == "file" else str(request.getfixturevalue("migrated_url"))
    monkeypatch.setenv("HOLDFAST_STORE", place)
    return place


ANA = ("--subject", "ana")


def test_files_go_in_are_found_listed_and_deleted(where: str, holdfast: Holdfast) -> None:
    ran = holdfast("resource", "add", "herons.md", "owls.txt", "page.html", *ANA)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("Stored: ") == 3
    hit = holdfast("search", "what do herons eat", *ANA, "--plane", "resource", "--json").json["hits"][0]
    assert "Herons eat fish." in hit["text"]
    listed = holdfast("resource", "list", *ANA, "--json").json["resources"]
    assert [(one["name"], one["media_type"]) for one in listed] == [
        ("page.html", "text/html"), ("owls.txt", "text/plain"), ("herons.md", "text/markdown"),
    ]  # fmt: skip
    assert hit["metadata"]["resource_id"] == listed[2]["id"]
    shown = holdfast("resource", "list", *ANA, "--limit", "1").out
    assert f"{listed[0]['id']}  page.html  text/html, 50 bytes, 1 chunk" in shown
    assert "owls.txt" not in shown
    looked = holdfast("resource", "delete", listed[2]["id"], listed[1]["id"], *ANA, "--dry-run")
    assert looked.code == 0
    assert "This forgets 2 resources" in looked.out
    assert "Nothing was deleted." in looked.out
    gone = holdfast("resource", "delete", listed[2]["id"], listed[1]["id"], listed[2]["id"], *ANA, "--yes")
    assert (gone.code, gone.err) == (0, "")
    assert "herons.md" in gone.out
    assert gone.out.count("1 resource (") == 2
    assert [one["name"] for one in holdfast("resource", "list", *ANA, "--json").json["resources"]] == ["page.html"]
    left = holdfast("search", "what do herons eat", *ANA, "--json").json["hits"]
    assert not any("Herons" in hit["text"] for hit in left)


def test_the_same_file_is_kept_once(where: str, holdfast: Holdfast) -> None:
    first = holdfast("resource", "add", "herons.md", *ANA, "--json").json["added"][0]
    again = holdfast("resource", "add", "herons.md", *ANA, "--json").json["added"][0]
    assert (first["reused"], again["reused"]) == (False, True)
    assert again["resource"] == first["resource"]
    assert holdfast("resource", "add", "herons.md", *ANA).out.startswith("Already there: herons.md as r_")


def test_one_bad_file_does_not_stop_the_others(where: str, holdfast: Holdfast) -> None:
    given = ("folder", "none.pdf", "herons.md", "nowhere.md", "owls.txt")
    ran = holdfast("resource", "add", *given, *ANA)
    assert ran.code == 1
    assert ran.out.count("Stored: ") == 2
    assert "holdfast: folder: is a folder; name the files in it, such as folder/*.md" in ran.err
    assert "holdfast: none.pdf: name: promises a PDF" in ran.err
    assert "holdfast: nowhere.md: No such file" in ran.err
    told = holdfast("resource", "add", *given, *ANA, "--json")
    assert told.code == 1
    assert [one["file"] for one in told.json["added"]] == ["herons.md", "owls.txt"]
    assert sorted((one["file"], one["code"]) for one in told.json["failed"]) == [
        ("folder", "io_error"), ("none.pdf", "invalid_document"), ("nowhere.md", "io_error"),
    ]  # fmt: skip
    assert [json.loads(line)["error"]["code"] for line in told.err.splitlines()].count("io_error") == 2


def test_the_exit_code_is_what_the_failures_have_in_common(files: Path, holdfast: Holdfast) -> None:
    assert holdfast("resource", "add", "none.pdf", "herons.md").code == 2
    assert holdfast("resource", "add", "nowhere.md", "folder", "herons.md").code == 1
    assert holdfast("resource", "add", "nowhere.md", "none.pdf").code == 1


def test_a_slip_leaves_no_empty_store(files: Path, holdfast: Holdfast) -> None:
    for given in (["folder"], ["nowhere.md"], ["herons.md", "--subject", ""], ["herons.md", "owls.txt", "--name", "x"]):
        assert holdfast("resource", "add", *given).code in (1, 2)
    assert not (files / "memory.db").exists()
    for command in (["list"], ["delete", "r_x", "--yes"]):
        assert holdfast("resource", *command).code == 6
    assert not (files / "memory.db").exists()


def test_name_and_address_of_one_file(where: str, holdfast: Holdfast) -> None:
    ran = holdfast("resource", "add", "herons.md", "--name", "About herons", "--uri", "https://example.org/h", *ANA)
    assert ran.code == 0
    assert "from https://example.org/h" in ran.out
    (one,) = holdfast("resource", "list", *ANA, "--json").json["resources"]
    # The media type comes from the file's own name.
    assert (one["name"], one["media_type"]) == ("About herons", "text/markdown")
    hit = holdfast("search", "herons", *ANA, "--json").json["hits"][0]
    assert hit["metadata"]["resource_uri"] == "https://example.org/h"
    both = holdfast("resource", "add", "herons.md", "owls.txt", "--uri", "https://example.org/h", *ANA)
    assert both.code == 2
    assert "belong to one file" in both.err


def test_an_id_that_is_not_there_spares_the_others(where: str, holdfast: Holdfast) -> None:
    one = holdfast("resource", "add", "herons.md", *ANA, "--json").json["added"][0]["resource"]["id"]
    ran = holdfast("resource", "delete", one, "r_nobody", *ANA, "--yes")
    assert (ran.code, ran.out) == (3, "")
    assert len(holdfast("resource", "list", *ANA, "--json").json["resources"]) == 1


def test_without_a_terminal_deleting_needs_a_yes(files: Path, holdfast: Holdfast) -> None:
    one = holdfast("resource", "add", "herons.md", "--json").json["added"][0]["resource"]["id"]
    ran = holdfast("resource", "delete", one, stdin=b"y\n")
    assert ran.code == 2
    assert "--yes" in ran.err
    told = holdfast("resource", "delete", one, "--dry-run", "--json").json
    assert ([gone["id"] for gone in told["resources"]], told["receipts"]) == ([one], [])
    told = holdfast("resource", "delete", one, "--yes", "--json").json
    assert told["receipts"][0]["resources"] == 1
    assert told["receipts"][0]["remaining"] == 0


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_deleting_asks_on_a_terminal(files: Path, answer: bytes, code: int, left: int) -> None:
    added = start(files, "resource", "add", "herons.md", "--json", stdout=subprocess.PIPE).communicate()[0]
    terminal = Terminal()
    process = start(
        files, "resource", "delete", json.loads(added)["added"][0]["resource"]["id"],
        stdin=terminal.theirs, stdout=subprocess.PIPE, stderr=terminal.theirs,
    )  # fmt: skip
    terminal.read_until(b"for good?")
    os.write(terminal.ours, answer)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code
    assert b"herons.md" in out
    listed = start(files, "resource", "list", "--json", stdout=subprocess.PIPE).communicate()[0]
    assert len(json.loads(listed)["resources"]) == left


def test_a_file_that_is_too_large_is_not_sent(server: Served, files: Path, holdfast: Holdfast) -> None:
    with (files / "large.txt").open("wb") as large:
        large.truncate(MAX_CONTENT_BYTES + 1)
    ran = holdfast("resource", "add", "large.txt")
    assert ran.code == 2
    assert "large.txt: content: has more than 25 MB" in ran.err


def test_hostile_names_are_shown_escaped(files: Path, holdfast: Holdfast) -> None:
    (files / "a\x1b[2J.md").write_text(HERONS)
    (files / "b\x1b[2J.pdf").write_text("none")
    added = holdfast("resource", "add", "a\x1b[2J.md", "b\x1b[2J.pdf")
    assert "\x1b" not in added.out + added.err + holdfast("resource", "list").out
    assert "\\x1b" in added.err


# --- a server ---------------------------------------------------------------------------------------------------------


def test_a_user_keeps_its_own_and_reaches_nobody_elses(
    server: Served, files: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
    bobs = holdfast("resource", "add", "owls.txt", "--subject", "bob", "--json").json["added"][0]["resource"]
    monkeypatch.setenv("HOLDFAST_KEY", USER_KEY)
    ran = holdfast("resource", "add", "herons.md", "--json")
    assert ran.json["added"][0]["resource"]["scope"]["subject"] == "ana"
    assert [one["name"] for one in holdfast("resource", "list", "--json").json["resources"]] == ["herons.md"]
    assert holdfast("resource", "delete", bobs["id"], "--yes").code == 3
    # The command stops here: access denied for one file is denied for the next.
    denied = holdfast("resource", "add", "herons.md", "owls.txt", "--subject", "bob")
    assert (denied.code, denied.out) == (4, "")
    assert len(denied.err.splitlines()) == 1


def test_a_wrong_key_is_denied_and_not_shown(
    server: Served, files: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", "uk_hunter2")
    for command in (["add", "herons.md"], ["list"], ["delete", "r_x", "--yes"]):
        for more in ([], ["--json"]):
            ran = holdfast("resource", *command, *more)
            assert (ran.code, ran.out) == (4, "")
            assert "hunter2" not in ran.err


def test_a_file_whose_fate_is_unknown_may_be_added_again(files: Path, holdfast: Holdfast) -> None:
    actor = {"kind": "user", "id": "ana", "space": "default"}
    greeting = json.dumps({"holdfast": "0", "actor": actor, "verbs": ["add_resource"]}).encode()
    with answering(http(200, greeting), HANG_UP) as (url, asked):
        ran = holdfast("resource", "add", "herons.md", "owls.txt", "--store", url)
    assert len(asked) == 3
    assert ran.code == 6
    assert ran.err.count("adding the same file again is safe") == 2


# --- progress ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["file", "server"])
def test_progress_shows_each_file_and_its_bytes_on_a_terminal(
    files: Path, request: pytest.FixtureRequest, to: str
) -> None:
    (files / "[red]long.txt").write_text("A line that says nothing new.\n" * 20_000)
    environment = dict(ENVIRONMENT)
    if to == "server":
        environment |= {"HOLDFAST_STORE": request.getfixturevalue("server").url, "HOLDFAST_KEY": USER_KEY}
    terminal = Terminal()
    process = subprocess.Popen(
        [*PROGRAM, "resource", "add", "[red]long.txt", "owls.txt"],
        cwd=files, env=environment, stdout=subprocess.PIPE, stderr=terminal.theirs,
    )  # fmt: skip
    if to == "server":
        terminal.read_until(b"[red]long.txt: sent, being read")
    terminal.read_until(b"2 of 2, owls.txt")
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    seen = terminal.read_rest()
    assert b"1 of 2, [red]long.txt" in seen
    assert b"kB" in seen
    assert out.count(b"Stored: ") == 2
    assert b"owls.txt" in out


def test_progress_shows_nowhere_else(files: Path) -> None:
    process = start(files, "resource", "add", "herons.md", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert err == b""
    assert out.startswith(b"Stored: herons.md as r_")
