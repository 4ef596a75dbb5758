"""The default embedder: averages static token vectors. No model runs, and nothing is ever fetched.

The vectors and the tokenizer are those of the wordllama package (256 dimensions, MIT; derived from Llama 2's token
embeddings). They are read from its files: its code is never imported. The same text gives the same vector on every
machine.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from holdfast.domain.ranking import FloatArray, IntArray
from holdfast.errors import EmbedderMisconfigured
from holdfast.loops import run_in_thread
from holdfast.ports import Purpose

STATIC_PREFIX = "static:"
MODEL = "wordllama-l2-supercat-256"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
# Up to this size a batch takes a millisecond or two: a thread would cost more.
_INLINE_CHARS = 20_000
# Limits memory. A character is up to four tokens, and each token a row of the table: without a limit, a batch in a
# script that the tokenizer encodes byte by byte would take gigabytes.
_BATCH_CHARS = 32_768
_GATHERED_TOKENS = 4_096
CACHED_WORDS = 50_000
_MAX_WORD_CHARS, _MAX_WORD_TOKENS = 32, 8  # of a cached word
_FEW_WORDS = 24
_FROM_THE_FIRST = np.zeros(1, np.int64)
_MARK = "\u2581"  # the tokenizer writes this for a space, and before the first word
_MARKS_WORDS = f'Sequence(normalizers=[Prepend(prepend="{_MARK}"), Replace(pattern=String(" "), content="{_MARK}")])'


class StaticEmbedder:
    """Implements `ports.Embedder`. Safe to use from several threads."""

    local = True

    def __init__(self, directory: Path | None = None) -> None:
        """Read from the installed wordllama package, or from a directory with the same layout."""
        root = directory or _package_directory()
        self._table = _read_table(root / _WEIGHTS)
        self.tokens = WordTokenizer(_read_tokenizer(root / _TOKENIZER))
        self.dimensions = int(self._table.shape[1])
        self.fingerprint = f"{STATIC_PREFIX}{MODEL}:{file_hash(root / _WEIGHTS)}:1"

    @property
    def sync_safe(self) -> bool:
        return type(self).embed is StaticEmbedder.embed

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        if sum(map(len, texts)) <= _INLINE_CHARS:
            return self.vectors(texts)
        return await run_in_thread(lambda: self.vectors(texts))

    async def close(self) -> None:
        return None

    def count_tokens(self, text: str) -> int:
        return len(self.tokens.of((text,))[0])

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Embed synchronously, without an event loop."""
        if len(texts) == 1:
            return self._embed_one(texts[0])
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for batch in _batches(texts):
            self._embed_into(found[batch], texts[batch])
        return found

    def _embed_into(self, found: FloatArray, texts: Sequence[str]) -> None:
        ids = self.tokens.of(texts)
        sizes = np.fromiter(map(len, ids), np.int64, len(ids))
        there = np.flatnonzero(sizes)
        if not len(there):
            return
        flat = np.fromiter(chain.from_iterable(ids), np.int64, int(sizes.sum()))
        starts = (np.cumsum(sizes) - sizes)[there]
        found[there] = _unit(self._sums(flat, starts))

    def _embed_one(self, text: str) -> FloatArray:
        """Embed a single text with a third of the steps; the result is identical to the last bit."""
        (ids,) = self.tokens.of((text,))
        if not ids:
            return np.zeros((1, self.dimensions), np.float32)
        return _unit(self._sums(ids, _FROM_THE_FIRST))

    def _sums(self, tokens: Sequence[int] | IntArray, starts: IntArray) -> FloatArray:
        """Sum the token vectors from each start to the next."""
        if len(tokens) <= _GATHERED_TOKENS:
            return _sum_rows(self._table, tokens, starts)
        # Partial sums would change the last bits. Splitting by columns does not: each column is summed separately.
        width = max(1, _GATHERED_TOKENS * self.dimensions // len(tokens))
        strips = [self._table[:, at : at + width] for at in range(0, self.dimensions, width)]
        tokens = np.asarray(tokens, np.int64)
        return np.concatenate([_sum_rows(strip, tokens, starts) for strip in strips], axis=1)


class WordTokenizer:
    """Tokenizes texts word by word, with a cache, because words repeat.

    No token of the vocabulary crosses the start of a word, so splitting there changes nothing. Other tokenizers get
    whole texts.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._by_word = tokenizes_by_word(tokenizer)
        self._known: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        """Number of cached words."""
        return len(self._known)

    def of(self, texts: Sequence[str]) -> list[list[int]]:
        cut = [self._words(text) for text in texts]
        found = {word: self._known.get(word) for words in cut for word in words}
        if unknown := [word for word, ids in found.items() if ids is None]:
            found.update(self._tokenize_words(unknown))
        return [[token for word in words for token in found[word] or ()] for words in cut]

    def _words(self, text: str) -> Sequence[str]:
        # With repeated, leading or trailing spaces, or the tokenizer's own marks, words are not independent.
        if not self._by_word or "  " in text or "<" in text or _MARK in text or text[:1] == " " or text[-1:] == " ":
            return (text,)
        return text.split(" ")

    def _tokenize_words(self, words: Sequence[str]) -> dict[str, tuple[int, ...]]:
        if len(words) <= _FEW_WORDS:
            # A batch uses threads, and waking them takes longer than the work.
            encoded = [self.tokenizer.encode(word, add_special_tokens=False) for word in words]
        else:
            encoded = self.tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
        found = {word: tuple(encoding.ids) for word, encoding in zip(words, encoded, strict=True)}
        short = {
            word: ids for word, ids in found.items() if len(word) <= _MAX_WORD_CHARS and len(ids) <= _MAX_WORD_TOKENS
        }
        if len(self._known) + len(short) > CACHED_WORDS:
            self._known.clear()
        if len(short) <= CACHED_WORDS:
            self._known.update(short)
        return found


def tokenizes_by_word(tokenizer: Tokenizer) -> bool:
    """True if a word's tokens do not depend on its neighbours."""
    marks_words = repr(tokenizer.normalizer) == _MARKS_WORDS and tokenizer.pre_tokenizer is None
    own = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    return (
        marks_words
        and all("<" in content for content in own)
        and not any(_MARK in token.lstrip(_MARK) for token in vocabulary)
    )


def _batches(texts: Sequence[str]) -> Iterator[slice]:
    start = chars = 0
    for at, text in enumerate(texts):
        chars += len(text)
        if chars > _BATCH_CHARS and at > start:
            yield slice(start, at)
            start, chars = at, len(text)
    yield slice(start, len(texts))


def _sum_rows(table: FloatArray, tokens: Sequence[int] | IntArray, starts: IntArray) -> FloatArray:
    sums: FloatArray = np.add.reduceat(table.take(tokens, axis=0), starts, axis=0)
    return sums


def _unit(sums: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
    scaled: FloatArray = sums / np.maximum(lengths, np.float32(1e-12))
    return scaled


def file_hash(path: Path) -> str:
    """A cheap hash of a weights file: its size, and its first and last 64 KB."""
    size = path.stat().st_size
    digest = blake2b(str(size).encode(), digest_size=8)
    with path.open("rb") as file:
        digest.update(file.read(65_536))
        file.seek(max(0, size - 65_536))
        digest.update(file.read(65_536))
    return digest.hexdigest()


def _package_directory() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise EmbedderMisconfigured(
            "the wordllama package, which contains the static vectors, is not installed: install wordllama"
        )
    return Path(spec.origin).parent


def _read_table(path: Path) -> FloatArray:
    try:
        with safe_open(path, framework="np") as file:
            table = file.get_tensor("embedding.weight").astype(np.float32)
    except (OSError, SafetensorError) as error:
        raise EmbedderMisconfigured(f"cannot read the static vectors from {path}: reinstall wordllama") from error
    # The mean of all token vectors carries no information: subtracting it separates texts better in every language.
    centred: FloatArray = table - table.mean(axis=0)
    return centred


def _read_tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise EmbedderMisconfigured(f"the tokenizer {path} is missing: reinstall wordllama")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
