"""Shared parts of the models behind HTTP: error translation, and arguments that are always JSON.

No error holds a key, a body or a whole request. Each is raised outside of `except`, because the caught error does.
"""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any
from uuid import uuid4

import httpx2

from holdfast.errors import ModelError, ModelMisconfigured, ModelUnavailable

RETRIES = 2
"""Retries of a call that failed before any output, for a transient reason: repeating it is safe."""
SILENCE_SECONDS = 600.0
"""A model on a slow machine may take minutes to load, or to read a long prompt."""
MAX_REPLY_CHARS = 1_000_000
MISSING = "{provider} needs its SDK; install it with: pip install 'holdfast[agent]'"
UNREADABLE = "unreadable_arguments"
_CONNECT_SECONDS = 10.0
_PASSING = (408, 409, 429)
_TOO_LONG = ("context_length_exceeded", "request_too_large")


def catchable_errors(sdk: ModuleType) -> tuple[type[Exception], ...]:
    """List the errors that a call may raise: the SDK's own, its transport's, and those of invalid JSON."""
    root: type[Exception] = getattr(sdk, "OpenAIError", None) or sdk.AnthropicError
    return (root, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, ValueError, TypeError, RecursionError)


def make_timeout(silence_seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(silence_seconds, connect=min(silence_seconds, _CONNECT_SECONDS))


def translate_error(error: Exception, sdk: ModuleType, *, where: str, model: str, name: str) -> ModelError:
    """Translate an error into one that may be shown. `where` is the address, `name` the provider's, in capitals."""
    status = getattr(error, "status_code", None)
    if isinstance(error, sdk.APIStatusError) and isinstance(status, int) and status >= 400:
        return _status_error(error, status, where=where, model=model, name=name)
    if isinstance(error, sdk.APIConnectionError | httpx2.TransportError):
        # The SDK's own error has the transport's as its cause, which in turn has another.
        return _connection_error(error if isinstance(error, httpx2.HTTPError) else error.__cause__ or error, where)
    if isinstance(error, sdk.APIError):
        return ModelUnavailable(f"{where} broke off its answer with an error; try again")
    return ModelUnavailable(f"{where} sent an answer that cannot be read ({type(error).__name__}); try again")


def _connection_error(error: BaseException, where: str) -> ModelUnavailable:
    kind = type(error).__name__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        return ModelUnavailable(f"{where} cannot be reached ({kind}); check that it runs, and the address")
    if isinstance(error, httpx2.TimeoutException):
        return ModelUnavailable(f"{where} was silent for too long ({kind}); try again")
    return ModelUnavailable(f"the connection to {where} was lost ({kind}); try again")


def incomplete_answer(where: str) -> ModelUnavailable:
    return ModelUnavailable(f"{where} ended its answer half way; try again")


def oversized_answer(where: str) -> ModelUnavailable:
    return ModelUnavailable(f"{where} answered more than {MAX_REPLY_CHARS:,} characters, and was cut off")


def _status_error(error: Exception, status: int, *, where: str, model: str, name: str) -> ModelError:
    code = getattr(error, "code", None) or getattr(error, "type", None)
    if status == 413 or code in _TOO_LONG:
        return ModelMisconfigured(
            f"{where} answered {status}: this is too long for {model}; begin a new session, or lower"
            " agent.historyMessages"
        )
    if status in (401, 403):
        return ModelMisconfigured(
            f"{where} answered {status}: check the key, in {name}_API_KEY or the file that agent.apiKeyFile names."
            f" agent.baseUrl is sent only the key of agent.apiKeyFile; {name}_BASE_URL is sent {name}_API_KEY"
        )
    if status == 404:
        return ModelMisconfigured(f"{where} answered 404: check the address, and that it has the model {model!r}")
    if status in _PASSING or status >= 500:
        return ModelUnavailable(f"{where} answered {status}; try again later")
    return ModelMisconfigured(f"{where} answered {status}: check that {model!r} can chat, and call tools if it has any")


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Parse the arguments that a model wrote; always return an object, since servers refuse anything else."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return {UNREADABLE: sendable(arguments)}
    cleaned: dict[str, Any] = json.loads(sendable(json.dumps(value, ensure_ascii=False)))
    return cleaned


def sendable(text: str) -> str:
    """Replace lone surrogates, which cannot be sent."""
    return text.encode("utf-8", "replace").decode()


def new_call_id() -> str:
    """Make an id for a call that came without one, or with a duplicate."""
    return f"call_{uuid4().hex[:24]}"
