"""`search`: rank memories and messages for a query. `explain`: the same, with the scores broken down."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Annotated, ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP
from holdfast.domain.checks import MAX_FILTER_CHARS, MAX_QUERY_CHARS, checked_text, checked_whole
from holdfast.domain.conditions import checked_condition
from holdfast.domain.contract import Usage
from holdfast.domain.ids import Id, checked_id
from holdfast.domain.memory import Evidence, MemoryRecord
from holdfast.domain.ranking import FloatArray
from holdfast.domain.recall_policy import check_floor
from holdfast.domain.results import Absence, Component, Explanation, Hit, HitKind, Record, Way
from holdfast.domain.scope import Scope
from holdfast.domain.search import MAX_TOP_K, Method, Query, check_radius
from holdfast.errors import EmbedderUnavailable, InvalidInput, NotFound
from holdfast.loops import run_sync
from holdfast.ports import Purpose, QueryVector, RankedCandidates, Reader, ScoredCandidate, SearchOptions
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Read

log = logging.getLogger("holdfast")
_NOTHING_MATCHES = {
    Method.HYBRID: "nothing in it matches the query, neither words nor meaning",
    Method.KEYWORD: "it holds none of the query's words",
    Method.VECTOR: "it has no vector to compare with the query's",
}


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query that is ready to be ranked. Without a vector it is ranked by words alone.

    `by_words_only` means this was not requested: the embedder was unavailable. `took` is the embedder's metered usage.
    """

    core: Core
    vector: QueryVector
    now: datetime
    by_words_only: bool = False
    took: tuple[Usage, ...] = ()


class QueryRead:
    """Mixin of reads that embed a query first."""

    __slots__ = ()

    def metered_usage(self, prepared: PreparedQuery) -> tuple[Usage, ...]:
        return prepared.took


async def prepare_query(core: Core, grant: Grant, query: str, wanted: SearchOptions) -> PreparedQuery:
    if wanted.method is Method.KEYWORD:
        return PreparedQuery(core, None, core.clock.now())
    if getattr(core.embedder, "sync_safe", False):
        # A fast local embedder: embed in the thread that ranks.
        return PreparedQuery(core, partial(_embed_query_inline, core), core.clock.now())
    text = await core.store.read(
        grant, lambda reader: core.searcher.text_to_embed(reader.index, grant.scope, query, wanted)
    )
    try:
        made = await indexing.embed_texts(core, [text], Purpose.QUERY)
    except EmbedderUnavailable as error:
        if wanted.method is Method.VECTOR or wanted.radius is not None:
            # These options need a vector; there is no fallback.
            raise
        # Fall back to words only; `explain` reports it.
        log.warning("searching by words only: %s", error)
        return PreparedQuery(core, None, core.clock.now(), by_words_only=True)
    return PreparedQuery(core, indexing.query_vector(made.result), core.clock.now(), took=made.took)


def _embed_query_inline(core: Core, text: str) -> FloatArray:
    return indexing.query_vector(run_sync(indexing.embed_texts(core, [text], Purpose.QUERY)).result)


def check_query(query: str, wanted: SearchOptions) -> None:
    checked_text(query, "query", max_chars=MAX_QUERY_CHARS)
    check_options(wanted)


def check_options(wanted: SearchOptions) -> None:
    checked_whole(wanted.top_k, "top_k", 1, MAX_TOP_K)
    for name in ("sender", "source"):
        if (value := getattr(wanted, name)) is not None:
            checked_text(value, name, max_chars=MAX_FILTER_CHARS)
    check_floor(wanted.min_score)
    if wanted.radius is not None:
        check_radius(wanted.radius, "radius")
        if wanted.method is Method.KEYWORD:
            raise InvalidInput("radius", "needs vectors, which the method keyword does not use; choose another method")
    if wanted.condition is not None:
        checked_condition(wanted.condition)


@dataclass(frozen=True, slots=True)
class Search(QueryRead, Read[PreparedQuery, tuple[Hit, ...]]):
    """Search memories and messages; return hits with scores and evidence, best first. All filters must match."""

    action: ClassVar[Action] = Action.SEARCH
    scope: Scope
    query: Query
    options: Annotated[SearchOptions, GROUP] = field(default_factory=SearchOptions)

    def __post_init__(self) -> None:
        check_query(self.query, self.options)

    async def prepare(self, core: Core, grant: Grant) -> PreparedQuery:
        return await prepare_query(core, grant, self.query, self.options)

    def apply(self, reader: Reader, prepared: PreparedQuery) -> tuple[Hit, ...]:
        ranked = prepared.core.searcher.rank(reader.index, self.scope, self.query, prepared.vector, self.options)
        return to_hits(reader, ranked)

    def record_count(self, result: tuple[Hit, ...]) -> int:
        return len(result)


