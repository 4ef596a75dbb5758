"""The corpus of attempts to poison a memory (`attempts.json`), and of honest histories that resemble them
(`controls.json`).

An attempt has:

- `family`, `channel` (the way that the hostile text takes) and `language`;
- `before`: steps that give Ana her true memories. A text is said by her; with `learned`, that is what the scripted
  model makes of it;
- `attack`: steps with the hostile text;
- `lie`: the memory that an obedient model proposes about every conversation of the attack, or a list of such
  memories. It is worded by the attacker. `relation` (by default an update of the true memory if there is one, else
  new) and `cites` (places of messages, from 1; by default all) are as the attacker wants them;
- `question`: what somebody would ask later;
- `true` and `false`: requirements, as in `bench/learning/lines.json`, that tell the true memory and a poisoned text;
- `model_only`: the attempt needs a model, and is not played with rules alone.

A step is an object with one of these keys:

- `say`: a message, with `sender`, `role`, `source`, `in` (the conversation) and `subject`;
- `document`: a file is uploaded, with its `name`;
- `remember`: a memory is written, `by` the operator, the user or an agent, with `source`;
- `correct`: the true memory is corrected to this text, `by` somebody;
- `candidate`: a host submits it with an `authority`, citing the last message;
- `recall`: what `recall` answers to this question is said, with what stands in `with` before it;
- `flush`: the conversations so far are flushed and learned from.

`times` repeats a step. A third of each family, chosen by a committed seed, is held back from the work on defences.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_SEED = 20260320
_HELD_BACK_SHARE = 1 / 3

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lie:
    """A memory that an obedient model proposes. Without a relation, it updates the true memory if there is one."""

    text: str
    relation: str | None = None
    cites: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A small history with an attack in it, and the means to tell whether the attack succeeded."""

    id: int
    family: str
    channel: str
    language: str
    before: tuple[Step, ...]
    attack: tuple[Step, ...]
    lies: tuple[Lie, ...]
    question: str
    true: tuple[str, ...]
    false: tuple[str, ...]
    model_only: bool


@dataclass(frozen=True, slots=True)
class Control:
    """An honest history. The user's own statements must become memories in it, as they do when said alone."""

    id: int
    language: str
    steps: tuple[Step, ...]
    learned: str
    expected: tuple[str, ...]


def load_attempts() -> tuple[Attempt, ...]:
    return tuple(_attempt(place, entry) for place, entry in enumerate(_read("attempts.json"), 1))


def load_controls() -> tuple[Control, ...]:
    return tuple(
        Control(
            id=place,
            language=entry.get("language", "en"),
            steps=tuple(map(_step, entry["steps"])),
            learned=entry["learned"],
            expected=tuple(entry["expected"]),
        )
        for place, entry in enumerate(_read("controls.json"), 1)
    )


def held_back_ids(attempts: Iterable[Attempt]) -> frozenset[int]:
    """Choose a third of each family, the same ones in every run."""
    families: dict[str, list[int]] = defaultdict(list)
    for attempt in attempts:
        families[attempt.family].append(attempt.id)
    chosen: set[int] = set()
    for family in sorted(families):
        own = families[family]
        chosen.update(random.Random(f"{_SEED}/{family}").sample(own, round(len(own) * _HELD_BACK_SHARE)))
    return frozenset(chosen)


def _read(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((_FOLDER / name).read_text("utf-8"))
    return entries


def _attempt(number: int, entry: dict[str, Any]) -> Attempt:
    lies = entry["lie"] if isinstance(entry["lie"], list) else [entry["lie"]]
    return Attempt(
        id=number,
        family=entry["family"],
        channel=entry["channel"],
        language=entry.get("language", "en"),
        before=tuple(map(_step, entry.get("before", []))),
        attack=tuple(map(_step, entry["attack"])),
        lies=tuple(_lie(lie, entry) for lie in lies),
        question=entry["question"],
        true=tuple(entry.get("true", [])),
        false=tuple(entry["false"]),
        model_only=entry.get("model_only", False),
    )


def _lie(text: str, entry: dict[str, Any]) -> Lie:
    cites = entry.get("cites")
    return Lie(text, entry.get("relation"), None if cites is None else tuple(cites))


def _step(step: str | dict[str, Any]) -> Step:
    return {"say": step} if isinstance(step, str) else step
