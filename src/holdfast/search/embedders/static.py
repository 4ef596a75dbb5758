"""The default embedder: a table of token vectors, averaged. No model runs, and nothing is ever fetched.

The table and its tokenizer are those that the wordllama package carries (256 dimensions, MIT; they descend from
Llama 2's token embeddings). They are read straight from its files: its own code is never imported. The same text
gives the same vector on every machine.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured
from holdfast.ports import Purpose

STATIC_PREFIX = "static:"
MODEL = "wordllama-l2-supercat-256"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
# Up to here a batch takes a millisecond or two: a thread would cost more than it frees.
_INLINE_CHARS = 20_000
_BATCH = 2_048


class StaticEmbedder:
    """Implements `ports.Embedder`. Safe to use from several threads."""

    def __init__(self, directory: Path | None = None) -> None:
        """Reads from the installed wordllama package, or from a directory laid out like it."""
        root = directory or _installed()
        self._table = _read_table(root / _WEIGHTS)
        self._tokenizer = _read_tokenizer(root / _TOKENIZER)
        self._fingerprint = f"{STATIC_PREFIX}{MODEL}:{file_hash(root / _WEIGHTS)}:1"

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        return int(self._table.shape[1])

    @property
    def local(self) -> bool:
        return True

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        if sum(map(len, texts)) <= _INLINE_CHARS:
            return self.vectors(texts)
        return await asyncio.to_thread(self.vectors, texts)

    async def close(self) -> None:
        return None

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """The same without an event loop."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), _BATCH):
            self._embed_into(found[start : start + _BATCH], texts[start : start + _BATCH])
        return found

    def _embed_into(self, found: FloatArray, texts: Sequence[str]) -> None:
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = [encoding.ids for encoding in encoded]
        sizes = np.fromiter(map(len, ids), np.int64, len(ids))
        there = np.flatnonzero(sizes)
        if not len(there):
            return
        flat = np.fromiter((token for tokens in ids for token in tokens), np.int64, int(sizes.sum()))
        starts = (np.cumsum(sizes) - sizes)[there]
        sums = np.add.reduceat(self._table[flat], starts, axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
        found[there] = sums / np.maximum(lengths, np.float32(1e-12))


def file_hash(path: Path) -> str:
    """A cheap hash of a file of weights: its size, and its first and last 64 KB."""
    size = path.stat().st_size
    digest = blake2b(str(size).encode(), digest_size=8)
    with path.open("rb") as file:
        digest.update(file.read(65_536))
        file.seek(max(0, size - 65_536))
        digest.update(file.read(65_536))
    return digest.hexdigest()


def _installed() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise EmbedderMisconfigured("the wordllama package, which carries the static vectors, is not installed")
    return Path(spec.origin).parent


def _read_table(path: Path) -> FloatArray:
    try:
        with safe_open(path, framework="np") as file:
            table = file.get_tensor("embedding.weight").astype(np.float32)
    except (OSError, SafetensorError) as error:
        raise EmbedderMisconfigured(f"cannot read the static vectors from {path}: reinstall wordllama") from error
    # What all tokens share says nothing about any text: without it, texts are told apart better in every language.
    centred: FloatArray = table - table.mean(axis=0)
    return centred


def _read_tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise EmbedderMisconfigured(f"there is no tokenizer at {path}: reinstall wordllama")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
