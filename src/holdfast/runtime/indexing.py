"""Index texts for search: analyze them always, embed them at once if the embedder is local."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar, cast

import numpy as np

from holdfast.domain.access import Grant
from holdfast.domain.contract import Usage
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured
from holdfast.failpoints import reach
from holdfast.loops import run_in_thread
from holdfast.ports import Analysis, Embedder, IndexUpdate, Purpose, Reader, Transaction, UnindexedRecord
from holdfast.ports.models import MeteredEmbedder
from holdfast.runtime.gate import Core
from holdfast.runtime.metering import embedding_usage, report_costs, with_costs

T = TypeVar("T")

# Above this many characters, analysis moves off the event loop.
_INLINE_CHARS = 20_000
BATCH = 256


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text's analysis, and the vectors of its pieces in stored form."""

    analysis: Analysis
    vectors: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class MeteredResult(Generic[T]):
    """An embedder's result, and its metered usage."""

    result: T
    took: tuple[Usage, ...] = ()


async def make_entries(core: Core, texts: Sequence[str]) -> list[IndexedText]:
    """Return one entry per text. With a remote embedder the vectors are left to a job."""
    analyses = await analyze_texts(core, texts)
    if not core.embedder.local:
        return [IndexedText(analysis, ()) for analysis in analyses]
    vectors = (await embed_analyses(core, analyses)).result
    return [IndexedText(analysis, made) for analysis, made in zip(analyses, vectors, strict=True)]


async def analyze_texts(core: Core, texts: Sequence[str]) -> list[Analysis]:
    if sum(map(len, texts)) <= _INLINE_CHARS:
        return [core.analyzer.analyze(text) for text in texts]
    return await run_in_thread(lambda: [core.analyzer.analyze(text) for text in texts])


async def embed_analyses(core: Core, analyses: Sequence[Analysis]) -> MeteredResult[list[tuple[bytes, ...]]]:
    pieces = [piece for analysis in analyses for piece in analysis.pieces]
    made = await embed_texts(core, pieces, Purpose.DOCUMENT) if pieces else None
    rows = [] if made is None else encode_vectors(made.result)
    remaining = iter(rows)
    of_each = [tuple(next(remaining) for _ in analysis.pieces) for analysis in analyses]
    return MeteredResult(of_each, () if made is None else made.took)


async def embed_texts(core: Core, texts: Sequence[str], purpose: Purpose) -> MeteredResult[FloatArray]:
    """Embed the texts. Validates the shape and values, because an embedder may be third-party code."""
    vectors, took = await _embed(core.embedder, texts, purpose)
    shape = (len(texts), core.embedder.dimensions)
    if getattr(vectors, "shape", None) != shape or not np.isfinite(vectors).all():
        raise _explain_vectors(core.embedder, vectors, shape)
    return MeteredResult(vectors, took)


def _explain_vectors(embedder: Embedder, vectors: object, shape: tuple[int, int]) -> EmbedderMisconfigured:
    came = getattr(vectors, "shape", None)
    found = f"a {type(vectors).__name__}" if came is None else f"shape {came}" if came != shape else "NaN or infinity"
    return EmbedderMisconfigured(
        f"{embedder.fingerprint:.80} must return an array of {shape[0]} rows of {shape[1]} finite numbers, not {found}"
    )


async def _embed(embedder: Embedder, texts: Sequence[str], purpose: Purpose) -> tuple[FloatArray, tuple[Usage, ...]]:
    if not hasattr(embedder, "embed_metered"):
        pending = embedder.embed(texts, purpose)
        if not hasattr(pending, "__await__"):
            raise EmbedderMisconfigured(f"{embedder.fingerprint:.80}: `embed` of an Embedder must be `async def`")
        return await pending, ()
    metered = cast(MeteredEmbedder, embedder)
    response = await metered.embed_metered(texts, purpose)
    return response.vectors, () if response.usage is None else embedding_usage(metered.provider, response.usage)


def encode_vectors(vectors: FloatArray) -> list[bytes]:
    """Encode as half precision, little-endian: half the bytes, without an effect on ranking."""
    return [row.tobytes() for row in vectors.astype("<f2")]


async def index_records(core: Core, waiting: Sequence[UnindexedRecord]) -> MeteredResult[list[IndexUpdate]]:
    """Analyze and embed records that wait for indexing."""
    analyses = await analyze_texts(core, [record.text for record in waiting])
    vectors = await embed_analyses(core, analyses)
    indexed = [
        IndexUpdate(record.number, made, analysis)
        for record, made, analysis in zip(waiting, vectors.result, analyses, strict=True)
    ]
    return MeteredResult(indexed, vectors.took)


async def index_waiting(core: Core, grant: Grant) -> int:
    """Index all waiting records in the grant's scope, one batch per transaction. Return their number."""
    done = after = 0
    fingerprint, version = core.embedder.fingerprint, core.analyzer.version

    def next_batch(reader: Reader) -> Sequence[UnindexedRecord]:
        return reader.index.backlog(fingerprint, version, after, BATCH)

    while waiting := await core.store.read(grant, next_batch):
        made = await index_records(core, waiting)
        effect = await with_costs(core, grant, made.took, partial(store_index, made.result, fingerprint, version))
        await core.store.write(grant, effect)
        report_costs(core, effect)
        done += len(waiting)
        after = waiting[-1].number
    return done


def store_index(made: Sequence[IndexUpdate], fingerprint: str, version: int, transaction: Transaction) -> None:
    reach("index.before")
    transaction.index.update(made, fingerprint, version)
    reach("index.after")


def query_vector(vectors: FloatArray) -> FloatArray:
    return np.ascontiguousarray(vectors[0], dtype=np.float32)
