"""Deterministic fakes: a clock that moves only when stepped, sequential ids, and a model with scripted answers."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.ports import ModelAnswer, ModelCallUsage

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class FixedClock:
    """Implements `ports.Clock`: stands still until it is moved, forward or backward."""

    def __init__(self, at: datetime = START) -> None:
        self._now = at

    def now(self) -> datetime:
        return self._now

    def step(self, by: timedelta | float = 1.0) -> datetime:
        """Move by a duration or by seconds, and return the new time."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self._now

    def set(self, at: datetime) -> None:
        self._now = at


class CountingIds:
    """Implements `ports.Ids`: the same ids in the same order each time, each greater than the one before.

    Several processes on one store must not share it: they would make the same ids.
    """

    def __init__(self, start: int = 1) -> None:
        self._numbers = itertools.count(start)
        self._lock = threading.Lock()

    def new(self, prefix: str) -> str:
        with self._lock:
            return f"{prefix}_{next(self._numbers):032x}"


class ScriptedPrompts:
    """Implements `ports.PromptModel`: answers with `answers`, as lists by name, such as `memories`. It calls nobody."""

    name = "scripted"
    provider = "scripted"
    url = "scripted"

    def __init__(self) -> None:
        self.answers: Mapping[str, Sequence[Mapping[str, Any]]] = {}

    async def answer(self, instructions: str, content: str, schema: Mapping[str, Any]) -> ModelAnswer:
        lists = {name: list(self.answers.get(name, ())) for name in schema["required"]}
        return ModelAnswer(json.dumps(lists), ModelCallUsage(self.name, requests=1))

    async def close(self) -> None:
        """Hold nothing."""
