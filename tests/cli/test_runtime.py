"""`runtime`: the operations of a host's runtime, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from blank import blank
from holdfast.cli.shell import Shell
from holdfast.domain.identity import MemoryScope
from holdfast.sdk import CanonicalTurnDelta, MemoryRuntime
from holdfast.sdk.verbs import VERBS

from .conftest import Holdfast

SKILL = "runtime_skill__ship"
STEPS = "Tag the commit, then publish the package."


@pytest.fixture
def hosted(quiet_environment: Path) -> str:
    """A store with a turn of the default owner and chat, and what rules learned from it."""
    path = str(blank(quiet_environment / "memory.db"))
    builder = MemoryRuntime.builder().store(path).without_worker()
    with builder.identity(subject_id="owner-default", agent_id="agent-main").open() as runtime:
        chat = MemoryScope(conversation_id="chat-1")
        runtime.finalize_turn_and_maintain(CanonicalTurnDelta("t1", "delivered", ("I live in Porto.",), "Nice.", chat))
        runtime.recover()
    return path


def test_a_memory_is_recalled_projected_and_inspected_by_its_default_owner(hosted: str, holdfast: Holdfast) -> None:
    assert "Porto" in holdfast("runtime", "recall", "Where", "do", "I", "live?").out
    assert "- [user] I live in Porto." in holdfast("runtime", "project", "Porto").out
    inspected = holdfast("runtime", "inspect", "Porto").out
    assert inspected.startswith("2 messages, 1 memory, 1 conversation, 1 turn in this one\n")
    ledger = holdfast("runtime", "replay").out
    assert ledger.startswith("transcript:default/local/chat-1: 1 of 1 turn\n1  t1  active  2 messages  ")
    title, *rows = holdfast("runtime", "capabilities").out.splitlines()
    visible, hidden = (sum(row.split()[1:2] == [shown] for row in rows) for shown in ("yes", "no"))
    assert f": {visible} of {visible + hidden} capabilities are visible" in title
    assert visible > hidden > 0


def test_json_is_the_report_as_a_dictionary(hosted: str, holdfast: Holdfast) -> None:
    with MemoryRuntime.builder().store(hosted).identity(subject_id="owner-default", agent_id="agent-main").open() as at:
        report = at.recall("Porto").to_dict()
    shown = holdfast("runtime", "recall", "Porto", "--json").json
    assert shown.keys() == report.keys()
    assert [hit["id"] for hit in shown["working"]["hits"]] == [hit["id"] for hit in report["working"]["hits"]]
    for command in ("project", "inspect"):
        assert holdfast("runtime", command, "Porto", "--json").json["lifecycle_report"]["operation"] == command
    for command in ("capabilities", "replay", "export"):
        assert holdfast("runtime", command, "--json").code == 0


def test_another_owner_sees_nothing_and_is_told_why(hosted: str, holdfast: Holdfast) -> None:
    for command in ("recall", "project"):
        ran = holdfast("runtime", command, "Porto", "--subject", "ben")
        assert (ran.code, ran.out) == (0, "")
        matches = "no memory matches, and no message of this conversation"
        assert ran.err == f"Nothing to show: nothing was found: {matches}.\n"
    # One of both names means a memory without the other.
    assert "Porto" not in holdfast("runtime", "recall", "Porto", "--agent", "agent-main").out


def test_settings_name_the_owner_and_the_chat_and_options_come_first(
    holdfast: Holdfast, quiet_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(blank(quiet_environment / "memory.db"))
    for subject, agent, chat in (("ana", None, "one"), (None, "bot", "one"), ("ana", "bot", "two")):
        with MemoryRuntime.builder().store(path).identity(subject_id=subject, agent_id=agent).open() as runtime:
            where, owner = MemoryScope("web", conversation_id=chat), f"{subject} and {agent}"
            runtime.finalize_turn_and_maintain(CanonicalTurnDelta("t", "delivered", (f"Of {owner}.",), None, where))
    for name, value in (("AGENT", ""), ("SUBJECT", "ana"), ("CHANNEL", "web"), ("CHAT", "one")):
        monkeypatch.setenv(f"HOLDFAST_RUNTIME_{name}", value)

    def shown(*options: str) -> str:
        return holdfast("runtime", "project", "Of whom?", *options).out

    assert "Of ana and None." in shown()
    assert "Of None and bot." in shown("--agent", "bot")
    assert "Of ana and bot." in shown("--agent", "bot", "--subject", "ana", "--chat", "two")
    assert shown("--channel", "local") == shown("--chat", "three") == ""
    monkeypatch.setenv("HOLDFAST_RUNTIME_AGENT", "bot")
    monkeypatch.setenv("HOLDFAST_RUNTIME_CHAT", "two")
    assert "Of ana and bot." in shown()
    listed = holdfast("doctor", "--settings", "--json").json["settings"]
    values = {each["name"]: each["value"] for each in listed if each["name"].startswith("HOLDFAST_RUNTIME_")}
    assert values == {f"HOLDFAST_RUNTIME_{name}": value for name, value in (
        ("SUBJECT", "ana"), ("AGENT", "bot"), ("CHANNEL", "web"), ("CHAT", "two")
    )}  # fmt: skip


def test_a_skill_is_written_switched_edited_and_deleted(holdfast: Holdfast) -> None:
    written = holdfast("runtime", "write-procedural", STEPS, "--title", "Ship", "--citation", "a", "--citation", "b")
    assert (written.code, written.out) == (0, f"created  {SKILL}\n")
    assert SKILL in holdfast("runtime", "skill", "list").out
    shown = holdfast("runtime", "skill", "show", SKILL, "--json").json
    assert (shown["procedure_text"], shown["citations"]) == (STEPS, ["a", "b"])
    edited = holdfast("runtime", "skill", "edit", SKILL, "--summary", "Tag, publish.", "--reason", "shorter")
    assert edited.out == f"{SKILL} edited.\n"
    assert holdfast("runtime", "skill", "disable", SKILL).out == f"{SKILL} disabled.\n"
    assert holdfast("runtime", "skill", "disable", SKILL).out.startswith("Nothing was changed")
    assert holdfast("runtime", "skill", "list").out == "There are no such skills.\n"
    assert SKILL in holdfast("runtime", "skill", "list", "--include-disabled").out
    assert holdfast("runtime", "skill", "enable", SKILL).out == f"{SKILL} enabled.\n"
    assert "Tag, publish." in holdfast("runtime", "recall", "publish the package").out
    unanswered = holdfast("runtime", "skill", "delete", SKILL)
    assert (unanswered.code, "--yes" in unanswered.err) == (2, True)
    assert holdfast("runtime", "skill", "delete", SKILL, "--yes").out == f"{SKILL} deleted.\n"
    for command in (("delete", "--yes"), ("enable",), ("edit", "--title", "Other")):
        gone = holdfast("runtime", "skill", command[0], SKILL, *command[1:])
        assert (gone.code, gone.err) == (3, "Nothing was changed: no_such_runtime_skill.\n")
    assert holdfast("runtime", "skill", "show", SKILL).code == 3


def test_a_rejected_procedure_is_exit_code_1(holdfast: Holdfast) -> None:
    ran = holdfast("runtime", "write-procedural", "ok")
    assert (ran.code, ran.out) == (1, "rejected  weak_procedure\n")


def test_a_conversation_moves_by_a_private_file(hosted: str, holdfast: Holdfast) -> None:
    exported = holdfast("runtime", "export", "--output", "chat.json")
    assert exported.out.startswith("Exported chat-1 to chat.json: ")
    assert Path("chat.json").stat().st_mode & 0o077 == 0
    assert holdfast("runtime", "export").out.startswith("{")
    imported = holdfast("runtime", "import", "--input", "chat.json", "--store", "other.db")
    assert imported.out == "Imported 1 turn and 1 memory into chat-1. 0 were there already.\n"
    again = holdfast("runtime", "import", "--input", "-", "--store", "other.db", stdin=Path("chat.json").read_bytes())
    assert again.out.startswith("Imported 0 turns and 0 memories into chat-1.")
    assert "Porto" in holdfast("runtime", "recall", "Porto", "--store", "other.db").out
    named = holdfast("runtime", "import", "--input", "chat.json", "--store", "third.db", "--chat", "work")
    assert " into work. " in named.out


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("recall", "x", "--min-score", "2"), 2, "--min-score: "),
        (("project", "x", "--max-len", "0"), 2, "--max-len: must be a whole number"),
        (("project", "x", "--pressure", "wild"), 2, "--pressure: must be one of normal, cautious, critical"),
        (("export", "--mode", "half"), 2, "--mode: "),
        (("export", "--output", "memory.db"), 2, "--output: memory.db exists and is no snapshot"),
        (("export", "--output", "none/chat.json"), 2, "--output: there is no folder for none/chat.json"),
        (("import", "--input", "none.json"), 2, "--input: none.json cannot be read"),
        (("skill", "show", "ship"), 2, "NAME: must begin with runtime_skill__"),
        (("replay", "--profile", "toaster"), 2, "--profile: "),
        (("write-procedural", STEPS, "--observed-at", "soon"), 2, "--observed-at: "),
        (("recall", "x", "--store", "missing.db"), 6, "there is no store at missing.db"),
        (("recall", "x", "--store", "http://127.0.0.1:1"), 6, "is a server"),
    ],
)
def test_errors_name_what_was_typed(
    hosted: str, holdfast: Holdfast, words: tuple[str, ...], code: int, problem: str
) -> None:
    ran = holdfast("runtime", *words)
    assert (ran.code, problem in ran.err) == (code, True), ran.err
    assert not Path("missing.db").exists()


def test_every_command_leaves_one_row_and_no_manifest(hosted: str, holdfast: Holdfast) -> None:
    holdfast("store", "init", "--store", "fresh.db")
    holdfast("runtime", "recall", "Porto", "--store", "fresh.db")
    closed = holdfast("runtime", "close", "--reason", "done", "--store", "fresh.db")
    assert closed.out == "Closed: done.\n"
    rows = holdfast("operations", "list", "--all", "--json", "--store", "fresh.db").json["operations"]
    assert [row["action"] for row in rows if row["action"] in ("recall", "close")] == ["close", "recall"]
    # Another profile may still be the first to open it.
    with MemoryRuntime.open("fresh.db", profile="server-linux-memory-gateway") as runtime:
        assert runtime.capabilities()["recall"].visible


def test_every_operation_of_the_table_is_a_method_of_the_runtime() -> None:
    methods = {name for name in dir(MemoryRuntime) if not name.startswith("_")}
    assert {"write" if name == "write_procedural" else name for name in VERBS} <= methods


def test_the_shell_completes_and_runs_them(hosted: str, holdfast: Holdfast) -> None:
    shell = Shell({"store": hosted})
    assert shell._complete("runtime skill ", "en") == ["enable "]
    assert "--max-len " in shell._complete("runtime project x ", "--max")
    assert shell._complete("runtime project x --pressure ", "ca") == ["cautious "]
    ran = holdfast("shell", stdin=b"use store memory.db\nruntime recall Porto\n")
    assert "Porto" in ran.out
