"""A model behind an OpenAI-compatible endpoint: OpenAI, Ollama, vLLM, llama.cpp.

`POST {base_url}/chat/completions`, bound to a JSON schema where the server supports it. Answers are bounded in bytes
and time, and validated. The key is in no representation, message or cause of an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx2

from holdfast.domain.model_endpoint import validate_model
from holdfast.domain.secret import Secret
from holdfast.errors import ModelError, ModelMisconfigured, ModelUnavailable
from holdfast.extract.json_answers import InvalidAnswer, count_at, decode_json, value_at
from holdfast.ports import ModelAnswer, ModelCallUsage

MAX_ANSWER_BYTES = 256 * 1024
MAX_TOKENS = 2_048
_REFUSED = (400, 422)


class ChatCompletions:
    """Implements `ports.PromptModel`. Without a key, none is sent."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: Secret | None = None,
        timeout_seconds: float = 120.0,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self.name, url = validate_model(model, base_url)
        self.url = f"{url}/chat/completions"
        self._timeout_seconds = timeout_seconds
        self._max_tokens = max_tokens
        self._way = 0
        headers = {"Authorization": f"Bearer {api_key.revealed()}"} if api_key else {}
        self._client = httpx2.AsyncClient(timeout=timeout_seconds, headers=headers)

    def __repr__(self) -> str:
        return f"ChatCompletions({self.name!r}, url={self.url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a model holds connections and a key; open it again at the other end")

    @property
    def provider(self) -> str:
        """The endpoint's host, to which calls are billed."""
        return urlsplit(self.url).hostname or "model"

    async def close(self) -> None:
        await self._client.aclose()

    async def answer(self, instructions: str, content: str, schema: Mapping[str, object]) -> ModelAnswer:
        ways = _ways(schema, self._max_tokens)
        status, body = await self._post(instructions, content, ways)
        while status in _REFUSED and self._way + 1 < len(ways):
            self._way += 1
            status, body = await self._post(instructions, content, ways)
        if status != 200:
            raise _refusal(status, self.url, self.name)
        try:
            return _read(body, self.name)
        except InvalidAnswer as error:
            problem = str(error)
        raise ModelUnavailable(f"{self.url}: {self.name} did not answer as asked ({problem})")

    async def _post(self, instructions: str, content: str, ways: tuple[Mapping[str, Any], ...]) -> tuple[int, bytes]:
        request: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": content}],
            **ways[self._way],
        }
        failure = None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                async with self._client.stream("POST", self.url, json=request) as response:
                    return response.status_code, await _read_bounded(response, self.url)
        except TimeoutError:
            failure = "it took too long"
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            failure = type(error).__name__
        # Raised outside `except`: the caught error holds the request, which holds the key.
        raise ModelUnavailable(f"{self.url} cannot be reached or read ({failure}); try again later")


def _ways(schema: Mapping[str, object], max_tokens: int) -> tuple[Mapping[str, Any], ...]:
    """Request options, in order. Models differ in what they accept: after a refusal, fewer options are sent."""
    bound = {"type": "json_schema", "json_schema": {"name": "memories", "strict": True, "schema": schema}}
    return (
        {"response_format": bound, "temperature": 0, "max_tokens": max_tokens},
        {"response_format": bound},
        {},
    )


async def _read_bounded(response: httpx2.Response, url: str) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise ModelUnavailable(f"{url} answered more than {MAX_ANSWER_BYTES:,} bytes")
    return bytes(body)


def _refusal(status: int, url: str, model: str) -> ModelError:
    if status in (408, 425, 429) or status >= 500 or status < 200:
        return ModelUnavailable(f"{url} answered {status}; try again later")
    advice = {401: "check HOLDFAST_MODEL_KEY", 403: "check HOLDFAST_MODEL_KEY"}
    hint = advice.get(status, f"check HOLDFAST_MODEL_URL and the model {model!r}")
    return ModelMisconfigured(f"{url} answered {status}: {hint}")


def _read(body: bytes, model: str) -> ModelAnswer:
    answer = decode_json(body, "the answer")
    content = value_at(answer, "choices", 0, "message", "content")
    if not isinstance(content, str):
        raise InvalidAnswer("the answer holds no text")
    usage = ModelCallUsage(
        model,
        requests=1,
        input_tokens=count_at(answer, "usage", "prompt_tokens"),
        output_tokens=count_at(answer, "usage", "completion_tokens"),
    )
    return ModelAnswer(content, usage)
