"""A hook arrives even if a process dies between emitting and storing it; in our own store exactly once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hook_deaths import BOT, KEY, SPACE, WHOLE, WORDS, Later, desk, do, emit
from ledgers import ledger

from faults.places import Place
from faults.zygote import Zygote
from holdfast.control.bindings import CreateBinding, SetTarget
from holdfast.control.deliveries import ListDeliveries
from holdfast.control.memory import ListRecords
from holdfast.domain.access import Action, storewide_grant
from holdfast.domain.bindings import TargetKind
from holdfast.domain.hooks import Delivery, HookDeliveryStatus
from holdfast.domain.operations import Outcome

POINTS = (
    "write.before", "write.after", "commit.before", "commit.after", "job.claim.before", "job.claim.after",
    "outside.before", "outside.after", "call.before", "call.after",
)  # fmt: skip
MOST_PASSAGES = 4


async def bound(location: str, path: Path) -> None:
    async with desk(location) as engine:
        await do(engine, CreateBinding(WHOLE, "elsewhere", KEY, {"path": str(path)}))
        await do(engine, SetTarget(WHOLE, TargetKind.COMPANY, SPACE, "elsewhere"))


async def recovered(location: str) -> tuple[list[Delivery], list[str], list[str]]:
    """Emit the hook again, as a client without an answer does; deliver; return deliveries, our texts and outcomes."""
    async with desk(location, clock=Later(hours=2)) as engine:
        await emit(engine)
        await engine.crew.drain()
        page = await do(engine, ListDeliveries(WHOLE))
        kept = await do(engine, ListRecords(BOT, binding_key="default"))
        rows = await engine._core.store.read(storewide_grant(), lambda reader: reader.operations.page())
        outcomes = [row.outcome for row in rows if row.action is Action.CAPTURE]
        return list(page.items), [each.text for each in kept.result.items], outcomes[::-1]


@pytest.mark.parametrize("point", POINTS)
def test_a_hook_that_goes_outside_arrives_whoever_dies_on_the_way(
    place: Place, zygote: Zygote, tmp_path: Path, point: str
) -> None:
    died = 0
    for passage in range(1, MOST_PASSAGES + 1):
        location, path = f"{place.location}", tmp_path / f"ledger-{passage}"
        if passage > 1 and place.kind == "sqlite":
            location = str(tmp_path / f"memory-{passage}.db")
        elif passage > 1:
            break  # one server store per test
        asyncio.run(bound(location, path))
        child = zygote.start("hook_deaths:die_on_the_way", location=location, point=point, passage=passage)
        child.wait()
        place.settle()
        died += child.killed
        (delivery,), kept, outcomes = asyncio.run(recovered(location))
        assert (delivery.status, delivery.to) == (HookDeliveryStatus.DELIVERED, "binding:elsewhere")
        assert kept == [], "it is for somebody else"
        entries = ledger(path)
        assert {(each["id"], each["text"], each["space"]) for each in entries} == {("run:r1", WORDS, SPACE)}
        assert 1 <= len(entries) <= 2
        # Only a call with no recorded outcome is `unknown`.
        asked_in_vain = child.killed and point in ("outside.before", "outside.after", "call.before", "call.after")
        if asked_in_vain:
            assert outcomes == [Outcome.UNKNOWN, Outcome.SUCCEEDED]
        assert outcomes.count(Outcome.SUCCEEDED) == 1
        if child.succeeded:
            break
    assert died, f"nobody died at {point}"


@pytest.mark.parametrize("point", ["write.before", "write.after", "commit.before", "commit.after"])
def test_a_hook_to_our_own_store_is_kept_exactly_once_whoever_dies(place: Place, zygote: Zygote, point: str) -> None:
    async def opened() -> None:
        async with desk(place.location):
            pass

    asyncio.run(opened())
    child = zygote.start("hook_deaths:die_on_the_way", location=place.location, point=point, passage=1)
    child.wait()
    place.settle()
    assert child.killed
    (delivery,), kept, _ = asyncio.run(recovered(place.location))
    assert (delivery.status, delivery.to) == (HookDeliveryStatus.DELIVERED, "binding:default")
    assert kept == [WORDS]
