"""The adapter of embedders that callers give: functions, and objects of other libraries, such as LangChain's.

A function that blocks is called in a thread of its own, one call at a time, so it need not be thread-safe. A coroutine
runs on the memory's event loop. Vectors are scaled to length one.

Nobody says which model a function stands for, so its vectors do: the fingerprint ends in a sketch of those of a few
texts. Vectors of another model never match it; those of the same model on another machine, whose last digits differ,
do.
"""

from __future__ import annotations

import asyncio
import inspect
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.domain.custom_embedder import DERIVED, NAMED, CustomEmbedder, derive_name, find_calls
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured, EmbedderUnavailable, HoldfastError
from holdfast.loops import ThreadPool
from holdfast.ports import Purpose
from holdfast.search.embedders.vectors import ONE_TEXT, BadVectors, read_vectors

_BATCH_TEXTS = 64
_PROBES = ("The cat sleeps on the sofa.", "Budget 2031: 4,750 EUR are LATE!", "今天下午三点开会")
_SAME_COSINE = 0.99  # of two vectors for one text: batching changes the last digits alone
_PROJECTIONS = 8  # for each probe
_STEPS = 32  # for each unit of a projection, which has a standard deviation of one
_MIDDLE = 128
_SEED = 20261119
_OF_WRONG_ARGUMENTS = (TypeError, AttributeError, ValueError)
_EXPECTED = "it takes a list of texts, and returns one vector of numbers for each"


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    kind: str
    name: str
    dimensions: int
    sketch: bytes

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}:{self.dimensions}:{urlsafe_b64encode(self.sketch).decode()}"

    @classmethod
    def parse(cls, text: str) -> _Fingerprint | None:
        kind, _, rest = text.partition(":")
        parts = rest.rsplit(":", 2)
        if kind not in (DERIVED, NAMED) or len(parts) != 3 or not parts[1].isdecimal():
            return None
        return cls(kind, parts[0], int(parts[1]), urlsafe_b64decode(parts[2]))

    def is_of_same_model(self, other: _Fingerprint) -> bool:
        """True if vectors of both can be compared. A derived name may change as code moves; a given one says so."""
        if (self.kind, self.dimensions, len(self.sketch)) != (other.kind, other.dimensions, len(other.sketch)):
            return False
        if self.name != other.name:
            return self.kind == DERIVED and self.sketch == other.sketch
        # Rounding can move a number that lies between two steps by one.
        return all(abs(mine - its) <= 1 for mine, its in zip(self.sketch, other.sketch, strict=True))


