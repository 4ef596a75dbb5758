"""Choose what to show a model: the one policy of `recall`, `hydrate`, `project`, the gateway and the agent.

The order is that of relevance. A record that does not bear on the query is left out, and so are small talk and
messages that only ask. A memory replaces the messages it was learned from, and stands where the best
of them stands; if it says less than such a message, the message is shown. Records that say the same take one place, and
so do a plan and its change; the one that can be believed most is shown, of equal ones the newest. One source fills at
most its share. A record that can be believed less than a trusted memory, and resembles it, stands behind it; several
versions of such a record take one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Generic, NamedTuple, TypeVar

from holdfast.domain.arguments import number
from holdfast.domain.authorship import speaks_for_subject
from holdfast.domain.checks import checked_real
from holdfast.domain.memory import ASSISTANT_SOURCE, Plane, Trust
from holdfast.domain.repetition import Reading, Statement, is_small_talk, only_asks, read_statement
from holdfast.domain.results import Hit, HitKind

R = TypeVar("R")

# Maximum share of the results that may come from one source (a resource, a webhook, an import).
MAX_SOURCE_SHARE = 0.5
# A memory says less than its message if the message has so many words more, or words of the query that it lacks; then
# the message is shown, unless it is long.
_MANY_WORDS_MORE = 3
_LONG_CHARS = 300
# A record rivals a trusted memory if it has this share of its words. Two rivals are versions of one if each has so many
# of the other's.
_LEAST_RIVAL_SHARE, _ALIKE_SHARE = 0.3, 0.5
_NONE: frozenset[str] = frozenset()
# How far a record's words can be believed.
TRUSTED_RANK, OWN_WORDS_RANK = 3, 2


Floor = Annotated[
    float,
    number(0, 1, "SCORE"),
    "Leave out records that score less; 0 shows all. By default, those that do not bear on the query.",
]


def check_floor(min_score: object) -> None:
    if min_score is not None:
        checked_real(min_score, "min_score", 0, 1)


class Omission(StrEnum):
    """The reason why a record that was found is not shown."""

    FLOOR = "below_floor"
    SMALL_TALK = "small_talk"
    QUESTION = "only_asks"
    REPEATED = "repeated"
    OUTDATED = "outdated"
    BY_MEMORY = "covered_by_memory"
    BY_MESSAGE = "covered_by_message"
    SOURCE_SHARE = "source_share"
    RIVAL = "rivals_trusted_memory"
    BUDGET = "budget"


class RecallItem(NamedTuple, Generic[R]):
    """A record that was found, with what the policy reads of it; `record` is the caller's own.

    `evidence` are the ids of the messages that a memory was learned from. A `revised` memory says something else than
    they do. `rank` is how far its words can be believed: of records that say the same, the highest is shown. `at` is
    when it was said, or recorded.
    """

    record: R
    id: str
    text: str
    is_relevant: bool = True
    is_memory: bool = False
    is_assistants: bool = False
    source: str | None = None
    speaker: str | None = None
    evidence: frozenset[str] = frozenset()
    revised: bool = False
    rank: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Selection(Generic[R]):
    """The chosen records, the most relevant first, and those left out, with the reason."""

    records: list[R]
    left_out: list[tuple[R, Omission]] = field(default_factory=list)

    @property
    def omission_counts(self) -> Counter[str]:
        """Count the records that were left out by reason."""
        return Counter(reason.value for _, reason in self.left_out)


@dataclass(slots=True, eq=False)
class _Place(Generic[R]):
    """A place, the item that is shown there, the hidden ones that share it, and the ids of all."""

    item: RecallItem[R]
    reading: Reading
    ids: set[str]
    hidden: list[tuple[RecallItem[R], Reading]] = field(default_factory=list)


@dataclass(slots=True)
class _Places(Generic[R]):
    """The places filled so far."""

    limit: int
    share: int
    places: list[_Place[R]] = field(default_factory=list)
    from_source: dict[str, int] = field(default_factory=dict)
    left_out: list[tuple[R, Omission]] = field(default_factory=list)

    def leave_out(self, item: RecallItem[R], reason: Omission) -> None:
        self.left_out.append((item.record, reason))

    def place(self, item: RecallItem[R]) -> bool:
        """Give the item a place, or let it share the place of one that says the same. False if its source is full."""
        reading = Reading(item.text, item.speaker)
        near = [place for place in self.places if place.hidden or reading.may_compare(place.reading)]
        rivals = [(place, won) for place in near if (won := _compete(item, reading, place)) is not None]
        if not rivals:
            if not self._has_room(item):
                self.leave_out(item, Omission.SOURCE_SHARE)
                return False
            self._count(item, 1)
            self.places.append(_Place(item, reading, {item.id}))
            return True
        self._settle(item, reading, rivals)
        return True

    def _settle(self, item: RecallItem[R], reading: Reading, rivals: Sequence[tuple[_Place[R], _Contest]]) -> None:
        """Let the item and the rivals that it beats share one place: of the item, or of the rival that beats it."""
        winner = next(((place, contest) for place, contest in rivals if not contest.item_wins), None)
        beaten = [(place, contest) for place, contest in rivals if contest.item_wins]
        if winner is None and not self._has_room(item, beaten[0][0].item.source):
            winner, beaten = beaten[0], []
        for place, contest in beaten:
            self.leave_out(place.item, contest.reason)
            self._count(place.item, -1)
        group = [place for place, _ in beaten] + ([] if winner is None else [winner[0]])
        sharing = [place for place, _ in rivals if place in group]
        seat = sharing[0]
        seat.ids = {item.id}.union(*(place.ids for place in sharing))
        seat.hidden = [hidden for place in sharing for hidden in place.hidden]
        seat.hidden += [(place.item, place.reading) for place, _ in beaten]
        if winner is None:
            self._count(item, 1)
            seat.item, seat.reading = item, reading
        else:
            self.leave_out(item, winner[1].reason)
            seat.hidden.append((item, reading))
            seat.item, seat.reading = winner[0].item, winner[0].reading
        for place in sharing[1:]:
            self.places.remove(place)

    def cover(self, message: RecallItem[R], memory: RecallItem[R] | None) -> bool:
        """Leave out a message if a memory that was learned from it is shown, or shares a place; and its echoes."""
        for place in self.places:
            is_evidence = place.item.is_memory and message.id in place.item.evidence
            if is_evidence or (memory is not None and memory.id in place.ids):
                break
        else:
            return False
        self.leave_out(message, Omission.BY_MEMORY)
        reading = Reading(message.text, message.speaker)
        place.hidden.append((message, reading))
        for echo in [each for each in self.places if each.item.is_assistants and _echoes(each.reading, reading)]:
            self.leave_out(echo.item, Omission.REPEATED)
            self._count(echo.item, -1)
            self.places.remove(echo)
        return True

    def covers_memory(self, memory: RecallItem[R]) -> bool:
        """True if the memory has its place already, or a message that it was learned from has one."""
        return any(memory.id in place.ids or not place.ids.isdisjoint(memory.evidence) for place in self.places)

    def _has_room(self, item: RecallItem[R], leaving: str | None = None) -> bool:
        source = item.source
        return source is None or source == leaving or self.from_source.get(source, 0) < self.share

    def _count(self, item: RecallItem[R], step: int) -> None:
        if item.source is not None:
            self.from_source[item.source] = self.from_source.get(item.source, 0) + step

    @property
    def is_full(self) -> bool:
        return len(self.places) >= self.limit


def select_records(
    items: Sequence[RecallItem[R]],
    limit: int,
    *,
    query: str | None = None,
    max_source_share: float = MAX_SOURCE_SHARE,
) -> Selection[R]:
    """Choose at most `limit` records. `items` are best first."""
    relevant = [item for item in items if item.is_relevant]
    learned = _memories_by_evidence(relevant)
    question = None if query is None else Reading(query)
    chosen = _Places[R](limit, max(1, int(limit * max_source_share)))
    while True:
        _fill_places(chosen, relevant, learned, question)
        shown, surplus = _put_trusted_first(chosen.places, learned)
        if not chosen.is_full or chosen.limit >= limit + len(surplus):
            break
        # Versions of a rival take no place of other records.
        chosen = _Places[R](limit + len(surplus), chosen.share)
    chosen.left_out += [(item.record, Omission.FLOOR) for item in items if not item.is_relevant]
    chosen.left_out += [(place.item.record, Omission.RIVAL) for place in surplus]
    return Selection([place.item.record for place in shown[:limit]], chosen.left_out)


def _fill_places(
    chosen: _Places[R],
    relevant: Sequence[RecallItem[R]],
    learned: Mapping[str, RecallItem[R]],
    question: Reading | None,
) -> None:
    decided: set[str] = set()
    for item in relevant:
        if chosen.is_full:
            break
        if item.id in decided:
            continue
        if item.is_memory:
            decided.add(item.id)
            if not item.revised and chosen.covers_memory(item):
                chosen.leave_out(item, Omission.BY_MESSAGE)
            else:
                chosen.place(item)
        elif is_small_talk(item.text):
            chosen.leave_out(item, Omission.SMALL_TALK)
        elif only_asks(item.text, question):
            chosen.leave_out(item, Omission.QUESTION)
        elif learned:
            _choose_for_message(item, learned.get(item.id), chosen, decided, question)
        else:
            chosen.place(item)


def _put_trusted_first(
    places: Sequence[_Place[R]], learned: Mapping[str, RecallItem[R]]
) -> tuple[list[_Place[R]], list[_Place[R]]]:
    """Order trusted memories before their rivals. Return the places to show, and further versions of a rival.

    Whoever can write a document or a message can word it like a trusted memory, as near to the question and as often as
    they like. So neither relevance alone nor number decides between them. A message stands for the memory that was
    `learned` from it.
    """
    trusted: list[tuple[_Place[R], Reading]] = []
    for place in places:
        memory = learned.get(place.item.id, place.item)
        if memory.rank >= TRUSTED_RANK:
            trusted.append((place, place.reading if memory is place.item else Reading(memory.text, memory.speaker)))
    if not trusted:
        return list(places), []
    ordered, shown, surplus = list(places), list[_Place[R]](), list[_Place[R]]()
    for place, reading in trusted:
        first = next(at for at, other in enumerate(ordered) if other is place or _is_rival(other, reading))
        ordered.insert(first, ordered.pop(next(at for at, other in enumerate(ordered) if other is place)))
    for place in ordered:
        is_version = any(_is_rival(place, reading) for _, reading in trusted) and any(
            other.item.rank < OWN_WORDS_RANK and _are_alike(place.reading.statement, other.reading.statement)
            for other in shown
        )
        (surplus if is_version else shown).append(place)
    return shown, surplus


def _are_alike(one: Statement, other: Statement) -> bool:
    return one.covers(other, _ALIKE_SHARE) and other.covers(one, _ALIKE_SHARE)


def _is_rival(other: _Place[R], trusted: Reading) -> bool:
    """True if the words of somebody else resemble a trusted memory."""
    return (
        other.item.rank < OWN_WORDS_RANK
        and other.reading.may_share_words(trusted)
        and other.reading.statement.covers(trusted.statement, _LEAST_RIVAL_SHARE)
    )


def _choose_for_message(
    item: RecallItem[R],
    memory: RecallItem[R] | None,
    chosen: _Places[R],
    decided: set[str],
    question: Reading | None,
) -> None:
    """Place the message, or the memory that was learned from it in its stead."""
    if chosen.cover(item, memory):
        return
    is_new = memory is not None and memory.id not in decided
    if memory is not None and (
        memory.revised or (is_new and not chosen.covers_memory(memory) and _replaces(memory, item, question))
    ):
        decided.add(memory.id)
        if is_new:
            chosen.place(memory)
        if chosen.cover(item, memory):
            return
        if memory.revised:
            # Even if it finds no room, its message is out of date.
            chosen.leave_out(item, Omission.BY_MEMORY)
            return
    chosen.place(item)


def _replaces(memory: RecallItem[R], message: RecallItem[R], question: Reading | None) -> bool:
    """True if the memory says what its message does, and has the words of the question that the message has."""
    if len(message.text) > _LONG_CHARS:
        return True
    said = read_statement(message.text, speaker=message.speaker)
    learned = read_statement(memory.text, speaker=memory.speaker)
    if question is not None and not set(question.statement.stems) & set(said.stems) <= set(learned.stems):
        return False
    return said.adds_to(learned) < _MANY_WORDS_MORE


def _memories_by_evidence(items: Iterable[RecallItem[R]]) -> dict[str, RecallItem[R]]:
    """Return the best memory that was learned from each message; a revised one before the others."""
    found: dict[str, RecallItem[R]] = {}
    for item in sorted((item for item in items if item.is_memory), key=lambda memory: not memory.revised):
        for message_id in item.evidence:
            found.setdefault(message_id, item)
    return found


class _Contest(NamedTuple):
    """The outcome for two records that cannot both be shown: whether the new one is, and why the other is not."""

    item_wins: bool
    reason: Omission


def _compete(item: RecallItem[R], reading: Reading, place: _Place[R]) -> _Contest | None:
    """Compare an item with that of a place. None if both can be shown."""
    other = place.item
    is_near = reading.may_compare(place.reading)
    if is_near and _say_the_same(item, reading, other, place.reading):
        later = item.at is not None and other.at is not None and item.at > other.at
        return _Contest(item.rank > other.rank or (item.rank == other.rank and later), Omission.REPEATED)
    hidden = [pair for pair in place.hidden if reading.may_compare(pair[1])]
    if any(_say_the_same(item, reading, *pair) for pair in hidden) and not _is_news(item, other):
        return _Contest(item_wins=False, reason=Omission.REPEATED)
    # Only speakers can change what they said themselves: others could hide it.
    if (item.rank, item.speaker, item.source) != (other.rank, other.speaker, other.source) or item.is_assistants:
        return None
    if not is_near or item.at is None or other.at is None or item.at == other.at:
        return None
    if item.at > other.at:
        revised = reading.statement.revises(place.reading.statement)
    else:
        revised = place.reading.statement.revises(reading.statement)
    return _Contest(item.at > other.at, Omission.OUTDATED) if revised else None


def _is_news(item: RecallItem[R], other: RecallItem[R]) -> bool:
    """True if a user said the item after the other: a plan may change back."""
    return not item.is_assistants and (item.at is None or other.at is None or item.at > other.at)


def _say_the_same(item: RecallItem[R], reading: Reading, other: RecallItem[R], other_reading: Reading) -> bool:
    if reading.statement.repeats(other_reading.statement):
        return True
    if item.is_assistants == other.is_assistants:
        return False
    return _echoes(reading, other_reading) if item.is_assistants else _echoes(other_reading, reading)


def _echoes(echo: Reading, original: Reading) -> bool:
    return echo.may_compare(original) and echo.statement.echoes(original.statement)


# --- hits -------------------------------------------------------------------------------------------------------------


def select_hits(
    found: Sequence[Hit],
    limit: int,
    *,
    query: str | None = None,
    floor: float | None = None,
    max_source_share: float = MAX_SOURCE_SHARE,
    earlier_evidence: Mapping[str, Iterable[str]] | None = None,
) -> Selection[Hit]:
    """Choose at most `limit` hits. Without a floor of its own, each hit says whether it is relevant.

    `earlier_evidence` has, by its id, the messages that earlier revisions of a memory with another text were learned
    from. Without it, every later revision is taken to say something else.
    """
    items = [_item(hit, floor, earlier_evidence) for hit in found]
    return select_records(items, limit, query=query, max_source_share=max_source_share)


def is_learned(hit: Hit) -> bool:
    """True for a memory of ours. A record of an external provider is a memory with a role."""
    return hit.kind is HitKind.MEMORY and hit.role is None


def _item(hit: Hit, floor: float | None, earlier_evidence: Mapping[str, Iterable[str]] | None) -> RecallItem[Hit]:
    is_memory = is_learned(hit)
    if earlier_evidence is None:
        earlier: Iterable[str] = ()
        is_reworded = (hit.revision or 1) > 1
    else:
        earlier, is_reworded = earlier_evidence.get(hit.id, ()), hit.id in earlier_evidence
    return RecallItem(
        record=hit,
        id=hit.id,
        text=hit.text,
        is_relevant=hit.relevant if floor is None else hit.score >= floor,
        is_memory=is_memory,
        is_assistants=hit.role not in (None, "user"),
        source=None if _is_by_assistant(hit) else hit.source,
        speaker=hit.scope.subject if is_memory else _speaker_of(hit),
        evidence=frozenset((*(link.message_id for link in hit.evidence), *earlier)) if is_memory else _NONE,
        revised=is_memory and is_reworded,
        rank=belief_rank(hit.role, hit.trust, sender=hit.sender, source=hit.source, subject=hit.scope.subject),
        at=hit.said_at or hit.recorded_at,
    )


def _is_by_assistant(hit: Hit) -> bool:
    """True for what the caller's own assistant stored. It may be all there is, so it has no share to keep to."""
    return hit.source == ASSISTANT_SOURCE and is_learned(hit) and hit.plane is not Plane.RESOURCE


def _speaker_of(hit: Hit) -> str | None:
    """Return who said a message; its subject said those of a user without a name."""
    return hit.sender or (hit.scope.subject if hit.role == "user" else None)


def belief_rank(
    role: str | None, trust: Trust | None, *, sender: str | None = None, source: str | None, subject: str | None = None
) -> int:
    """Rank how far a record's words can be believed: a trusted memory, its subject's own words, then all others."""
    if role is None and trust is not None and trust >= Trust.MODEST:
        return TRUSTED_RANK
    if speaks_for_subject(role, sender, source, subject):
        return OWN_WORDS_RANK
    return 1 if role in (None, "user") else 0
