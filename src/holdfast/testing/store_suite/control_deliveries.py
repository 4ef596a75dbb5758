"""Hook deliveries: each hook goes to a destination once, and its payload is kept only as long as needed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, Action, Grant, authorize
from holdfast.domain.contract import HookKind, SourceKind, SourcePayload
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import Delivery, DeliveryFilter, HookDeliveryStatus, NewDelivery
from holdfast.domain.ids import OperationId
from holdfast.domain.scope import Scope
from holdfast.ports import Store
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import EVERYTHING, Scribe, add, forget, scenario

GRANT = management_grant()
PAYLOAD = SourcePayload("said \x00 \ud800 ü", "text/plain", {"k": [1, None]}, {"nested": {"a": 1.5}})
_S = HookDeliveryStatus


async def put(store: Store, delivery: Delivery, payload: SourcePayload | None = PAYLOAD) -> Delivery:
    return await store.write(GRANT, lambda t: t.deliveries.add(NewDelivery(delivery, payload)))


async def end_delivery(
    store: Store, delivery: Delivery, status: HookDeliveryStatus, reason: str | None = None, *, tried: bool = False
) -> None:
    ended = (delivery.id, status, delivery.created_at, reason, None)
    await store.write(GRANT, lambda t: t.deliveries.end(*ended, tried=tried))


async def read_delivery(
    store: Store, delivery: Delivery, grant: Grant = GRANT
) -> tuple[Delivery | None, SourcePayload | None]:
    return await store.read(grant, lambda r: (r.deliveries.find(delivery.id), r.deliveries.payload(delivery.id)))


async def is_sound(store: Store) -> bool:
    return not (await store.read(EVERYTHING, lambda r: r.maintenance.integrity("e")))[1]


class ControlDeliveryContract:
    @scenario
    async def test_a_delivery_is_kept_as_it_was_given(self, store: Store) -> None:
        scribe = ControlScribe()
        for made in (
            scribe.delivery(),
            scribe.delivery(scope=scribe.scope(agent="bo"), status=_S.SKIPPED, reason="hook_disabled", digest=""),
            scribe.delivery(to="subscriber:audience", binding="other"),
            scribe.delivery(
                hook=replace(scribe.hook(), actor_agent_id=None, run_id=None),
                source=scribe.source(SourceKind.ISSUE_COMMENT, issue_id="i", comment_id="c", external_ref="http://x/ü"),
                operation_id=OperationId("op_1"),
                attempts=3,
                updated_at=scribe.clock.step(),
            ),
        ):
            payload = PAYLOAD if made.status is _S.PENDING else None
            assert await put(store, made, payload) == made
            assert await read_delivery(store, made) == (made, payload)
            by_hook = (made.to, made.hook.hook_id, made.scope)
            assert await store.read(GRANT, lambda r, key=by_hook: r.deliveries.find_by_hook(*key)) == made  # type: ignore[misc]
        assert await read_delivery(store, scribe.delivery()) == (None, None)

    @scenario
    async def test_a_hook_goes_to_a_place_once(self, store: Store) -> None:
        scribe = ControlScribe()
        first = scribe.delivery()
        await put(store, first)
        again = scribe.delivery(hook=first.hook, digest="another")
        assert await put(store, again, SourcePayload("another")) == first
        assert await read_delivery(store, first) == (first, PAYLOAD)
        elsewhere = scribe.delivery(hook=first.hook, to="subscriber:log")
        assert await put(store, elsewhere) == elsewhere
        assert await is_sound(store)

    @scenario
    async def test_of_many_who_emit_a_hook_at_once_those_of_one_memory_get_the_same_delivery(
        self, store: Store
    ) -> None:
        scribe = ControlScribe()
        hook = scribe.hook()
        offers = [scribe.delivery(hook=hook, scope=scribe.scope(subject=f"s{n % 3}")) for n in range(12)]
        got = await asyncio.gather(*(put(store, offer) for offer in offers))
        assert len({(delivery.scope.subject, delivery.id) for delivery in got}) == 3
        assert [delivery.scope for delivery in got] == [offer.scope for offer in offers]
        assert len(await store.read(GRANT, lambda r: r.deliveries.page(DeliveryFilter(), None, 100))) == 3
        assert await is_sound(store)

    @scenario
    async def test_a_hook_of_an_id_that_another_memory_has_is_a_hook_of_its_own(self, store: Store) -> None:
        scribe = ControlScribe()
        hook = scribe.hook()
        await put(store, scribe.delivery(hook=hook, scope=scribe.scope(agent="a")))
        other = authorize(LOCAL_OPERATOR, Action.DELIVER_HOOK, Scope(agent="b"))
        mine = NewDelivery(scribe.delivery(hook=hook, scope=scribe.scope(agent="b")), PAYLOAD)
        assert await store.write(other, lambda t: t.deliveries.add(mine)) == mine.delivery
        found = await store.read(
            other, lambda r: r.deliveries.find_by_hook(mine.delivery.to, hook.hook_id, mine.delivery.scope)
        )
        assert found == mine.delivery

    @pytest.mark.parametrize("tried", [False, True])
    @pytest.mark.parametrize("status", [_S.DELIVERED, _S.DROPPED, _S.SKIPPED, _S.DEAD])
    @scenario
    async def test_what_ended_carries_nothing_unless_it_may_be_tried_again(
        self, store: Store, status: HookDeliveryStatus, tried: bool
    ) -> None:
        scribe = ControlScribe()
        made = await put(store, scribe.delivery())
        at = scribe.clock.step()
        await store.write(
            GRANT, lambda t: t.deliveries.note_attempt(made.id, at, "provider_error", OperationId("op_1"))
        )
        found, payload = await read_delivery(store, made)
        assert found == replace(
            made, attempts=1, reason="provider_error", operation_id=OperationId("op_1"), updated_at=at
        )
        assert payload == PAYLOAD
        ended = scribe.clock.step()
        how = (made.id, status, ended, "why", OperationId("op_2"))
        await store.write(GRANT, lambda t: t.deliveries.end(*how, tried=tried))
        found, payload = await read_delivery(store, made)
        assert found is not None
        assert (found.status, found.reason, found.operation_id, found.updated_at) == (status, "why", "op_2", ended)
        assert found.attempts == (2 if tried else 1), "an attempt is counted when it was made"
        assert payload == (PAYLOAD if status is _S.DEAD else None)
        assert await is_sound(store)

    @pytest.mark.parametrize("status", [_S.DELIVERED, _S.DROPPED, _S.SKIPPED])
    @scenario
    async def test_what_has_ended_stays_so(self, store: Store, status: HookDeliveryStatus) -> None:
        scribe = ControlScribe()
        made = await put(store, scribe.delivery())
        await end_delivery(store, made, status)
        before = await read_delivery(store, made)
        for other in _S:
            await end_delivery(store, made, other, "later")
        await store.write(GRANT, lambda t: t.deliveries.note_attempt(made.id, scribe.clock.step(), "later", None))
        assert not await store.write(GRANT, lambda t: t.deliveries.revive(made.id, scribe.now()))
        assert await read_delivery(store, made) == before

    @scenario
    async def test_only_what_is_dead_is_revived(self, store: Store) -> None:
        scribe = ControlScribe()
        made = await put(store, scribe.delivery())
        assert not await store.write(GRANT, lambda t: t.deliveries.revive(made.id, scribe.now()))
        await end_delivery(store, made, _S.DEAD, "gave up", tried=True)
        assert await store.write(GRANT, lambda t: t.deliveries.revive(made.id, scribe.now()))
        assert not await store.write(GRANT, lambda t: t.deliveries.revive(made.id, scribe.now()))
        found, payload = await read_delivery(store, made)
        assert found is not None
        assert (found.status, found.reason, found.attempts, payload) == (_S.PENDING, None, 1, PAYLOAD)
        await end_delivery(store, made, _S.DEAD)
        await end_delivery(store, made, _S.DROPPED, "an operator")
        assert (await read_delivery(store, made))[1] is None

    @pytest.mark.parametrize("status", [_S.PENDING, _S.DELIVERED])
    @scenario
    async def test_what_was_skipped_and_is_wanted_by_now_goes_its_way_once(
        self, store: Store, status: HookDeliveryStatus
    ) -> None:
        scribe = ControlScribe()
        skipped = await put(store, scribe.delivery(status=_S.SKIPPED, reason="hook_disabled"), None)
        scribe.clock.step()
        hook = replace(skipped.hook, triggered_at=scribe.now(), run_id=None)
        fields = {"hook": hook, "status": status, "attempts": int(status is _S.DELIVERED), "binding": "by-now"}
        own = scribe.delivery(**fields, operation_id=OperationId("op_1"))
        payload = PAYLOAD if status is _S.PENDING else None
        another = NewDelivery(replace(own, digest="another"), payload)
        assert not await store.write(GRANT, lambda t: t.deliveries.resume(skipped.id, another))
        assert await read_delivery(store, skipped) == (skipped, None), "other content under its id resumes nothing"
        assert await store.write(GRANT, lambda t: t.deliveries.resume(skipped.id, NewDelivery(own, payload)))
        after = replace(own, id=skipped.id, created_at=skipped.created_at, updated_at=own.created_at)
        assert await read_delivery(store, skipped) == (after, payload)
        assert not await store.write(GRANT, lambda t: t.deliveries.resume(skipped.id, NewDelivery(own, payload)))
        assert await read_delivery(store, skipped) == (after, payload)
        assert await is_sound(store)

    @pytest.mark.parametrize("status", [_S.PENDING, _S.DELIVERED, _S.DEAD, _S.DROPPED])
    @scenario
    async def test_only_what_was_skipped_is_resumed(self, store: Store, status: HookDeliveryStatus) -> None:
        scribe = ControlScribe()
        made = await put(store, scribe.delivery())
        if status is not _S.PENDING:
            await end_delivery(store, made, status)
        before = await read_delivery(store, made)
        again = NewDelivery(scribe.delivery(hook=made.hook), PAYLOAD)
        assert not await store.write(GRANT, lambda t: t.deliveries.resume(made.id, again))
        assert await read_delivery(store, made) == before
        assert await is_sound(store)

    @scenario
    async def test_what_was_skipped_and_forgotten_is_dropped_and_not_resumed(self, store: Store) -> None:
        scribe = ControlScribe()
        made = await put(store, scribe.delivery(status=_S.SKIPPED, reason="hook_disabled"), None)
        at = scribe.clock.step()
        grant = authorize(LOCAL_OPERATOR, Action.FORGET, Scope(subject="ana"))
        await forget(store, ForgetTarget(subject="ana"), grant, at)
        found, _ = await read_delivery(store, made)
        assert found is not None
        assert (found.status, found.reason, found.digest, found.updated_at) == (_S.DROPPED, "forgotten", "", at)
        for digest in ("abc", ""):
            again = NewDelivery(scribe.delivery(hook=made.hook, digest=digest), PAYLOAD)
            assert not await store.write(GRANT, lambda t, a=again: t.deliveries.resume(made.id, a))  # type: ignore[misc]
        assert await read_delivery(store, made) == (found, None)

    # --- forgetting ---

    @pytest.mark.parametrize("what", ["subject", "conversation", "source"])
    @scenario
    async def test_a_forget_takes_what_is_on_its_way_about_the_same(self, store: Store, what: str) -> None:
        scribe = ControlScribe()
        mine = scribe.scope(subject="ana", conversation="chat")
        sources = [scribe.source(SourceKind.ISSUE_COMMENT, issue_id="i", comment_id="c1"), scribe.source(run_id="r")]
        pending = await put(store, scribe.delivery(scope=mine, source=sources[0]))
        dead = await put(store, scribe.delivery(scope=mine, source=sources[0]))
        arrived = await put(store, scribe.delivery(scope=mine, source=sources[0]))
        await end_delivery(store, dead, _S.DEAD)
        await end_delivery(store, arrived, _S.DELIVERED)
        others = [
            await put(store, scribe.delivery(scope=scope, source=sources[1]))
            for scope in (scribe.scope(subject="bob", conversation="chat"), scribe.scope(agent="ana"), scribe.scope())
        ]
        kept = [await read_delivery(store, each) for each in others]
        target, scope = {
            "subject": (ForgetTarget(subject="ana"), Scope(subject="ana")),
            "conversation": (ForgetTarget(conversation="chat"), Scope(subject="ana", conversation="chat")),
            "source": (ForgetTarget(source="c1"), Scope(subject="ana")),
        }[what]
        at = scribe.clock.step()
        grant = authorize(LOCAL_OPERATOR, Action.FORGET, scope)
        doomed = await store.read(grant, lambda r: r.records.plan_forget(target))
        assert set(doomed.delivery_ids) == {pending.id, dead.id, arrived.id}
        assert await forget(store, target, grant, at) == (0, 0)
        for gone in (pending, dead):
            found, payload = await read_delivery(store, gone)
            assert found is not None
            assert (found.status, found.reason, found.digest, found.updated_at) == (_S.DROPPED, "forgotten", "", at)
            assert payload is None
        found, _ = await read_delivery(store, arrived)
        assert found is not None
        assert (found.status, found.digest) == (_S.DELIVERED, "")
        assert [await read_delivery(store, each) for each in others] == kept
        assert await is_sound(store)

    @scenario
    async def test_a_hook_that_comes_on_the_way_outdates_a_preview(self, store: Store) -> None:
        scribe = ControlScribe()
        target = ForgetTarget(subject="ana")
        await add(store, Scribe().turn(Scope(subject="ana", conversation="chat"), "said"))
        before = await store.read(GRANT, lambda r: r.records.plan_forget(target))
        await put(store, scribe.delivery())
        after = await store.read(GRANT, lambda r: r.records.plan_forget(target))
        assert before.fingerprint != after.fingerprint
        assert before.delivery_ids == ()

    @scenario
    async def test_a_forget_of_single_records_leaves_what_is_on_its_way(self, store: Store) -> None:
        scribe, scribbler = ControlScribe(), Scribe()
        message = scribbler.message("said")
        await add(store, scribbler.turn(Scope(subject="ana", conversation="chat"), message))
        made = await put(store, scribe.delivery())
        target = ForgetTarget(ids=(message.id,))
        await forget(store, target, authorize(LOCAL_OPERATOR, Action.FORGET, Scope(subject="ana")), scribe.now())
        assert await read_delivery(store, made) == (made, PAYLOAD)

    # --- pages ---

    @scenario
    async def test_pages_hold_what_was_asked_for(self, store: Store) -> None:
        scribe = ControlScribe()
        made = [
            await put(
                store,
                scribe.delivery(
                    to=f"binding:{'ab'[n % 2]}",
                    hook=scribe.hook(list(HookKind)[n % 5]),
                    source=scribe.source(list(SourceKind)[n % 3]),
                    status=list(_S)[n % 4],
                ),
                None,
            )
            for n in range(60)
        ]
        for status in (None, *_S):
            for kind in (None, HookKind.MANUAL_CAPTURE):
                for to in (None, "binding:a", "binding:never"):
                    for source in (None, SourceKind.ISSUE):
                        wanted = DeliveryFilter(status, kind, to, source)
                        expected = [
                            each
                            for each in made[::-1]
                            if status in (None, each.status)
                            and kind in (None, each.hook.kind)
                            and to in (None, each.to)
                            and source in (None, each.source.kind)
                        ]
                        found, before = [], None
                        while page := await store.read(
                            GRANT,
                            lambda r, w=wanted, b=before: list(r.deliveries.page(w, b, 7)),  # type: ignore[misc]
                        ):
                            found += page
                            before = page[-1].id
                        assert found == expected
