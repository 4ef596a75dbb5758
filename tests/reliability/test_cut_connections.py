"""A cut connection to the server leaves the old state or the new one; most callers do not notice it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from cut_cases import EVERY
from io_cases import AFTERWARDS, IN_STEPS

import holdfast
from faults.disk import Shim
from faults.ledger import LaterClock, check_whole
from faults.places import PostgresPlace
from faults.sampling import spread
from faults.snapshot import Snapshot, snapshot
from faults.zygote import Zygote
from postgres import AnyServer

EVERYTHING = os.environ.get("HOLDFAST_FAULTS") == "all"
CUTS = 8  # per verb, unless HOLDFAST_FAULTS=all
TYPED = {"store_unavailable", "store_busy", "outcome_unknown"}


@dataclass(frozen=True)
class Bench:
    """A process with the shim loaded, and one store with a space per case."""

    zygote: Zygote
    shim: Shim
    place: PostgresPlace
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def space(self) -> str:
        """Create a space with the initial content of a case."""
        made = f"case{next(self.numbers)}"
        self.zygote.run("cut_cases:prepare", location=self.place.location, space=made)
        return made

    def run(self, space: str, verb: str, at: int, dies: bool) -> tuple[str, int]:
        child = self.zygote.start(
            "cut_cases:run",
            location=self.place.location,
            space=space,
            control=self.shim.path,
            verb=verb,
            at=at,
            dies=dies,
        )
        told = child.wait()
        case = f"{verb}, call {at}, {'dies' if dies else 'goes on'}"
        assert child.killed if dies else child.succeeded, f"{case}: ended with {child.status}, see the traceback above"
        self.place.settle()
        (line,) = told
        return line["outcome"], line["calls"]

    async def _looked(self, spaces: list[str]) -> list[Snapshot]:
        async with self.place.store() as store:
            found = [await snapshot(store, space) for space in spaces]
            await check_whole(store)
        extra = {AFTERWARDS, "warm"}
        return [frozenset(each for each in one if each[1] not in extra) for one in found]

    def looked(self, spaces: list[str]) -> list[Snapshot]:
        return asyncio.run(self._looked(spaces))

    def drain(self) -> None:
        with holdfast.open(self.place.location, embedder="fake", work=False, clock=LaterClock()) as memory:
            memory.drain()


@pytest.fixture(scope="module")
def shimmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Zygote, Shim]]:
    shim = Shim.made(tmp_path_factory.mktemp("cut"))
    with Zygote.opened(shim.environment) as zygote:
        yield zygote, shim


@pytest.fixture
def bench(shimmed: tuple[Zygote, Shim], postgres: AnyServer) -> Iterator[Bench]:
    place = PostgresPlace(postgres)
    yield Bench(*shimmed, place)
    place.drop()


def _cases(calls: int) -> Iterator[tuple[int, bool]]:
    """Pairs of the call to cut and whether the process dies after it: evenly spaced calls, or all of them."""
    cut = spread(calls, calls if EVERYTHING else CUTS)
    yield from ((at, number % 3 == 2) for number, at in enumerate(cut))


@pytest.mark.parametrize("verb", EVERY)
def test_a_connection_cut_at_any_call_leaves_the_old_or_the_new_state(bench: Bench, verb: str) -> None:
    before, whole = bench.space(), bench.space()
    outcome, calls = bench.run(whole, verb, 0, dies=False)
    assert outcome == "done"
    assert calls > 0 or verb == "close"
    cases = list(_cases(calls))
    spaces, outcomes = [], []
    for at, dies in cases:
        spaces.append(bench.space())
        outcomes.append(bench.run(spaces[-1], verb, at, dies)[0])
    bench.drain()
    old, new, *states = bench.looked([before, whole, *spaces])
    for (at, dies), outcome, found in zip(cases, outcomes, states, strict=True):
        case = f"{verb}, call {at} of {calls}, {'dies' if dies else 'goes on'}: {outcome}"
        assert outcome in {"done", *TYPED}, case
        if outcome == "done":
            assert found == new, case
        elif dies or verb in IN_STEPS or outcome == "outcome_unknown":
            assert found in (old, new), case
        else:
            assert found == old, case
