"""`holdfast shell`: at a real terminal, and from a pipe."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.program import app
from holdfast.cli.shell import Shell
from holdfast.cli.shell_words import UnclosedQuote, quote_value, split_words

from .conftest import Holdfast
from .terminal import UP, Terminal, at_a_terminal, ran

TAB = "\t"
CLEAR = "\x15\n"  # Ctrl-U and Enter: an empty line


def ask(terminal: Terminal, line: str, prompt: str = "holdfast> ") -> str:
    """Type a line, and return what is shown before the next prompt."""
    terminal.say(line)
    return terminal.see(prompt)


# --- words ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_quoted_words_are_read_back(words: list[str]) -> None:
    assert split_words(" ".join(map(quote_value, words))) == words
    assert split_words(shlex.join(words)) == words  # as suggested commands are written


@given(st.lists(st.from_regex(r"[a-zé里0-9.,!?][a-zé里0-9.,!?'\"]*", fullmatch=True)))
def test_apostrophes_inside_words_are_themselves(words: list[str]) -> None:
    assert split_words("  ".join(words)) == words


def test_backslashes_and_quotes() -> None:
    assert split_words(r"""add --sender='Ana M.' C:\temp it\'s "a \"b\" \n" 'x'\''y' \ z""") == [
        "add", "--sender=Ana M.", r"C:\temp", "it's", r'a "b" \n', "x'y", " z",
    ]  # fmt: skip
    with pytest.raises(UnclosedQuote):
        split_words("add 'tis")


# --- a terminal -------------------------------------------------------------------------------------------------------


def test_a_session_at_a_terminal(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "shell") as terminal:
        assert "memory.db" in terminal.see("holdfast> ")
        assert "no store at memory.db" in ask(terminal, "search lisbon")
        ask(terminal, "use subject ana", "holdfast (subject ana)> ")
        prompt = "holdfast (subject ana)> "
        assert "Stored 1 message" in ask(terminal, 'add "I moved to Lisbon."', prompt)
        found = ask(terminal, "search who's in Lisbon", prompt)
        assert "I moved to Lisbon." in found
        assert "message from ana" in found
        assert "No such command 'serach'" in ask(terminal, "serach", prompt)
        assert "has no target" in ask(terminal, "forget --yes", prompt)
        assert "Usage: holdfast correct" in ask(terminal, "help correct", prompt)
        assert "use NAME VALUE" in ask(terminal, "help", prompt)
        # Another process writes meanwhile, and this one sees it.
        assert ran(tmp_path, "add", "I bought a boat.", "--subject", "ana").returncode == 0
        assert "I bought a boat." in ask(terminal, "holdfast list", prompt)
        terminal.say("forget --subject ana")
        terminal.see("for good? [y/N]: ")
        terminal.say("y")
        assert "Forgotten:" in terminal.see(prompt)
        ask(terminal, "use subject")
        terminal.type(UP)
        terminal.see("use subject")  # and not the answer y
        terminal.interrupt("holdfast> ")
        assert terminal.leave() == 0
    assert list(tmp_path.glob("*history*")) == []


