"""Group commit takes waiting callers, and waits briefly for callers of the previous batch."""

from __future__ import annotations

import time

import pytest

from holdfast.stores.writer_queue import PendingResult, WriterQueue


@pytest.fixture
def inbox() -> WriterQueue[PendingResult]:
    return WriterQueue(None, most=100)


def asking(inbox: WriterQueue[PendingResult], count: int) -> list[PendingResult]:
    asked = [PendingResult() for _ in range(count)]
    for each in asked:
        inbox.put(each)
    return asked


def test_all_who_wait_are_taken_at_once(inbox: WriterQueue[PendingResult]) -> None:
    asked = asking(inbox, 3)
    assert inbox.gather() == (asked, [], False)


def test_those_who_were_answered_together_are_let_in_before_a_batch_is_closed(
    inbox: WriterQueue[PendingResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[PendingResult] = []
    # Each time the writer yields the GIL, another caller submits.
    monkeypatch.setattr(time, "sleep", lambda seconds: late.extend(asking(inbox, 1)) if len(late) < 3 else None)
    asking(inbox, 4)
    inbox.gather()
    first = asking(inbox, 1)
    assert inbox.gather()[0] == first + late
    assert len(late) == 3


def test_nobody_is_waited_for_who_asks_alone(
    inbox: WriterQueue[PendingResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waited"))
    for _ in range(3):
        asked = asking(inbox, 1)
        assert inbox.gather()[0] == asked


def test_whoever_does_not_come_again_is_given_up_at_once(
    inbox: WriterQueue[PendingResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    asking(inbox, 8)
    inbox.gather()
    for _ in range(5):
        asked = asking(inbox, 1)
        assert inbox.gather()[0] == asked
    assert waited == [0, 0]


def test_who_gave_up_is_left_out(inbox: WriterQueue[PendingResult]) -> None:
    asked = asking(inbox, 3)
    asked[1]._given_up = True
    assert inbox.gather()[0] == [asked[0], asked[2]]
