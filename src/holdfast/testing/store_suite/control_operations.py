"""The audit trail: filtered by attribution, paged without gaps, and each operation settled once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind, authorize
from holdfast.domain.contract import HookKind, SourceKind
from holdfast.domain.ids import OperationId
from holdfast.domain.jobs import Cause
from holdfast.domain.operations import (
    TYPE_OF,
    Attribution,
    BindingCounts,
    MemoryMetrics,
    Operation,
    OperationFilter,
    OperationType,
    Outcome,
)
from holdfast.domain.scope import Scope
from holdfast.errors import RevisionConflict
from holdfast.ports import Store, Transaction
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import EVERYTHING, Scribe, add, scenario

GRANT = management_grant()
TICK = timedelta(microseconds=1)


def matches(operation: Operation, wanted: OperationFilter) -> bool:
    """Reference implementation of the filter: parts that the scope lacks may come from the source or the hook."""
    attribution, scope = operation.attribution or Attribution(), operation.scope
    source = None if attribution.source is None else attribution.source.kind
    of_source = (None, None) if attribution.source is None else (attribution.source.issue_id, attribution.source.run_id)
    of_hook = (None, None) if attribution.hook is None else (attribution.hook.actor_agent_id, attribution.hook.run_id)
    pairs = [
        (wanted.agent, scope.agent or of_hook[0]),
        (wanted.project, scope.project),
        (wanted.issue, scope.issue or of_source[0]),
        (wanted.run, scope.run or of_source[1] or of_hook[1]),
        (wanted.binding, attribution.binding),
        (wanted.source_kind, source),
        (wanted.type, TYPE_OF.get(operation.action)),
        (wanted.action, operation.action),
        (wanted.outcome, operation.outcome),
    ]
    return (
        all(asked is None or asked == there for asked, there in pairs)
        and (wanted.since is None or operation.started_at >= wanted.since)
        and (wanted.until is None or operation.started_at < wanted.until)
        and (operation.action in TYPE_OF or not wanted.of_memory)
    )


def some_operation(scribe: ControlScribe, chance: random.Random) -> Operation:
    """Draws from few values, so that every pair of them occurs."""

    def maybe(*values: Any) -> Any:
        return chance.choice((None, *values))

    def some_names(**names: str) -> dict[str, str]:
        return {name: value for name, value in names.items() if maybe(value)}

    source = maybe(SourceKind.RUN, SourceKind.ISSUE_COMMENT)
    attribution = Attribution(
        binding=maybe("x", "y"),
        source=None if source is None else scribe.source(source, **some_names(issue_id="i", run_id="s")),
        hook=maybe(scribe.hook(), replace(scribe.hook(), actor_agent_id=maybe("a"), run_id=maybe("r"))),
    )
    return scribe.operation(
        action=chance.choice((Action.CAPTURE, Action.ADD, Action.QUERY, Action.SEARCH, Action.CORRECT, Action.JOBS)),
        outcome=chance.choice((*Outcome, Outcome.SUCCEEDED, Outcome.SUCCEEDED)),
        scope=scribe.scope(
            **{
                part: value
                for part, value in (
                    ("agent", maybe("a", "b")),
                    ("project", maybe("p", "q")),
                    ("issue", maybe("i")),
                    ("run", maybe("r", "s")),
                    ("subject", maybe("ana")),
                )
                if value is not None
            }
        ),
        attribution=maybe(attribution, attribution),
        started_at=scribe.clock.step(chance.choice((TICK, timedelta(0), timedelta(minutes=1), timedelta(hours=3)))),
    )


def some_filter(made: Sequence[Operation], chance: random.Random) -> OperationFilter:
    def maybe(*values: Any) -> Any:
        return chance.choice((*(None for _ in values), None, *values))

    moments = [chance.choice(made).started_at + chance.choice((-TICK, 0 * TICK, TICK)) for _ in range(2)]
    return OperationFilter(
        agent=maybe("a", "never"),
        project=maybe("p"),
        issue=maybe("i"),
        run=maybe("r"),
        binding=maybe("x"),
        source_kind=maybe(SourceKind.RUN, SourceKind.ISSUE),
        type=maybe(OperationType.CAPTURE, OperationType.QUERY, OperationType.FORGET),
        action=maybe(Action.SEARCH, Action.JOBS),
        outcome=maybe(*Outcome),
        since=maybe(moments[0]),
        until=maybe(moments[1]),
        of_memory=bool(maybe(True)),
    )


async def record_all(store: Store, operations: Sequence[Operation]) -> None:
    def write(transaction: Transaction) -> None:
        for operation in operations:
            transaction.operations.add(operation)

    await store.write(GRANT, write)


async def all_pages(store: Store, wanted: OperationFilter, limit: int) -> list[Operation]:
    found: list[Operation] = []
    before = None
    while page := await store.read(GRANT, lambda r, b=before: list(r.operations.page(wanted, b, limit))):  # type: ignore[misc]
        found += page
        before = page[-1].id
    return found


class ControlOperationContract:
    @scenario
    async def test_an_operation_is_kept_with_all_that_it_was_for(self, store: Store) -> None:
        scribe = ControlScribe()
        made = [
            scribe.operation(),
            scribe.operation(attribution=Attribution()),
            scribe.operation(attribution=Attribution("x")),
            scribe.operation(attribution=Attribution("x", provider_called=False)),
            scribe.operation(attribution=scribe.attribution(provider_called=False)),
            scribe.operation(attribution=scribe.attribution(), scope=scribe.scope(agent="a", run="ü", subject="ana")),
            scribe.operation(attribution=scribe.attribution(usage=(), binding=None, hook=None), error_code="odd"),
        ]
        await record_all(store, made)
        for each in made:
            assert await store.read(GRANT, lambda r, each=each: r.operations.find(each.id)) == each  # type: ignore[misc]
        assert await all_pages(store, OperationFilter(), 2) == made[::-1]
        assert await store.read(GRANT, lambda r: list(r.operations.page())) == made[::-1]
        assert await store.read(GRANT, lambda r: r.operations.find("op_never")) is None

    @pytest.mark.parametrize("seed", range(3))
    @scenario
    async def test_pages_hold_what_a_plain_look_at_every_operation_finds(self, store: Store, seed: int) -> None:
        chance, scribe = random.Random(seed), ControlScribe()  # noqa: S311 - nothing secret
        made = [some_operation(scribe, chance) for _ in range(250)]
        await record_all(store, made)
        for _ in range(60):
            wanted = some_filter(made, chance)
            expected = [each for each in reversed(made) if matches(each, wanted)]
            assert await all_pages(store, wanted, chance.choice((3, 50))) == expected, wanted

    @scenario
    async def test_what_a_source_or_hook_names_is_looked_up_by_and_the_scope_stays_as_it_was_given(
        self, store: Store
    ) -> None:
        scribe = ControlScribe()
        source = scribe.source(SourceKind.ISSUE_COMMENT, issue_id="of-source", run_id="of-source")
        attribution = Attribution("x", source=source, hook=scribe.hook())
        plain = scribe.operation(attribution=attribution, outcome=Outcome.UNKNOWN)
        own = scribe.operation(attribution=attribution, scope=scribe.scope(agent="a", issue="i", run="r"))
        by_hook = scribe.operation(attribution=Attribution("x", hook=scribe.hook()))
        late = scribe.operation(outcome=Outcome.UNKNOWN)
        await record_all(store, [plain, own, by_hook, late])
        settled = replace(late, outcome=Outcome.SUCCEEDED, attribution=attribution)
        await store.write(GRANT, lambda t: t.operations.settle(settled))
        for wanted, expected in (
            (OperationFilter(issue="of-source"), [settled, plain]),
            (OperationFilter(run="of-source"), [settled, plain]),
            (OperationFilter(run="run-1"), [by_hook]),
            (OperationFilter(agent="agent-1"), [settled, by_hook, plain]),
            (OperationFilter(agent="a", issue="i", run="r"), [own]),
        ):
            assert await all_pages(store, wanted, 2) == expected, wanted

    @scenario
    async def test_what_is_too_long_to_be_asked_for_is_kept_and_not_looked_up_by(self, store: Store) -> None:
        scribe, chance = ControlScribe(), random.Random(0)  # noqa: S311 - nothing secret
        long = "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(1_024))
        source = scribe.source(SourceKind.ISSUE, issue_id=long, run_id=long)
        made = scribe.operation(attribution=Attribution(source=source, hook=scribe.hook()), outcome=Outcome.UNKNOWN)
        await record_all(store, [made])
        settled = replace(made, outcome=Outcome.FAILED)
        await store.write(GRANT, lambda t: t.operations.settle(settled))
        assert await all_pages(store, OperationFilter(run="run-1"), 2) == [settled]
        job_id, job = scribe.job(scope=scribe.scope(), cause=Cause(source=source))
        assert await store.write(GRANT, lambda t: t.jobs.enqueue(job_id, job, scribe.now())) == job_id

    @scenario
    async def test_times_count_where_ids_do_not_tell_them(self, store: Store) -> None:
        """With a custom clock, ids are of today and times of another year."""
        scribe = ControlScribe()
        began = scribe.now()
        made = [scribe.operation(started_at=began.replace(year=2001) + n * timedelta(days=1)) for n in range(10)]
        await record_all(store, made)
        for number in range(10):
            since, until = made[number].started_at, made[min(number + 2, 9)].started_at
            wanted = OperationFilter(since=since, until=until)
            assert await all_pages(store, wanted, 5) == [each for each in made[::-1] if matches(each, wanted)]

    @scenario
    async def test_paging_misses_and_repeats_nothing_while_others_write(self, store: Store) -> None:
        scribe = ControlScribe()
        made = [scribe.operation(scope=scribe.scope(agent="ab"[n % 2])) for n in range(120)]
        await record_all(store, made)
        later = [scribe.operation(scope=scribe.scope(agent="ab"[n % 2])) for n in range(40)]

        async def writing() -> None:
            for each in later:
                await record_all(store, [each])

        async def paging(wanted: OperationFilter) -> list[Operation]:
            return await all_pages(store, wanted, 7)

        found, of_one, _ = await asyncio.gather(
            paging(OperationFilter()), paging(OperationFilter(agent="a", type=OperationType.CAPTURE)), writing()
        )
        for read, expected in ((found, made), (of_one, made[::2])):
            assert [each.id for each in read] == sorted((each.id for each in read), reverse=True)
            assert [each for each in read if each in made] == expected[::-1]

    # --- outcomes ---

    @scenario
    async def test_what_came_of_an_operation_is_written_down_once(self, store: Store) -> None:
        scribe = ControlScribe()
        intent = scribe.operation(
            outcome=Outcome.UNKNOWN, attribution=Attribution("x"), record_count=0, scope=scribe.scope(agent="a")
        )
        await record_all(store, [intent])
        settled = replace(
            intent, outcome=Outcome.SUCCEEDED, record_count=3, duration_micros=77, attribution=scribe.attribution()
        )
        await store.write(GRANT, lambda t: t.operations.settle(settled))
        assert await store.read(GRANT, lambda r: r.operations.find(intent.id)) == settled
        for outcome in Outcome:
            with pytest.raises(RevisionConflict):
                await store.write(GRANT, lambda t, o=outcome: t.operations.settle(replace(settled, outcome=o)))  # type: ignore[misc]
        assert await store.read(GRANT, lambda r: r.operations.find(intent.id)) == settled
        assert await all_pages(store, OperationFilter(outcome=Outcome.UNKNOWN), 5) == []
        assert await all_pages(store, OperationFilter(binding="other", source_kind=SourceKind.RUN), 5) == [settled]

    @pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REFUSED])
    @scenario
    async def test_only_what_is_unknown_is_settled(self, store: Store, outcome: Outcome) -> None:
        scribe = ControlScribe()
        ended = scribe.operation(outcome=outcome)
        await record_all(store, [ended])
        for operation in (ended, scribe.operation()):
            with pytest.raises(RevisionConflict):
                await store.write(GRANT, lambda t, o=operation: t.operations.settle(replace(o, record_count=9)))  # type: ignore[misc]
        assert await all_pages(store, OperationFilter(), 5) == [ended]

    @scenario
    async def test_of_many_who_settle_an_operation_one_does(self, store: Store) -> None:
        scribe = ControlScribe()
        intent = scribe.operation(outcome=Outcome.UNKNOWN)
        await record_all(store, [intent])
        offers = [replace(intent, outcome=Outcome.FAILED, record_count=number) for number in range(10)]
        ends = await asyncio.gather(
            *(store.write(GRANT, lambda t, o=o: t.operations.settle(o)) for o in offers),  # type: ignore[misc]
            return_exceptions=True,
        )
        (winner,) = [offer for offer, end in zip(offers, ends, strict=True) if end is None]
        assert await store.read(GRANT, lambda r: r.operations.find(intent.id)) == winner

    @scenario
    async def test_an_audit_row_that_comes_late_does_not_undo_what_is_known(self, store: Store) -> None:
        scribe = ControlScribe()
        ended = scribe.operation(attribution=scribe.attribution())
        await record_all(store, [ended])
        await store.audit(replace(ended, outcome=Outcome.FAILED, attribution=None))
        later = scribe.operation(attribution=scribe.attribution())
        await store.audit(later)
        await record_all(store, [scribe.operation()])

        async def there() -> bool:
            return await store.read(GRANT, lambda r: r.operations.find(later.id)) is not None

        for _ in range(500):
            if await there():
                break
            await asyncio.sleep(0.01)
        assert await store.read(GRANT, lambda r: r.operations.find(later.id)) == later
        assert await store.read(GRANT, lambda r: r.operations.find(ended.id)) == ended

    @scenario
    async def test_a_narrower_grant_has_the_operations_of_its_own_partition(self, store: Store) -> None:
        scribe, writer = ControlScribe(), Scribe()
        for subject in ("ana", "bob"):
            await add(store, writer.turn(Scope(subject=subject, conversation="chat"), "said"))
        made = [scribe.operation(scope=scribe.scope(subject=who, run="r")) for who in ("ana", "bob") * 3]
        await record_all(store, made)
        ana = authorize(LOCAL_OPERATOR, Action.READ_OPERATIONS, Scope(subject="ana"))
        for wanted in (
            OperationFilter(),
            OperationFilter(run="r"),
            OperationFilter(type=OperationType.CAPTURE, run="r"),
        ):
            found = await store.read(ana, lambda r, w=wanted: list(r.operations.page(w, None, 10)))  # type: ignore[misc]
            assert found == made[::2][::-1]
        assert await store.read(ana, lambda r: r.operations.find(made[1].id)) is None

    # --- metrics ---

    @scenario
    async def test_metrics_count_what_they_say(self, store: Store) -> None:
        scribe = ControlScribe()
        agent = Actor(ActorKind.AGENT, "a", "default")
        before = Attribution("x", hook=scribe.hook(HookKind.PRE_RUN_HYDRATE))
        made = [
            scribe.operation(action=Action.RECALL, record_count=3),
            scribe.operation(action=Action.PROJECT, record_count=0),
            scribe.operation(action=Action.QUERY, record_count=0, attribution=Attribution("x")),
            scribe.operation(action=Action.QUERY, record_count=2, attribution=before),
            scribe.operation(action=Action.QUERY, record_count=2, actor=agent, attribution=Attribution("x")),
            scribe.operation(action=Action.SEARCH, record_count=1),
            scribe.operation(action=Action.RECALL, record_count=0, outcome=Outcome.FAILED),
            scribe.operation(action=Action.CAPTURE, outcome=Outcome.UNKNOWN, attribution=Attribution("x")),
            scribe.operation(action=Action.CORRECT),
            scribe.operation(action=Action.CORRECT, outcome=Outcome.REFUSED, attribution=Attribution("y")),
            scribe.operation(action=Action.JOBS),
            scribe.operation(action=Action.STATS, outcome=Outcome.FAILED),
            *(
                scribe.operation(action=action, record_count=0, outcome=outcome, attribution=unasked)
                for action in (Action.DELIVER_HOOK, Action.CAPTURE, Action.QUERY, Action.RECALL, Action.CORRECT)
                for outcome in Outcome
                for unasked in (
                    Attribution(provider_called=False),
                    Attribution("x", provider_called=False),
                    scribe.attribution(binding="x", provider_called=False),
                )
            ),
        ]
        await record_all(store, made)
        found = await store.read(GRANT, lambda r: r.operations.metrics(None, None))
        assert found == MemoryMetrics(
            recalls=4,
            recall_hits=3,
            queries=6,
            empty_queries=2,
            corrections=1,
            extraction_failures=0,
            bindings=(
                BindingCounts("x", 3, 0, 0, 1),
                BindingCounts("y", 0, 0, 1, 0),
                BindingCounts(None, 4, 1, 0, 0),
            ),
        )
        assert (found.recall_hit_rate, found.empty_query_rate) == (0.75, 2 / 6)

    @scenario
    async def test_metrics_are_of_a_time(self, store: Store) -> None:
        scribe = ControlScribe()
        made = [
            scribe.operation(action=Action.SEARCH, started_at=scribe.clock.step(timedelta(hours=1))) for _ in range(9)
        ]
        await record_all(store, made)

        async def queries(since: datetime | None, until: datetime | None) -> int:
            return (await store.read(GRANT, lambda r: r.operations.metrics(since, until))).queries

        times = [each.started_at for each in made]
        assert await queries(None, None) == 9
        assert await queries(times[2], times[5]) == 3
        assert await queries(times[2] + TICK, times[5] + TICK) == 3
        assert await queries(times[8], None) == 1
        assert await queries(times[8] + TICK, None) == await queries(None, times[0]) == 0
        assert (await store.read(GRANT, lambda r: r.operations.metrics(None, times[0]))).recall_hit_rate is None

    @scenario
    async def test_the_operations_of_a_store_are_those_of_all_spaces(self, store: Store) -> None:
        scribes = [ControlScribe(space) for space in ("default", "other")]
        made = [scribe.operation(scope=scribe.scope(agent="a")) for scribe in scribes]
        await record_all(store, made)
        found = await store.read(EVERYTHING, lambda r: r.operations.page(OperationFilter(agent="a"), None, 10))
        assert {each.id for each in found} == {OperationId(each.id) for each in made}
