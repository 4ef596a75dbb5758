"""Property test: a filtered page of the audit trail equals a plain filter over all rows."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.access import Action
from holdfast.domain.contract import SourceKind
from holdfast.domain.operations import Attribution, OperationFilter, OperationType, Outcome
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.store_suite.control_operations import all_pages, matches, record_all
from holdfast.testing.store_suite.control_scribe import ControlScribe

# Names that differ in sorting and comparison, some of which a careless index would confuse.
NAMES = st.sampled_from(["a", "A", "ä", "a ", "aa", "你好", "%"])
MAYBE = st.none() | NAMES
SOURCES = st.none() | st.sampled_from([SourceKind.RUN, SourceKind.ISSUE])
STEPS = st.sampled_from([0, 1, 1_000, 599_999_999, 600_000_000, 600_000_001, 86_400_000_000])

ROWS = st.lists(
    st.tuples(
        st.fixed_dictionaries({}, optional=dict.fromkeys(("agent", "project", "issue", "run", "subject"), NAMES)),
        st.sampled_from([Action.CAPTURE, Action.ADD, Action.QUERY, Action.FORGET, Action.JOBS]),
        st.sampled_from(Outcome),
        st.none() | st.tuples(MAYBE, SOURCES),
        STEPS,
    ),
    min_size=1,
    max_size=25,
)
MOMENTS = st.none() | st.tuples(st.integers(0, 24), st.sampled_from([-1, 0, 1]))
FILTERS = st.tuples(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("agent", "project", "issue", "run", "binding"), NAMES),
            "source_kind": st.sampled_from(SourceKind),
            "type": st.sampled_from(OperationType),
            "action": st.sampled_from([Action.ADD, Action.JOBS, Action.QUERY]),
            "outcome": st.sampled_from(Outcome),
        },
    ),
    MOMENTS,
    MOMENTS,
)


@settings(max_examples=60)
@given(rows=ROWS, asked=st.lists(FILTERS, min_size=1, max_size=12), limit=st.integers(1, 7))
def test_a_page_is_what_a_plain_look_at_every_row_finds(rows: list, asked: list, limit: int) -> None:  # type: ignore[type-arg]
    scribe, made = ControlScribe(), []
    for parts, action, outcome, given_for, step in rows:
        attribution = None
        if given_for is not None:
            binding, kind = given_for
            attribution = Attribution(binding, source=None if kind is None else scribe.source(kind))
        scribe.clock.step(timedelta(microseconds=step))
        made.append(
            scribe.operation(scope=scribe.scope(**parts), action=action, outcome=outcome, attribution=attribution)
        )

    async def whole() -> None:
        store = SqliteStore(":memory:")
        await record_all(store, made)
        for equal, *bounds in asked:
            since, until = (
                None if bound is None else made[bound[0] % len(made)].started_at + bound[1] * timedelta(microseconds=1)
                for bound in bounds
            )
            wanted = OperationFilter(**equal, since=since, until=until)
            assert await all_pages(store, wanted, limit) == [each for each in made[::-1] if matches(each, wanted)]
        await store.close()

    asyncio.run(whole())