class CustomEmbedderAdapter:
    """Implements `ports.Embedder`. Made by `open_custom`, which calls the embedder once to learn about it."""

    def __init__(self, given: CustomEmbedder) -> None:
        calls = find_calls(given.target)
        assert calls is not None, "the caller's embedder was checked"
        self._calls = calls
        self._local = given.local
        self.name = given.name or derive_name(given.target)
        self._kind = DERIVED if given.name is None else NAMED
        self._thread = ThreadPool(1, "holdfast-embedder")
        self._dimensions = 0
        self._made_by = _Fingerprint(self._kind, self.name, 0, b"")

    def __repr__(self) -> str:
        return f"CustomEmbedderAdapter({self.name!r}, dimensions={self._dimensions})"

    @property
    def fingerprint(self) -> str:
        return str(self._made_by)

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def local(self) -> bool:
        return not self._calls.is_async if self._local is None else self._local

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        found = np.zeros((len(texts), self._dimensions), np.float32)
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = list(texts[start : start + _BATCH_TEXTS])
            found[start : start + len(batch)] = await self._embed_batch(batch, purpose)
        return found

    async def close(self) -> None:
        """End the thread. The object is the caller's, and stays open."""
        self._thread.shutdown(wait=False)

    async def probe(self) -> None:
        """Learn the dimensions and whether it is asynchronous, and check it with texts that nobody wrote."""
        made = await self._embed(self._calls.documents, [*_PROBES, _PROBES[0]], len(_PROBES) + 1)
        if float(made[0] @ made[-1]) < _SAME_COSINE:
            raise self._complaint("returned two different vectors for the same text")
        self._dimensions = made.shape[1]
        self._made_by = replace(self._made_by, dimensions=self._dimensions, sketch=_sketch(made[:-1]))
        if self._calls.queries != self._calls.documents:
            await self._embed_batch([_PROBES[0]], Purpose.QUERY)

    def adopt(self, made_by: str) -> None:
        """Continue under this fingerprint of existing vectors, if they are of the same model."""
        existing = _Fingerprint.parse(made_by)
        if existing is not None and self._made_by.is_of_same_model(existing):
            self._made_by = existing

    async def _embed_batch(self, texts: list[str], purpose: Purpose) -> FloatArray:
        if purpose is Purpose.QUERY and self._calls.single_query:
            return np.concatenate([await self._embed_known(self._calls.queries, text, 1) for text in texts])
        call = self._calls.queries if purpose is Purpose.QUERY else self._calls.documents
        return await self._embed_known(call, texts, len(texts))

    async def _embed_known(self, call: Callable[[Any], Any], texts: list[str] | str, count: int) -> FloatArray:
        made = await self._embed(call, texts, count)
        if made.shape[1] != self._dimensions:
            raise self._complaint(f"returned vectors of {made.shape[1]} numbers, and of {self._dimensions} before")
        return made

    async def _embed(self, call: Callable[[Any], Any], texts: list[str] | str, count: int) -> FloatArray:
        def read(made: object) -> FloatArray:
            return read_vectors([made] if isinstance(texts, str) else made, count)

        def call_and_read() -> Any:
            # Explained here, in the thread: a future cannot hold a `StopIteration`.
            with self._explained_errors():
                made = call(texts)
                return made if inspect.isawaitable(made) else read(made)

        if self._calls.is_async:
            made = call_and_read()
        else:
            made = await asyncio.get_running_loop().run_in_executor(self._thread, call_and_read)
        if not inspect.isawaitable(made):
            return made  # type: ignore[no-any-return]
        if not self._dimensions:  # the first call shows it
            self._calls = replace(self._calls, is_async=True)
        with self._explained_errors():
            return read(await made)

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        try:
            yield
        except HoldfastError:
            raise
        except BadVectors as bad:
            raise self._complaint(str(bad)) from None
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> EmbedderUnavailable:
        # Later texts are those of users, and the error may quote them; those of the first call are ours.
        detail = "" if self._dimensions else f": {error!s:.200}"
        hint = f"; {ONE_TEXT}" if isinstance(error, _OF_WRONG_ARGUMENTS) and not self._dimensions else ""
        failed = EmbedderUnavailable(f"embedder: {self.name} raised {type(error).__name__}{detail}{hint}")
        failed.field = "embedder"
        return failed

    def _complaint(self, problem: str) -> EmbedderMisconfigured:
        bad = EmbedderMisconfigured(f"embedder: {self.name} {problem}; {_EXPECTED}")
        bad.field = "embedder"
        return bad


async def open_custom(given: object) -> CustomEmbedderAdapter:
    """Return an embedder for `ports.Embedder`. Raises if it fails on a few texts."""
    adapter = CustomEmbedderAdapter(given if isinstance(given, CustomEmbedder) else CustomEmbedder(given))  # type: ignore[arg-type]
    try:
        await adapter.probe()
    except BaseException:
        await adapter.close()
        raise
    return adapter


def _sketch(vectors: FloatArray) -> bytes:
    """Project the vectors on a few fixed random directions, and round: near vectors have near sketches."""
    # NumPy promises the numbers of this generator, and of no newer one, for ever.
    directions = np.random.RandomState(_SEED).standard_normal((vectors.shape[1], _PROJECTIONS))
    steps = np.rint(vectors.astype(np.float64) @ directions * _STEPS) + _MIDDLE
    sketch: bytes = np.clip(steps, 0, 255).astype(np.uint8).tobytes()
    return sketch
