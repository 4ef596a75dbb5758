"""`python -m bench.learning.lives`: does memory end in the right state after 100 changes in people's lives?

`lives.json` holds one object for each life:

- `topic`, and `trap`: what the scripted model does wrong on purpose, or null. With a trap, only the checks of the code
  lead to the expected state.
- `conversations`: lists of messages. Each is flushed before the next begins.
- `model_answers`: for each conversation the memories that the model answers. `messages` are places in the conversation,
  from 1; a place beyond it does not exist on purpose. `relation` is new, duplicate, update or contradiction; `known` is
  the text of the known memory or null, in a trap perhaps of one that nobody knows. `since` and `until` are dates or
  null.
- `expected`: the state a day after the last message, in requirements as in `lines.json`; one that begins with `!`
  forbids what follows it.
  - `current`: for each, there is a current memory of its own that meets it. A memory is current if it is accepted and
    has not ended, even if it begins later.
  - `ended`: no current memory meets it, and a memory that ended or an earlier revision does.
  - `marked`: a current memory meets it, and `explain` marks it as contradicted.
  - `evidence`: a current memory meets `memory`, and has evidence of so many messages.
  - `count`: there are at most so many current memories.

`--rules` learns by rules alone. They say less and in other words than the model, so their share is not comparable.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import holdfast
from bench.learning.scripted_model import Script, ScriptedMemory, serve
from bench.recall.stores import ScenarioClock
from holdfast.settings import Settings

SUBJECT = "ana"
_FILE = Path(__file__).with_name("lives.json")


@dataclass(frozen=True, slots=True)
class Expected:
    """The state of memory at the end of a life."""

    current: tuple[tuple[str, ...], ...]
    ended: tuple[tuple[str, ...], ...]
    marked: tuple[tuple[str, ...], ...]
    evidence: tuple[tuple[tuple[str, ...], int], ...]
    count: int


@dataclass(frozen=True, slots=True)
class Life:
    """What somebody said over time, what a model made of it, and what memory should hold in the end."""

    id: int
    topic: str
    trap: str | None
    conversations: tuple[tuple[dict[str, Any], ...], ...]
    model_answers: tuple[tuple[ScriptedMemory, ...], ...]
    expected: Expected


@dataclass(frozen=True, slots=True)
class State:
    """What memory holds: current memories, the texts of ended ones and of earlier revisions, marked memories."""

    current: tuple[holdfast.MemoryRecord, ...]
    past: tuple[str, ...]
    marked: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ending:
    """The state that a life ended in, and what is wrong with it."""

    life: Life
    state: State
    problems: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.learning.lives", description="Measure reconciliation.")
    parser.add_argument("--rules", action="store_true", help="learn by rules alone, without a model")
    parser.add_argument("--embedder", default="static", help="static or onnx:DIRECTORY")
    parser.add_argument("--list", action="store_true", help="list every life that ended in a wrong state")
    options = parser.parse_args(arguments)
    script = Script()
    with serve(script) as url:
        settings = Settings() if options.rules else Settings(model="scripted", model_url=url)
        endings = [_live(life, script, settings, options.embedder) for life in load()]
    _print(endings, script)
    if options.list:
        _list(endings)


def load() -> tuple[Life, ...]:
    return tuple(
        Life(
            id=entry["id"],
            topic=entry["topic"],
            trap=entry["trap"],
            conversations=tuple(tuple(messages) for messages in entry["conversations"]),
            model_answers=tuple(
                tuple(ScriptedMemory(**{**memory, "messages": tuple(memory["messages"])}) for memory in answer)
                for answer in entry["model_answers"]
            ),
            expected=_expected(entry["expected"]),
        )
        for entry in json.loads(_FILE.read_text("utf-8"))
    )


def _expected(entry: dict[str, Any]) -> Expected:
    return Expected(
        current=tuple(map(tuple, entry["current"])),
        ended=tuple(map(tuple, entry["ended"])),
        marked=tuple(map(tuple, entry["marked"])),
        evidence=tuple((tuple(each["memory"]), each["at_least"]) for each in entry["evidence"]),
        count=entry["count"],
    )


# --- live ------------------------------------------------------------------------------------------------------------


def _live(life: Life, script: Script, settings: Settings, embedder: str) -> Ending:
    """Say the conversations one after the other, flush each, and judge the state at the end."""
    clock = ScenarioClock()
    with (
        TemporaryDirectory() as directory,
        holdfast.open(Path(directory) / "life.db", embedder=embedder, clock=clock, settings=settings) as memory,
    ):
        for number, (messages, answer) in enumerate(zip(life.conversations, life.model_answers, strict=True), 1):
            script.conversation = [message["text"] for message in messages]
            script.answer = answer
            clock.at = datetime.fromisoformat(messages[-1]["timestamp"]) + timedelta(minutes=1)
            memory.add(list(messages), subject=SUBJECT, conversation=f"talk-{number}")
            memory.flush(subject=SUBJECT, conversation=f"talk-{number}")
            memory.drain()
        clock.at += timedelta(days=1)
        state = _read_state(memory, clock.at)
    return Ending(life, state, tuple(_problems(state, life.expected)))


def _read_state(memory: holdfast.Memory, now: datetime) -> State:
    records = [record for record in _memories(memory) if isinstance(record, holdfast.MemoryRecord)]
    current = [record for record in records if _is_current(record, now)]
    past = [record.text for record in records if record not in current]
    for record in records:
        past += [revision.text for revision in memory.history(record.id) if revision.text != record.text]
    return State(
        current=tuple(current),
        past=tuple(past),
        marked=frozenset(record.text for record in current if _is_marked(memory, record)),
    )


def _memories(memory: holdfast.Memory) -> Iterator[object]:
    cursor = None
    while True:
        page = memory.list(kind="memory", subject=SUBJECT, cursor=cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def _is_current(record: holdfast.MemoryRecord, now: datetime) -> bool:
    ended = record.validity.until is not None and record.validity.until <= now
    return record.status is holdfast.Status.ACCEPTED and record.superseded_at is None and not ended


def _is_marked(memory: holdfast.Memory, record: holdfast.MemoryRecord) -> bool:
    """Tell whether `explain` marks the memory as contradicted, in whichever part of its answer."""
    explained = memory.explain(record.text, record_id=record.id, subject=SUBJECT)
    own = [hit for hit in explained.hits if hit.id == record.id]
    return "contradict" in repr(own).casefold()


# --- judge -----------------------------------------------------------------------------------------------------------


def _problems(state: State, expected: Expected) -> Iterator[str]:
    current = [record.text for record in state.current]
    if len(current) > expected.count:
        yield f"{len(current)} current memories, expected at most {expected.count}"
    unused = list(current)
    for wanted in expected.current:
        found = next((text for text in unused if meets(text, wanted)), None)
        if found is None:
            yield f"not current: {' & '.join(wanted)}"
        else:
            unused.remove(found)
    for unwanted in expected.ended:
        if any(meets(text, unwanted) for text in current):
            yield f"still current: {' & '.join(unwanted)}"
        elif not any(meets(text, unwanted) for text in state.past):
            yield f"lost: {' & '.join(unwanted)}"
    for wanted in expected.marked:
        if not any(meets(text, wanted) for text in state.marked):
            yield f"not marked as contradicted: {' & '.join(wanted)}"
    for wanted, at_least in expected.evidence:
        counts = [len(record.evidence) for record in state.current if meets(record.text, wanted)]
        if max(counts, default=0) < at_least:
            yield f"evidence of {max(counts, default=0)} messages, expected {at_least}: {' & '.join(wanted)}"


def meets(text: str, requirements: Iterable[str]) -> bool:
    """Tell whether the text contains what is required, and nothing of what is forbidden."""
    plain = text.casefold()
    for requirement in requirements:
        forbids = requirement.startswith("!")
        alternatives = requirement.removeprefix("!").split("|")
        if any(each.casefold() in plain for each in alternatives) == forbids:
            return False
    return True


# --- report ----------------------------------------------------------------------------------------------------------


def _print(endings: Sequence[Ending], script: Script) -> None:
    print(f"right state: {_share(endings)}")
    print(f"  without a trap: {_share([each for each in endings if each.life.trap is None])}")
    print(f"  with a trap:    {_share([each for each in endings if each.life.trap is not None])}")
    topics: dict[str, list[Ending]] = defaultdict(list)
    for ending in endings:
        topics[ending.life.topic].append(ending)
    for topic, own in topics.items():
        print(f"  {topic:<14} {_share(own)}")
    print(f"the model was asked {script.requests} times; {len(script.invented)} texts were not shown to it")


def _share(endings: Sequence[Ending]) -> str:
    right = sum(not ending.problems for ending in endings)
    return f"{right} of {len(endings)} ({right / len(endings):.0%})" if endings else "none"


def _list(endings: Iterable[Ending]) -> None:
    for ending in endings:
        if ending.problems:
            trap = f", trap: {ending.life.trap}" if ending.life.trap else ""
            print(f"\n{ending.life.id} [{ending.life.topic}{trap}]")
            for problem in ending.problems:
                print(f"    {problem}")
            for record in ending.state.current:
                print(f"    current: {record.text}")
            for text in ending.state.past:
                print(f"    past:    {text}")


if __name__ == "__main__":
    main()
