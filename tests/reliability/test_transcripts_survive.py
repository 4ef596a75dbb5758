"""Turns from many writers and processes are complete, in order and stored once, even if writers are killed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import transcript_writers as writers

from faults.places import Place, SqlitePlace
from faults.zygote import Line, Zygote
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptLifecycleRequest, MemoryTranscriptRepairRequest
from holdfast.errors import NotFound
from holdfast.library import AsyncMemory

TURNS = int(os.environ.get("HOLDFAST_TURNS", "2000"))  # on SQLite; a tenth as many on a server
_POINTS = ("write.before", "write.after", "commit.before", "commit.after")
_TASKS = 4


async def _whole(place: Place, told: list[Line], *, again: bool) -> int:
    """Check that acknowledged turns have their sequence, and that all turns are complete, in order and stored once."""
    async with writers.opened(place.location, work=False) as runtime:
        if again:
            for line in told:
                if "do" in line:
                    await writers.put(runtime, line["do"])
        turns = await writers.turns_of(runtime)
        assert [turn.sequence for turn in turns] == list(range(1, len(turns) + 1))
        by_id = {turn.id: turn for turn in turns}
        assert len(by_id) == len(turns)
        for turn in turns:
            assert tuple(message.text for message in turn.messages) == writers.texts_of(turn.id)
        for line in told:
            if "done" in line:
                assert by_id[line["done"]].sequence == line["sequence"]
        if again:
            assert set(by_id) == {line["do"] for line in told if "do" in line}
        checked = await runtime.repair_transcript(MemoryTranscriptRepairRequest(writers.CHAT))
        assert checked.issues == ()
        return len(turns)


def test_turns_of_many_writers_in_two_processes_have_no_gap_and_no_duplicate(place: Place, zygote: Zygote) -> None:
    turns = TURNS if isinstance(place, SqlitePlace) else TURNS // 10
    each = turns // (2 * _TASKS)
    children = [
        zygote.start("transcript_writers:write", location=place.location, name=name, tasks=_TASKS, turns=each)
        for name in ("a", "b")
    ]
    told = [line for child in children for line in child.wait()]
    assert all(child.succeeded for child in children)
    assert asyncio.run(_whole(place, told, again=False)) == 2 * _TASKS * each


@pytest.mark.parametrize("point", _POINTS)
def test_a_writer_killed_while_it_commits_turns_loses_nothing_and_doubles_nothing(
    place: Place, zygote: Zygote, point: str
) -> None:
    told: list[Line] = []
    for passage in (2, 7, 20):
        child = zygote.start(
            "transcript_writers:write",
            location=place.location,
            name=f"p{passage}",
            tasks=3,
            turns=30,  # more commits than passages, even if each commit takes a turn from every task
            point=point,
            passage=passage,
        )
        told += child.wait()
        assert child.killed
        place.settle()
        asyncio.run(_whole(place, told, again=False))
    asyncio.run(_whole(place, told, again=True))
    asyncio.run(_whole(place, told, again=True))


_REQUESTS = [(transition, point) for transition in ("mask", "delete_raw", "archive") for point in _POINTS]


@pytest.mark.parametrize(
    ("transition", "point"), [*_REQUESTS, ("delete_raw", "scrub.before"), ("delete_raw", "scrub.after")]
)
def test_a_request_killed_on_its_way_changed_all_or_nothing(
    place: Place, zygote: Zygote, transition: str, point: str
) -> None:
    zygote.run("transcript_writers:write", location=place.location, name="a", tasks=1, turns=6)
    child = zygote.start("transcript_writers:age", location=place.location, transition=transition, point=point)
    assert child.wait() == []
    assert child.killed
    place.settle()

    async def looked_at() -> None:
        async with writers.opened(place.location, work=False) as runtime:
            states = {str(turn.state) for turn in await writers.turns_of(runtime)}
            goal = {"mask": "masked", "delete_raw": "raw_deleted", "archive": "archived"}[transition]
            assert states == ({goal} if point in ("commit.after", "scrub.before", "scrub.after") else {"active"})
            # The repeated request succeeds, and so does the work it queued.
            await runtime.request_transcript_lifecycle(
                MemoryTranscriptLifecycleRequest(transition, "asked to", writers.CHAT)
            )
            memory = AsyncMemory(runtime._service)
            await memory.drain()
            assert {str(turn.state) for turn in await writers.turns_of(runtime)} == {goal}
            assert [hit.text for hit in await memory.search("Question Answer", subject="ana")] == []
            if transition != "archive":
                message = (await writers.turns_of(runtime))[0].messages[0]
                with pytest.raises(NotFound):
                    await memory.get(message.id, subject="ana")

    asyncio.run(looked_at())
    if transition == "delete_raw" and isinstance(place, SqlitePlace):
        held = b"".join(path.read_bytes() for path in Path(place.location).parent.iterdir() if path.is_file())
        assert b"Question a-" not in held
