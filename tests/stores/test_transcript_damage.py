"""A check finds and names each kind of transcript damage, and reports no content."""

from __future__ import annotations

import asyncio

import pytest
from damage import Place

from holdfast.domain.derived_refs import RepairIssueKind
from holdfast.errors import StoreCorrupt
from holdfast.testing.full_repr import full_repr
from holdfast.testing.store_suite.scribe import ANA, read_grant

_KIND = RepairIssueKind

_OTHER = "(SELECT id FROM conversations WHERE name = 'other')"
_OWN = "(SELECT id FROM conversations WHERE name = 'chat')"
DAMAGE = {
    "a turn is gone": (
        _KIND.MISSING_SOURCE_TURN,
        [f"DELETE FROM turns WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "all turns are gone": (_KIND.MISSING_SOURCE_TURN, [f"DELETE FROM turns WHERE conversation_id = {_OWN}"]),
    "a message is gone": (
        _KIND.MISSING_SOURCE_MESSAGE,
        [f"DELETE FROM records WHERE conversation_id = {_OWN} AND position = 1"],
    ),
    "evidence is gone": (
        _KIND.MISSING_SOURCE_MESSAGE,
        ["UPDATE evidence SET message_number = 9999"],
    ),
    "a memory is gone": (_KIND.ORPHAN_DERIVED_REF, ["DELETE FROM records WHERE kind = 1"]),
    "a turn is of another conversation": (
        _KIND.MISMATCHED_SOURCE_KEY,
        [f"UPDATE turns SET conversation_id = {_OTHER}, sequence = 7 WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "a message is of another scope": (
        _KIND.MISMATCHED_SOURCE_KEY,
        ["UPDATE records SET scope_id = (SELECT id FROM scopes WHERE conversation = 'other') WHERE position = 2"],
    ),
    "a memory is of another space": (
        _KIND.MISMATCHED_SOURCE_KEY,
        [
            "INSERT INTO partitions (id, space, kind, owner) VALUES (77, 'south', 'shared', '')",
            "UPDATE records SET partition_id = 77 WHERE kind = 1",
        ],
    ),
    "two turns have one id": (
        _KIND.DUPLICATE_TURN_CURSOR,
        ["UPDATE texts SET external_id = 't1' WHERE external_id = 't2'"],
    ),
    "two turns begin at one place": (
        _KIND.DUPLICATE_TURN_CURSOR,
        [f"UPDATE turns SET first_position = 0 WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "a state is none": (
        _KIND.CORRUPT_RECORD,
        [f"UPDATE turns SET state = 'lost' WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "a masked turn has a message that is not": (
        _KIND.CORRUPT_RECORD,
        [f"UPDATE turns SET state = 'masked' WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "words are torn": (_KIND.CORRUPT_RECORD, ["UPDATE texts SET text = '{canary' WHERE external_id = 't2'"]),
    "words are gone": (_KIND.CORRUPT_RECORD, ["DELETE FROM texts WHERE external_id = 't2'"]),
    "a text is gone": (
        _KIND.CORRUPT_RECORD,
        ["DELETE FROM texts WHERE number = (SELECT number FROM records WHERE position = 2)"],
    ),
    "an authority is none": (_KIND.CORRUPT_RECORD, ["UPDATE records SET authority = 'canary' WHERE position = 2"]),
    "deleted content is there": (
        _KIND.CORRUPT_RECORD,
        [
            f"UPDATE turns SET state = 'raw_deleted' WHERE conversation_id = {_OWN} AND sequence = 2",
            "UPDATE records SET status = 'raw_deleted' WHERE position = 2",
        ],
    ),
    "messages are not counted": (
        _KIND.CORRUPT_RECORD,
        [f"UPDATE turns SET messages = 1 WHERE conversation_id = {_OWN} AND sequence = 1"],
    ),
}  # fmt: skip


def test_every_kind_of_issue_is_made() -> None:
    assert {kind for kind, _ in DAMAGE.values()} == set(_KIND)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_named(place: Place, damage: str) -> None:
    kind, statements = DAMAGE[damage]
    place.damage(*statements)
    found = place.checked()
    assert kind in {issue.kind for issue in found.issues}
    assert "canary" not in full_repr(found)
    assert len(place.checked(limit=1).issues) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "a turn is gone", "a message is gone", "evidence is gone", "a memory is gone", "a state is none",
        "words are gone", "a masked turn has a message that is not", "a text is gone", "deleted content is there",
        "messages are not counted",
    ],
)  # fmt: skip
def test_a_check_of_the_whole_store_finds_it_too(place: Place, damage: str) -> None:
    assert place.findings() == []
    place.damage(*DAMAGE[damage][1])
    assert place.findings()


@pytest.mark.parametrize("damage", ["a state is none", "words are torn", "words are gone", "a text is gone"])
def test_a_turn_that_cannot_be_read_is_named_and_not_guessed(place: Place, damage: str) -> None:
    place.damage(*DAMAGE[damage][1])

    async def read() -> None:
        store = place.opened()
        try:
            assert [
                turn.sequence for turn in await store.read(read_grant(ANA), lambda r: r.transcripts.turns(ANA, 2, 10))
            ] == [3]
            with pytest.raises(StoreCorrupt, match=r"turn 2 of this conversation") as refused:
                await store.read(read_grant(ANA), lambda r: r.transcripts.turns(ANA, 0, 10))
            assert "canary" not in full_repr(refused.value)
        finally:
            await store.close()

    asyncio.run(read())
