"""The base of the models behind a provider's SDK: the connection, one streamed call, its limits and its errors.

No error holds a key, a body or a whole request. Each is raised outside of `except`, because the caught error does. The
SDKs do not validate what they read, so every field of an answer is checked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, NoReturn
from uuid import uuid4

import httpx2

from holdfast.agent.ports import ModelEvent, ModelMessage, TokenUsage, ToolSpec
from holdfast.agent.texts import encodable
from holdfast.domain.secret import Secret
from holdfast.errors import ModelError, ModelMisconfigured, ModelUnavailable
from holdfast.installation import install_command

RETRIES = 2
"""Retries of a call that failed before any output, for a transient reason: repeating it is safe."""
SILENCE_SECONDS = 600.0
"""A model on a slow machine may take minutes to load, or to read a long prompt."""
MAX_REPLY_CHARS = 1_000_000
UNREADABLE = "unreadable_arguments"
_CONNECT_SECONDS = 10.0
_PASSING = (408, 409, 429)
_TOO_LONG = ("context_length_exceeded", "request_too_large")
# Errors of a call besides the SDK's own: the transport's, and those of invalid JSON.
_CAUGHT = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class EndpointAdvice:
    """The advice in errors: how to correct the key, and how to send less text."""

    key: str
    length: str


@dataclass(slots=True)
class ReplyDraft:
    """A partial answer."""

    usage: TokenUsage = field(default_factory=TokenUsage)
    chars: int = 0
    finished: bool = False

    def take(self, event: Any) -> Iterator[ModelEvent]:
        """Add an event of the stream, and yield the pieces in it."""
        raise NotImplementedError

    def end(self) -> Iterator[ModelEvent]:
        """Yield the pieces that were held back, then the reply."""
        raise NotImplementedError


class SdkModel:
    """Implements `ChatModel`, but for the provider's formats. Without a key, none is sent."""

    provider: ClassVar[str]
    """The name of the provider and of its SDK."""
    sdk_error: ClassVar[str]
    """The name of the SDK's base error."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: Secret | None = None,
        retries: int = RETRIES,
        silence_seconds: float = SILENCE_SECONDS,
        advice: EndpointAdvice | None = None,
    ) -> None:
        """`silence_seconds` limits the wait for the first output, and for each further piece. `advice` (default: for
        an agent's configuration) says in errors what to do.
        """
        try:
            self._sdk: Any = import_module(self.provider)
        except ImportError:
            raise ModelMisconfigured(
                f"{self.provider} needs its SDK; install it with: {install_command('agent')}"
            ) from None
        self._model = model
        self._url = base_url
        self._advice = advice or _advise_agent(self.provider.upper())
        self._client = self._connect(
            api_key.revealed() if api_key else None,
            base_url=base_url,
            max_retries=retries,
            timeout=httpx2.Timeout(silence_seconds, connect=min(silence_seconds, _CONNECT_SECONDS)),
        )
        self._left_out = {} if api_key else {"Authorization": self._sdk.Omit()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={self._url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a model holds connections and a key; do not pickle it, open it again in the other process")

    @property
    def name(self) -> str:
        return f"{self.provider}:{self._model}"

    async def stream(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> AsyncIterator[ModelEvent]:
        failure: ModelError | None = None
        draft, open_stream = self._prepare_call(messages, tools)
        try:
            answer = await open_stream()
            async with answer:
                async for event in answer:
                    for piece in draft.take(event):
                        yield piece
                    if draft.chars > MAX_REPLY_CHARS:
                        break
        except (getattr(self._sdk, self.sdk_error), *_CAUGHT) as error:
            failure = self._translate_error(error)
        if failure is None and draft.chars > MAX_REPLY_CHARS:
            failure = ModelUnavailable(
                f"{self._url} answered more than {MAX_REPLY_CHARS:,} characters, and was cut off"
            )
        if failure is None and not draft.finished:
            failure = ModelUnavailable(f"{self._url} ended its answer half way; try again")
        # Raised outside `except`, so that the exception chain holds nothing of the request.
        if failure is not None:
            raise failure
        for piece in draft.end():
            yield piece

    async def close(self) -> None:
        await self._client.close()

    def _connect(self, key: str | None, **options: Any) -> Any:
        """Make the SDK's client."""
        raise NotImplementedError

    def _prepare_call(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]
    ) -> tuple[ReplyDraft, Callable[[], Awaitable[Any]]]:
        """Return an empty draft, and the function that opens the stream."""
        raise NotImplementedError

    def _translate_error(self, error: Exception) -> ModelError:
        """Translate an error into one that may be shown."""
        where = self._url
        status = getattr(error, "status_code", None)
        if isinstance(error, self._sdk.APIStatusError) and isinstance(status, int) and status >= 400:
            return self._status_error(error, status)
        if isinstance(error, self._sdk.APIConnectionError | httpx2.TransportError):
            # The SDK's own error has the transport's as its cause, which in turn has another.
            return _connection_error(error if isinstance(error, httpx2.HTTPError) else error.__cause__ or error, where)
        if isinstance(error, self._sdk.APIError):
            return ModelUnavailable(f"{where} broke off its answer with an error; try again")
        return ModelUnavailable(f"{where} sent an answer that cannot be read ({type(error).__name__}); try again")

    def _status_error(self, error: Exception, status: int) -> ModelError:
        where, model = self._url, self._model
        code = getattr(error, "code", None) or getattr(error, "type", None)
        if status == 413 or code in _TOO_LONG:
            return ModelMisconfigured(f"{where} answered {status}: this is too long for {model}; {self._advice.length}")
        if status in (401, 403):
            return ModelMisconfigured(f"{where} answered {status}: check the key, {self._advice.key}")
        if status == 404:
            return ModelMisconfigured(f"{where} answered 404: check the address, and that it has the model {model!r}")
        if status in _PASSING or status >= 500:
            return ModelUnavailable(f"{where} answered {status}; try again later")
        return ModelMisconfigured(
            f"{where} answered {status}: check that {model!r} can chat, and call tools if it has any"
        )


def _advise_agent(name: str) -> EndpointAdvice:
    return EndpointAdvice(
        key=f"in {name}_API_KEY or the file that agent.apiKeyFile names. agent.baseUrl is sent only the key of"
        f" agent.apiKeyFile; {name}_BASE_URL is sent {name}_API_KEY",
        length="begin a new session, or lower agent.historyMessages",
    )


def _connection_error(error: BaseException, where: str) -> ModelUnavailable:
    kind = type(error).__name__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        return ModelUnavailable(f"{where} cannot be reached ({kind}); check that it runs, and the address")
    if isinstance(error, httpx2.TimeoutException):
        return ModelUnavailable(f"{where} was silent for too long ({kind}); try again")
    return ModelUnavailable(f"the connection to {where} was lost ({kind}); try again")


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Parse the arguments that a model wrote; always return an object, since servers refuse anything else."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return {UNREADABLE: encodable(arguments)}
    cleaned: dict[str, Any] = json.loads(encodable(json.dumps(value, ensure_ascii=False)))
    return cleaned


def new_call_id() -> str:
    """Make an id for a call that came without one, or with a duplicate."""
    return f"call_{uuid4().hex[:24]}"


def text_attribute(owner: Any, name: str) -> str:
    value = getattr(owner, name, None)
    return value if isinstance(value, str) else ""
