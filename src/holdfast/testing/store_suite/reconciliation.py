"""Rows for reconciliation: revisions that repeat others, marks of contradictions, and memories by their evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.scope import Scope
from holdfast.errors import NotFound
from holdfast.ports import Store
from holdfast.testing.store_suite.scribe import (
    ANA,
    BOB,
    Scribe,
    add,
    delta,
    find_record,
    forget,
    put,
    read_grant,
    scenario,
    vector,
    write_grant,
)


class ReconciliationContract:
    @scenario
    async def test_a_revision_can_repeat_an_earlier_one_with_its_evidence_and_vectors(self, store: Store) -> None:
        scribe = Scribe()
        scope = Scope(subject="ana")
        one, two = scribe.message("one"), scribe.message("two")
        await add(store, scribe.turn(ANA, one, two))
        first = scribe.revision(scope, "first", evidence=[one.id], vectors=(vector(), vector()))
        await put(store, first)
        await put(store, scribe.revision(scope, "second", of=first, supersedes=1, evidence=[two.id]))
        again = scribe.revision(scope, "first", of=first, supersedes=2, evidence=[two.id])
        await put(store, replace(again, analysis=None, vectors=(), repeats=1))
        (history,) = await store.read(read_grant(scope), lambda r: r.records.histories([first.id]))
        assert [(each.text, [link.text for link in each.evidence]) for each in history] == [
            ("first", ["one"]),
            ("second", ["two"]),
            ("first", ["one", "two"]),
        ]
        known = await delta(store)
        of_text = {row.number: row for row in known.rows if row.kind == 1}
        oldest, newest = min(of_text), max(of_text)
        assert (of_text[newest].terms, of_text[newest].length) == (of_text[oldest].terms, of_text[oldest].length)
        vectors = {number: [row.vector for row in known.vectors if row.number == number] for number in of_text}
        assert len(vectors[newest]) == 2
        assert vectors[newest] == vectors[oldest]
        missing = replace(again, analysis=None, vectors=(), supersedes=3, repeats=9)
        with pytest.raises(NotFound, match="no revision 9"):
            await put(store, missing)

    @scenario
    async def test_a_contradiction_is_marked_while_both_current_revisions_have_it(self, store: Store) -> None:
        scribe = Scribe()
        scope = Scope(subject="ana")
        first, second = scribe.revision(scope, "first"), scribe.revision(scope, "second")

        async def marks() -> list[tuple[str, ...]]:
            found = [await find_record(store, each.id, grant=read_grant(scope)) for each in (first, second)]
            shown = await store.read(read_grant(scope), lambda r: r.records.contradictions([first.id, second.id]))
            own = [each.contradicts for each in found if isinstance(each, MemoryRecord)]
            assert own == [tuple(shown.get(each.id, ())) for each in (first, second)]
            return [tuple(each) for each in own]

        await put(store, first)
        await put(store, replace(second, contradicts=(first.id,)))
        assert await marks() == [(), ()]
        again = scribe.revision(scope, "first", of=first, supersedes=1)
        await put(store, replace(again, contradicts=(second.id,)))
        assert await marks() == [(second.id,), (first.id,)]
        # The mark is one of a revision: the next one has its own.
        await put(store, scribe.revision(scope, "first", of=first, supersedes=2))
        assert await marks() == [(), ()]
        (history,) = await store.read(read_grant(scope), lambda r: r.records.histories([first.id]))
        assert [each.contradicts for each in history] == [(), (second.id,), ()]
        await put(store, replace(again, supersedes=3, contradicts=(second.id,), recorded_at=scribe.clock.step()))
        assert await forget(store, ForgetTarget(ids=(second.id,)), write_grant(scope), scribe.clock.step()) == (1, 0)
        (history,) = await store.read(read_grant(scope), lambda r: r.records.histories([first.id]))
        assert [each.contradicts for each in history] == [(), (), (), ()]

    @scenario
    async def test_memories_that_rest_on_a_message_with_any_revision_are_found(self, store: Store) -> None:
        scribe = Scribe()
        scope = Scope(subject="ana")
        one, two = scribe.message("one"), scribe.message("two")
        await add(store, scribe.turn(ANA, one, two))
        first, other = (scribe.revision(scope, text, evidence=[one.id]) for text in ("first", "other"))
        await put(store, first)
        await put(store, other)
        await put(store, scribe.revision(scope, "second", of=first, supersedes=1, evidence=[two.id]))
        resting = await store.read(
            read_grant(scope), lambda r: [r.records.resting_on([each.id]) for each in (one, two)]
        )
        assert [list(each) for each in resting] == [sorted([first.id, other.id]), [first.id]]
        assert list(await store.read(read_grant(BOB), lambda r: r.records.resting_on([one.id]))) == []
