"""A continuity snapshot is accepted only as it was exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.archive_format import ArchivedMemory, ArchivedMessage, ArchivedRevision, ArchivedTurn, is_private
from holdfast.domain.canonical import canonical
from holdfast.domain.continuity_snapshot import build_snapshot, read_snapshot, to_document
from holdfast.domain.memory import ALWAYS, Plane, Status, Trust
from holdfast.domain.runtime_api.exchange import ContinuitySnapshot, TransferMode
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority, TranscriptState
from holdfast.errors import InvalidSnapshot

NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
THREAD = Scope(space="home", subject="ana", conversation="c1", channel="web")
MIB = 1024 * 1024


def memory(number: int, plane: Plane = Plane.LONG_TERM, text: str = "Ana likes tea.") -> ArchivedMemory:
    scope = Scope(space="home", subject="ana")
    revision = ArchivedRevision(scope, plane, text, Trust.STATED, Status.ACCEPTED, ALWAYS, NOW)
    return ArchivedMemory(f"mem_{number:032x}", (revision,))


def turn(number: int, text: str = "Hello.", authority: Authority = Authority.USER_ASSERTED) -> ArchivedTurn:
    message = ArchivedMessage(f"msg_{number:032x}", Role.USER, text, authority, said_at=NOW)
    return ArchivedTurn(THREAD, f"turn-{number}", TranscriptState.ACTIVE, NOW, (message,))


def made(
    mode: TransferMode = TransferMode.FULL_RESTORE,
    memories: tuple[ArchivedMemory, ...] = (memory(1), memory(2)),
    turns: tuple[ArchivedTurn, ...] = (turn(1), turn(2)),
    **given: Any,
) -> ContinuitySnapshot:
    options = {"includes_private": False, "exported_at": NOW, "most_bytes": MIB, **given}
    return build_snapshot(mode, THREAD, memories, turns, **options)


@pytest.mark.parametrize("mode", TransferMode)
@pytest.mark.parametrize("form", [lambda found: found, to_document, lambda found: to_document(found).encode()])
def test_it_is_read_as_it_was_exported(mode: TransferMode, form: Callable[[ContinuitySnapshot], object]) -> None:
    snapshot = made(mode)
    assert read_snapshot(form(snapshot), "home", MIB) == snapshot
    assert read_snapshot(json.loads(to_document(snapshot)), "home", MIB) == snapshot


def test_a_bootstrap_holds_no_turns_but_their_summary() -> None:
    snapshot = made(TransferMode.BOOTSTRAP)
    assert snapshot.execution_state is None
    assert [line.text for line in snapshot.summary] == ["Hello.", "Hello."]
    assert snapshot.manifest.counts == {"long_term_memory": 2, "turns": 0}


def test_the_fingerprint_is_of_the_content_and_not_of_the_moment() -> None:
    later = made(exported_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert later.manifest.content_fingerprint == made().manifest.content_fingerprint
    assert made(memories=(memory(1),)).manifest.content_fingerprint != made().manifest.content_fingerprint


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


def test_no_part_can_be_changed_but_the_moment() -> None:
    whole = json.loads(to_document(made()))
    for path in _paths(whole):
        if path == ("exported_at",):
            continue
        for wrong in (None, 17, True, "other", [], {}, ["x"], {"x": 1}, "2026-11-15T09:30:00.000001+00:00"):
            changed = _changed(whole, path, wrong)
            if canonical(changed) != canonical(whole):
                with pytest.raises(InvalidSnapshot):
                    read_snapshot(changed, "home", MIB)


def test_no_part_can_be_missing_or_added() -> None:
    whole = json.loads(to_document(made()))
    for name in whole:
        with pytest.raises(InvalidSnapshot):
            read_snapshot({key: value for key, value in whole.items() if key != name}, "home", MIB)
    with pytest.raises(InvalidSnapshot):
        read_snapshot({**whole, "surprise": 1}, "home", MIB)


@given(st.data())
def test_no_byte_of_a_document_can_be_changed_but_of_the_moment(data: st.DataObject) -> None:
    whole = to_document(made()).encode()
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[place]))
    try:
        found = read_snapshot(whole[:place] + bytes([byte]) + whole[place + 1 :], "home", MIB)
    except InvalidSnapshot:
        return
    assert replace(found, exported_at=NOW) == made()


@pytest.mark.parametrize("given", ["", "[]", "null", "{}", "{" * 100_000, b"\xff", 17, None, [], {"kind": "beetle"}])
def test_what_is_no_snapshot_is_refused(given: object) -> None:
    with pytest.raises(InvalidSnapshot):
        read_snapshot(given, "home", MIB)


def test_one_that_is_too_large_for_the_profile_is_refused_in_every_form() -> None:
    snapshot = made()
    size = len(canonical(json.loads(to_document(snapshot))))
    for form in (snapshot, to_document(snapshot), to_document(snapshot).encode(), json.loads(to_document(snapshot))):
        assert read_snapshot(form, "home", size) == snapshot
        with pytest.raises(InvalidSnapshot, match="bytes"):
            read_snapshot(form, "home", 500)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(900, 20_000))
def test_an_export_keeps_to_its_size_and_says_when_it_had_to_cut(memories: int, turns: int, most: int) -> None:
    long = "word " * 50
    snapshot = made(
        memories=tuple(memory(number, text=long) for number in range(memories)),
        turns=tuple(turn(number, text=long) for number in range(turns)),
        most_bytes=most,
    )
    assert read_snapshot(snapshot, "home", max(most, len(to_document(snapshot)))) == snapshot
    kept = snapshot.manifest.counts["turns"] + snapshot.manifest.counts["long_term_memory"]
    assert snapshot.manifest.truncated is (kept < memories + turns)
    if kept:
        assert read_snapshot(to_document(snapshot), "home", most) == snapshot


def test_it_cannot_say_that_it_holds_nothing_private_when_it_does() -> None:
    for snapshot in (
        made(memories=(memory(1, Plane.PRIVATE),)),
        made(turns=(turn(1, authority=Authority.SOUL_GOVERNANCE),)),
    ):
        with pytest.raises(InvalidSnapshot, match="includes_private"):
            read_snapshot(snapshot, "home", MIB)
    assert read_snapshot(made(memories=(memory(1, Plane.PRIVATE),), includes_private=True), "home", MIB)


def test_what_is_private_is_what_no_export_shows() -> None:
    assert [plane for plane in Plane if is_private(memory(1, plane))] == [Plane.PRIVATE, Plane.SOUL_CANDIDATE]
    assert {authority for authority in Authority if is_private(turn(1, authority=authority))} == {
        Authority.SOUL_GOVERNANCE,
        Authority.PRIVATE_GARDEN_INTERNAL,
        Authority.OPERATOR_DIAGNOSTIC,
    }
