"""From texts to what search needs of them: analysis always, vectors where the embedder is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from holdfast.domain.access import Grant
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured
from holdfast.failpoints import reach
from holdfast.loops import aside
from holdfast.ports import Analysis, Indexed, Purpose, Reader, Transaction, Unindexed
from holdfast.runtime.perform import Core

# Above this many characters, analysis moves off the event loop.
_INLINE_CHARS = 20_000
BATCH = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """A text's analysis, and the vectors of its pieces as they are stored."""

    analysis: Analysis
    vectors: tuple[bytes, ...]


async def entries(core: Core, texts: Sequence[str]) -> list[Entry]:
    """One entry per text. A remote embedder is not waited for: then the vectors are made by a job."""
    analyses = await analyzed(core, texts)
    if not core.embedder.local:
        return [Entry(analysis, ()) for analysis in analyses]
    return [
        Entry(analysis, vectors) for analysis, vectors in zip(analyses, await embedded(core, analyses), strict=True)
    ]


async def analyzed(core: Core, texts: Sequence[str]) -> list[Analysis]:
    if sum(map(len, texts)) <= _INLINE_CHARS:
        return [core.analyzer.analyze(text) for text in texts]
    return await aside(lambda: [core.analyzer.analyze(text) for text in texts])


async def embedded(core: Core, analyses: Sequence[Analysis]) -> list[tuple[bytes, ...]]:
    pieces = [piece for analysis in analyses for piece in analysis.pieces]
    rows = stored_vectors(await vectors_of(core, pieces, Purpose.DOCUMENT)) if pieces else []
    if len(analyses) == 1:
        return [tuple(rows)]
    remaining = iter(rows)
    return [tuple(next(remaining) for _ in analysis.pieces) for analysis in analyses]


async def vectors_of(core: Core, texts: Sequence[str], purpose: Purpose) -> FloatArray:
    """The texts embedded. What an embedder of somebody else's answers is not believed unseen."""
    made = await core.embedder.embed(texts, purpose)
    wanted = (len(texts), core.embedder.dimensions)
    if getattr(made, "shape", None) != wanted or not np.isfinite(made).all():
        raise EmbedderMisconfigured(
            f"{core.embedder.fingerprint:.80} must answer {wanted[0]} rows of {wanted[1]} finite numbers, and did not"
        )
    return made


def stored_vectors(vectors: FloatArray) -> list[bytes]:
    """Half precision, little-endian: half the bytes, and the ranking does not notice."""
    return [row.tobytes() for row in vectors.astype("<f2")]


async def catch_up(core: Core, waiting: Sequence[Unindexed]) -> list[Indexed]:
    """What indexing makes of records that wait for it."""
    analyses = await analyzed(core, [record.text for record in waiting])
    vectors = await embedded(core, analyses)
    return [
        Indexed(record.number, made, analysis)
        for record, made, analysis in zip(waiting, vectors, analyses, strict=True)
    ]


async def index_waiting(core: Core, grant: Grant) -> int:
    """Index everything in the grant's scope that waits for it, a batch per transaction; how many there were."""
    done = after = 0
    fingerprint, version = core.embedder.fingerprint, core.analyzer.version

    def next_batch(reader: Reader) -> Sequence[Unindexed]:
        return reader.unindexed(fingerprint, version, after, BATCH)

    while waiting := await core.store.read(grant, next_batch):
        made = await catch_up(core, waiting)
        await core.store.write(grant, partial(put, made, fingerprint, version))
        done += len(waiting)
        after = waiting[-1].number
    return done


def put(made: Sequence[Indexed], fingerprint: str, version: int, transaction: Transaction) -> None:
    reach("index.before")
    transaction.index(made, fingerprint, version)
    reach("index.after")


def query_vector(vectors: FloatArray) -> FloatArray:
    return np.ascontiguousarray(vectors[0], dtype=np.float32)
