"""Callers are served in turn, each within its share; nobody's work keeps another's out."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from itertools import zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.documents.fair_pool import FairPool, Shares
from holdfast.errors import DocumentsBusy


class Held:
    """A pool whose tasks wait until `free` is set; `begun` has the caller of each in the order they began."""

    def __init__(self, shares: Shares) -> None:
        self.pool = FairPool("test", shares)
        self.free = threading.Event()
        self.begun: list[str] = []
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._changed = threading.Condition()

    def submit(self, caller: str) -> Future[str]:
        return self.pool.submit(caller, lambda: self._work(caller))

    def _work(self, caller: str) -> str:
        with self._changed:
            self.begun.append(caller)
            self.running[caller] += 1
            self.most |= self.running + Counter(all=self.running.total())
            self._changed.notify_all()
        assert self.free.wait(60)
        with self._changed:
            self.running[caller] -= 1
        return caller

    def wait_for(self, begun: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= begun, 60)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_callers_are_served_in_turn(lengths: list[int]) -> None:
    held = Held(Shares(at_once=1, at_once_each=1, waiting=64, waiting_each=8))
    first = held.submit("first")
    held.wait_for(1)
    callers = {chr(97 + place): length for place, length in enumerate(lengths)}
    # All of one caller's, then all of the next one's.
    futures = [held.submit(caller) for caller, length in callers.items() for _ in range(length)]
    held.free.set()
    assert {future.result(60) for future in (first, *futures)} == {"first", *callers}
    turns = zip_longest(*([caller] * length for caller, length in callers.items()))
    assert held.begun[1:] == [caller for turn in turns for caller in turn if caller is not None]


def test_one_caller_never_takes_the_place_that_is_another_ones() -> None:
    held = Held(Shares(at_once=3, at_once_each=2, waiting=64, waiting_each=64))
    mine = [held.submit("me") for _ in range(20)]
    held.wait_for(2)
    other = held.submit("other")
    held.wait_for(3)
    assert held.begun == ["me", "me", "other"]
    held.free.set()
    assert [future.result(60) for future in (*mine, other)] == ["me"] * 20 + ["other"]
    assert held.most["me"] == 2
    assert held.most["all"] <= 3


def test_what_exceeds_a_share_is_refused_and_a_cancelled_wait_frees_its_place() -> None:
    held = Held(Shares(at_once=2, at_once_each=1, waiting=5, waiting_each=3))
    mine = [held.submit("me") for _ in range(4)]
    held.wait_for(1)
    with pytest.raises(DocumentsBusy, match="trying again is safe"):
        held.submit("me")
    others = [held.submit("other") for _ in range(3)]
    with pytest.raises(DocumentsBusy):
        held.submit("a third, when all places are taken")
    assert mine[3].cancel()
    third = held.submit("third")
    assert not mine[0].cancel(), "its thread works on"
    held.free.set()
    assert [each.result(60) for each in (*mine[:3], *others, third)] == ["me"] * 3 + ["other"] * 3 + ["third"]


def test_work_that_fails_frees_its_place() -> None:
    pool = FairPool("test", Shares(at_once=1, at_once_each=1, waiting=2, waiting_each=2))
    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            pool.submit("me", lambda: 1 / 0).result(60)
    assert pool.submit("me", lambda: 3).result(60) == 3
