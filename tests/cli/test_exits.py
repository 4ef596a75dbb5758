"""Every error has an exit code, and no error message contains a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import errors
from holdfast.cli import exits
from holdfast.wire import ERRORS

from .conftest import Holdfast


def every_error(kind: type[errors.HoldfastError] = errors.HoldfastError) -> Iterator[type[errors.HoldfastError]]:
    """All classes in `holdfast.errors`. Other tests may have loaded clients' own errors, which no command raises."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from every_error(child)


@pytest.mark.parametrize("kind", list(every_error()), ids=lambda kind: kind.__name__)
def test_every_error_has_an_exit_code_of_its_own_or_its_family(kind: type[errors.HoldfastError]) -> None:
    families = [parent for parent in kind.__mro__ if parent in exits.EXIT_CODES]
    assert families
    # The root's code is only for the root: a new family needs its own entry in the table.
    assert kind is errors.HoldfastError or families[0] is not errors.HoldfastError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidText("text", "is empty"), 2),
        (errors.ConfigurationError("wrong"), 2),
        (errors.NotFound("gone"), 3),
        (errors.AccessDenied("no"), 4),
        (errors.DuplicateId("again"), 5),
        (errors.StoreBusy("busy"), 6),
        (errors.SchemaTooNew("new"), 6),
        (errors.EmbedderUnavailable("silent"), 7),
        (errors.HoldfastError("odd"), 1),
    ],
)
def test_codes_are_those_that_are_documented(error: errors.HoldfastError, code: int) -> None:
    assert exits.code_for(error) == code


def test_no_arguments_shows_the_help_and_points_a_newcomer_to_the_demo(holdfast: Holdfast) -> None:
    ran = holdfast()
    assert ran.code == 0
    assert "holdfast demo" in ran.out


def test_the_version_is_printed_alone(holdfast: Holdfast) -> None:
    import holdfast as library

    assert holdfast("--version").out == f"holdfast {library.__version__}\n"


