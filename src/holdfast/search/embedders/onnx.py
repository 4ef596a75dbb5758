"""An embedder that runs a local sentence transformer: a directory with `model.onnx` and `tokenizer.json`.

Accepts graphs whose output is `embedding`, or `last_hidden_state`, which is averaged over the tokens that the attention
mask keeps. Nothing is fetched. onnxruntime is needed only when such an embedder is created.

Texts are embedded one by one, in several threads: an int8 graph gives a text different vectors in different batches,
and embedding again must give the same vector. It is also faster, because nothing is computed on padding.
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
from holdfast.installation import install_command
from holdfast.loops import ThreadPool
from holdfast.ports import Purpose
from holdfast.search.embedders.static import file_hash

MAX_TOKENS = 512
_MAX_THREADS = 4
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class OnnxEmbedder:
    """Implements `ports.Embedder`. Safe to use from several threads."""

    local = True

    def __init__(self, directory: Path | str, *, threads: int | None = None) -> None:
        runtime = _runtime()
        directory = Path(directory)
        model, tokenizer = directory / "model.onnx", directory / "tokenizer.json"
        for path in (model, tokenizer):
            if not path.is_file():
                raise EmbedderMisconfigured(
                    f"{directory} has no {path.name}: an onnx embedder needs model.onnx and tokenizer.json"
                )
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EmbedderMisconfigured(f"{model} cannot be loaded as an ONNX graph") from error
        self._inputs = _known_inputs(self._session, model)
        self._output = _known_output(self._session, model)
        self._tokenizer = _read_tokenizer(tokenizer)
        self.fingerprint = f"onnx:{directory.name}:{file_hash(model)}:ort{runtime.__version__}:1"
        self.dimensions = len(self._vector("."))
        self._threads = ThreadPool(threads or min(_MAX_THREADS, os.cpu_count() or 1), "holdfast-onnx")

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        return await asyncio.to_thread(self.vectors, texts)

    async def close(self) -> None:
        self._threads.shutdown(wait=False)

    def count_tokens(self, text: str) -> int:
        """Count all tokens, also those that a vector would not read."""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        return len(encoded.ids) + sum(len(rest.ids) for rest in encoded.overflowing)

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Embed synchronously, without an event loop."""
        if len(texts) == 1:
            return self._vector(texts[0])[None, :]
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for at, vector in enumerate(self._threads.map(self._vector, texts)):
            found[at] = vector
        return found

    def _vector(self, text: str) -> FloatArray:
        encoded = self._tokenizer.encode(text)
        try:
            (output,) = self._session.run([self._output], _feed(encoded, self._inputs))
        except Exception as error:
            raise EmbedderUnavailable("the ONNX graph failed on a text") from error
        values: FloatArray = np.asarray(output, np.float32)[0]
        if values.ndim == 2:
            values = _mean(values, np.array(encoded.attention_mask, np.float32))
        unit: FloatArray = values / np.maximum(np.linalg.norm(values), np.float32(1e-12))
        return unit


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise EmbedderMisconfigured(f"onnxruntime is not installed: {install_command('onnx')}") from error
    return onnxruntime


def _known_inputs(session: Any, model: Path) -> tuple[str, ...]:
    names = tuple(entry.name for entry in session.get_inputs())
    if unknown := sorted(set(names) - set(_INPUTS)):
        raise EmbedderMisconfigured(f"{model} needs inputs that a tokenizer does not provide: {', '.join(unknown)}")
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
    truncation = tokenizer.truncation
    limit = min(int(truncation["max_length"]), MAX_TOKENS) if truncation else MAX_TOKENS
    tokenizer.enable_truncation(limit)
    tokenizer.no_padding()
    return tokenizer


def _feed(encoded: Encoding, inputs: tuple[str, ...]) -> dict[str, NDArray[np.int64]]:
    values = {
        "input_ids": encoded.ids,
        "attention_mask": encoded.attention_mask,
        "token_type_ids": encoded.type_ids,
    }
    return {name: np.array([values[name]], np.int64) for name in inputs}


def _mean(states: FloatArray, mask: FloatArray) -> FloatArray:
    means: FloatArray = (states * mask[:, None]).sum(axis=0) / np.maximum(mask.sum(), np.float32(1))
    return means
