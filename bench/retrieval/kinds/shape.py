"""The shape of generated data: scopes of records in sessions, written as `datasets.load` reads them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

from bench.retrieval.datasets import Dataset, Record, Scope

_FIRST_DAY = datetime(2024, 1, 1, 9)
MAX_CHARS = 6_000


def at(session: int, turn: int) -> str:
    """The time of a turn: sessions are on successive days, turns a minute apart."""
    return (_FIRST_DAY + timedelta(days=session, minutes=turn)).isoformat()


def written_down(name: str, sessions: Sequence[tuple[str, Iterable[tuple[str, str]]]]) -> tuple[Record, ...]:
    """Records from written texts: ids and texts by session, all of one sender."""
    return tuple(
        Record(key, session, name, "user", at(day, turn), text[:MAX_CHARS])
        for day, (session, texts) in enumerate(sessions)
        for turn, (key, text) in enumerate(texts)
    )


def words(text: str) -> int:
    return len(text.split())


def write(dataset: Dataset, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    content = {"dataset": dataset.name, "scopes": [_scope(scope) for scope in dataset.scopes]}
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    (directory / f"{dataset.name}.json").write_text(text, encoding="utf-8")


def summary(dataset: Dataset) -> str:
    lengths = [words(text) for text in dataset.texts()]
    counted = sum(question.counted for scope in dataset.scopes for question in scope.questions)
    mean = sum(lengths) / len(lengths)
    return (
        f"{dataset.name}: {counted} questions, {len(lengths)} records of {mean:.0f} words, {len(dataset.scopes)} scopes"
    )


def _scope(scope: Scope) -> dict[str, object]:
    content = asdict(scope)
    return {"scope": content.pop("name"), **content}
