"""An embedder behind an OpenAI-compatible endpoint: `POST {base_url}/embeddings`.

Texts are sent to that endpoint, so it is used only if it is named. Embedding is idempotent, so transient failures (lost
connection, 429, 5xx) are retried a few times with exponential backoff. The API key appears in no repr and no error.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx2
import numpy as np

from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderError, EmbedderMisconfigured, EmbedderUnavailable
from holdfast.ports import Purpose
from holdfast.ports.models import EmbeddingResult, ModelCallUsage

DEFAULT_URL = "https://api.openai.com/v1"
_BATCH_TEXTS = 128
_BATCH_CHARS = 200_000
_QUERY_SECONDS = 5.0
_KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


class OpenAIEmbedder:
    """Implements `ports.Embedder`, and reports token usage if the endpoint does."""

    local = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        timeout_seconds: float = 30.0,
        attempts: int = 4,
        first_wait_seconds: float = 0.5,
    ) -> None:
        """`dimensions` are sent to the endpoint if given; else the model's own apply, known or read from a response."""
        if not model.strip():
            raise EmbedderMisconfigured(
                "an openai embedder needs the name of a model, such as openai:text-embedding-3-small"
            )
        self._model = model
        self._url = (base_url or DEFAULT_URL).rstrip("/") + "/embeddings"
        self._asked = dimensions
        # The endpoint reports no hash of its weights: its URL and the model's name identify them.
        self.fingerprint = f"openai:{self._url}:{model}:{dimensions or 'own'}:1"
        # 0 until the first response of an unknown model.
        self.dimensions = dimensions or _KNOWN_DIMENSIONS.get(model, 0)
        self._attempts = max(1, attempts)
        self._first_wait = first_wait_seconds
        self._timeout_seconds = timeout_seconds
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(timeout=timeout_seconds, headers=headers)

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r}, url={self._url!r})"

    @property
    def provider(self) -> str:
        """The billed provider: the endpoint's host."""
        return urlsplit(self._url).hostname or "openai"

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        return (await self.embed_metered(texts, purpose)).vectors

    async def embed_metered(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingResult:
        # A user waits for a search, which also works without vectors: one attempt, short timeout.
        limits = (1, _QUERY_SECONDS) if purpose is Purpose.QUERY else (self._attempts, self._timeout_seconds)
        batches = [await self._embed(batch, *limits) for batch in _batches(texts)]
        if not batches:
            return EmbeddingResult(np.zeros((0, self.dimensions), np.float32))
        token_counts = [tokens for _, tokens in batches if tokens is not None]
        usage = ModelCallUsage(self._model, len(token_counts), sum(token_counts)) if token_counts else None
        return EmbeddingResult(np.concatenate([vectors for vectors, _ in batches]), usage)

    async def close(self) -> None:
        await self._client.aclose()

    async def _embed(self, texts: list[str], attempts: int, timeout_seconds: float) -> tuple[FloatArray, int | None]:
        """The vectors, and the token count that the endpoint reports."""
        body: dict[str, object] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked:
            body["dimensions"] = self._asked
        answer = await self._post(body, attempts, timeout_seconds)
        vectors = _vectors(answer, len(texts))
        if self.dimensions and vectors.shape[1] != self.dimensions:
            raise EmbedderMisconfigured(
                f"{self._model} returned {vectors.shape[1]} dimensions, not {self.dimensions}: set the right number"
            )
        self.dimensions = int(vectors.shape[1])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: FloatArray = vectors / np.maximum(lengths, np.float32(1e-12))
        return unit, _tokens(answer)

    async def _post(self, body: dict[str, object], attempts: int, timeout_seconds: float) -> object:
        problem = EmbedderUnavailable(f"{self._url} was not called")
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(self._first_wait * math.pow(2, attempt - 1))
            try:
                response = await self._client.post(self._url, json=body, timeout=timeout_seconds)
            except httpx2.TransportError as error:
                problem = EmbedderUnavailable(
                    f"{self._url} cannot be reached ({type(error).__name__}); try again later"
                )
                continue
            except httpx2.InvalidURL as error:
                raise EmbedderMisconfigured(f"{self._url} is not a URL: set base_url") from error
            if response.status_code == 200:
                return _decode_json(response, self._url)
            refused = _status_error(response.status_code, self._url, self._model)
            if not isinstance(refused, EmbedderUnavailable):
                raise refused
            problem = refused
        raise problem


def _batches(texts: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = []
    chars = 0
    for text in texts:
        if not batches or len(batches[-1]) >= _BATCH_TEXTS or chars + len(text) > _BATCH_CHARS:
            batches.append([])
            chars = 0
        batches[-1].append(text)
        chars += len(text)
    return batches


def _decode_json(response: httpx2.Response, url: str) -> object:
    try:
        answer: object = response.json()
    except ValueError as error:
        raise EmbedderUnavailable(f"{url} returned a response that is not JSON") from error
    return answer


def _status_error(status: int, url: str, model: str) -> EmbedderError:
    if status == 429 or status >= 500:
        return EmbedderUnavailable(f"{url} returned status {status}; try again later")
    advice = {401: "check the key", 403: "check the key", 404: f"check the URL and the model {model!r}"}
    return EmbedderMisconfigured(
        f"{url} returned status {status}: {advice.get(status, 'check the model and the texts')}"
    )


def _vectors(answer: object, expected: int) -> FloatArray:
    """The vectors in the order of the texts, by the response's `index`."""
    try:
        data = answer["data"]  # type: ignore[index]
        rows = [entry["embedding"] for entry in sorted(data, key=lambda entry: entry["index"])]
        vectors: FloatArray = np.array(rows, np.float32)
    except (KeyError, TypeError, ValueError) as error:
        raise EmbedderUnavailable("the endpoint's response is not a list of embeddings") from error
    if vectors.ndim != 2 or len(vectors) != expected or not np.isfinite(vectors).all():
        raise EmbedderUnavailable(f"the endpoint returned {len(rows)} embeddings for {expected} texts")
    return vectors


def _tokens(answer: object) -> int | None:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return tokens if type(tokens) is int and tokens >= 0 else None
