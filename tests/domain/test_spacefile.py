"""A space file is accepted only if it is complete and undamaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.archive_format import (
    Archived,
    ArchivedAlias,
    ArchivedMemory,
    ArchivedMessage,
    ArchivedRevision,
    ArchivedTurn,
)
from holdfast.domain.canonical import canonical
from holdfast.domain.memory import ALWAYS, Plane, Status, Trust
from holdfast.domain.scope import Scope
from holdfast.domain.space_file import LeftOut, SpaceFileHeader, SpaceFileWriter, read_records, verify_space_file
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority, TranscriptState
from holdfast.errors import InvalidSnapshot

NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
THREAD = Scope(space="home", subject="ana", conversation="c1")
SAID = ArchivedMessage(f"msg_{'0' * 32}", Role.USER, "Hello, “world”.")
CONTENT: tuple[Archived, ...] = (
    ArchivedTurn(THREAD, "turn-1", TranscriptState.ACTIVE, NOW, (SAID,)),
    ArchivedMemory(
        f"mem_{'0' * 32}",
        (ArchivedRevision(Scope(space="home"), Plane.LONG_TERM, "Tea.", Trust.STATED, Status.ACCEPTED, ALWAYS, NOW),),
    ),
    ArchivedAlias(THREAD, "00" * 16, True, NOW),
)


def lines(content: Sequence[Archived] = CONTENT, exported_at: datetime = NOW) -> list[bytes]:
    writer = SpaceFileWriter()
    header = writer.header(SpaceFileHeader("home", exported_at, True))
    return [header, *(writer.line(archived) for archived in content), writer.trailer()]


def test_a_whole_file_is_found_whole_and_gives_back_what_it_holds() -> None:
    found = verify_space_file(lines(), "home")
    assert found.header == SpaceFileHeader("home", NOW, True)
    assert found.counts == {"turn": 1, "memory": 1, "resource": 0, "alias": 1}
    assert tuple(read_records(lines(), "home")) == CONTENT


def test_the_fingerprint_is_of_the_content_and_not_of_the_moment() -> None:
    later = lines(exported_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert (
        verify_space_file(later, "home").content_fingerprint == verify_space_file(lines(), "home").content_fingerprint
    )
    assert (
        verify_space_file(lines(CONTENT[:1]), "home").content_fingerprint
        != verify_space_file(lines(), "home").content_fingerprint
    )


@given(st.data())
def test_no_byte_can_be_changed(data: st.DataObject) -> None:
    whole = b"".join(lines())
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[place]))
    damaged = whole[:place] + bytes([byte]) + whole[place + 1 :]
    with pytest.raises(InvalidSnapshot):
        verify_space_file(damaged.splitlines(keepends=True), "home")


@given(st.integers(0, len(b"".join(lines())) - 1))
def test_no_file_that_was_cut_off_is_whole(length: int) -> None:
    with pytest.raises(InvalidSnapshot):
        verify_space_file(b"".join(lines())[:length].splitlines(keepends=True), "home")


@pytest.mark.parametrize("missing", range(5))
def test_no_line_can_be_missing(missing: int) -> None:
    with pytest.raises(InvalidSnapshot):
        verify_space_file([line for index, line in enumerate(lines()) if index != missing], "home")


def test_nothing_can_stand_after_the_trailer_or_twice() -> None:
    whole = lines()
    with pytest.raises(InvalidSnapshot, match="after the trailer"):
        verify_space_file([*whole, whole[1]], "home")
    with pytest.raises(InvalidSnapshot):
        verify_space_file([*whole[:2], *whole[1:]], "home")


def test_records_in_another_order_are_damage_even_where_the_sums_agree() -> None:
    with pytest.raises(InvalidSnapshot, match="comes after"):
        verify_space_file(lines((CONTENT[1], CONTENT[0])), "home")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": "beetle"}, "format"),
        ({"version": 3}, "version"),
        ({"left_out": 2}, "left_out"),
        ({"left_out": {"turns": 1}}, "left_out"),
        ({"left_out": {"turns": -1, "messages": 0}}, "left_out"),
        ({"version": True}, "version"),
        ({"space": ""}, "space"),
        ({"exported_at": "yesterday"}, "exported_at"),
        ({"include_private": "no"}, "include_private"),
    ],
)
def test_a_file_of_another_kind_or_version_is_refused(change: dict[str, object], match: str) -> None:
    header = canonical({**json.loads(lines()[0]), **change}) + b"\n"
    with pytest.raises(InvalidSnapshot, match=match):
        verify_space_file([header, *lines()[1:]], "home")


@pytest.mark.parametrize("left_out", [None, LeftOut(), LeftOut(7, 12)])
def test_a_file_without_private_material_holds_turns_only_in_the_first_version(left_out: LeftOut | None) -> None:
    """Version 1 held the turns of the export view; later files count them instead."""
    writer = SpaceFileWriter()
    header = SpaceFileHeader("home", NOW, False, left_out)
    without = [writer.header(header), writer.line(CONTENT[1]), writer.trailer()]
    assert json.loads(without[0])["version"] == (1 if left_out is None else 2)
    assert verify_space_file(without, "home").header == header
    writer = SpaceFileWriter()
    with_turn = [writer.header(header), *map(writer.line, CONTENT[:2]), writer.trailer()]
    if left_out is None:
        assert verify_space_file(with_turn, "home").counts["turn"] == 1
        assert tuple(read_records(with_turn, "home")) == CONTENT[:2]
    else:
        with pytest.raises(InvalidSnapshot, match=r"line 2.*is a turn"):
            verify_space_file(with_turn, "home")


def test_a_record_that_cannot_be_stored_is_refused_by_its_line_though_the_sums_agree() -> None:
    writer = SpaceFileWriter()
    made = [writer.header(SpaceFileHeader("home", NOW, False))]
    turn = ArchivedTurn(THREAD, "turn-1", TranscriptState.MASKED, NOW, (SAID,))
    made += [writer.line(turn), writer.trailer()]
    with pytest.raises(InvalidSnapshot, match="line 2, state"):
        verify_space_file(made, "home")


PRIVATE_TURN = ArchivedTurn(
    THREAD, "turn-1", TranscriptState.ACTIVE, NOW, (replace(SAID, authority=Authority.SOUL_GOVERNANCE),)
)
PRIVATE_MEMORY = ArchivedMemory(
    f"mem_{'0' * 32}",
    (ArchivedRevision(Scope(space="home"), Plane.PRIVATE, "Tea.", Trust.STATED, Status.ACCEPTED, ALWAYS, NOW),),
)


@pytest.mark.parametrize("private", [PRIVATE_TURN, PRIVATE_MEMORY, CONTENT[2]], ids=lambda found: type(found).__name__)
def test_a_file_cannot_say_that_nothing_is_private_when_something_is(private: Archived) -> None:
    for include, refused in ((True, False), (False, True)):
        writer = SpaceFileWriter()
        made = [writer.header(SpaceFileHeader("home", NOW, include)), writer.line(private), writer.trailer()]
        if refused:
            with pytest.raises(InvalidSnapshot, match="line 2"):
                verify_space_file(made, "home")
        else:
            assert verify_space_file(made, "home").records == 1


@pytest.mark.parametrize("given", [[], [b"\n"], [b"[]\n"], [b"{" * 100_000 + b"\n"], [b"\xff\n"]])
def test_what_is_no_file_of_ours_is_refused(given: list[bytes]) -> None:
    with pytest.raises(InvalidSnapshot):
        verify_space_file(given, "home")
