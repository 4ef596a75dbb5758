"""The evaluation data as typed values.

Defines the format of a dataset file. The data itself is read from a path and is never part of the repository. Each
scope has its records in time order, the order in which a memory would have received them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict


@dataclass(frozen=True, slots=True)
class Record:
    """One message. Its id is unique only within its scope."""

    id: str
    session_id: str
    sender: str
    role: str
    timestamp: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    qid: str
    query: str
    gold: tuple[str, ...]
    category: str
    counted: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """One conversation or one person's messages, searched separately from all others."""

    name: str
    records: tuple[Record, ...]
    questions: tuple[Question, ...]

    def with_senders(self) -> "Scope":
        pasted = (replace(record, text=f"{record.sender}: {record.text}") for record in self.records)
        return replace(self, records=tuple(pasted))


@dataclass(frozen=True, slots=True)
class Dataset:
    name: str
    scopes: tuple[Scope, ...]

    @property
    def many_senders(self) -> bool:
        return any(len({record.sender for record in scope.records}) > 1 for scope in self.scopes)

    def with_senders(self) -> "Dataset":
        """The same with `Sender: text`, as users of systems without senders write it."""
        return replace(self, scopes=tuple(scope.with_senders() for scope in self.scopes))

    def texts(self) -> Iterator[str]:
        return (record.text for scope in self.scopes for record in scope.records)

    def queries(self) -> Iterator[str]:
        return (question.query for scope in self.scopes for question in scope.questions)


class _RecordJson(TypedDict):
    id: str
    session_id: str
    sender: str
    role: str
    timestamp: str
    text: str


class _QuestionJson(TypedDict):
    qid: str
    query: str
    gold: list[str]
    category: str
    counted: bool


class _ScopeJson(TypedDict):
    scope: str
    records: list[_RecordJson]
    questions: list[_QuestionJson]


class _DatasetJson(TypedDict):
    dataset: str
    scopes: list[_ScopeJson]


def load(data: Path, name: str) -> Dataset:
    """The dataset whose file name begins with `name`, such as `locomo` for `locomo-dev.json`."""
    candidates = sorted(data.glob(f"{name}*.json"))
    if len(candidates) != 1:
        found = ", ".join(path.name for path in candidates) or "no file"
        raise SystemExit(f"{data}: expected one file {name}*.json, found {found}")
    content: _DatasetJson = json.loads(candidates[0].read_text(encoding="utf-8"))
    return Dataset(content["dataset"], tuple(_scope(scope) for scope in content["scopes"]))


def _scope(scope: _ScopeJson) -> Scope:
    # The sort is stable: records of the same time stay in the file's order.
    records = sorted((Record(**record) for record in scope["records"]), key=lambda record: record.timestamp)
    return Scope(scope["scope"], tuple(records), tuple(_question(question) for question in scope["questions"]))


def _question(question: _QuestionJson) -> Question:
    return Question(
        qid=question["qid"],
        query=question["query"],
        gold=tuple(question["gold"]),
        category=question["category"],
        counted=question["counted"],
    )
