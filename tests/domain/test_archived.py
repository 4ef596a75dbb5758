"""Archived records are read back as the same values; anything else is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.archive_format import (
    Archived,
    ArchivedAlias,
    ArchivedMemory,
    ArchivedMessage,
    ArchivedResource,
    ArchivedRevision,
    ArchivedTurn,
    decode_record,
    encode_record,
)
from holdfast.domain.canonical import canonical, derive_id, is_holdfast_id, transfer_id
from holdfast.domain.memory import Plane, Status, Trust, Validity
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    Authority,
    DeliveryStatus,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptState,
)
from holdfast.errors import InvalidInput

NOW = datetime(2026, 11, 15, 9, 30, 0, 123456, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2999, 1, 1), timezones=st.just(UTC))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40).filter(
    str.strip
)
NAMES = st.text("abcñ你 /%#", min_size=1, max_size=12).filter(str.strip)
HEX = st.text("0123456789abcdef", min_size=32, max_size=32)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


SCOPES = st.builds(
    Scope, space=st.just("home"), subject=maybe(NAMES), agent=maybe(NAMES), conversation=maybe(NAMES), run=maybe(NAMES)
)
THREADS = st.builds(Scope, space=st.just("home"), subject=maybe(NAMES), conversation=NAMES, channel=maybe(NAMES))
METADATA = st.dictionaries(NAMES, st.text("abc", max_size=5), max_size=3)
MESSAGES = st.builds(
    ArchivedMessage,
    id=HEX.map(lambda digits: f"msg_{digits}"),
    role=st.sampled_from(Role),
    text=TEXTS,
    authority=st.sampled_from(Authority),
    sender=maybe(NAMES),
    said_at=maybe(MOMENTS),
    external_id=maybe(NAMES),
    metadata=METADATA,
    superseded_at=maybe(MOMENTS),
)
REFS = st.builds(
    HostOpaqueRef, NAMES, NAMES, NAMES, st.sampled_from(Relation), st.sampled_from(HostRefVisibility), maybe(NAMES)
)
TURNS = st.builds(
    ArchivedTurn,
    scope=THREADS,
    id=NAMES | HEX.map(lambda digits: f"turn_{digits}"),
    state=st.sampled_from([TranscriptState.ACTIVE, TranscriptState.ARCHIVED]),
    committed_at=MOMENTS,
    messages=st.lists(MESSAGES, min_size=1, max_size=3, unique_by=lambda message: message.id).map(tuple),
    source=maybe(NAMES),
    delivery=maybe(st.sampled_from(DeliveryStatus)),
    attribution=st.builds(ActorAttribution, speaker_id=maybe(NAMES), triggered_by=maybe(NAMES)),
    host_refs=st.lists(REFS, max_size=2).map(tuple),
)
REVISIONS = st.builds(
    ArchivedRevision,
    scope=st.just(Scope(space="home", subject="ana")),
    plane=st.sampled_from(Plane),
    text=TEXTS,
    trust=st.sampled_from(Trust),
    status=st.sampled_from([Status.ACCEPTED, Status.QUARANTINED]),
    validity=st.builds(Validity, since=maybe(st.just(NOW)), until=maybe(st.just(NOW + timedelta(days=1)))),
    recorded_at=MOMENTS,
    source=maybe(NAMES),
    author=maybe(NAMES),
    reason=maybe(NAMES),
    metadata=METADATA,
    evidence=st.lists(HEX.map(lambda digits: f"msg_{digits}"), max_size=3).map(tuple),
)
MEMORIES = st.builds(
    ArchivedMemory,
    id=HEX.map(lambda digits: f"mem_{digits}"),
    revisions=st.lists(REVISIONS, min_size=1, max_size=3, unique_by=lambda revision: revision.recorded_at).map(
        lambda some: tuple(sorted(some, key=lambda revision: revision.recorded_at))
    ),
)
RESOURCES = st.builds(
    ArchivedResource,
    id=HEX.map(lambda digits: f"r_{digits}"),
    scope=SCOPES,
    name=NAMES,
    media_type=st.just("text/plain"),
    sha256=st.binary(min_size=32, max_size=32).map(bytes.hex),
    bytes=st.integers(0, 10**9),
    chunks=st.integers(0, 100),
    external_uri=maybe(NAMES),
    recorded_at=MOMENTS,
)
ALIASES = st.builds(ArchivedAlias, THREADS, st.binary(min_size=16, max_size=16).map(bytes.hex), st.booleans(), MOMENTS)


@given(TURNS | MEMORIES | RESOURCES | ALIASES)
def test_what_is_written_is_read_back_as_the_same(archived: Archived) -> None:
    assert decode_record(json.loads(canonical(encode_record(archived))), "home") == archived


TURN = ArchivedTurn(
    Scope(space="home", subject="ana", conversation="c1"),
    "host-1",
    TranscriptState.ACTIVE,
    NOW,
    (ArchivedMessage(f"msg_{'0' * 32}", Role.USER, "Hello."),),
    host_refs=(HostOpaqueRef("crm", "ticket", "7", Relation.ORIGIN, HostRefVisibility.EXPORT),),
)
REVISION = ArchivedRevision(
    Scope(space="home"), Plane.LONG_TERM, "Ana likes tea.", Trust.STATED, Status.ACCEPTED, Validity(), NOW
)
MEMORY = ArchivedMemory(f"mem_{'0' * 32}", (REVISION,))
RESOURCE = ArchivedResource(f"r_{'0' * 32}", Scope(space="home"), "a", "text/plain", "00" * 32, 1, 1, None, NOW)
ALIAS = ArchivedAlias(TURN.scope, "00" * 16, True, NOW)


def _paths(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [path, *(found for name, item in value.items() for found in _paths(item, (*path, name)))]
    if isinstance(value, list):
        return [path, *(found for index, item in enumerate(value) for found in _paths(item, (*path, index)))]
    return [path]


def _changed(value: Any, path: tuple[Any, ...], new: object) -> Any:
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = _changed(value[path[0]], path[1:], new)
    return copied


WRONG: list[object] = [17, -1, 1.5, True, [], {}, "", "   ", "\x00", "\ud800", ["x"], {"x": "y"}, "x" * 5_000]


@pytest.mark.parametrize("archived", [TURN, MEMORY, RESOURCE, ALIAS], ids=lambda found: type(found).__name__)
def test_whatever_stands_in_the_place_of_a_part_is_understood_or_refused(archived: Archived) -> None:
    whole = encode_record(archived)
    for path in _paths(whole):
        for wrong in WRONG:
            try:
                found = decode_record(_changed(whole, path, wrong), "home")
            except InvalidInput:
                continue
            # An accepted record survives another round trip.
            assert decode_record(json.loads(canonical(encode_record(found))), "home") == found


@pytest.mark.parametrize("archived", [TURN, MEMORY, RESOURCE, ALIAS], ids=lambda found: type(found).__name__)
def test_a_part_that_is_not_known_is_not_taken_for_nothing(archived: Archived) -> None:
    with pytest.raises(InvalidInput, match="surprise"):
        decode_record({**encode_record(archived), "surprise": 1}, "home")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (replace(TURN, state=TranscriptState.MASKED), "state"),
        (replace(TURN, state=TranscriptState.RAW_DELETED), "messages"),
        (replace(TURN, messages=(replace(TURN.messages[0], text=None),)), "messages"),
        (replace(TURN, messages=TURN.messages * 2), "messages"),
        (replace(TURN, messages=()), "messages"),
        (replace(TURN, scope=Scope(space="home")), "scope"),
        (replace(MEMORY, revisions=()), "revisions"),
        (replace(MEMORY, revisions=(REVISION, REVISION)), "revisions"),
        (replace(MEMORY, id="mem_1"), "id"),
        (
            replace(MEMORY, revisions=(REVISION, replace(REVISION, scope=Scope(space="home", subject="b")))),
            "revisions",
        ),
        (replace(MEMORY, revisions=(replace(REVISION, status=Status.MASKED),)), "status"),
        (replace(ALIAS, thread=Scope(space="home")), "thread"),
        (replace(ALIAS, key="00"), "key"),
    ],
)
def test_what_cannot_be_is_refused(wrong: Archived, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_record(encode_record(wrong), "home")
    assert caught.value.field == field


# --- ids --------------------------------------------------------------------------------------------------------------


@given(HEX, NAMES, NAMES)
def test_an_id_elsewhere_is_always_the_same_one_at_the_same_time_and_no_other(digits: str, one: str, two: str) -> None:
    there = transfer_id(f"mem_{digits}", one)
    assert there == transfer_id(f"mem_{digits}", one)
    assert is_holdfast_id(there)
    assert there[:16] == f"mem_{digits}"[:16]
    assert there != f"mem_{digits}"
    assert (there == transfer_id(f"mem_{digits}", two)) is (one == two)


def test_an_id_made_of_a_name_is_a_uuid_of_its_moment() -> None:
    made = derive_id("turn", NOW, "home", "host-1")
    assert is_holdfast_id(made)
    assert int(made[5:17], 16) == int(NOW.timestamp() * 1000)
    assert made[17] == "7"
    assert made[21] in "89ab"
