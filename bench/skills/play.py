"""An agent that solves tasks by calling tools, and learns from each turn through a runtime.

A task needs some tools in one order, which the agent does not know. A call of the next needed tool works; any other
call does nothing. The agent first follows the procedures that `project` shows it, and gives up each at the first call
that does nothing. Then it tries its tools one after the other. It knows no more of its memory than the text of the
block.

Each turn is delivered with the output of its tools, which no model may learn from, and with the host's own log of them.
A scripted model reads the log as any model would, through its port, and proposes the calls that worked. Skills are
learned between two passes, as a worker does it in the background.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.domain.projection_block import HEADINGS, SectionName
from holdfast.ports import ModelAnswer, ModelCallUsage
from holdfast.sdk import (
    AsyncMemoryRuntime,
    CanonicalTurnDelta,
    MemoryProjectionRequest,
    MemoryScope,
    RuntimeSkillListRequest,
    RuntimeSkillSetEnabledRequest,
    TurnMessage,
)
from holdfast.settings import Settings

TOOLS = (
    "find_customer", "read_calendar", "open_ticket", "list_servers", "read_logs", "run_query", "export_table",
    "create_key", "restart_service", "run_tests", "build_image", "deploy", "send_mail", "book_room", "make_invoice",
    "update_wiki",
)  # fmt: skip
_TOOL = re.compile("|".join(sorted(TOOLS, key=len, reverse=True)))
_LOG = "Calls that worked: "


@dataclass(frozen=True, slots=True)
class Task:
    """A task in two wordings. With `changed`, it needs other tools the second time: what was learned is wrong."""

    request: str
    again: str
    tools: tuple[str, ...]
    changed: tuple[str, ...] | None = None


def load_tasks() -> tuple[Task, ...]:
    entries = json.loads((Path(__file__).parent / "tasks.json").read_text(encoding="utf-8"))
    return tuple(
        Task(entry["request"], entry["again"], tuple(entry["tools"]), tuple(entry.get("changed", ())) or None)
        for entry in entries
    )


@dataclass(slots=True)
class Attempt:
    """The calls of one task. `followed` are the procedures that the agent began, and whether each call worked."""

    needed: tuple[str, ...]
    calls: list[str] = field(default_factory=list)
    done: int = 0
    followed: list[bool] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self.done == len(self.needed)

    def call(self, tool: str) -> bool:
        self.calls.append(tool)
        works = not self.is_done and self.needed[self.done] == tool
        self.done += works
        return works

    def follow(self, procedure: Sequence[str]) -> bool:
        """Call the tools of a procedure. False if one of the calls did nothing."""
        works = all(self.is_done or self.call(tool) for tool in procedure)
        self.followed.append(works)
        return works

    def explore(self) -> None:
        while not self.is_done:
            next(tool for tool in TOOLS if self.call(tool))


class ObservingModel:
    """Implements `ports.PromptModel`: proposes the calls that worked as a procedure, from what the request shows."""

    name = provider = url = "scripted"

    async def answer(self, instructions: str, content: str, schema: Mapping[str, Any]) -> ModelAnswer:
        (wanted,) = schema["required"]
        messages = json.loads(content)["messages"]
        listed = [_procedure_of(messages)] if wanted == "procedures" else []
        return ModelAnswer(json.dumps({wanted: listed}), ModelCallUsage(self.name, requests=1))

    async def close(self) -> None:
        """Hold nothing."""


def _procedure_of(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    request = next(message for message in messages if message["role"] == "user")
    log = next(message for message in messages if message["text"].startswith(_LOG))
    steps = [f"Call {tool}." for tool in _TOOL.findall(log["text"])]
    return {"title": request["text"], "steps": steps, "messages": [request["message"], log["message"]]}


def shown_procedures(block: str) -> Iterator[tuple[str, ...]]:
    """Yield the tools that each line of the block's procedures names, in its order."""
    _, _, section = block.partition(HEADINGS[SectionName.PROCEDURES] + "\n")
    for line in section.partition("\n##")[0].splitlines():
        if tools := tuple(_TOOL.findall(line)):
            yield tools


async def solve(runtime: AsyncMemoryRuntime, request: str, needed: tuple[str, ...], chat: str) -> Attempt:
    """Solve one task in a conversation of its own, deliver the turn, and report how the shown skills did."""
    where = MemoryScope("desk", conversation_id=chat)
    report = await runtime.project(MemoryProjectionRequest(request, scope=where))
    attempt = Attempt(needed)
    for procedure in shown_procedures(report.system_memory_block):
        if attempt.is_done or attempt.follow(procedure):
            break
    attempt.explore()
    log = TurnMessage(_LOG + ", ".join(needed), role="system", authority="runtime_observation")
    outputs = tuple(TurnMessage(f"{tool} ran") for tool in attempt.calls)
    turn = CanonicalTurnDelta(chat, "delivered", (TurnMessage(request), log), "Done.", where, tool_observations=outputs)
    await runtime.finalize_turn_and_maintain(turn)
    return attempt


@dataclass(frozen=True, slots=True)
class Passes:
    """The attempts at all tasks: before anything was learned, with skills, and with all skills switched off."""

    first: Sequence[Attempt]
    second: Sequence[Attempt]
    disabled: Sequence[Attempt]
    learned: int


async def play_passes(tasks: Sequence[Task], location: str, embedder: str) -> Passes:
    """Play all tasks three times on an empty store; the last time in the world of the first."""
    opening = (
        AsyncMemoryRuntime.builder()
        .settings(Settings.model_construct())
        .store(location)
        .identity(subject_id="ana")
        .embedder(embedder)
        .model(ObservingModel())
        .without_worker()
        .open()
    )
    async with opening as runtime:
        first = await _play(runtime, "first", [(task.request, task.tools) for task in tasks])
        learned = len(await _skill_names(runtime))
        second = await _play(runtime, "second", [(task.again, task.changed or task.tools) for task in tasks])
        for name in await _skill_names(runtime):
            await runtime.set_runtime_skill_enabled(RuntimeSkillSetEnabledRequest(name, enabled=False))
        disabled = await _play(runtime, "disabled", [(task.again, task.tools) for task in tasks])
    return Passes(first, second, disabled, learned)


async def _play(
    runtime: AsyncMemoryRuntime, name: str, tasks: Sequence[tuple[str, tuple[str, ...]]]
) -> Sequence[Attempt]:
    attempts = [await solve(runtime, *task, f"{name}-{place}") for place, task in enumerate(tasks, 1)]
    await runtime.recover()  # learns
    return attempts


async def _skill_names(runtime: AsyncMemoryRuntime) -> Sequence[str]:
    report = await runtime.list_runtime_skills(RuntimeSkillListRequest(limit=500))
    return [skill.name for skill in report.runtime_skills]
