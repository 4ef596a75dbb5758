"""A chat model as a `PromptModel`: it is asked one question, outside of any session and without tools.

The chat model is opened when it is first asked: its SDK is slow to import, and most processes never ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from holdfast.agent.ports import ChatModel, ModelMessage, Reply, Role
from holdfast.domain.model_endpoint import validate_model
from holdfast.domain.secret import Secret
from holdfast.errors import ModelUnavailable
from holdfast.ports import ModelAnswer, ModelCallUsage

MAX_ANSWER_CHARS = 256 * 1024


class PromptedModel:
    """Implements `ports.PromptModel`. The schema is left to the instructions: not every vendor's API binds to one."""

    def __init__(
        self, name: str, url: str, open_model: Callable[[], ChatModel], *, timeout_seconds: float = 120.0
    ) -> None:
        self.name = name
        self.url = url
        self._open_model = open_model
        self._timeout_seconds = timeout_seconds
        self._model: ChatModel | None = None

    def __repr__(self) -> str:
        return f"PromptedModel({self.name!r}, url={self.url!r})"

    @property
    def provider(self) -> str:
        """The endpoint's host, to which calls are billed."""
        return urlsplit(self.url).hostname or "model"

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()

    async def answer(self, instructions: str, content: str, schema: Mapping[str, object]) -> ModelAnswer:
        if self._model is None:
            self._model = self._open_model()
        prompt = (ModelMessage(Role.SYSTEM, instructions), ModelMessage(Role.USER, content))
        try:
            async with asyncio.timeout(self._timeout_seconds):
                reply = await _read_reply(self._model, prompt)
        except TimeoutError:
            reply = None
        if reply is None:
            raise ModelUnavailable(f"{self.url} cannot be reached or read (it took too long); try again later")
        if len(reply.text) > MAX_ANSWER_CHARS:
            raise ModelUnavailable(f"{self.url} answered more than {MAX_ANSWER_CHARS:,} characters")
        usage = ModelCallUsage(self.name, 1, reply.usage.input_tokens, reply.usage.output_tokens)
        return ModelAnswer(reply.text, usage)


def prompt_anthropic(model: str, url: str, key: Secret | None) -> PromptedModel:
    """Return a model of Anthropic's API. Its SDK is imported when it is first asked."""
    name, checked = validate_model(model, url)

    def open_model() -> ChatModel:
        from holdfast.agent.providers.anthropic import AnthropicModel
        from holdfast.agent.providers.sdk_model import EndpointAdvice

        advice = EndpointAdvice("in HOLDFAST_MODEL_KEY", "use a model that reads longer texts")
        # The curator repeats a call that failed.
        return AnthropicModel(name, base_url=checked, api_key=key, retries=0, advice=advice)

    return PromptedModel(name, checked, open_model)


async def _read_reply(model: ChatModel, prompt: tuple[ModelMessage, ...]) -> Reply:
    reply = Reply("")
    async for event in model.stream(prompt, ()):
        if isinstance(event, Reply):
            reply = event
    return reply
