"""The two embedders, and the vectors of the peers.

Turns text into unit vectors. All systems get the same vectors from one `Vectors`, made before the timing starts and
cached on disk, so that systems never differ by their models.
"""

import hashlib
import importlib.util
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

FloatArray = npt.NDArray[np.float32]


class Model(Protocol):
    """A loaded embedder. `fingerprint` changes with the weights."""

    name: str
    fingerprint: str
    dims: int

    def embed(self, text: str) -> FloatArray: ...


class OnnxModel:
    """all-MiniLM-L6-v2 as a dynamically quantized int8 graph.

    One text per call: such a graph chooses its int8 scale over the whole batch, so in a batch a text's vector would
    depend on its neighbours (cosine 0.98 to 0.99 with its own).
    """

    name = "all-MiniLM-L6-v2 int8"

    def __init__(self, directory: Path) -> None:
        import onnxruntime

        model = directory / "model.onnx"
        self.fingerprint = _digest(model)
        self._session: Any = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        self._tokenizer: Any = Tokenizer.from_file(str(directory / "tokenizer.json"))
        # The file requests padding to 128 tokens, which costs time and, quantized, precision.
        self._tokenizer.no_padding()
        self.dims = len(self.embed("dimensions"))

    def embed(self, text: str) -> FloatArray:
        encoding = self._tokenizer.encode(text)
        inputs = {
            "input_ids": np.array([encoding.ids], dtype=np.int64),
            "attention_mask": np.array([encoding.attention_mask], dtype=np.int64),
        }
        [[vector]] = self._session.run(["embedding"], inputs)
        return np.asarray(vector, dtype=np.float32)


class StaticModel:
    """WordLlama's 256 dimensions: the mean of a text's token vectors, scaled to length one.

    Read from the installed package's files, because importing the package configures the root logger.
    """

    name = "wordllama l2_supercat 256"

    def __init__(self) -> None:
        from safetensors.numpy import load_file

        package = _package_directory("wordllama")
        weights = package / "weights" / "l2_supercat_256.safetensors"
        self.fingerprint = _digest(weights)
        self._weights: FloatArray = load_file(weights)["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.dims = int(self._weights.shape[1])

    def embed(self, text: str) -> FloatArray:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        if not ids:
            return np.zeros(self.dims, dtype=np.float32)
        mean = self._weights[ids].mean(axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)


class Vectors:
    """The vectors of all texts so far, in memory and in one SQLite file."""

    def __init__(self, model: Model, cache: Path) -> None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        self._model = model
        self._known: dict[str, FloatArray] = {}
        # Some systems embed a query on their own thread; the calls never overlap.
        self._disk = sqlite3.connect(cache, check_same_thread=False)
        self._disk.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dims(self) -> int:
        return self._model.dims

    def prepare(self, texts: Iterable[str]) -> None:
        """Load or make the vectors of these texts, so that each later request is a dictionary lookup."""
        with self._disk:
            for text in texts:
                self.of(text)

    def of(self, text: str) -> FloatArray:
        vector = self._known.get(text)
        if vector is None:
            vector = self._known[text] = self._stored(text)
        return vector

    def many(self, texts: Sequence[str]) -> list[FloatArray]:
        return [self.of(text) for text in texts]

    def close(self) -> None:
        self._disk.close()

    def _stored(self, text: str) -> FloatArray:
        key = hashlib.sha256(f"{self._model.fingerprint}\n{text}".encode()).hexdigest()
        row = self._disk.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return np.frombuffer(row[0], dtype=np.float32)
        vector = self._model.embed(text)
        self._disk.execute("INSERT INTO vectors VALUES (?, ?)", (key, vector.tobytes()))
        return vector


def _package_directory(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: see bench/README.md")
    return Path(spec.submodule_search_locations[0])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
