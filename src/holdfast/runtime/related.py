"""Find the known memories that a new fact may repeat, update or contradict: near in words and in meaning, and few."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

import numpy as np

from holdfast.domain.access import Grant
from holdfast.domain.memory import MemoryRecord, Plane, Status
from holdfast.domain.ranking import FloatArray
from holdfast.domain.results import HitKind
from holdfast.domain.scope import Scope
from holdfast.ports import Purpose, Reader, SearchOptions
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core

MAX_RELATED = 32
# Of many texts the last are compared: they are the newest.
_MAX_TEXTS = 64
# More are ranked than are returned, because memories of narrower scopes are left out.
_RANKED = 24


async def find_related(
    core: Core,
    grant: Grant,
    scope: Scope,
    texts: Sequence[str],
    entries: Sequence[indexing.IndexedText] | None = None,
    *,
    limit: int = MAX_RELATED,
    valid_at: datetime | None = None,
) -> tuple[MemoryRecord, ...]:
    """Return current, accepted memories of exactly this scope that are near any of the texts, the nearest first.

    Texts without entries are embedded if that needs no network; otherwise they are compared by words. With `valid_at`,
    memories that are not valid at that time are left out. The result is a proposal: they may have changed when a
    transaction begins.
    """
    texts, entries = texts[-_MAX_TEXTS:], None if entries is None else entries[-_MAX_TEXTS:]
    if not texts:
        return ()
    vectors = await _query_vectors(core, texts, entries)

    def find(reader: Reader) -> tuple[MemoryRecord, ...]:
        return _find_nearest(core, reader, scope, list(zip(texts, vectors, strict=True)), limit, valid_at)

    return await core.store.read(grant, find)


async def _query_vectors(
    core: Core, texts: Sequence[str], entries: Sequence[indexing.IndexedText] | None
) -> list[FloatArray | None]:
    if entries is not None:
        return [np.frombuffer(each.vectors[0], "<f2").astype(np.float32) if each.vectors else None for each in entries]
    if not core.embedder.local:
        return [None] * len(texts)
    made = (await indexing.embed_texts(core, texts, Purpose.QUERY)).result
    return [np.ascontiguousarray(row, dtype=np.float32) for row in made]


def _find_nearest(
    core: Core,
    reader: Reader,
    scope: Scope,
    queries: Sequence[tuple[str, FloatArray | None]],
    limit: int,
    valid_at: datetime | None,
) -> tuple[MemoryRecord, ...]:
    options = SearchOptions(top_k=_RANKED, kind=HitKind.MEMORY, planes=frozenset({Plane.LONG_TERM}), valid_at=valid_at)
    places: dict[int, tuple[int, float]] = {}
    for text, vector in queries:
        ranked = core.searcher.rank(reader.index, scope, text, vector, options)
        for place, scored in enumerate(ranked.best):
            nearer = (place, -scored.score)
            places[scored.number] = min(places.get(scored.number, nearer), nearer)
    # The nearest of each text come first, so that no text is left without any.
    near = sorted(places, key=lambda number: places[number])[: limit * 4]
    records = reader.records.fetch(near)
    found = (records[number] for number in near if number in records)
    comparable = (each for each in found if isinstance(each, MemoryRecord) and is_comparable(each, scope))
    return tuple(islice(comparable, limit))


def is_comparable(memory: MemoryRecord, scope: Scope) -> bool:
    """True for a current, accepted memory of exactly this scope, on the plane of learned facts."""
    return (
        memory.scope == scope
        and memory.plane is Plane.LONG_TERM
        and memory.status is Status.ACCEPTED
        and memory.superseded_at is None
    )
