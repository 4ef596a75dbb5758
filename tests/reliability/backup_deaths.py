"""A writer whose store can be told from the number of its last call, and processes that back up and restore meanwhile.

Call number `i` adds or remembers a text with its number, or forgets that of an earlier call. So a store holds exactly
`texts_after(i)` at some moment, or it is not the store of one moment.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import holdfast
from faults import points
from faults.places import Place
from faults.zygote import Child, Tell, Zygote
from holdfast.errors import StoreBusy

SUBJECT = "ana"
_FORGETS = 4  # every fourth call
_PATIENCE_SECONDS = 60.0


def before_forks() -> None:
    import holdfast.stores.backups  # noqa: F401


def texts_after(number: int) -> frozenset[str]:
    """The texts of a store after that call; none before the first, which is number 0."""
    forgotten = {call - 2 for call in range(number + 1) if _forgets(call)}
    return frozenset(f"Text {call}." for call in range(number + 1) if not _forgets(call) and call not in forgotten)


def _forgets(call: int) -> bool:
    return call % _FORGETS == _FORGETS - 1


def write(tell: Tell, location: str) -> None:
    """Call until killed, and report each call before and after it."""
    with holdfast.open(location, embedder="fake", work=False) as memory:
        ids: list[str] = []
        for call in range(1_000_000):
            tell(do=call)
            if _forgets(call):
                memory.forget(ids[call - 2], subject=SUBJECT)
                ids.append("")
            elif call % _FORGETS == 0:
                ids.append(memory.remember(f"Text {call}.", subject=SUBJECT).id)
            else:
                ids.append(str(memory.add(f"Text {call}.", subject=SUBJECT).message_ids[0]))
            tell(done=call)
            time.sleep(0.004)


def back_up(tell: Tell, location: str, folder: str, keep: int, point: str | None, passage: int) -> None:
    if point is not None:
        points.die_at(point, passage)
    tell(path=holdfast.backup(location, folder, keep=keep).path)


def restore(tell: Tell, backup: str, location: str, point: str | None, passage: int) -> None:
    if point is not None:
        points.die_at(point, passage)
    holdfast.restore(backup, location, replace=True)
    tell(restored=backup)


@dataclass
class Load:
    """A writer at work, and how far it is."""

    child: Child
    announced: int = -1
    acknowledged: int = -1
    _reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def begin(cls, zygote: Zygote, location: str) -> Load:
        load = cls(zygote.start("backup_deaths:write", location=location))
        load.wait_for(20)
        return load

    def _read(self) -> None:
        for line in self.child.lines():
            self.announced = line.get("do", self.announced)
            self.acknowledged = line.get("done", self.acknowledged)

    def wait_for(self, calls: int) -> None:
        """Wait until it has made so many more calls."""
        enough, deadline = self.acknowledged + calls, time.monotonic() + _PATIENCE_SECONDS
        while self.acknowledged < enough:
            assert self.child.status is None, "the writer ended by itself: see its traceback above"
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def kill(self) -> None:
        self.child.kill()
        self._reader.join(_PATIENCE_SECONDS)
        assert self.child.killed


def texts_of(location: str) -> frozenset[str]:
    """Everything in a store that verifies."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            with holdfast.open(location, embedder="fake", work=False) as memory:
                assert memory.verify().ok
                held, cursor = set(), None
                while True:
                    page = memory.list(subject=SUBJECT, limit=1_000, cursor=cursor)
                    held |= {record.text for record in page.items}
                    if (cursor := page.next_cursor) is None:
                        return frozenset(held)
        except StoreBusy:  # the server has not noticed yet that its client died
            assert time.monotonic() < deadline
            time.sleep(0.02)


def settle(place: Place) -> None:
    if place.kind == "postgres":
        place.settle()
