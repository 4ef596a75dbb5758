"""The scenarios of `questions.json`: what was said and remembered, and questions with the lines that answer them.

A scenario is one store: `messages` in the order in which they were said, `memories` with the indices of the messages
that they were learned from (none: somebody told the memory directly), and `questions` of one of three kinds.

- answerable: the store holds the answer. Each of `answers` is a requirement that a line must contain, where `a|b` means
  either; a line that contains all of them is the answer. Of several versions of a fact only the newest answers.
- off_topic: the store holds nothing on the question's subject.
- no_answer: the subject is there, the answer is not.

Part 1 was written before the policy of recall that it measures, part 2 after it and by somebody else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_FILE = Path(__file__).with_name("questions.json")
ANSWERABLE = "answerable"
KINDS = (ANSWERABLE, "off_topic", "no_answer")


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a scenario."""

    sender: str
    role: str
    text: str
    timestamp: str
    conversation: str

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.timestamp)


@dataclass(frozen=True, slots=True)
class Noted:
    """A memory of a scenario, with the indices of the messages that say it."""

    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    query: str
    kind: str
    answers: tuple[str, ...]

    def is_answered_by(self, line: str) -> bool:
        plain = _plain(line)
        return all(any(_plain(either) in plain for either in answer.split("|")) for answer in self.answers)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A store and its questions."""

    id: str
    part: int
    subject: str
    messages: tuple[Said, ...]
    memories: tuple[Noted, ...]
    questions: tuple[Question, ...]


def load(parts: Sequence[int] = (1, 2)) -> tuple[Scenario, ...]:
    entries = json.loads(_FILE.read_text("utf-8"))
    return tuple(
        Scenario(
            id=entry["id"],
            part=entry["part"],
            subject=entry["subject"],
            messages=tuple(Said(**message) for message in entry["messages"]),
            memories=tuple(Noted(memory["text"], tuple(memory["evidence"])) for memory in entry["memories"]),
            questions=tuple(
                Question(question["query"], question["kind"], tuple(question["answers"]))
                for question in entry["questions"]
            ),
        )
        for entry in entries
        if entry["part"] in parts
    )


def _plain(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").casefold()
