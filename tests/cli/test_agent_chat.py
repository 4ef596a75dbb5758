"""A new user at a terminal: real processes, a real pseudo-terminal, and memory that lasts across sessions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.spoken import Answer, Spoken, speaking
from gateway.served import serving
from serving import HANG, answering, http

from .terminal import CTRL_C, CTRL_D, UP, Terminal, at_a_terminal, ran

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")

PROMPT = "\n> "
SCRIPTED = ("--provider", "scripted")


@contextmanager
def chatting(folder: Path, *arguments: str, **environment: str) -> Iterator[Terminal]:
    with at_a_terminal(folder, "agent", "chat", *arguments, **environment) as terminal:
        terminal.see(PROMPT)
        yield terminal


def answer_to(terminal: Terminal, prompt: str) -> str:
    terminal.say(prompt)
    return terminal.see(PROMPT).strip()


def chunk(text: str) -> bytes:
    told = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "slow"}
    delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    return b"data: " + json.dumps({**told, "choices": [delta]}).encode() + b"\n\n"


def slow_model(spoken: Spoken) -> tuple[str, ...]:
    return ("--provider", "openai", "--model", "slow", "--base-url", f"{spoken.url}/v1")


# --- the first sessions of a new user ---------------------------------------------------------------------------------


def test_what_it_was_told_it_knows_the_next_time_and_shows_from_where(tmp_path: Path) -> None:
    with chatting(tmp_path, *SCRIPTED) as terminal:
        assert "Noted: “My dog is called Rex.”" in answer_to(terminal, "My dog is called Rex")
        assert terminal.leave() == 0
    with chatting(tmp_path, *SCRIPTED, "--explain") as terminal:
        answer = answer_to(terminal, "What is my dog called?")
        assert answer.startswith("From my notes: “My dog is called Rex.”")
        assert "curated files · USER.md · entry 1 · in the answer: rex" in answer
        assert terminal.leave("/quit\n") == 0


@pytest.mark.parametrize("mode", ["hybrid", "memory_gateway"])
def test_with_a_gateway_it_knows_too_in_either_mode(tmp_path: Path, mode: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with serving(tmp_path / "served.db", open_sign_up=True) as gateway:
        made = ran(work, "agent", "init", "--gateway", gateway.url, "--user", "ana")
        assert (made.returncode, made.stderr) == (0, "")
        config = work / ".holdfast" / "config.json"
        config.write_text(config.read_text().replace('"mode": "hybrid"', f'"mode": "{mode}"'))
        with chatting(work) as terminal:
            assert "Noted: “My dog is called Rex.”" in answer_to(terminal, "My dog is called Rex")
            assert terminal.leave() == 0
        (work / ".holdfast" / "sessions" / "state.db").unlink()  # so that the answer cannot come from the session
        with chatting(work, "--explain") as terminal:
            answer = answer_to(terminal, "What is my dog called?")
            assert "“My dog is called Rex" in answer
            assert "Memory Gateway · score " in answer
            assert ("USER.md" in answer) is (mode == "hybrid")
            terminal.leave()
            key = (work / ".holdfast" / "gateway.key").read_text().strip()
            assert key not in terminal.shown + made.stdout


def test_a_gateway_that_is_gone_costs_nothing_but_its_memory(tmp_path: Path) -> None:
    with serving(tmp_path / "served.db", open_sign_up=True) as gateway:
        assert ran(tmp_path, "agent", "init", "--gateway", gateway.url, "--user", "ana").returncode == 0
    with chatting(tmp_path) as terminal:
        assert "Noted" in answer_to(terminal, "My dog is called Rex")
        assert terminal.leave() == 0
    told = ran(tmp_path, "agent", "sessions", "--json").stdout
    shown = ran(tmp_path, "agent", "sessions", "show", json.loads(told)["sessions"][0]["id"], "--all").stdout
    assert "memory_gateway_recall_failed: operation search, category unreachable" in shown
    explained = ran(tmp_path, "agent", "run", "What is my dog called?", "--explain")
    assert (explained.returncode, explained.stderr) == (0, "")
    assert "From my notes: “My dog is called Rex.”" in explained.stdout
    assert "the Memory Gateway gave nothing: the request failed (unreachable)" in explained.stdout
    as_json = ran(tmp_path, "agent", "run", "What is my dog called?", "--explain", "--json").stdout
    assert json.loads(as_json)["recall_failed"] == "unreachable"


# --- keys -------------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_answer_and_not_the_program(tmp_path: Path) -> None:
    with speaking(Answer(pieces=[chunk("Once upon a time")], then="hold")) as spoken:
        with chatting(tmp_path, *slow_model(spoken)) as terminal:
            terminal.say("Tell me a story")
            terminal.see("Once upon a time")
            terminal.type(CTRL_C)
            terminal.see("(stopped)")
            assert spoken.left.wait(30), "the model's stream is closed"
            terminal.see(PROMPT)
            assert "/quit" in answer_to(terminal, "/help")
            assert terminal.leave() == 0
    told = ran(tmp_path, "agent", "sessions", "--json").stdout
    shown = ran(tmp_path, "agent", "sessions", "show", json.loads(told)["sessions"][0]["id"], "--all").stdout
    assert "user:" in shown
    assert "run_cancelled" in shown


def test_ctrl_c_while_nothing_has_come_yet_does_too(tmp_path: Path) -> None:
    with speaking(Answer(then="hold")) as spoken, chatting(tmp_path, *slow_model(spoken)) as terminal:
        terminal.say("Tell me a story")
        terminal.see("thinking")
        terminal.type(CTRL_C)
        terminal.see("(stopped)")
        terminal.see(PROMPT)
        assert terminal.leave() == 0


def test_ctrl_c_after_the_answer_leaves_it_kept_and_says_so(tmp_path: Path) -> None:
    with answering(http(200, b'{"results": []}'), HANG) as (url, _):
        gateway = {"baseUrl": url, "userId": "ana", "userKey": "uk_of-ana", "timeoutSeconds": 60}
        (tmp_path / ".holdfast").mkdir()
        config = {"agent": {"provider": "scripted"}, "memory": {"mode": "memory_gateway", "gateway": gateway}}
        (tmp_path / ".holdfast" / "config.json").write_text(json.dumps(config))
        with chatting(tmp_path) as terminal:
            terminal.say("What is my dog called?")
            terminal.see("updating the gateway")
            terminal.type(CTRL_C)
            terminal.see("(answered and saved; the gateway may not have received it)")
            terminal.see(PROMPT)
            assert terminal.leave() == 0
    told = ran(tmp_path, "agent", "sessions", "--json").stdout
    shown = ran(tmp_path, "agent", "sessions", "show", json.loads(told)["sessions"][0]["id"]).stdout
    assert "assistant:" in shown


def test_ctrl_c_at_the_prompt_says_how_to_leave_and_ctrl_d_leaves(tmp_path: Path) -> None:
    with chatting(tmp_path, *SCRIPTED) as terminal:
        terminal.type("half a line")
        terminal.see("half a line")
        terminal.interrupt("Ctrl-D or /quit leaves.")
        terminal.see(PROMPT)
        assert "no model" in answer_to(terminal, "hello")
        assert terminal.leave(CTRL_D) == 0
        assert "--continue" in terminal.shown
        assert "Traceback" not in terminal.shown


def test_the_arrow_keys_bring_back_what_was_typed_in_an_earlier_session(tmp_path: Path) -> None:
    with chatting(tmp_path, *SCRIPTED) as terminal:
        answer_to(terminal, "My dog is called Rex")
        terminal.leave()
    with chatting(tmp_path, *SCRIPTED) as terminal:
        terminal.type(UP)
        terminal.see("My dog is called Rex")
        terminal.type("\n")
        terminal.see("I know: “My dog is called Rex.” is in my notes.")


# --- commands ---------------------------------------------------------------------------------------------------------


def test_what_begins_with_a_slash_is_for_the_program(tmp_path: Path) -> None:
    with chatting(tmp_path, *SCRIPTED) as terminal:
        answer_to(terminal, "My dog is called Rex")
        session = answer_to(terminal, "/session")
        assert "My dog is called Rex." in answer_to(terminal, "/memory")
        assert "There is no /nonsense" in answer_to(terminal, "/nonsense")
        assert "new session" in answer_to(terminal, "/new")
        assert answer_to(terminal, "/session") != session
        assert "you see" in answer_to(terminal, "/explain")
        assert "curated files" in answer_to(terminal, "What is my dog called?")
        assert "no model" in answer_to(terminal, "/etc/hosts")
        assert terminal.leave("/quit\n") == 0


def test_continue_goes_on_with_the_latest_session(tmp_path: Path) -> None:
    with chatting(tmp_path, *SCRIPTED, "--session", "monday") as terminal:
        assert "a new session, monday" in terminal.shown
        answer_to(terminal, "My dog is called Rex")
        terminal.leave()
    with chatting(tmp_path, *SCRIPTED, "--continue") as terminal:
        assert "continuing with 2 messages; the last: Noted: “My dog is called Rex.”" in terminal.shown
        assert "You said it here" in answer_to(terminal, "What is my dog called?")
        assert answer_to(terminal, "/session") == "monday"


# --- texts of models and users ----------------------------------------------------------------------------------------


def test_what_a_model_writes_cannot_steer_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202egnp.\x9b31m\rdone"
    done = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},'
    done += b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    with speaking(Answer(pieces=[chunk(hostile), done])) as spoken:
        with chatting(tmp_path, *slow_model(spoken)) as terminal:
            assert "\\x1b]0;owned\\x07\\x1b[2J\\u202egnp.\\x9b31m\\rdone" in answer_to(terminal, "Hello")
            assert b"\x1b]0;" not in terminal.raw
            assert b"\x1b[2J" not in terminal.raw


def test_a_model_that_does_not_answer_is_told_of_and_the_talk_goes_on(tmp_path: Path) -> None:
    with chatting(tmp_path, "--provider", "openai", "--model", "m", "--base-url", "http://127.0.0.1:9/v1") as terminal:
        terminal.say("Hello")
        terminal.see("holdfast: http://127.0.0.1:9/v1 cannot be reached")
        terminal.see(PROMPT)
        assert terminal.leave() == 0
        assert "--continue" not in terminal.shown


def test_a_prompt_of_several_lines_can_be_pasted(tmp_path: Path) -> None:
    with chatting(tmp_path, *SCRIPTED) as terminal:
        terminal.type("\x1b[200~My dog is called Rex.\nI live in Lisbon.\x1b[201~\n")
        terminal.see("Noted: “My dog is called Rex.” Noted: “I live in Lisbon.”")


def test_deleting_a_session_asks_and_ctrl_c_is_a_no(tmp_path: Path) -> None:
    assert ran(tmp_path, "agent", "run", "My dog is called Rex", *SCRIPTED, "--session", "monday").returncode == 0
    with at_a_terminal(tmp_path, "agent", "sessions", "delete", "monday") as terminal:
        assert "My dog is called Rex" in terminal.see("Delete 1 session for good? [y/N]: ")
        terminal.interrupt("holdfast: interrupted")
        assert terminal.end() == 130
    for answer, code, left in (("n\n", 1, True), ("y\n", 0, False)):
        with at_a_terminal(tmp_path, "agent", "sessions", "delete", "monday") as terminal:
            terminal.see("[y/N]: ")
            assert terminal.leave(answer) == code
        assert ("monday" in ran(tmp_path, "agent", "sessions").stdout) is left


def test_without_a_terminal_a_model_that_fails_is_in_the_exit_code(tmp_path: Path) -> None:
    silent = ("--provider", "openai", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    talked = ran(tmp_path, "agent", "chat", *silent, typed="hello\n")
    assert (talked.returncode, talked.stdout) == (8, "")
    assert "cannot be reached" in talked.stderr


def test_without_a_terminal_each_line_is_a_prompt(tmp_path: Path) -> None:
    talked = ran(tmp_path, "agent", "chat", *SCRIPTED, typed="My dog is called Rex\n\nWhat is my dog called?\n")
    assert talked.returncode == 0
    assert talked.stdout.splitlines() == [
        "Noted: “My dog is called Rex.”",
        "You said it here: “My dog is called Rex.”",
    ]


@pytest.mark.parametrize("command", [("chat",), ("run", "-")])
def test_bytes_that_are_no_text_are_refused_and_no_accident(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Also on systems that decode standard input strictly."""
    talked = ran(
        tmp_path, "agent", *command, *SCRIPTED, typed=b"caf\xe9\n".decode("utf-8", "surrogateescape"),
        PYTHONIOENCODING="utf-8:strict",
    )  # fmt: skip
    assert (talked.returncode, talked.stdout) == (2, "")
    assert "Traceback" not in talked.stderr
    assert "prompt: holds a lone surrogate" in talked.stderr
