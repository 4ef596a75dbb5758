"""`agent run`: one prompt, one answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast import errors
from holdfast.cli.agent.options import AgentOptions, SessionChoice
from holdfast.cli.exits import HINTS, ExitCode, UsageError, print_error
from holdfast.cli.json_output import plain, print_json
from holdfast.cli.options import Json, expand_options

if TYPE_CHECKING:
    from holdfast.agent.result import AgentRunResult

Words = Annotated[list[str], typer.Argument(metavar="PROMPT", hidden=True)]


@expand_options
def run(words: Words, chosen: AgentOptions, talk: SessionChoice, as_json: Json = False) -> None:
    """Send the agent one prompt: PROMPT, or stdin if that is `-`.

    Only the answer is on stdout, and what --explain adds. It starts a new session, unless --session or --continue
    names one.
    """
    from holdfast.cli.agent.agent_session import PromptCancelled, open_session
    from holdfast.cli.agent.explanation import show_sources
    from holdfast.cli.agent.screen import Screen

    prompt = _prompt(words)
    with open_session(chosen, talk) as opened:
        try:
            result = opened.say(prompt, Screen(quiet=as_json))
        except PromptCancelled:
            raise KeyboardInterrupt from None
    if as_json:
        print_json(to_document(result, explain=talk.explain))
    elif talk.explain and result.error is None:
        show_sources(result)
    print_outcome(result, as_json=as_json)
    if result.error is not None:
        raise typer.Exit(ExitCode.MODEL)


def _prompt(words: list[str]) -> str:
    prompt = sys.stdin.read() if words == ["-"] else " ".join(words)
    if not prompt.strip():
        raise UsageError("the prompt is empty: give a prompt, or `-` and the prompt on stdin")
    return prompt


def to_document(result: AgentRunResult, *, explain: bool) -> dict[str, object]:
    """The JSON form of a run."""
    document: dict[str, object] = plain(result)
    del document["explained"]
    if explain:
        document["explained"] = [
            {"layer": each.layer, "text": each.text, **each.origin, "in_answer": each.shared}
            for each in result.explained.sources
        ]
        document["recall_failed"] = result.explained.recall_failed
    return document


def print_outcome(result: AgentRunResult, *, as_json: bool) -> None:
    """Report what the answer does not say: that the run failed, or that it reached the tool limit."""
    if result.error is not None:
        print_error(result.error.code, result.error.message, _hint(result.error.code), as_json)
    elif result.status == "tool_limit" and not as_json:
        print("  (it reached the limit of tool calls; agent.maxToolRounds sets it)", file=sys.stderr)


def _hint(code: str) -> str | None:
    return next(
        (hint for kind, hint in HINTS.items() if kind.code == code and issubclass(kind, errors.ModelError)), None
    )
