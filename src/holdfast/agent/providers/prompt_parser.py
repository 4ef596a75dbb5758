"""Parse a model's messages: its notes, the reference message, earlier prompts, and the prompt.

For the rule-based model (`RuleModel`). It reads the same messages that any model gets, and knows nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.agent.gateway import REFERENCE_LABEL
from holdfast.agent.ports import ModelMessage, Role, ToolCall

_SECTION = re.compile(r"(About the user|Notes) \(\d+% — [\d,]+ of [\d,]+ characters\):")
_TARGETS = {"About the user": "user", "Notes": "memory"}
_BULLET = "- "
_FURTHER = "  "
_BLOCKED = "[BLOCKED: "
_ORIGIN = re.compile(r"\d+\. \[[^\]]*\] ")


@dataclass(frozen=True, slots=True)
class Note:
    """An entry of curated memory; `target` is the file that it is in."""

    target: str
    text: str


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """`said` are the user's earlier prompts; `results` are the tool calls of this turn with their results."""

    prompt: str
    notes: tuple[Note, ...] = ()
    reference: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    results: tuple[tuple[ToolCall, str], ...] = ()
    recalls: bool = False  # there is a Memory Gateway, which stores the turn


def parse_messages(messages: Sequence[ModelMessage]) -> ParsedPrompt:
    system = "\n".join(message.content for message in messages if message.role is Role.SYSTEM)
    spoken = [message for message in messages if message.role is not Role.SYSTEM]
    # A user message right after a tool's result comes from the loop, and is no prompt.
    prompts = [
        at
        for at, message in enumerate(spoken)
        if message.role is Role.USER and (at == 0 or spoken[at - 1].role is not Role.TOOL)
    ]
    if not prompts:
        return ParsedPrompt("")
    before, after = spoken[: prompts[-1]], spoken[prompts[-1] + 1 :]
    return ParsedPrompt(
        prompt=spoken[prompts[-1]].content,
        notes=tuple(_notes(system)),
        reference=tuple(line for message in before for line in _reference_lines(message)),
        said=tuple(_earlier_prompts(before)),
        results=tuple(_results(after)),
        recalls=REFERENCE_LABEL in system,
    )


def _notes(system: str) -> Iterator[Note]:
    """Yield the entries of the curated block, each a bullet under the title of its file."""
    target, entry = "", list[str]()
    for line in (*system.splitlines(), ""):
        if entry and line.startswith(_FURTHER):
            entry.append(line[len(_FURTHER) :])
            continue
        if entry and not entry[0].startswith(_BLOCKED):
            yield Note(target, "\n".join(entry))
        entry = []
        if title := _SECTION.fullmatch(line):
            target = _TARGETS[title.group(1)]
        elif target and line.startswith(_BULLET):
            entry = [line[len(_BULLET) :]]
        else:
            target = ""


def _reference_lines(message: ModelMessage) -> Iterator[str]:
    """Yield the lines of the reference message, without their numbers and origins."""
    if message.role is Role.USER and message.content.startswith(REFERENCE_LABEL):
        for line in message.content.splitlines()[1:]:
            if origin := _ORIGIN.match(line):
                yield line[origin.end() :]


def _earlier_prompts(before: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield the prompts of the history: an answer follows each, unlike a skill or the reference."""
    for message, following in pairwise(before):
        if message.role is Role.USER and following.role is Role.ASSISTANT:
            yield message.content


def _results(after: Sequence[ModelMessage]) -> Iterator[tuple[ToolCall, str]]:
    calls = {call.id: call for message in after for call in message.tool_calls}
    for message in after:
        if message.role is Role.TOOL and message.tool_call_id in calls:
            yield calls[message.tool_call_id], message.content
