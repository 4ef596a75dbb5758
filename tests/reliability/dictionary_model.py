"""A memory modelled as a plain dictionary: the expected answer of every verb, as simply as possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast.domain.memory import GUARDED_PLANES, Plane

TICK = timedelta(microseconds=1)


class Refused(Exception):
    """The call must be refused with an error of this name."""


@dataclass(frozen=True)
class Place:
    """The part of a scope that the state machine varies."""

    space: str = "default"
    subject: str | None = None
    app: str | None = None
    conversation: str | None = None

    def where(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass
class Said:
    """A message."""

    id: str
    place: Place
    text: str
    sender: str | None
    said_at: datetime
    recorded_at: datetime
    external_id: str | None
    given: bool
    position: int
    source: str | None

    def known(self, as_of: datetime | None) -> bool:
        return as_of is None or self.recorded_at <= as_of


@dataclass
class Revision:
    text: str
    recorded_at: datetime
    superseded_at: datetime | None
    since: datetime | None
    until: datetime | None
    evidence: set[str]
    number: int = 1


def baseless(revision: Revision, messages: set[str]) -> bool:
    """True if the revision rests on those messages and on nothing else."""
    return bool(revision.evidence) and revision.evidence <= messages


@dataclass
class Learned:
    """A memory."""

    id: str
    place: Place
    plane: Plane
    quarantined: bool
    source: str | None
    revisions: list[Revision] = field(default_factory=list)

    @property
    def current(self) -> Revision:
        return self.revisions[-1]

    def at(self, as_of: datetime | None) -> Revision | None:
        if as_of is None:
            return self.current
        for revision in self.revisions:
            ended = revision.superseded_at
            if revision.recorded_at <= as_of and (ended is None or as_of < ended):
                return revision
        return None

    @property
    def evidence(self) -> set[str]:
        return {message for revision in self.revisions for message in revision.evidence}


@dataclass
class Thread:
    next_position: int = 0
    sealed: int = 0
    forgotten_ids: set[str] = field(default_factory=set)


@dataclass
class Model:
    messages: dict[str, Said] = field(default_factory=dict)
    memories: dict[str, Learned] = field(default_factory=dict)
    threads: dict[Place, Thread] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    tombstones: int = 0

    # --- visibility ---

    @staticmethod
    def reads(asked: Place, other: Place) -> bool:
        """True if a read in one place reaches a record of another: the subject's own records and shared ones."""
        return asked.space == other.space and (asked.subject is None or other.subject in (asked.subject, None))

    @staticmethod
    def writes(asked: Place, other: Place, exactly: bool = False) -> bool:
        """True if a write reaches it: own; without a subject the whole space or (`exactly`) records of no one."""
        subjects = (other.subject,) if exactly else (None, other.subject)
        return asked.space == other.space and asked.subject in subjects

    @staticmethod
    def within(asked: Place, other: Place) -> bool:
        return asked.app in (None, other.app) and asked.conversation in (None, other.conversation)

    def seen(self, asked: Place, other: Place) -> bool:
        return self.reads(asked, other) and self.within(asked, other)

    # --- writing ---

    def thread(self, place: Place) -> Thread:
        return self.threads.setdefault(place, Thread())

    def known(self, place: Place, message: Said) -> tuple[bool, str | None]:
        """(True, id) if an equal message is stored already; its id is None if it was forgotten."""
        if message.external_id is None and not message.given:
            return False, None
        for other in self.messages.values():
            if other.place != place:
                continue
            if message.external_id is not None and other.external_id == message.external_id:
                if (other.text, other.sender) != (message.text, message.sender):
                    raise Refused("DuplicateId")
                return True, other.id
            keyed = message.external_id is None and other.external_id is None and other.given
            same = (other.text, other.sender, other.said_at) == (message.text, message.sender, message.said_at)
            if keyed and same:
                return True, other.id
        if message.external_id in self.thread(place).forgotten_ids:
            return True, None
        return False, None

    def seal(self, place: Place) -> int:
        thread = self.thread(place)
        unsealed = [m for m in self.messages.values() if m.place == place and m.position >= thread.sealed]
        thread.sealed = thread.next_position
        return len(unsealed)

    # --- forgetting ---

    def doomed(self, asked: Place, messages: set[str], memories: set[str], exactly: bool) -> tuple[set[str], int]:
        """The memories deleted together with those messages, and how many others are weakened."""
        touched = {
            memory.id
            for memory in self.memories.values()
            if memory.id not in memories and memory.evidence & messages and memory.place.space == asked.space
        }
        derived = {memory_id for memory_id in touched if baseless(self.memories[memory_id].revisions[-1], messages)}
        return derived, len(touched) - len(derived)

    def forget(self, messages: set[str], memories: set[str]) -> None:
        for message_id in messages:
            message = self.messages.pop(message_id)
            self.forgotten.add(message.text)
            self.tombstones += 1
            if message.external_id is not None:
                self.thread(message.place).forgotten_ids.add(message.external_id)
        for memory_id in memories:
            memory = self.memories.pop(memory_id)
            self.forgotten.update(revision.text for revision in memory.revisions)
            self.tombstones += len(memory.revisions)
        for memory in self.memories.values():
            for revision in [revision for revision in memory.revisions if baseless(revision, messages)]:
                memory.revisions.remove(revision)
                self.forgotten.add(revision.text)
                self.tombstones += 1
            for revision in memory.revisions:
                revision.evidence -= messages

    # --- reading ---

    def listed(self, asked: Place, as_of: datetime | None = None, valid_at: datetime | None = None) -> dict[str, str]:
        """Ids and texts of a list, newest first."""
        found = {m.id: m.text for m in self.messages.values() if self.seen(asked, m.place) and m.known(as_of)}
        for memory in self.memories.values():
            revision = memory.at(as_of)
            if revision is None or not self.seen(asked, memory.place) or memory.plane in GUARDED_PLANES:
                continue
            if valid_at is None or _valid(revision, valid_at):
                found[memory.id] = revision.text
        return dict(sorted(found.items(), key=lambda entry: entry[0].partition("_")[2], reverse=True))

    def searchable(
        self, asked: Place, as_of: datetime | None = None, valid_at: datetime | None = None
    ) -> dict[str, str]:
        """Ids and texts that a search may return: listed records except those in quarantine."""
        quarantined = {memory.id for memory in self.memories.values() if memory.quarantined}
        listed = self.listed(asked, as_of, valid_at)
        return {record_id: text for record_id, text in listed.items() if record_id not in quarantined}

    def counted(self, asked: Place) -> tuple[int, int]:
        messages = sum(self.seen(asked, message.place) for message in self.messages.values())
        return messages, sum(self.seen(asked, memory.place) for memory in self.memories.values())


def _valid(revision: Revision, at: datetime) -> bool:
    return (revision.since is None or revision.since <= at) and (revision.until is None or at < revision.until)
