"""After a hook is delivered, dropped or forgotten, no byte of its payload is left in any file."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from canaries import Canaries, assert_gone

import holdfast
from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.contract import SourcePayload
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import HookDeliveryStatus, NewDelivery
from holdfast.domain.ids import DeliveryId
from holdfast.domain.scope import Scope
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import EVERYTHING, Scribe, add, event_id

GRANT = management_grant()


class Carried:
    """A store that is filled with pending hooks and emptied at random; all payloads are canaries."""

    def __init__(self, store: SqliteStore, seed: int) -> None:
        self._store = store
        self._chance = random.Random(seed)
        self._canaries = Canaries(seed)
        self._scribe = ControlScribe()
        self._writer = Scribe()
        self._live: dict[str, tuple[str, list[str]]] = {}
        self.gone: list[str] = []
        self.said: list[str] = []

    @property
    def kept(self) -> list[str]:
        return [*self.said, *(value for _, values in self._live.values() for value in values)]

    async def step(self) -> None:
        choice = self._chance.random()
        if choice < 0.5 or not self._live:
            await self._emit()
        elif choice < 0.65:
            # Messages lie between the payloads and must stay.
            self.said.append(self._canaries.text())
            await add(self._store, self._writer.turn(Scope(subject="ana", conversation="chat"), self.said[-1]))
        elif choice < 0.95:
            await self._end()
        else:
            await self._forget()

    async def _emit(self) -> None:
        subject, text, other = f"s{self._chance.randrange(5)}", self._canaries.text(), self._canaries.make(200)
        payload = SourcePayload(text, metadata={"note": other}, object={"deep": {"er": other}})
        made = self._scribe.delivery(scope=self._scribe.scope(subject=subject, run=f"r{len(self._live)}"))
        await self._store.write(GRANT, lambda t: t.deliveries.add(NewDelivery(made, payload)))
        self._live[made.id] = (subject, [text, other])

    async def _end(self) -> None:
        for delivery_id in self._chance.sample(sorted(self._live), min(len(self._live), 3)):
            status = self._chance.choice(
                (HookDeliveryStatus.DELIVERED, HookDeliveryStatus.DROPPED, HookDeliveryStatus.DEAD)
            )
            await self._ended(DeliveryId(delivery_id), status)
            if status is not HookDeliveryStatus.DEAD:
                self.gone += self._live.pop(delivery_id)[1]

    async def _ended(self, delivery_id: DeliveryId, status: HookDeliveryStatus) -> None:
        at = self._scribe.now()
        await self._store.write(GRANT, lambda t: t.deliveries.end(delivery_id, status, at, None, None, tried=True))

    async def _forget(self) -> None:
        subject = self._live[self._chance.choice(sorted(self._live))][0]
        grant = authorize(LOCAL_OPERATOR, Action.FORGET, Scope(subject=subject))
        target, at = ForgetTarget(subject=subject), self._scribe.now()
        await self._store.write(grant, lambda t: t.records.forget(t.records.plan_forget(target), at, event_id))
        for delivery_id, (of, values) in list(self._live.items()):
            if of == subject:
                del self._live[delivery_id]
                self.gone += values


@pytest.mark.parametrize("seed", range(6))
def test_no_byte_of_what_a_hook_carried_is_left(tmp_path: Path, seed: int) -> None:
    async def whole() -> Carried:
        store = SqliteStore(str(tmp_path / "memory.db"))
        carried = Carried(store, seed)
        for _ in range(120):
            await carried.step()
        assert await store.scrub()
        # Check while the store is open: the log is still in use.
        assert_gone(tmp_path, carried.gone, carried.kept)
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity("e")))[1] == []
        await store.close()
        return carried

    carried = asyncio.run(whole())
    assert len(carried.gone) > 20
    assert_gone(tmp_path, carried.gone, carried.kept)


def test_the_search_finds_what_a_hook_carries(tmp_path: Path) -> None:
    async def whole() -> None:
        store = SqliteStore(str(tmp_path / "memory.db"))
        canary, scribe = Canaries(1).make(3_000), ControlScribe()
        await store.write(GRANT, lambda t: t.deliveries.add(NewDelivery(scribe.delivery(), SourcePayload(canary))))
        with pytest.raises(AssertionError, match="pieces"):
            assert_gone(tmp_path, [canary])
        await store.close()

    asyncio.run(whole())


def test_a_dropped_delivery_leaves_no_byte_of_its_payload(tmp_path: Path) -> None:
    canaries = Canaries(3)
    with holdfast.ControlPlane.open(tmp_path / "memory.db", embedder="fake", work=False) as plane:
        plane.create_binding("far", "gateway", config={"url": "http://127.0.0.1:9", "user_id": "u"})
        plane.set_default("far")
        texts = [canaries.make(3_000) for _ in range(4)]
        for number, text in enumerate(texts):
            plane.emit("post_run_capture", f"h{number}", text, source={"kind": "run", "run_id": "r1"})
        made = plane.deliveries().items[::-1]
        for number, delivery in enumerate(made[:3], 1):
            assert plane.drop_delivery(delivery.id).status is HookDeliveryStatus.DROPPED
            assert_gone(tmp_path, texts[:number], texts[number:])
    assert_gone(tmp_path, texts[:3], texts[3:])