@dataclass(frozen=True, slots=True)
class Explain(QueryRead, Read[PreparedQuery, Explanation]):
    """Search and return every component of each score."""

    action: ClassVar[Action] = Action.EXPLAIN
    scope: Scope
    query: Query
    options: Annotated[SearchOptions, GROUP] = field(default_factory=SearchOptions)
    record_id: Annotated[Id | None, "Also show this record's rank, or why it was not found."] = None

    def __post_init__(self) -> None:
        check_query(self.query, self.options)
        if self.record_id is not None:
            checked_id(self.record_id, "record_id")

    async def prepare(self, core: Core, grant: Grant) -> PreparedQuery:
        return await prepare_query(core, grant, self.query, self.options)

    def apply(self, reader: Reader, prepared: PreparedQuery) -> Explanation:
        target = self._target(reader)
        ranked = prepared.core.searcher.rank(
            reader.index, self.scope, self.query, prepared.vector, self.options, target, explained=True
        )
        understood = dict(ranked.understood)
        if prepared.by_words_only:
            understood["embedder"] = "unavailable: ranked by words only"
        return Explanation(
            query=understood,
            hits=_mark_contradictions(reader, to_hits(reader, ranked, explained=True)),
            candidates=ranked.candidates,
            embedder=prepared.core.embedder.fingerprint,
            absence=self._absence(ranked) if target is not None else None,
            ways=self._ways(ranked, prepared.core),
            recall=ranked.recall,
            basis=ranked.basis,
        )

    def _ways(self, ranked: RankedCandidates, core: Core) -> tuple[Way, ...]:
        """Add the store's reason if the store caused an exact search of a large partition."""
        because = core.store.exact_because
        return tuple(replace(way, reason=because) if way.reason and because else way for way in ranked.ways)

    def _target(self, reader: Reader) -> int | None:
        if self.record_id is None:
            return None
        found = reader.records.find(self.record_id, self.options.as_of) or reader.records.find(self.record_id)
        if found is None:
            raise NotFound(f"there is no memory or message {self.record_id!r:.80} in this scope")
        return found[0]

    def _absence(self, ranked: RankedCandidates) -> Absence | None:
        assert self.record_id is not None
        if ranked.target is None:
            return Absence(self.record_id, ranked.why_absent or "it was not a candidate")
        rank, scored = ranked.target
        if any(scored.number == hit.number for hit in ranked.best):
            return None
        cutoff = ranked.best.scores[-1] if ranked.best else None
        min_score = self.options.min_score
        if min_score is not None and scored.score < min_score:
            reason = f"its score is below the requested minimum, {min_score}"
        elif ranked.why_absent is not None:
            reason = ranked.why_absent
        elif rank > self.options.top_k:
            reason = f"its rank is {rank} of {ranked.candidates}; only the best {self.options.top_k} were requested"
        elif any(way.approximate for way in ranked.ways):
            reason = f"an exact search would have ranked it {rank}; the approximate search missed it"
        else:
            reason = _NOTHING_MATCHES[self.options.method]
        return Absence(self.record_id, reason, rank, scored.score, cutoff, components(scored))

    def record_count(self, result: Explanation) -> int:
        return len(result.hits)


def to_hits(
    reader: Reader, ranked: RankedCandidates, *, places: slice = slice(None), explained: bool = False
) -> tuple[Hit, ...]:
    """Load the records at these places of the ranking."""
    chosen = range(*places.indices(len(ranked.best)))
    numbers, scores, floor = ranked.best.numbers, ranked.best.scores, ranked.floor
    records = reader.records.fetch([numbers[place] for place in chosen])
    return tuple(
        to_hit(
            records[numbers[place]],
            scores[place],
            components(ranked.best[place]) if explained else (),
            relevant=scores[place] >= floor,
        )
        for place in chosen
        if numbers[place] in records
    )


def _mark_contradictions(reader: Reader, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Add the memories that each current memory contradicts."""
    found = reader.records.contradictions([hit.id for hit in hits if hit.kind is HitKind.MEMORY])
    return tuple(replace(hit, contradicts=tuple(found[hit.id])) if hit.id in found else hit for hit in hits)


def to_hit(record: Record, score: float, parts: tuple[Component, ...] = (), *, relevant: bool = True) -> Hit:
    if isinstance(record, MemoryRecord):
        return Hit(
            id=record.id,
            kind=HitKind.MEMORY,
            text=record.text,
            score=score,
            scope=record.scope,
            evidence=record.evidence,
            recorded_at=record.recorded_at,
            plane=record.plane,
            trust=record.trust,
            status=record.status,
            revision=record.revision,
            validity=record.validity,
            source=record.source,
            metadata=dict(record.metadata),
            components=parts,
            relevant=relevant,
            contradicts=record.contradicts,
        )
    # A message is its own evidence.
    itself = Evidence(
        record.id, record.text, record.sender, record.said_at, record.scope.conversation, record.external_id
    )
    return Hit(
        id=record.id,
        kind=HitKind.MESSAGE,
        text=record.text,
        score=score,
        scope=record.scope,
        evidence=(itself,),
        recorded_at=record.recorded_at,
        said_at=record.said_at,
        sender=record.sender,
        role=record.role,
        external_id=record.external_id,
        source=record.source,
        metadata=dict(record.metadata),
        components=parts,
        relevant=relevant,
    )


def components(scored: ScoredCandidate) -> tuple[Component, ...]:
    return tuple(
        Component(name, raw, normalized, weight, normalized * weight)
        for name, (raw, normalized, weight) in scored.parts.items()
    )
