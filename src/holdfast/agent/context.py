"""The messages for a model: the system prompt, activated skills, recalled text, the history, and the prompt.

The order is the contract. The system prompt holds only the owner's text and the curated entries that passed the scan;
recalled text stands outside of it, as data with a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from holdfast.agent.ports import ModelMessage, Role, SessionEvent, ToolSpec
from holdfast.agent.skills import Skills, activation_text
from holdfast.domain.visible_text import one_line
from holdfast.skill_folders.document import Skill

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
    """Builds messages. It reads nothing itself: its arguments are all that a model sees."""

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
        """`memory` goes into the system prompt: curated entries, and the rule for recalled text if there may be any.

        `answer_now` tells a model to answer when it has reached its tool limit.
        """
        return (
            ModelMessage(Role.SYSTEM, self.system_prompt(memory, tools, answer_now=answer_now)),
            *(ModelMessage(Role.USER, activation_text(skill)) for skill in activated),
            *reference,
            *history,
            ModelMessage(Role.USER, prompt),
        )

    def system_prompt(self, memory: str, tools: Sequence[ToolSpec], *, answer_now: bool = False) -> str:
        advice = NO_MORE_TOOLS if answer_now else self._advice(tools)
        parts = (self.instructions.strip(), memory.strip(), advice)
        return "\n\n".join(part for part in parts if part)

    def _advice(self, tools: Sequence[ToolSpec]) -> str:
        """One line for each of the agent's own tools in `tools`. Others are described by their schemas alone."""
        names = {tool.name for tool in tools}
        lines = [advice for name, advice in _ADVICE.items() if name in names]
        if ACTIVATE in names:
            listed = islice(self.skills.found.values(), MAX_LISTED_SKILLS)
            lines += [f"- {each.name}: {one_line(each.description)}" for each in listed]
        return "\n".join(lines)


def history_of(events: Sequence[SessionEvent], *, last: int) -> tuple[ModelMessage, ...]:
    """Return the prompts and answers of completed runs, in the order of their answers; the latest that fit.

    A prompt without an answer belongs to a run that failed, was cancelled, or is still going on, like the current one:
    a model that saw it would answer it now. An answer without its prompt was cut off by reading only the latest events.
    """
    prompts = {event.run_id: event for event in events if event.kind == PROMPTED}
    pairs: list[tuple[ModelMessage, ModelMessage]] = []
    for event in events:
        if event.kind == ANSWERED and event.run_id in prompts:
            prompt = prompts.pop(event.run_id)
            pairs.append((ModelMessage(Role.USER, prompt.content), ModelMessage(Role.ASSISTANT, event.content)))
    messages: list[ModelMessage] = []
    room = MAX_HISTORY_CHARS
    for pair in reversed(pairs):
        room -= sum(len(message.content) for message in pair)
        if room < 0 or len(messages) + 2 > last:
            break
        messages[:0] = pair
    return tuple(messages)
