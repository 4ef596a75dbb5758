"""What a model is given: the system prompt, activated skills, what was recalled, the history, and the prompt.

The order is the contract. Only what the agent's owner wrote, and the curated entries that passed the scan, stand in the
system prompt; whatever was recalled stands outside of it, as data with a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.agent.ports import Event, ModelMessage, Role, ToolSpec
from holdfast.agent.skills import Skill, Skills
from holdfast.domain.projection import one_line

INSTRUCTIONS = (
    "You are a helpful assistant that remembers. Answer briefly and plainly, and say so when you do not know something."
)
ACTIVATE = "activate_skill"
PROMPTED = "user_message"
ANSWERED = "assistant_message"
NO_MORE_TOOLS = "No more tools can be called for this prompt. Answer it now, with what you have."
MAX_HISTORY_CHARS = 120_000
MAX_LISTED_SKILLS = 50
_ADVICE = {
    "memory": "Use the memory tool when the user tells you something that will matter in later conversations.",
    "session_search": "Use session_search when the user refers to an earlier conversation that you do not see here.",
    ACTIVATE: "Use activate_skill before a task that one of these skills is for:",
}


@dataclass(frozen=True, slots=True)
class ContextBuilder:
    """Puts messages together. It reads nothing itself, and what it is given is all that a model sees."""

    instructions: str = INSTRUCTIONS
    skills: Skills = field(default_factory=Skills)

    def build_messages(
        self,
        prompt: str,
        *,
        memory: str = "",
        tools: Sequence[ToolSpec] = (),
        activated: Iterable[Skill] = (),
        reference: Iterable[ModelMessage] = (),
        history: Iterable[ModelMessage] = (),
        answer_now: bool = False,
    ) -> tuple[ModelMessage, ...]:
        """`memory` is for the system prompt: curated entries, and the rule for what was recalled if anything may be.

        `answer_now` tells a model that called tools until it may call no more.
        """
        return (
            ModelMessage(Role.SYSTEM, self.system_prompt(memory, tools, answer_now=answer_now)),
            *(ModelMessage(Role.USER, skill.activation) for skill in activated),
            *reference,
            *history,
            ModelMessage(Role.USER, prompt),
        )

    def system_prompt(self, memory: str, tools: Sequence[ToolSpec], *, answer_now: bool = False) -> str:
        advice = NO_MORE_TOOLS if answer_now else self._advice(tools)
        parts = (self.instructions.strip(), memory.strip(), advice)
        return "\n\n".join(part for part in parts if part)

    def _advice(self, tools: Sequence[ToolSpec]) -> str:
        """A line for each of the agent's own tools that is there. Others are described by their schemas alone."""
        there = {tool.name for tool in tools}
        lines = [advice for name, advice in _ADVICE.items() if name in there]
        if ACTIVATE in there:
            lines += [f"- {each.name}: {one_line(each.description)}" for each in self._listed()]
        return "\n".join(lines)

    def _listed(self) -> list[Skill]:
        return list(self.skills.found.values())[:MAX_LISTED_SKILLS]


def history_of(events: Sequence[Event], *, last: int) -> tuple[ModelMessage, ...]:
    """The prompts and answers of runs that were completed, in the order of their answers; of those the latest.

    A prompt without an answer is of a run that failed, was cancelled, or is under way, as the current one is: a model
    that saw it would answer it now. An answer without its prompt was cut off by reading only the latest events.
    """
    prompts = {event.run_id: event for event in events if event.kind == PROMPTED}
    pairs: list[tuple[ModelMessage, ModelMessage]] = []
    for event in events:
        if event.kind == ANSWERED and event.run_id in prompts:
            prompt = prompts.pop(event.run_id)
            pairs.append((ModelMessage(Role.USER, prompt.content), ModelMessage(Role.ASSISTANT, event.content)))
    kept: list[ModelMessage] = []
    room = MAX_HISTORY_CHARS
    for pair in reversed(pairs):
        room -= sum(len(message.content) for message in pair)
        if room < 0 or len(kept) + 2 > last:
            break
        kept[:0] = pair
    return tuple(kept)
