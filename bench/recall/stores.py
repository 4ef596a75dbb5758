"""Build the store of a scenario with the library, at the times at which things were said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import holdfast
from bench.recall.questions import Noted, Said, Scenario


class ScenarioClock:
    """A clock that stands at the time of the scenario, so that the date of the run changes no result."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@contextmanager
def build_store(scenario: Scenario, embedder: str) -> Iterator[holdfast.Memory]:
    """Add the messages; after each conversation, remember what was learned from it, and at the end the rest."""
    clock = ScenarioClock()
    with (
        TemporaryDirectory() as directory,
        holdfast.open(Path(directory) / "recall.db", embedder=embedder, clock=clock) as memory,
    ):
        ids: list[str] = []
        open_notes = list(scenario.memories)
        for conversation, messages in groupby(scenario.messages, lambda said: (said.conversation, said.at.date())):
            said = list(messages)
            clock.at = said[-1].at
            ids += _add(memory, scenario, conversation[0], said)
            clock.at += timedelta(minutes=1)
            open_notes = [note for note in open_notes if not _remember(memory, scenario, note, ids)]
        for note in open_notes:
            memory.remember(note.text, subject=scenario.subject)
        memory.drain()
        yield memory


def _add(memory: holdfast.Memory, scenario: Scenario, conversation: str, messages: list[Said]) -> tuple[str, ...]:
    drafts = [
        {"text": said.text, "sender": said.sender, "role": said.role, "timestamp": said.timestamp} for said in messages
    ]
    added = memory.add(drafts, subject=scenario.subject, conversation=conversation)
    if added.stored != len(messages):
        raise ValueError(f"{scenario.id}: {added.stored} of {len(messages)} messages of {conversation} were stored")
    return tuple(message_id for message_id in added.message_ids if message_id is not None)


def _remember(memory: holdfast.Memory, scenario: Scenario, note: Noted, ids: list[str]) -> bool:
    """Remember the note if all its evidence was said."""
    if not note.evidence or max(note.evidence) >= len(ids):
        return False
    memory.remember(note.text, subject=scenario.subject, evidence=[ids[place] for place in note.evidence])
    return True
