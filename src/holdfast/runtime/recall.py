"""`recall`: search with policy for a model's context. Returns one message that is labelled as data, not instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP, whole_number
from holdfast.domain.checks import checked_whole
from holdfast.domain.ids import MessageId
from holdfast.domain.recall_policy import MAX_SOURCE_SHARE, Omission, Selection, is_learned, select_hits
from holdfast.domain.reference_message import MessageBudget, reference_message
from holdfast.domain.results import Hit, Recall
from holdfast.domain.scope import Scope
from holdfast.domain.search import MAX_TOP_K, Query
from holdfast.errors import InvalidInput
from holdfast.ports import RankedCandidates, Reader, SearchOptions
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.search import PreparedQuery, QueryRead, check_query, prepare_query, to_hits

DEFAULT_CHARS = 4_000
# Records that say the same share a place, so more are considered than there are places.
_CANDIDATES_PER_PLACE, _SPARE_CANDIDATES = 3, 2
_MAX_BUDGET = 10_000_000


@dataclass(frozen=True, slots=True)
class RecallMemory(QueryRead, Read[PreparedQuery, Recall]):
    """Select what to show a model within a budget: what bears on the query, best first, each thing once.

    If nothing bears on the query, the message is empty. `min_score` replaces the floor below which that is so; 0
    switches it off.
    """

    action: ClassVar[Action] = Action.RECALL
    scope: Scope
    query: Query
    options: Annotated[SearchOptions, GROUP]
    budget_chars: Annotated[
        int | None, whole_number(1, _MAX_BUDGET), "The size of the message in characters; 4,000 without any budget."
    ] = None
    budget_tokens: Annotated[
        int | None,
        whole_number(1, _MAX_BUDGET),
        "The size of the message in tokens of the embedder, or of a given tokenizer.",
    ] = None

    def __post_init__(self) -> None:
        check_query(self.query, self.options)
        for name in ("budget_chars", "budget_tokens"):
            if (budget := getattr(self, name)) is not None:
                checked_whole(budget, name, 1, _MAX_BUDGET)

    async def prepare(self, core: Core, grant: Grant) -> PreparedQuery:
        if self.budget_tokens is not None and core.count_tokens is None:
            raise InvalidInput(
                "budget_tokens", "this embedder has no tokenizer; open the memory with a tokenizer, or use budget_chars"
            )
        return await prepare_query(core, grant, self.query, self.options)

    def apply(self, reader: Reader, prepared: PreparedQuery) -> Recall:
        candidates = min(self.options.top_k * _CANDIDATES_PER_PLACE, MAX_TOP_K)
        # Quarantined records are never recalled, whatever the options say.
        # Only facts valid at the time of the query are recalled, unless it names another time.
        valid_at = self.options.valid_at or self.options.as_of or prepared.now
        options = replace(self.options, top_k=candidates, quarantined=False, valid_at=valid_at, min_score=None)
        ranked = prepared.core.searcher.rank(reader.index, self.scope, self.query, prepared.vector, options)
        floor = ranked.floor if self.options.min_score is None else self.options.min_score
        # Scores never rise along the ranking: the texts of those below the floor are not read.
        relevant = sum(score >= floor for score in ranked.best.scores)
        chosen = self._select(reader, ranked, relevant, floor)
        below = {Omission.FLOOR.value: len(ranked.best) - relevant} if relevant < len(ranked.best) else {}
        return self.to_recall(chosen, prepared.core.count_tokens, nothing_reason(ranked, floor), below)

    def _select(self, reader: Reader, ranked: RankedCandidates, relevant: int, floor: float) -> Selection[Hit]:
        """Load as many hits as usually fill the places; all of them if some share a place."""
        places = self.options.top_k
        enough = min(places + _SPARE_CANDIDATES, relevant)
        hits = to_hits(reader, ranked, places=slice(enough))
        chosen = select_loaded(reader, hits, places, self.query, floor)
        if len(chosen.records) < places and enough < relevant:
            hits += to_hits(reader, ranked, places=slice(enough, relevant))
            chosen = select_loaded(reader, hits, places, self.query, floor)
        return chosen

    def to_recall(
        self,
        chosen: Selection[Hit],
        count_tokens: Callable[[str], int] | None,
        reason: str,
        omitted: Mapping[str, int] = MappingProxyType({}),
    ) -> Recall:
        """Render the chosen hits within the budget. `reason` says why there are none, if there are none."""
        chars = DEFAULT_CHARS if self.budget_chars is self.budget_tokens is None else self.budget_chars
        budget = MessageBudget(chars, self.budget_tokens, count_tokens)
        shown, message = reference_message(chosen.records, budget)
        counts = {**omitted, **chosen.omission_counts}
        if len(shown) < len(chosen.records):
            counts[Omission.BUDGET.value] = len(chosen.records) - len(shown)
            reason = "the budget is too small for any record"
        return Recall(tuple(shown), message, counts, None if shown else reason)

    def record_count(self, result: Recall) -> int:
        return len(result.hits)


def select_loaded(
    reader: Reader,
    hits: Sequence[Hit],
    limit: int,
    query: str,
    floor: float | None = None,
    *,
    max_source_share: float = MAX_SOURCE_SHARE,
) -> Selection[Hit]:
    """Choose among hits of our own store."""
    return select_hits(
        hits,
        limit,
        query=query,
        floor=floor,
        max_source_share=max_source_share,
        earlier_evidence=_earlier_evidence(reader, hits),
    )


def _earlier_evidence(reader: Reader, hits: Sequence[Hit]) -> Mapping[str, Iterable[str]]:
    """Return the messages that the memories with another text than before were learned from: they replace these, too.

    A revision that only adds evidence, an end or a mark says what its messages say.
    """
    revised = [hit.id for hit in hits if is_learned(hit) and (hit.revision or 1) > 1]
    if not revised:
        return {}
    histories = reader.records.histories(revised)
    reworded = [history[-1].id for history in histories if any(each.text != history[-1].text for each in history)]
    found: dict[str, set[MessageId]] = {memory_id: set() for memory_id in reworded}
    for (memory_id, _), evidence in reader.records.links(reworded).items():
        found[memory_id].update(evidence)
    return found


def nothing_reason(ranked: RankedCandidates, floor: float) -> str:
    """Say why nothing was recalled."""
    if not ranked.best:
        return "nothing was found: this scope holds no record that matches"
    best = ranked.best.scores[0]
    if best < floor:
        return (
            f"nothing bears on the query: the best of {ranked.candidates:,} candidates scores {best:.3f}, below the"
            f" floor of {floor:.3f}"
        )
    return f"only small talk and questions reach the floor of {floor:.3f}"