def test_tab_completes_commands_options_values_and_files(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('"I sail."\n')
    with at_a_terminal(tmp_path, "shell", "--subject", "ana maria") as terminal:
        prompt = "holdfast (subject ana maria)> "
        terminal.see(prompt)
        for typed, completed in (
            ("rem", "remember "),
            ("use conv", "use conversation "),
            ("help hist", "help history "),
            ("store ver", "store verify "),
            ("search --met", "search --method "),
            ("search --method key", "search --method keyword "),
            ("list --subject a", '"ana maria" '),
            ("add --file no", "add --file notes.jsonl "),
        ):
            terminal.type(typed + TAB)
            terminal.see(completed)
            terminal.type(CLEAR)
            terminal.see(prompt)
        terminal.type(f"add --fi{TAB}no{TAB}\n")
        assert "Stored 1 message" in terminal.see(prompt)
        assert terminal.leave("exit\n") == 0


def test_the_history_file_is_private_and_a_forget_clears_it(tmp_path: Path) -> None:
    history = tmp_path / "history"
    for _ in range(2):
        with at_a_terminal(tmp_path, "shell", HOLDFAST_SHELL_HISTORY=str(history)) as terminal:
            terminal.see("holdfast> ")
            ask(terminal, 'add "my secret" --subject ana')
            assert terminal.leave() == 0
    assert history.read_text() == 'add "my secret" --subject ana\n'
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    with at_a_terminal(tmp_path, "shell", HOLDFAST_SHELL_HISTORY=str(history)) as terminal:
        terminal.see("holdfast> ")
        terminal.type(UP)
        terminal.see("my secret")
        terminal.type(CLEAR)
        terminal.see("holdfast> ")
        assert "Cleared the history" in ask(terminal, "forget --subject ana --yes")
    assert history.read_text() == ""


def test_ctrl_c_stops_a_command_and_not_the_shell(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "shell") as terminal:
        terminal.see("holdfast> ")
        terminal.say("add -")
        terminal.see("Ctrl-D ends.")
        terminal.interrupt("(interrupted")
        terminal.see("holdfast> ")
        assert terminal.leave() == 0


# --- a pipe -----------------------------------------------------------------------------------------------------------


def test_commands_from_a_pipe(tmp_path: Path) -> None:
    lines = '# a comment\n\nuse subject ana\nadd "I sail."\nsearch sail --json\nadd "x" --subject ben --json\nuse\n'
    done = ran(tmp_path, "shell", typed=lines)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout[done.stdout.index("{") :].partition("\n}\n")[0] + "}")
    assert [hit["scope"]["subject"] for hit in found["hits"]] == ["ana"]
    assert done.stdout.endswith("  subject ana\n")


def test_words_without_quotes_are_one_message(holdfast: Holdfast) -> None:
    lines = ("add I don't sail --sender 'Ana M.'", "add One two", 'add "Three" "Four"', 'add Five "six"', "list --json")
    done = holdfast("shell", "--subject", "ana", stdin="\n".join(lines).encode())
    assert (done.code, done.err) == (0, "")
    listed = json.loads(done.out[done.out.index("{") :])["items"]
    assert [each["text"] for each in reversed(listed)] == ["I don't sail", "One two", "Three", "Four", "Five", "six"]


@pytest.mark.parametrize(("options", "left"), [((), 1), (("--keep-going",), 2)])
def test_a_pipe_stops_at_the_first_error_unless_it_is_to_keep_going(
    holdfast: Holdfast, options: tuple[str, ...], left: int
) -> None:
    done = holdfast("shell", *options, stdin=b'add "One."\nget nothing\nadd "Two." --jsn\nadd "Two."\n')
    assert done.code == 3
    assert "line 2 failed" in done.err
    assert holdfast("store", "stats", "--json").json["messages"] == left


def test_a_command_reads_none_of_the_lines(holdfast: Holdfast) -> None:
    done = holdfast("shell", "--keep-going", stdin=b'add -\nshell\nadd "Two."\n')
    assert done.code == 2
    assert "the input is empty" in done.err
    assert "this is the shell already" in done.err
    assert done.out == "Stored 1 message in conversation default.\n"


def test_a_store_is_restored_while_the_shell_has_it_open(holdfast: Holdfast, quiet_environment: Path) -> None:
    (quiet_environment / "backups").mkdir()
    assert holdfast("shell", stdin=b'add "One."\nstore backup --to backups\n').code == 0
    (backup,) = (quiet_environment / "backups").iterdir()
    lines = f'add "Two."\nstore restore backups/{backup.name} --replace\nadd "Three."\nlist\nstore verify\n'
    done = holdfast("shell", stdin=lines.encode())
    assert (done.code, done.err) == (0, "")
    listed = done.out.partition("Restored")[2]
    assert ["One." in listed, "Two." in listed, "Three." in listed] == [True, False, True]


def test_the_options_that_use_sets_are_those_of_the_commands(holdfast: Holdfast) -> None:
    """Every option of a scope is set by `use`, on each command that has it and on no other."""
    shell = Shell({"subject": "ana", "space": "acme", "store": "other.db"})
    root = typer.main.get_command(app)
    for words, added in (
        (["search", "x"], {"--subject=ana", "--space=acme", "--store=other.db"}),
        (["search", "x", "--subject", "ben"], {"--space=acme", "--store=other.db"}),
        (["jobs", "list"], {"--space=acme", "--store=other.db"}),
        (["credential", "create", "bot"], {"--space=acme", "--store=other.db"}),
        (["demo"], set()),
    ):
        line = shell._find(words)
        assert {f"{name}={value}" for name, value in shell._add_used(line).values()} == added
        assert line.path[0] in root.commands  # type: ignore[attr-defined]
