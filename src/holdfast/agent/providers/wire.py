"""What the models behind HTTP share: their errors in Holdfast's words, and arguments that are always JSON.

No error holds a key, a body or a whole request; each is raised apart from what was caught, which does.
"""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any
from uuid import uuid4

import httpx2

from holdfast.errors import ModelError, ModelMisconfigured, ModelUnavailable

RETRIES = 2
"""Of what failed before a word was heard, for a passing reason: asking again changes nothing."""
SILENCE_SECONDS = 600.0
"""A model on a slow machine may take minutes over a long prompt, or to be loaded."""
MAX_REPLY_CHARS = 1_000_000
MISSING = "{provider} needs its SDK; install it with: pip install 'holdfast[agent]'"
UNREADABLE = "unreadable_arguments"
_CONNECT_SECONDS = 10.0
_PASSING = (408, 409, 429)
_TOO_LONG = ("context_length_exceeded", "request_too_large")


def caught(sdk: ModuleType) -> tuple[type[Exception], ...]:
    """What may come out of a call: the SDK's own errors, those of its transport, and of bytes that are no JSON."""
    root: type[Exception] = getattr(sdk, "OpenAIError", None) or sdk.AnthropicError
    return (root, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, ValueError, TypeError, RecursionError)


def patience(silence_seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(silence_seconds, connect=min(silence_seconds, _CONNECT_SECONDS))


def told(error: Exception, sdk: ModuleType, *, where: str, model: str, name: str) -> ModelError:
    """The error as it may be shown. `where` is the address, `name` the provider's, in capitals."""
    status = getattr(error, "status_code", None)
    if isinstance(error, sdk.APIStatusError) and isinstance(status, int) and status >= 400:
        return _refused(error, status, where=where, model=model, name=name)
    if isinstance(error, sdk.APIConnectionError | httpx2.TransportError):
        # The SDK's own error has the transport's as its cause, which in turn has another.
        return _lost(error if isinstance(error, httpx2.HTTPError) else error.__cause__ or error, where)
    if isinstance(error, sdk.APIError):
        return ModelUnavailable(f"{where} broke off its answer with an error; try again")
    return ModelUnavailable(f"{where} answered in a way that cannot be read ({type(error).__name__}); try again")


def _lost(error: BaseException, where: str) -> ModelUnavailable:
    kind = type(error).__name__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        return ModelUnavailable(f"{where} cannot be reached ({kind}); check that it runs and is the right address")
    if isinstance(error, httpx2.TimeoutException):
        return ModelUnavailable(f"{where} was silent for too long ({kind}); try again")
    return ModelUnavailable(f"the connection to {where} was lost ({kind}); try again")


def broken_off(where: str) -> ModelUnavailable:
    return ModelUnavailable(f"{where} ended its answer half way; try again")


def too_much(where: str) -> ModelUnavailable:
    return ModelUnavailable(f"{where} went on for more than {MAX_REPLY_CHARS:,} characters; it was cut off")


def _refused(error: Exception, status: int, *, where: str, model: str, name: str) -> ModelError:
    code = getattr(error, "code", None) or getattr(error, "type", None)
    if status == 413 or code in _TOO_LONG:
        return ModelMisconfigured(
            f"{where} answered {status}: this is more than {model} can take; begin a new session, or lower"
            " agent.historyMessages"
        )
    if status in (401, 403):
        return ModelMisconfigured(
            f"{where} answered {status}: check the key, in {name}_API_KEY or the file that agent.apiKeyFile names."
            f" An address of agent.baseUrl gets the one of agent.apiKeyFile alone; {name}_BASE_URL gets the other"
        )
    if status == 404:
        return ModelMisconfigured(f"{where} answered 404: check the address, and that it has the model {model!r}")
    if status in _PASSING or status >= 500:
        return ModelUnavailable(f"{where} answered {status}; try again later")
    return ModelMisconfigured(f"{where} answered {status}: check that {model!r} can chat, and call tools if it is to")


def object_of(arguments: str) -> dict[str, Any]:
    """What a model wrote as the arguments of a call, as an object whatever it was: servers refuse anything else."""
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {UNREADABLE: sendable(arguments)}
    cleaned: dict[str, Any] = json.loads(sendable(json.dumps(found, ensure_ascii=False)))
    return cleaned


def sendable(text: str) -> str:
    """Half a surrogate pair cannot be sent."""
    return text.encode("utf-8", "replace").decode()


def new_call_id() -> str:
    """For a call that came without an id, or with one that another has."""
    return f"call_{uuid4().hex[:24]}"
