"""`agent chat`: a conversation at the terminal.

Ctrl-C stops the current answer; at the prompt it says how to leave. Ctrl-D leaves. The arrow keys recall earlier
prompts, which are read from the sessions and stored nowhere else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

from holdfast.cli.agent.options import AgentOptions, SessionChoice
from holdfast.cli.exits import HINTS, ExitCode, print_error
from holdfast.cli.formatting import format_count
from holdfast.cli.options import expand_options
from holdfast.cli.terminal_safety import on_one_line
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.agent.result import AgentRunResult
    from holdfast.cli.agent.agent_session import AgentSession

_COMMAND = re.compile(r"/[a-z]+")
_HELP = """\
  /new       start a new session; this one is kept
  /session   show the id of this session
  /memory    show the curated files
  /explain   toggle: after each answer, show what memory contributed
  /quit      leave, as Ctrl-D does
  Ctrl-C     stop the current answer"""


@expand_options
def chat(chosen: AgentOptions, talk: SessionChoice) -> None:
    """Chat with the agent.

    It remembers from one session to the next. New here? `holdfast agent chat --provider scripted` needs no key and no
    network: tell it something, leave with Ctrl-D, start it again, and ask.
    """
    from holdfast.cli.agent.agent_session import open_session

    with open_session(chosen, talk) as opened:
        Chat(opened, explain=talk.explain).run()


class Chat:
    """One chat at the terminal, until the user leaves."""

    def __init__(self, talk: AgentSession, *, explain: bool) -> None:
        self._talk = talk
        self._explain = explain
        self._said = self._failed = False
        self._here = sys.stdin.isatty() and sys.stdout.isatty()
        self._commands: dict[str, Callable[[], None]] = {
            "/help": lambda: print(_HELP),
            "/new": self._begin_another,
            "/session": lambda: print(f"  {on_one_line(self._talk.session_id)}"),
            "/memory": self._show_memory,
            "/explain": self._toggle_explanations,
        }

    def run(self) -> None:
        if self._here:
            self._greet()
        for line in self._lines():
            text = line.strip()
            if text in ("/quit", "/exit"):
                break
            try:
                self._do(text)
            except KeyboardInterrupt:
                # Ctrl-C came just after the answer that it was meant to stop.
                if not self._here:
                    raise
                print("  (stopped)", file=sys.stderr)
        if self._here and self._said:
            print("  `holdfast agent chat --continue` continues from here.")
        if self._failed and not self._here:
            raise typer.Exit(ExitCode.MODEL)

    def _do(self, text: str) -> None:
        if command := self._commands.get(text):
            command()
        elif _COMMAND.fullmatch(text):
            print(f"  There is no {text}; /help lists the commands.")
        elif text:
            self._say(text)

    def _say(self, prompt: str) -> None:
        from holdfast.cli.agent.agent_session import PromptCancelled
        from holdfast.cli.agent.screen import Screen

        try:
            result = self._talk.say(prompt, Screen())
        except PromptCancelled as stopped:
            if not self._here:
                raise KeyboardInterrupt from None
            self._said = self._said or stopped.answered
            saved = "answered and saved; the gateway may not have received it"
            print(f"  ({saved if stopped.answered else 'stopped'})", file=sys.stderr)
            return
        except HoldfastError as error:
            if not self._here:
                raise
            # Such as a full disk: earlier messages are safe, and the user may fix it and continue.
            print_error(error.code, str(error), HINTS.get(type(error)), as_json=False)
            return
        self._said = self._said or result.error is None
        self._failed = self._failed or result.error is not None
        self._conclude(result)

    def _conclude(self, result: AgentRunResult) -> None:
        from holdfast.cli.agent.explanation import show_sources
        from holdfast.cli.agent.run import print_outcome

        print_outcome(result, as_json=False)
        if self._explain and result.error is None:
            show_sources(result)
        if self._here:
            print()

    # --- the terminal -----------------------------------------------------------------------------------------------

    def _lines(self) -> Iterator[str]:
        if not self._here:
            if sys.stdin.isatty():
                print("Each line is a prompt; Ctrl-D ends it.", file=sys.stderr)
            yield from sys.stdin
            return
        _enable_history(self._talk.earlier_prompts())
        prompt = _prompt()
        while True:
            try:
                yield input(prompt)
            except KeyboardInterrupt:
                print("\n  Ctrl-D or /quit leaves.")
            except EOFError:
                print()
                return

    def _greet(self) -> None:
        loaded = self._talk.loaded
        memory = loaded.config.memory
        layers = ["curated files"] if memory.mode.has_curated else []
        layers += [memory.gateway.base_url] if memory.gateway is not None else []
        print(on_one_line(f"{loaded.model.name} · memory: {' and '.join(layers)} · /help, Ctrl-D leaves"))
        if loaded.config.provider == "scripted":
            print("  A few rules answer here, not a model. Tell them something, leave, start again, and ask.")
        known = self._talk.earlier_events()
        if self._talk.named and not known:
            print(f"  a new session, {on_one_line(self._talk.session_id)}")
        elif known:
            print(
                f"  continuing with {format_count(len(known), 'message')};"
                f" the last: {on_one_line(known[-1].content)[:80]}"
            )
        print()

    # --- commands ---------------------------------------------------------------------------------------------------

    def _begin_another(self) -> None:
        self._talk.start_new()
        print("  Your next message starts a new session.")

    def _show_memory(self) -> None:
        from holdfast.cli.agent.memory import show_curated

        show_curated(self._talk.loaded.config)

    def _toggle_explanations(self) -> None:
        self._explain = not self._explain
        print("  After each answer you see what memory contributed." if self._explain else "  No more explanations.")


def _prompt() -> str:
    """The prompt, bold where possible. Escape codes are marked as zero-width, or line editing would count them."""
    from holdfast.cli import render

    screen = render.console()
    return "> " if screen.is_dumb_terminal or screen.no_color else "\x01\x1b[1m\x02>\x01\x1b[0m\x02 "


def _enable_history(before: list[str]) -> None:
    """Enable line editing with earlier prompts as history. Without `readline`, as on Windows, lines are just read."""
    try:
        import readline
    except ImportError:
        return
    readline.clear_history()
    for line in before:
        if "\n" not in line:
            readline.add_history(line)
