"""Any failing disk call leaves the old state or the new one, and raises a matching error."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from io_cases import AFTERWARDS, CANARY, EVERY, IN_STEPS, LEAVES_WORK

import holdfast
from faults.disk import FAULTS, Shim
from faults.ledger import LaterClock, check_rebuild, check_whole
from faults.places import SqlitePlace
from faults.sampling import spread
from faults.snapshot import Snapshot, snapshot
from faults.zygote import Zygote

# With HOLDFAST_FAULTS=all, every call fails in each way, once with and once without a crash after it.
EVERYTHING = os.environ.get("HOLDFAST_FAULTS") == "all"
# Otherwise this many calls of a verb, including the first and the last; the sample differs per fault.
SAMPLE = 10
# Allowed errors of a verb on a failing disk.
TYPED = {"store_error", "store_full", "store_unusable", "store_corrupt", "store_read_only", "store_busy"}


@dataclass(frozen=True)
class Bench:
    """A process with the shim loaded, the initial stores of the cases, and a folder for the current case."""

    zygote: Zygote
    shim: Shim
    prepared: Path
    folder: Path

    def fresh(self, verb: str) -> SqlitePlace:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        place = SqlitePlace(self.folder)
        if verb != "create":
            name = "crashed.db" if verb == "recover" else "closed.db"
            for found in self.prepared.glob(f"{name}*"):
                if not found.name.endswith("-shm"):
                    shutil.copy(found, place.location + found.name.removeprefix(name))
        return place

    def run(self, place: SqlitePlace, verb: str, fault: str, at: int, dies: bool) -> tuple[str, int, int]:
        child = self.zygote.start(
            "io_cases:run",
            location=place.location,
            control=self.shim.path,
            verb=verb,
            fault=fault,
            at=at,
            dies=dies,
        )
        told = child.wait()
        case = f"{verb}, call {at}, {fault}, {'dies' if dies else 'goes on'}"
        assert child.killed if dies else child.succeeded, f"{case}: ended with {child.status}, see the traceback above"
        (line,) = told
        return line["outcome"], line["calls"], line["failed"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    # Use memory if possible: nothing here needs a durable disk.
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory)) if memory.is_dir() else tmp_path_factory.mktemp("io")
    shim = Shim.made(folder)
    with Zygote.opened(shim.environment) as zygote:
        prepared = folder / "prepared"
        prepared.mkdir()
        assert zygote.start("io_cases:prepare", folder=str(prepared)).wait() == [{"prepared": True}]
        yield Bench(zygote, shim, prepared, folder / "case")
    shutil.rmtree(folder)


async def _looked_at(place: SqlitePlace, *, thoroughly: bool) -> tuple[Snapshot, Snapshot]:
    """Snapshots at once and after the pending work is done; checks that the store is consistent."""
    async with place.store() as store:
        at_once = settled = await snapshot(store)
        if thoroughly:
            async with holdfast.open_async(place.location, embedder="fake", work=False, clock=LaterClock()) as memory:
                await memory.drain()
                settled = await snapshot(store)
                await check_rebuild(memory, store)
        await check_whole(store)
    return _without_afterwards(at_once), _without_afterwards(settled)


def _without_afterwards(found: Snapshot) -> Snapshot:
    return frozenset(each for each in found if each[1] != AFTERWARDS)


def _looked(place: SqlitePlace, *, thoroughly: bool = True) -> tuple[Snapshot, Snapshot]:
    return asyncio.run(_looked_at(place, thoroughly=thoroughly))


def _cases(fault: str, calls: int) -> Iterator[tuple[int, bool]]:
    """Pairs of the call to fail and whether the process dies after it."""
    if EVERYTHING:
        yield from itertools.product(range(1, calls + 1), (False, True))
        return
    turn = list(FAULTS).index(fault)
    for number, at in enumerate(spread(calls, SAMPLE, turn / len(FAULTS)), turn):
        yield at, number % 2 == 0


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("verb", EVERY)
def test_every_call_that_can_fail_leaves_the_old_or_the_new_state(bench: Bench, verb: str, fault: str) -> None:
    old = _looked(bench.fresh(verb))
    place = bench.fresh(verb)
    outcome, calls, _ = bench.run(place, verb, fault, 0, dies=False)
    assert outcome == "done"
    assert calls > 0 or verb == "read"
    new = _looked(place)
    for number, (at, dies) in enumerate(_cases(fault, calls)):
        place = bench.fresh(verb)
        outcome, _, _ = bench.run(place, verb, fault, at, dies)
        case = f"{verb}, call {at} of {calls}, {fault}, {'dies' if dies else 'goes on'}: {outcome}"
        assert outcome in {"done", *TYPED}, case
        at_once, settled = _looked(place, thoroughly=EVERYTHING or verb in LEAVES_WORK or number % 5 == 0)
        if outcome == "done":
            assert settled == new[1], case
        elif verb in IN_STEPS or dies:
            assert settled in (old[1], new[1]), case
        else:
            # The error says that nothing was changed and the process went on, so nothing may have changed.
            assert (at_once, settled) == old, case
        if verb == "forget" and settled == new[1]:
            assert CANARY.encode() not in b"".join(path.read_bytes() for path in bench.folder.iterdir()), case
