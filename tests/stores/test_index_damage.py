"""Damaged indexes: a check finds the damage, and a repair rebuilds them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from damage import Place

from holdfast.domain.manifest import MENDS, RepairAction
from holdfast.domain.scope import Scope
from holdfast.errors import StoreCorrupt
from holdfast.testing.store_suite.scribe import EVERYTHING, FixedClock, read_grant

_FIRST = "number = (SELECT min(number) FROM vectors)"
_TERMS, _VECTORS = "records have the terms of their text", "vectors of one embedder are of one length"
DAMAGE = {
    "terms are gone": (_TERMS, f"UPDATE records SET terms = {{nothing}} WHERE {_FIRST}"),
    "terms and their number are gone": (_TERMS, f"UPDATE records SET terms = {{nothing}}, length = 0 WHERE {_FIRST}"),
    "terms are cut": (_TERMS, f"UPDATE records SET terms = substr(terms, 1, 7) WHERE {_FIRST}"),
    "a term is too many": (_TERMS, f"UPDATE records SET length = 1 WHERE {_FIRST}"),
    "a vector is too short": (_VECTORS, f"UPDATE vectors SET vector = {{short}} WHERE {_FIRST}"),
}  # fmt: skip
KINDS = {
    "plane": "UPDATE records SET plane = 'bogus' WHERE kind = 1",
    "no plane": "UPDATE records SET plane = NULL WHERE kind = 1",
    "status": "UPDATE records SET status = 'bogus' WHERE kind = 1",
    "trust": "UPDATE records SET trust = 77 WHERE kind = 1",
    "role": "UPDATE records SET role = 'bogus' WHERE position = 1",
}


def written(place: Place, statement: str) -> str:
    if place.server is None:
        return statement.format(nothing="x''", short="x'0001'")
    return statement.format(nothing="''::bytea", short="'[1]'::halfvec")


def mended(place: Place) -> Mapping[RepairAction, int]:
    async def mend() -> Mapping[RepairAction, int]:
        store = place.opened()
        try:
            now = FixedClock().now()
            found = await store.read(EVERYTHING, lambda r: r.maintenance.count_repairs(now, 100))
            done = await store.write(EVERYTHING, lambda t: t.maintenance.repair(now, 100))
            assert done == found
            return done
        finally:
            await store.close()

    return asyncio.run(mend())


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_indexes_are_found_and_can_be_made_anew(place: Place, damage: str) -> None:
    assert place.findings() == []
    check, statement = DAMAGE[damage]
    place.damage(written(place, statement))
    (finding,) = place.findings()
    assert finding.check == check
    assert finding.problem == "1 rows violate this; run `holdfast store rebuild` to rebuild the indexes"
    assert MENDS[check] is RepairAction.REINDEX
    assert mended(place)[RepairAction.REINDEX] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_nobody_knows_is_found(place: Place, kind: str) -> None:
    place.damage(KINDS[kind])
    assert "records are of a known kind" in {finding.check for finding in place.findings()}


def test_a_record_that_cannot_be_read_is_told_as_damage(place: Place) -> None:
    place.damage(KINDS["plane"])

    async def read() -> None:
        store = place.opened()
        try:
            with pytest.raises(StoreCorrupt, match=r"holdfast store verify"):
                await store.read(read_grant(Scope(subject="ana")), lambda r: r.records.revisions(place.memory))
        finally:
            await store.close()

    asyncio.run(read())


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_moment_that_is_no_whole_number_is_found(place: Place) -> None:
    place.damage("UPDATE records SET said_at = said_at + 0.5 WHERE kind = 1")
    (finding,) = place.findings()
    assert finding.check == "types"
    assert finding.problem == "1 rows of records hold a value of the wrong type"
