"""Choose what to show a model: the one policy of `recall`, `hydrate`, `project`, the gateway and the agent.

The order is that of relevance. A record that does not bear on the query is left out, and so is small talk. A memory
replaces the messages it was learned from, and stands where the best of them stands; if it says less than such a
message, the message is shown. Records that say the same take one
place. One source fills at most its share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from holdfast.domain.memory import Trust
from holdfast.domain.repetition import Statement, is_small_talk, read_statement
from holdfast.domain.results import Hit, HitKind

R = TypeVar("R")

# Maximum share of the results that may come from one source (a resource, a webhook, an import).
MAX_SOURCE_SHARE = 0.5
# A memory says less than its message if the message has so many words more, or the memory less than this share of its
# score; then the message is shown, unless it is long.
_MANY_WORDS_MORE, _LEAST_SCORE_SHARE = 3, 0.5
_LONG_CHARS = 300
_NONE: frozenset[str] = frozenset()


class Omission(StrEnum):
    """The reason why a record that was found is not shown."""

    FLOOR = "below_floor"
    SMALL_TALK = "small_talk"
    REPEATED = "repeated"
    BY_MEMORY = "covered_by_memory"
    BY_MESSAGE = "covered_by_message"
    SOURCE_SHARE = "source_share"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class RecallItem(Generic[R]):
    """A record that was found, with what the policy reads of it; `record` is the caller's own.

    `evidence` are the ids of the messages that a memory was learned from. A `revised` memory says something else than
    they do. `rank` is how far its words can be believed: of records that say the same, the highest is shown.
    """

    record: R
    id: str
    text: str
    score: float | None
    is_relevant: bool = True
    is_memory: bool = False
    is_assistants: bool = False
    source: str | None = None
    speaker: str | None = None
    evidence: frozenset[str] = frozenset()
    revised: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Selection(Generic[R]):
    """The chosen records, the most relevant first, and those left out, with the reason."""

    records: list[R]
    left_out: list[tuple[R, Omission]] = field(default_factory=list)

    @property
    def omission_counts(self) -> Counter[str]:
        """Count the records that were left out by reason."""
        return Counter(reason.value for _, reason in self.left_out)


@dataclass(slots=True)
class _Place(Generic[R]):
    item: RecallItem[R]
    statement: Statement


@dataclass(slots=True)
class _Places(Generic[R]):
    """The places filled so far."""

    limit: int
    share: int
    places: list[_Place[R]] = field(default_factory=list)
    from_source: Counter[str] = field(default_factory=Counter)
    left_out: list[tuple[R, Omission]] = field(default_factory=list)

    def leave_out(self, item: RecallItem[R], reason: Omission) -> None:
        self.left_out.append((item.record, reason))

    def place(self, item: RecallItem[R]) -> bool:
        """Give the item a place, or let it share the place of one that says the same. False if its source is full."""
        statement = read_statement(item.text, speaker=item.speaker)
        for taken in self.places:
            if _says_the_same(item, statement, taken):
                if item.rank > taken.item.rank and self._has_room(item, taken.item.source):
                    self.leave_out(taken.item, Omission.REPEATED)
                    self._count(taken.item, -1)
                    self._count(item, 1)
                    taken.item, taken.statement = item, statement
                else:
                    self.leave_out(item, Omission.REPEATED)
                return True
        if not self._has_room(item):
            self.leave_out(item, Omission.SOURCE_SHARE)
            return False
        self._count(item, 1)
        self.places.append(_Place(item, statement))
        return True

    def _has_room(self, item: RecallItem[R], leaving: str | None = None) -> bool:
        source = item.source
        return source is None or source == leaving or self.from_source[source] < self.share

    def _count(self, item: RecallItem[R], step: int) -> None:
        if item.source is not None:
            self.from_source[item.source] += step

    @property
    def is_full(self) -> bool:
        return len(self.places) >= self.limit


def select_records(
    items: Sequence[RecallItem[R]], limit: int, *, max_source_share: float = MAX_SOURCE_SHARE
) -> Selection[R]:
    """Choose at most `limit` records. `items` are best first."""
    relevant = [item for item in items if item.is_relevant]
    chosen = _Places[R](limit, max(1, int(limit * max_source_share)))
    chosen.left_out += [(item.record, Omission.FLOOR) for item in items if not item.is_relevant]
    learned = _memories_by_evidence(relevant)
    settled: set[str] = set()
    for item in relevant:
        if chosen.is_full:
            break
        if item.id in settled:
            continue
        if not item.is_memory and is_small_talk(item.text):
            chosen.leave_out(item, Omission.SMALL_TALK)
        else:
            _choose(item, learned.get(item.id), chosen, settled)
    return Selection([place.item.record for place in chosen.places], chosen.left_out)


def _choose(item: RecallItem[R], memory: RecallItem[R] | None, chosen: _Places[R], settled: set[str]) -> None:
    """Place an item: a memory, a message, or in place of a message the memory that was learned from it."""
    if memory is None:
        if chosen.place(item):
            settled.add(item.id)
    elif memory.id in settled or (_replaces(memory, item) and chosen.place(memory)):
        settled.add(memory.id)
        chosen.leave_out(item, Omission.BY_MEMORY)
    elif chosen.place(item):
        # The message says more than the memory, which then adds nothing.
        settled.add(memory.id)
        chosen.leave_out(memory, Omission.BY_MESSAGE)


def _replaces(memory: RecallItem[R], message: RecallItem[R]) -> bool:
    """True if the memory says what its message does. A revised one always does: the message is out of date."""
    if memory.revised:
        return True
    if memory.score is not None and message.score is not None and memory.score < _LEAST_SCORE_SHARE * message.score:
        return False
    if len(message.text) > _LONG_CHARS:
        return True
    said = read_statement(message.text, speaker=message.speaker)
    return said.adds_to(read_statement(memory.text, speaker=memory.speaker)) < _MANY_WORDS_MORE


def _memories_by_evidence(items: Iterable[RecallItem[R]]) -> dict[str, RecallItem[R]]:
    """Return the best memory that was learned from each message."""
    found: dict[str, RecallItem[R]] = {}
    for item in items:
        if item.is_memory:
            for message_id in item.evidence:
                found.setdefault(message_id, item)
    return found


def _says_the_same(item: RecallItem[R], statement: Statement, taken: _Place[R]) -> bool:
    if statement.repeats(taken.statement):
        return True
    if item.is_assistants == taken.item.is_assistants:
        return False
    echo, original = (statement, taken.statement) if item.is_assistants else (taken.statement, statement)
    return echo.echoes(original)


# --- hits -------------------------------------------------------------------------------------------------------------


def select_hits(
    found: Sequence[Hit],
    limit: int,
    *,
    floor: float | None = None,
    max_source_share: float = MAX_SOURCE_SHARE,
    earlier_evidence: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> Selection[Hit]:
    """Choose at most `limit` hits. Without a floor of its own, each hit says whether it is relevant.

    `earlier_evidence` has the messages that earlier revisions of a memory were learned from, by its id.
    """
    items = [_item(hit, floor, earlier_evidence.get(hit.id, ())) for hit in found]
    return select_records(items, limit, max_source_share=max_source_share)


def is_learned(hit: Hit) -> bool:
    """True for a memory of ours. A record of an external provider is a memory with a role."""
    return hit.kind is HitKind.MEMORY and hit.role is None


def _item(hit: Hit, floor: float | None, earlier_evidence: Iterable[str]) -> RecallItem[Hit]:
    is_memory = is_learned(hit)
    return RecallItem(
        record=hit,
        id=hit.id,
        text=hit.text,
        score=hit.score,
        is_relevant=hit.relevant if floor is None else hit.score >= floor,
        is_memory=is_memory,
        is_assistants=hit.role not in (None, "user"),
        source=hit.source,
        speaker=hit.scope.subject if is_memory else hit.sender,
        evidence=frozenset((*(link.message_id for link in hit.evidence), *earlier_evidence)) if is_memory else _NONE,
        revised=is_memory and (hit.revision or 1) > 1,
        rank=belief_rank(hit.role, hit.trust, from_source=hit.source is not None),
    )


def belief_rank(role: str | None, trust: Trust | None, *, from_source: bool) -> int:
    """Rank how far a record's words can be believed: a trusted memory, a user's words, then all others."""
    if role is None and trust is not None and trust >= Trust.MODEST:
        return 3
    if role == "user" and not from_source:
        return 2
    return 1 if role in (None, "user") else 0
