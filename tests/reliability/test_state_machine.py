"""After any sequence of calls, a memory answers like a plain dictionary."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

import pytest
from dictionary_model import TICK, Learned, Model, Place, Refused, Revision, Said, baseless
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import holdfast
from holdfast.domain.memory import MemoryRecord, Plane
from holdfast.domain.transcript import Message
from holdfast.errors import HoldfastError, InvalidScope
from holdfast.library import AsyncMemory
from holdfast.testing import CountingIds, FixedClock
from postgres import AnyServer, schema_of

T = TypeVar("T")
EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES", "200"))
STEPS = 18

SPACES = st.sampled_from(["default", "default", "default", "other"])
SUBJECTS = st.sampled_from(["ana", "ana", "bob", None])
APPS = st.sampled_from([None, None, "app"])
CONVERSATIONS = st.sampled_from(["c1", "c1", "c2"])
THREADS = st.builds(Place, SPACES, SUBJECTS, APPS, CONVERSATIONS)
PLACES = st.builds(Place, SPACES, SUBJECTS, APPS, st.sampled_from([None, None, "c1", "c2"]))
SENDERS = st.sampled_from([None, "ana", "Zoë"])
SOURCES = st.sampled_from([None, None, "web"])
PICK = st.integers(0, 1_000)
OFFSETS = st.sampled_from([None, None, timedelta(0), -TICK, timedelta(seconds=-30), timedelta(days=-1)])
# Two texts may be equal or share no word at all.
WORDS = st.sampled_from([f"quartz{letter}" for letter in "abcdefgh"])
DRAFTS = st.tuples(WORDS, SENDERS, st.sampled_from([None, None, "m1", "m2"]), st.sampled_from([None, None, 0, 1]))


class MemoryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.clock = FixedClock()
        self.start = self.clock.now()
        self.fresh = 0
        self.runner = asyncio.Runner()
        self.memory: AsyncMemory

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def place(self) -> str:
        """Create an empty store."""
        return ":memory:"

    @initialize()
    def opened(self) -> None:
        async def opened() -> AsyncMemory:
            return await holdfast.open_async(
                self.place(), embedder="fake", clock=self.clock, new_ids=CountingIds(), work=False
            )

        self.memory = self.run(opened())

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.run(self.memory.close())
        self.runner.close()

    def outcome(self, work: Coroutine[Any, Any, T]) -> T | str:
        """The call's answer, or the name of its error."""
        try:
            return self.run(work)
        except HoldfastError as error:
            return type(error).__name__

    def picked(self, pick: int, among: list[str]) -> str | None:
        return among[pick % len(among)] if among else None

    def word(self) -> str:
        """A word that no other text contains."""
        self.fresh += 1
        return f"unique{self.fresh}zz"

    # --- time ---

    @rule(seconds=st.sampled_from([0.000001, 1, 60, 86_400, -0.5, -3600]))
    def time_passes(self, seconds: float) -> None:
        self.clock.step(seconds)

    def moment(self, offset: timedelta | None) -> datetime | None:
        return None if offset is None else self.clock.now() + offset

    # --- writing ---

    @rule(place=THREADS, drafts=st.lists(DRAFTS, min_size=1, max_size=3), source=SOURCES)
    def add(
        self, place: Place, drafts: list[tuple[str, str | None, str | None, int | None]], source: str | None
    ) -> None:
        now = self.clock.now()
        given: list[dict[str, Any]] = []
        messages: list[Said] = []
        for text, sender, external_id, hour in drafts:
            said_at = None if hour is None else self.start + timedelta(hours=hour)
            draft = {"text": text, "sender": sender, "timestamp": said_at, "id": external_id}
            given.append({name: value for name, value in draft.items() if value is not None})
            messages.append(
                Said(
                    "",
                    place,
                    text,
                    sender or place.subject,
                    said_at or now,
                    now,
                    external_id,
                    hour is not None,
                    0,
                    source,
                )
            )
        answer = self.outcome(self.memory.add(given, source=source, **place.where()))
        before = dict(self.model.messages)
        try:
            expected = self._added(place, messages, answer)
        except Refused as refused:
            self.model.messages, expected_error = before, str(refused)
        else:
            expected_error = None
        if expected_error is not None:
            assert answer == expected_error
            return
        assert not isinstance(answer, str)
        assert list(answer.message_ids) == expected

    def _added(self, place: Place, messages: list[Said], answer: Any) -> list[str | None]:
        ids: list[str | None] = []
        thread, stored = self.model.thread(place), []
        for index, message in enumerate(messages):
            known, found = self.model.known(place, message)
            if not known:
                # The store chooses the id; check that it is new.
                found = f"pending{index}" if isinstance(answer, str) else answer.message_ids[index]
                assert found not in self.model.messages
                message.id, message.position = str(found), thread.next_position + len(stored)
                self.model.messages[message.id] = message
                stored.append(message)
            ids.append(found)
        thread.next_position += len(stored)
        return ids

    @rule(
        place=PLACES,
        word=WORDS,
        plane=st.sampled_from([Plane.LONG_TERM, Plane.LONG_TERM, Plane.EPISODE, Plane.PRIVATE]),
        quarantined=st.sampled_from([False, False, False, True]),
        span=st.sampled_from([None, None, (0, 1), (None, 1), (1, None)]),
        picks=st.lists(PICK, max_size=2),
        source=SOURCES,
    )
    def remember(
        self,
        place: Place,
        word: str,
        plane: Plane,
        quarantined: bool,
        span: tuple[int | None, int | None] | None,
        picks: list[int],
        source: str | None,
    ) -> None:
        text = f"{word} {self.word()}"
        since, until = (None if hour is None else self.start + timedelta(hours=hour) for hour in span or (None, None))
        evidence = {found for pick in picks if (found := self.picked(pick, sorted(self.model.messages)))}
        answer = self.outcome(
            self.memory.remember(
                text,
                plane=plane,
                quarantined=quarantined,
                valid_from=since,
                valid_until=until,
                evidence=sorted(evidence),
                source=source,
                **place.where(),
            )
        )
        if not all(self._linkable(place, message_id) for message_id in evidence):
            assert answer == "NotFound"
            return
        assert isinstance(answer, MemoryRecord)
        learned = Learned(answer.id, place, plane, quarantined, source)
        learned.revisions.append(Revision(text, self.clock.now(), None, since, until, set(evidence)))
        assert answer.id not in self.model.memories
        self.model.memories[answer.id] = learned

    def _linkable(self, place: Place, message_id: str) -> bool:
        other = self.model.messages[message_id].place
        return self.model.writes(place, other) and self.model.within(place, other)

    @rule(
        place=PLACES,
        pick=PICK,
        expected=st.sampled_from([None, None, 0, 1]),
        picks=st.none() | st.lists(PICK, max_size=1),
    )
    def correct(self, place: Place, pick: int, expected: int | None, picks: list[int] | None) -> None:
        memory_id = self.picked(pick, sorted(self.model.memories)) or "mem_nothing"
        memory = self.model.memories.get(memory_id)
        if memory is not None and pick % 2:
            place = memory.place
        revision = None if memory is None or expected is None else memory.current.number + expected
        evidence = None
        if picks is not None:
            evidence = {found for each in picks if (found := self.picked(each, sorted(self.model.messages)))}
        text = f"corrected {self.word()}"
        answer = self.outcome(
            self.memory.correct(
                memory_id,
                text,
                expected_revision=revision,
                evidence=None if evidence is None else sorted(evidence),
                **place.where(),
            )
        )
        if memory is None or not (self.model.writes(place, memory.place) and self.model.within(place, memory.place)):
            assert answer == "NotFound"
            return
        if revision not in (None, memory.current.number):
            assert answer == "RevisionConflict"
            return
        if evidence is None:
            evidence = {each for each in memory.current.evidence if self._linkable(place, each)}
        if not all(self._linkable(place, each) for each in evidence):
            assert answer == "NotFound"
            return
        assert isinstance(answer, MemoryRecord)
        old = memory.current
        # Later than the revision it replaces, whatever the clock says.
        at = max(self.clock.now(), old.recorded_at + TICK)
        old.superseded_at = at
        memory.revisions.append(Revision(text, at, None, old.since, old.until, set(evidence), old.number + 1))
        assert (answer.revision, answer.text, answer.recorded_at) == (old.number + 1, text, at)

    @rule(place=THREADS)
    def flush_and_drain(self, place: Place) -> None:
        flushed = self.run(self.memory.flush(**place.where()))
        assert flushed.messages == self.model.seal(place)
        self.run(self.memory.drain())

    @rule()
    def rebuild(self) -> None:
        assert self.run(self.memory.rebuild()).pending_vectors == 0

    # --- forgetting ---

    @rule(place=PLACES, picks=st.lists(PICK, min_size=1, max_size=3), own=st.booleans())
    def forget_ids(self, place: Place, picks: list[int], own: bool) -> None:
        everything = sorted([*self.model.messages, *self.model.memories])
        ids = {found for pick in picks if (found := self.picked(pick, everything))}
        if not ids:
            return
        if own:
            place = self._place_of(min(ids))
        # As with whole conversations: without a subject, only records that belong to no one.
        exactly = place.conversation is not None
        named = {record_id for record_id in ids if self._forgettable(place, record_id, exactly)}
        if named != ids:
            assert self.outcome(self.memory.forget(sorted(ids), **place.where())) == "NotFound"
            return
        self._forget(place, named, {"record_id": sorted(ids)}, exactly)

    @rule(place=THREADS)
    def forget_a_conversation(self, place: Place) -> None:
        # Without a subject, only conversations that belong to no one, not every conversation of that name.
        named = self._everything_in(place, exactly=True)
        if not named and self._everything_in(place):
            for call in (self.memory.forget_preview, self.memory.forget):
                with pytest.raises(InvalidScope, match="nothing was forgotten"):
                    self.run(call(**place.where()))
            return
        self._forget(place, named, {}, exactly=True)

    @rule(place=st.builds(Place, SPACES, st.sampled_from(["ana", "bob"])))
    def forget_a_subject(self, place: Place) -> None:
        self._forget(place, self._everything_in(place), {})

    @rule(place=st.builds(Place, SPACES, SUBJECTS))
    def forget_a_source(self, place: Place) -> None:
        from_web = {each.id for each in self.model.messages.values() if each.source == "web"}
        from_web |= {each.id for each in self.model.memories.values() if each.source == "web"}
        self._forget(place, from_web & self._everything_in(place), {"source": "web"})

    def _everything_in(self, place: Place, exactly: bool = False) -> set[str]:
        everything = [*self.model.messages, *self.model.memories]
        return {each for each in everything if self._forgettable(place, each, exactly)}

    def _place_of(self, record_id: str) -> Place:
        found = self.model.messages.get(record_id) or self.model.memories[record_id]
        return found.place

    def _forgettable(self, place: Place, record_id: str, exactly: bool = False) -> bool:
        other = self._place_of(record_id)
        return self.model.writes(place, other, exactly) and self.model.within(place, other)

    def _forget(self, place: Place, named: set[str], what: dict[str, Any], exactly: bool = False) -> None:
        messages = {record_id for record_id in named if record_id in self.model.messages}
        memories = named - messages
        derived, weakened = self.model.doomed(place, messages, memories, exactly)
        gone = memories | derived
        revisions = sum(len(self.model.memories[memory_id].revisions) for memory_id in gone)
        revisions += sum(
            baseless(revision, messages)
            for memory_id, memory in self.model.memories.items()
            if memory_id not in gone
            for revision in memory.revisions
        )
        preview = self.run(self.memory.forget_preview(**what, **place.where()))
        assert (preview.messages, preview.memories, preview.revisions) == (len(messages), len(gone), revisions)
        assert (preview.derived, preview.weakened) == (len(derived), weakened)
        receipt = self.run(self.memory.forget(**what, token=preview.token, **place.where()))
        assert (receipt.messages, receipt.memories, receipt.revisions) == (len(messages), len(gone), revisions)
        assert (receipt.tombstones, receipt.remaining) == (len(messages) + revisions, 0)
        self.model.forget(messages, gone)

    # --- reading ---

    @rule(place=PLACES, word=WORDS, as_of=OFFSETS, valid_at=OFFSETS)
    def search(self, place: Place, word: str, as_of: timedelta | None, valid_at: timedelta | None) -> None:
        moment, true_at = self.moment(as_of), self.moment(valid_at)
        hits = self.run(self.memory.search(word, top_k=1_000, as_of=moment, valid_at=true_at, **place.where()))
        visible = self.model.searchable(place, moment, true_at)
        found = {hit.id: hit.text for hit in hits}
        assert len(found) == len(hits)
        assert found.items() <= visible.items()
        assert {each for each, text in visible.items() if word in text} <= found.keys()

    @rule(pick=PICK, place=PLACES)
    def search_for_one(self, pick: int, place: Place) -> None:
        """A visible record ranks first for a word that only it contains."""
        visible = self.model.searchable(place)
        unique = {each: text.split()[1] for each, text in visible.items() if "unique" in text}
        record_id = self.picked(pick, sorted(unique))
        if record_id is not None:
            hits = self.run(self.memory.search(unique[record_id], **place.where()))
            assert record_id in [hit.id for hit in hits]

    @rule(pick=PICK, place=PLACES, as_of=OFFSETS)
    def get(self, pick: int, place: Place, as_of: timedelta | None) -> None:
        record_id = self.picked(pick, sorted([*self.model.messages, *self.model.memories])) or "msg_nothing"
        moment = self.moment(as_of)
        answer = self.outcome(self.memory.get(record_id, as_of=moment, **place.where()))
        if message := self.model.messages.get(record_id):
            if not (self.model.seen(place, message.place) and message.known(moment)):
                assert answer == "NotFound"
                return
            assert isinstance(answer, Message)
            assert (answer.text, answer.sender, answer.said_at, answer.recorded_at, answer.position) == (
                message.text, message.sender, message.said_at, message.recorded_at, message.position,
            )  # fmt: skip
            return
        memory = self.model.memories.get(record_id)
        revision = memory.at(moment) if memory else None
        if memory is None or revision is None or not self.model.seen(place, memory.place):
            assert answer == "NotFound"
            return
        assert isinstance(answer, MemoryRecord)
        self._same(answer, memory, revision, place)

    def _same(self, answer: MemoryRecord, memory: Learned, revision: Revision, place: Place) -> None:
        assert (answer.text, answer.recorded_at, answer.superseded_at, answer.plane) == (
            revision.text, revision.recorded_at, revision.superseded_at, memory.plane,
        )  # fmt: skip
        assert (answer.validity.since, answer.validity.until) == (revision.since, revision.until)
        shown = {each for each in revision.evidence if self.model.seen(place, self.model.messages[each].place)}
        assert {link.message_id for link in answer.evidence} == shown

    @rule(pick=PICK, place=PLACES)
    def history(self, pick: int, place: Place) -> None:
        memory_id = self.picked(pick, sorted(self.model.memories))
        if memory_id is None:
            return
        memory = self.model.memories[memory_id]
        answer = self.outcome(self.memory.history(memory_id, **place.where()))
        if not self.model.seen(place, memory.place):
            assert answer == "NotFound"
            return
        assert not isinstance(answer, str)
        for record, revision in zip(answer, memory.revisions, strict=True):
            assert isinstance(record, MemoryRecord)
            assert record.revision == revision.number
            self._same(record, memory, revision, place)

    @rule(place=PLACES, as_of=OFFSETS, valid_at=OFFSETS, limit=st.sampled_from([1, 2, 50]))
    def list_page_by_page(self, place: Place, as_of: timedelta | None, valid_at: timedelta | None, limit: int) -> None:
        moment, true_at = self.moment(as_of), self.moment(valid_at)
        listed: dict[str, str] = {}
        cursor = None
        while True:
            page = self.run(
                self.memory.list(limit=limit, cursor=cursor, as_of=moment, valid_at=true_at, **place.where())
            )
            listed.update((record.id, record.text) for record in page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
        expected = self.model.listed(place, moment, true_at)
        assert list(listed.items()) == list(expected.items())

    @invariant()
    def everything_is_there_and_nothing_else(self) -> None:
        if not hasattr(self, "memory"):
            return
        for place in (Place(), Place("other"), Place("default", "ana")):
            stats = self.run(self.memory.stats(**place.where()))
            assert (stats.messages, stats.memories) == self.model.counted(place)

    @rule()
    def verify(self) -> None:
        verified = self.run(self.memory.verify())
        assert verified.ok, verified.findings


class ServerMachine(MemoryMachine):
    """The same on PostgreSQL, in one schema that is emptied before each example."""

    url: ClassVar[str]
    server: ClassVar[AnyServer]

    def place(self) -> str:
        schema = schema_of(self.url)
        tables = self.server.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,))
        kept = [f"{schema}.{name}" for (name,) in tables if name != "migrations"]
        if kept:
            self.server.execute(f"TRUNCATE {', '.join(kept)} RESTART IDENTITY")
        return self.url


for machine in (MemoryMachine, ServerMachine):
    machine.TestCase.settings = settings(
        max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
    )


class TestMemoryIsLikeADictionary(MemoryMachine.TestCase):  # type: ignore[name-defined, misc]
    pass


class TestMemoryOnPostgresIsLikeADictionary(ServerMachine.TestCase):  # type: ignore[name-defined, misc]
    @pytest.fixture(autouse=True)
    def _on_a_server(self, postgres: AnyServer, postgres_url: str) -> None:
        ServerMachine.server, ServerMachine.url = postgres, postgres_url
