"""Curated memory under several processes, kills and disk faults: acknowledged changes are there, each in full."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation import Curated

from faults.disk import FAULTS, Shim
from faults.sampling import spread
from faults.zygote import Zygote
from holdfast.agent.curated.entries import join_entries, parse_entries

# With HOLDFAST_FAULTS=all every call fails once; else `CALLS` of each change, the first and the last included.
EVERYTHING = os.environ.get("HOLDFAST_FAULTS") == "all"
CALLS = 8
PROCESSES = 8
WRITES = 200
BOTH = [
    {"action": "replace", "target": "memory", "old_text": "old", "content": "A new note."},
    {"action": "add", "target": "user", "content": "A new trait."},
]
ONE = [{"action": "replace", "target": "memory", "old_text": "old", "content": "A new note."}]
BEFORE = ("An old note.\n", "An old trait.\n")
AFTER = {"both": ("A new note.\n", "An old trait.\n§\nA new trait.\n"), "one": ("A new note.\n", "An old trait.\n")}
CHANGES = {"both": BOTH, "one": ONE}


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened


@pytest.fixture
def curated(tmp_path: Path) -> Curated:
    found = Curated(tmp_path / "memories")
    found("add", "memory", "An old note.")
    found("add", "user", "An old trait.")
    return found


@pytest.mark.parametrize("limit", [100_000, 1_000])
def test_two_hundred_writes_of_eight_processes_lose_nothing_and_stay_within_the_limit(
    zygote: Zygote, tmp_path: Path, limit: int
) -> None:
    folder, each = str(tmp_path), WRITES // PROCESSES
    writers = [
        zygote.start("curation:add_entries", folder=folder, name=f"Writer {number}", count=each, limit=limit)
        for number in range(PROCESSES)
    ]
    reader = zygote.start("curation:look", folder=folder, limit=limit, times=100)
    told = [line for writer in [*writers, reader] for line in writer.wait()]
    assert all(writer.succeeded for writer in [*writers, reader])
    assert sum("trying" in line for line in told) == WRITES
    seen = Curated(tmp_path, memory_chars=limit, user_chars=limit).snapshot()
    for target, entries, text in zip(
        ("memory", "user"), (seen.memory, seen.user), Curated(tmp_path).texts(), strict=True
    ):
        kept = [line["kept"] for line in told if "kept" in line and target in line["targets"]]
        assert sorted(kept) == sorted(entries)
        assert parse_entries(text) == entries
        assert len(join_entries(entries)) <= limit
    everything = sum("kept" in line for line in told) == WRITES
    assert everything is (limit == 100_000), "either all of it fits, or some of it was refused"


def test_a_replaced_entry_is_never_replaced_again_by_who_has_not_seen_it(zygote: Zygote, tmp_path: Path) -> None:
    Curated(tmp_path)("add", "memory", "Counted to 0 so far.")
    counters = [zygote.start("curation:count_up", folder=str(tmp_path), times=10) for _ in range(4)]
    assert [counter.wait() for counter in counters] == [[{"done": 10}]] * 4
    assert Curated(tmp_path).snapshot().memory == ("Counted to 40 so far.",)


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_killed_at_any_step_leaves_the_old_or_the_new_and_never_half(
    zygote: Zygote, tmp_path: Path, change: str
) -> None:
    outcomes = set()
    for step in range(1, 100):
        curated = Curated(tmp_path / str(step))
        curated("add", "memory", "An old note.")
        curated("add", "user", "An old trait.")
        child = zygote.start("curation:die_at_step", folder=str(curated.folder), step=step, operations=CHANGES[change])
        told = child.wait()
        seen = curated.snapshot()
        texts = (join_entries(seen.memory) + "\n", join_entries(seen.user) + "\n")
        assert texts in (BEFORE, AFTER[change])
        assert curated.texts() == texts
        outcomes.add(texts)
        assert curated("add", "memory", "Life goes on.")["success"]
        assert curated.names() == [".lock", "MEMORY.md", "USER.md"], "nothing is left of it"
        if not child.killed:
            assert (told, texts) == ([{"kept": True}], AFTER[change])
            break
    else:
        pytest.fail("it took more steps than that")
    assert step > 5
    assert outcomes == {BEFORE, AFTER[change]}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_fails_at_any_call_is_told_of_and_breaks_nothing(
    shimmed: tuple[Zygote, Shim], tmp_path: Path, fault: str, change: str
) -> None:
    zygote, shim = shimmed

    def changed(at: int) -> tuple[Curated, dict[str, Any]]:
        curated = Curated(tmp_path / str(at))
        curated("add", "memory", "An old note.")
        curated("add", "user", "An old trait.")
        [told] = zygote.run(
            "curation:change_on_a_bad_disk",
            folder=str(curated.folder), control=shim.path, fault=fault, at=at, operations=CHANGES[change],
        )  # fmt: skip
        return curated, told

    curated, counted = changed(0)
    assert counted["answer"]["success"]
    assert curated.texts() == AFTER[change]
    calls, failed = counted["calls"], 0
    phase = list(FAULTS).index(fault) / len(FAULTS)
    for at in spread(calls, calls if EVERYTHING else CALLS, phase):
        curated, told = changed(at)
        failed += told["failed"]
        if told["answer"]["success"]:
            assert curated.texts() == AFTER[change]
        else:
            assert told["failed"]
            seen = curated.snapshot()
            texts = (join_entries(seen.memory) + "\n", join_entries(seen.user) + "\n")
            uncertain = "not known" in told["answer"]["error"]
            assert texts in ((BEFORE, AFTER[change]) if uncertain else (BEFORE,)), told
        assert curated("add", "memory", "Life goes on.")["success"]
        # A file that was unreadable for a moment may have been copied.
        assert [name for name in curated.names() if ".bak." not in name] == [".lock", "MEMORY.md", "USER.md"]
    assert failed


@pytest.mark.parametrize(
    ("at", "expected", "said"),
    [(1, BEFORE, "could not be written"), (2, AFTER["one"], "not known"), (3, AFTER["one"], "")],
    ids=["the file, before it takes the old one's place", "the folder, after it", "nothing else"],
)
def test_what_is_acknowledged_was_synced(
    shimmed: tuple[Zygote, Shim], curated: Curated, at: int, expected: tuple[str, str], said: str
) -> None:
    zygote, shim = shimmed
    [told] = zygote.run(
        "curation:change_on_a_bad_disk",
        folder=str(curated.folder), control=shim.path, fault="a sync fails", at=at, operations=ONE,
    )  # fmt: skip
    assert told["answer"]["success"] is (said == "")
    assert said in told["answer"].get("error", "")
    assert curated.texts() == expected


@pytest.fixture(scope="module")
def shimmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Zygote, Shim]]:
    shim = Shim.made(tmp_path_factory.mktemp("shim"))
    with Zygote.opened(shim.environment) as opened:
        yield opened, shim


def test_who_cannot_get_the_lock_is_told_so_and_writes_nothing(curated: Curated) -> None:
    impatient = Curated(curated.folder, lock_seconds=0)
    descriptor = os.open(curated.folder / ".lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        answer = impatient("add", "memory", "Never kept.")
        assert answer["success"] is False
        assert "another process" in answer["error"]
        assert answer["entries"] == ["An old note."], "to read, no lock is needed"
        assert impatient.snapshot().user == ("An old trait.",)
    finally:
        os.close(descriptor)
    assert curated.texts() == BEFORE
    assert impatient("add", "memory", "Kept.")["success"]
