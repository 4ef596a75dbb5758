"""`recall`: search with policy for a model's context. Returns one message that is labelled as data, not instruction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP, whole_number
from holdfast.domain.checks import checked_whole
from holdfast.domain.reference_message import reference_message
from holdfast.domain.results import Hit, HitKind, Recall
from holdfast.domain.scope import Scope
from holdfast.domain.search import MAX_TOP_K, Query
from holdfast.ports import Reader, SearchOptions
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.search import PreparedQuery, QueryRead, check_query, prepare_query, to_hits

# Maximum share of the results that may come from one source (a resource, a webhook, an import).
MAX_SOURCE_SHARE = 0.5
_CANDIDATES_PER_PLACE = 4
_MAX_BUDGET_CHARS = 10_000_000


@dataclass(frozen=True, slots=True)
class RecallMemory(QueryRead, Read[PreparedQuery, Recall]):
    """Select what to show a model within a budget: memories first, and messages where no memory covers them."""

    action: ClassVar[Action] = Action.RECALL
    scope: Scope
    query: Query
    options: Annotated[SearchOptions, GROUP]
    budget_chars: Annotated[int, whole_number(1, _MAX_BUDGET_CHARS), "The size of the message, in characters."] = 4_000

    def __post_init__(self) -> None:
        check_query(self.query, self.options, places="limit")
        checked_whole(self.budget_chars, "budget_chars", 1, _MAX_BUDGET_CHARS)

    async def prepare(self, core: Core, grant: Grant) -> PreparedQuery:
        return await prepare_query(core, grant, self.query, self.options)

    def apply(self, reader: Reader, prepared: PreparedQuery) -> Recall:
        candidates = min(self.options.top_k * _CANDIDATES_PER_PLACE, MAX_TOP_K)
        # Quarantined records are never recalled, whatever the options say.
        # Only facts valid at the time of the query are recalled, unless it names another time.
        valid_at = self.options.valid_at or self.options.as_of or prepared.now
        options = replace(self.options, top_k=candidates, quarantined=False, valid_at=valid_at)
        ranked = prepared.core.searcher.rank(reader.index, self.scope, self.query, prepared.vector, options)
        chosen, omitted = choose_hits(to_hits(reader, ranked.best), self.options.top_k)
        shown, message = reference_message(chosen, self.budget_chars)
        if len(shown) < len(chosen):
            omitted["budget"] = len(chosen) - len(shown)
        return Recall(tuple(shown), message, omitted)

    def record_count(self, result: Recall) -> int:
        return len(result.hits)


def choose_hits(ranked: Sequence[Hit], places: int) -> tuple[list[Hit], dict[str, int]]:
    """Choose the best hits by score; order memories first, then messages that are evidence of no chosen memory."""
    covered: set[str] = set()
    while True:
        chosen, omitted = _choose_by_score(ranked, places, covered)
        carried = {link.message_id for hit in chosen if hit.kind is HitKind.MEMORY for link in hit.evidence}
        # Removing a message makes room, perhaps for a memory whose evidence is also chosen: repeat until stable.
        if carried <= covered:
            chosen.sort(key=lambda hit: hit.kind is not HitKind.MEMORY)
            return chosen, dict(omitted)
        covered |= carried


def _choose_by_score(ranked: Sequence[Hit], places: int, covered: set[str]) -> tuple[list[Hit], Counter[str]]:
    omitted: Counter[str] = Counter()
    share = max(1, int(places * MAX_SOURCE_SHARE))
    from_source: Counter[str] = Counter()
    chosen: list[Hit] = []
    for hit in ranked:
        if len(chosen) == places:
            break
        if hit.kind is HitKind.MESSAGE and hit.id in covered:
            omitted["covered_by_memory"] += 1
        elif hit.source is not None and from_source[hit.source] >= share:
            omitted["source_share"] += 1
        else:
            chosen.append(hit)
            if hit.source is not None:
                from_source[hit.source] += 1
    return chosen, omitted
