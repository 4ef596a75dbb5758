"""An embedder of your own: a directory with a sentence transformer as `model.onnx` and its `tokenizer.json`.

Takes graphs that give a finished `embedding`, and those that give `last_hidden_state`, which is averaged over the
tokens that are there. Nothing is fetched. onnxruntime is needed only when such an embedder is made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured, EmbedderUnavailable
from holdfast.ports import Purpose
from holdfast.search.embedders.static import file_hash

MAX_TOKENS = 512
_BATCH = 32
_MAX_THREADS = 4
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class OnnxEmbedder:
    """Implements `ports.Embedder`. Safe to use from several threads."""

    def __init__(self, directory: Path | str, *, threads: int | None = None) -> None:
        runtime = _runtime()
        directory = Path(directory)
        model, tokenizer = directory / "model.onnx", directory / "tokenizer.json"
        for path in (model, tokenizer):
            if not path.is_file():
                raise EmbedderMisconfigured(
                    f"there is no {path.name} in {directory}: an onnx embedder needs both files"
                )
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or min(_MAX_THREADS, os.cpu_count() or 1)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EmbedderMisconfigured(f"{model} cannot be loaded as an ONNX graph") from error
        self._inputs = _known_inputs(self._session, model)
        self._output = _known_output(self._session, model)
        self._tokenizer = _read_tokenizer(tokenizer)
        self._fingerprint = f"onnx:{directory.name}:{file_hash(model)}:ort{runtime.__version__}:1"
        self._dimensions = int(self._run(["."]).shape[1])

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def local(self) -> bool:
        return True

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        return await asyncio.to_thread(self.vectors, texts)

    async def close(self) -> None:
        return None

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """The same without an event loop. Texts of a length go together, so that little is computed on padding."""
        found = np.zeros((len(texts), self._dimensions), np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(order), _BATCH):
            some = order[start : start + _BATCH]
            found[some] = self._run([texts[at] for at in some])
        return found

    def _run(self, texts: list[str]) -> FloatArray:
        encoded = self._tokenizer.encode_batch(texts)
        feed = _feed(encoded, self._inputs)
        try:
            (output,) = self._session.run([self._output], feed)
        except Exception as error:
            raise EmbedderUnavailable("the ONNX graph failed on a batch of texts") from error
        values: FloatArray = np.asarray(output, np.float32)
        if values.ndim == 3:
            values = _mean(values, _matrix(encoded, "attention_mask"))
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        unit: FloatArray = values / np.maximum(lengths, np.float32(1e-12))
        return unit


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise EmbedderMisconfigured("onnxruntime is not installed: pip install 'holdfast[onnx]'") from error
    return onnxruntime


def _known_inputs(session: Any, model: Path) -> tuple[str, ...]:
    names = tuple(entry.name for entry in session.get_inputs())
    if unknown := sorted(set(names) - set(_INPUTS)):
        raise EmbedderMisconfigured(f"{model} asks for inputs that a tokenizer does not give: {', '.join(unknown)}")
    return names


def _known_output(session: Any, model: Path) -> str:
    names = [entry.name for entry in session.get_outputs()]
    for name in ("embedding", "sentence_embedding", "last_hidden_state"):
        if name in names:
            return name
    raise EmbedderMisconfigured(f"{model} has no output `embedding` or `last_hidden_state`, but {', '.join(names)}")


def _read_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise EmbedderMisconfigured(f"{path} cannot be read as a tokenizer") from error
    given = tokenizer.truncation
    limit = min(int(given["max_length"]), MAX_TOKENS) if given else MAX_TOKENS
    tokenizer.enable_truncation(limit)
    padding = tokenizer.padding or {}
    tokenizer.enable_padding(pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]"))
    return tokenizer


def _feed(encoded: Sequence[Encoding], inputs: tuple[str, ...]) -> dict[str, NDArray[np.int64]]:
    return {name: _matrix(encoded, name) for name in inputs}


def _matrix(encoded: Sequence[Encoding], name: str) -> NDArray[np.int64]:
    attribute = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}[name]
    return np.array([getattr(encoding, attribute) for encoding in encoded], np.int64)


def _mean(states: FloatArray, mask: NDArray[np.int64]) -> FloatArray:
    there = mask[:, :, None].astype(np.float32)
    means: FloatArray = (states * there).sum(axis=1) / np.maximum(there.sum(axis=1), np.float32(1))
    return means