@pytest.mark.parametrize(
    "command",
    [
        ("search", "x"),
        ("explain", "x"),
        ("forget", "--subject", "ana", "--yes"),
        ("store", "stats"),
        ("store", "verify"),
        ("store", "rebuild"),
        ("store", "flush"),
        ("flush",),
        ("list",),
        ("browse",),
        ("get", "mem_1"),
        ("correct", "mem_1", "x"),
        ("export", "memory.jsonl"),
    ],
    ids=" ".join,
)
def test_a_missing_store_is_not_created_by_looking(
    holdfast: Holdfast, command: tuple[str, ...], tmp_path: Path
) -> None:
    ran = holdfast(*command, "--store", "nothing.db")
    assert ran.code == 6
    assert "there is no store at nothing.db" in ran.err
    assert "holdfast store init" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("serch", "x"), 2, "Did you mean 'search'"),
        (("search",), 2, "Missing argument 'QUERY'"),
        (("search", "x", "--knd", "memory"), 2, "--kind"),
        (("search", "x", "--top-k", "many"), 2, "--top-k: must be a whole number"),
        (("search", "x", "--top-k", "0"), 2, "from 1 to 1,000"),
        (("search", " "), 2, "is empty"),
        (("search", "x", "--kind", "letter"), 2, "use one of message, memory"),
        (("search", "x", "--plane", "astral"), 2, "use one of long_term"),
        (("search", "x", "--as-of", "yesterday"), 2, "ISO 8601"),
        (("search", "x", "--valid-at", "noon"), 2, "ISO 8601"),
        (("search", "x", "--subject", ""), 2, "leave it out or give it a value"),
        (("search", "x", "--space", "*"), 4, "name one space"),
        (("search", "x", "--embedder", "magic"), 7, "use static"),
        (("search", "x", "--store", "."), 6, "is a directory"),
        (("search", "x", "--store", "/dev/null"), 6, "is not a file"),
        (("search", "x", "--store", ":memory:"), 6, "give the path of a file"),
        (("explain",), 2, "Missing argument 'QUERY'"),
        (("explain", "x", "--id", "mem_none"), 3, "mem_none"),
        (("add",), 2, "- to read JSON Lines"),
        (("add", " "), 2, "is empty"),
        (("add", "a", "b", "--id", "one"), 2, "give one text"),
        (("add", "a", "--file", "none.jsonl"), 2, "does not exist"),
        (("add", "a", "--role", "boss"), 2, "use one of user"),
        (("add", "a", "--timestamp", "0"), 2, "ISO 8601"),
        (("add", "-", "--id", "one"), 2, "put them into the lines"),
        (("add", "-"), 2, "one JSON object or text per line"),
        (("add", "a", "--store", "missing/memory.db"), 6, "create the folder"),
        (("forget",), 2, "give an id, a conversation"),
        (("forget", "--yes"), 2, "give an id, a conversation"),
        (("forget", "--subject", "nobody"), 2, "add --yes"),
        (("forget", "mem_none", "--yes"), 3, "mem_none"),
        (("forget", "--subject", "nobody", "--yes"), 3, "check the names"),
        (("get",), 2, "Missing argument 'ID'"),
        (("get", "mem_none"), 3, "mem_none"),
        (("history", "mem_none"), 3, "mem_none"),
        (("remember",), 2, "Missing argument 'TEXT'"),
        (("remember", " "), 2, "is empty"),
        (("remember", "x", "--metadata", "topic"), 2, "topic=travel"),
        (("remember", "x", "--valid-from", "soon"), 2, "--valid-from"),
        (("correct", "mem_none"), 2, "Missing argument 'TEXT'"),
        (("correct", "mem_none", "x"), 3, "mem_none"),
        (("revert", "mem_none", "first"), 2, "REVISION: must be a whole number"),
        (("list", "--limit", "0"), 2, "--limit"),
        (("list", "--kind", "letter"), 2, "use one of message, memory"),
        (("browse", "--order", "size"), 2, "--order"),
        (("browse", "--limit", "5000"), 2, "from 1 to 1,000"),
        (("export",), 2, "Missing argument 'FILE'"),
        (("import", "none.jsonl"), 2, "holdfast export"),
        (("store", "burn"), 2, "holdfast store --help"),
        (("store", "init", "extra"), 2, "extra"),
        (("doctor", "now"), 2, "now"),
        (("demo", "--fast"), 2, "--fast"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_usage_says_what_to_do(ana: Holdfast, arguments: tuple[str, ...], code: int, says: str) -> None:
    ran = ana(*arguments)
    assert ran.code == code
    assert says in ran.err
    assert ran.err.startswith("holdfast: ")
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) <= 2
    assert ran.out == ""

    told = ana(*arguments, "--json")
    assert told.code == code
    names_one = issubclass(ERRORS.get(told.error["code"], errors.HoldfastError), errors.InvalidInput)
    assert set(told.error) - {"hint"} == {"code", "message"} | ({"field"} if names_one else set())
    assert told.out == ""


def test_a_setting_that_cannot_be_read_is_named_without_its_value(
    ana: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_BUSY_SECONDS", "sk-secret")
    ran = ana("search", "x")
    assert ran.code == 2
    assert "HOLDFAST_BUSY_SECONDS" in ran.err
    assert "sk-secret" not in ran.err


def test_a_file_that_is_no_store_is_refused(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, whatever its name says\n" * 100)
    ran = holdfast("search", "x", "--store", "notes.txt")
    assert ran.code == 6
    assert "notes.txt is not a Holdfast store" in ran.err


def test_control_characters_in_an_error_do_not_reach_the_terminal(ana: Holdfast) -> None:
    ran = ana("forget", "mem_\x1b[2Jgone", "--yes")
    assert ran.code == 3
    assert "\x1b" not in ran.err
