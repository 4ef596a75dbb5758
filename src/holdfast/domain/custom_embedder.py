"""Embedders that callers give: functions of texts, and objects of other libraries."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.domain.checks import checked_text
from holdfast.errors import InvalidInput

MAX_NAME_CHARS = 80
DERIVED, NAMED = "python", "custom"  # begin the fingerprints of embedders without and with a name of the caller's
_PORT = ("fingerprint", "dimensions", "local", "embed", "close")
# Methods that embed documents and queries, in the order of preference, and whether the second takes a single text.
_METHODS = (
    ("embed_documents", "embed_query", True),  # LangChain
    ("encode_document", "encode_query", False),  # sentence-transformers, from 5 on
    ("encode", "encode", False),
    ("embed", "embed", False),
    ("aembed_documents", "aembed_query", True),
)
# Attributes in which libraries keep the name of a model.
_MODEL_NAMES = ("model_name", "model", "model_id", "model_name_or_path", "name")
_EXPECTED = (
    "expected a name such as 'static', a function of a list of texts, an object with embed, encode or embed_documents,"
    " or a holdfast.ports.Embedder"
)


class _TextEncoder(Protocol):
    @property
    def encode(self) -> Callable[..., Any]: ...


class _TextEmbedder(Protocol):
    @property
    def embed(self) -> Callable[..., Any]: ...


class _DocumentEmbedder(Protocol):
    @property
    def embed_documents(self) -> Callable[..., Any]: ...


EmbedderTarget = Callable[[list[str]], Any] | _TextEncoder | _TextEmbedder | _DocumentEmbedder


@dataclass(frozen=True, slots=True)
class CustomEmbedder:
    """An embedder of your own: a function, or an object such as a sentence-transformers model, with options.

    A store is embedded again if the `name` changes; without one, it is derived. `local` says whether `add` waits for
    the vectors; otherwise a background job makes them. By default it waits, unless the function is asynchronous.
    """

    target: EmbedderTarget
    name: str | None = None
    local: bool | None = None

    def __post_init__(self) -> None:
        check_target(self.target)
        if self.name is not None:
            checked_text(self.name, "name", max_chars=MAX_NAME_CHARS)
            if not self.name.isprintable():
                raise InvalidInput("name", "holds characters that cannot be printed; remove them")
        if self.local is not None and not isinstance(self.local, bool):
            raise InvalidInput("local", f"expected True or False, got {type(self.local).__name__}")


@dataclass(frozen=True, slots=True)
class EmbeddingCalls:
    """The calls that embed documents and queries. With `single_query`, the second takes one text, and not a list."""

    documents: Callable[[Any], Any]
    queries: Callable[[Any], Any]
    single_query: bool
    is_async: bool


def is_port(value: object) -> bool:
    """True if it implements `ports.Embedder`."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in _PORT)


def check_embedder(value: object) -> bool:
    """Return True if a value can be used as an embedder; raise `InvalidInput` if not."""
    if not isinstance(value, str | CustomEmbedder) and not is_port(value):
        check_target(value)
    return True


def check_target(value: object) -> None:
    if isinstance(value, type):
        raise InvalidInput("embedder", f"got the class {value.__name__}; pass an instance of it")
    if isinstance(value, str | bytes):
        raise InvalidInput("embedder", f"got a text; {_EXPECTED}")
    if hasattr(value, "fingerprint"):
        missing = [name for name in _PORT if not hasattr(value, name)]
        raise InvalidInput("embedder", f"{type(value).__name__} is no Embedder: it has no {' and no '.join(missing)}")
    if callable(getattr(getattr(value, "embeddings", None), "create", None)):
        advice = "name the model instead, as in embedder='openai:text-embedding-3-small'"
        raise InvalidInput("embedder", f"got a client of an endpoint, {type(value).__name__}; {advice}")
    if find_calls(value) is None:
        raise InvalidInput("embedder", f"{_EXPECTED}; got {type(value).__name__}")


def find_calls(target: object) -> EmbeddingCalls | None:
    """Find how to call an embedder: by one of its methods, else itself; None if it cannot be called."""
    for for_documents, for_queries, single in _METHODS:
        documents, queries = getattr(target, for_documents, None), getattr(target, for_queries, None)
        if callable(documents) and callable(queries):
            return EmbeddingCalls(documents, queries, single, _is_async(documents))
    if not callable(target):
        return None
    return EmbeddingCalls(target, target, single_query=False, is_async=_is_async(target))


def _is_async(call: Any) -> bool:
    while isinstance(call, functools.partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def derive_name(target: object) -> str:
    """A name for people: that of the function, or of the class and its model."""
    while isinstance(target, functools.partial):
        target = target.func
    if isinstance(name := getattr(target, "__qualname__", None), str):
        module = getattr(target, "__module__", None)
        name = name.rpartition("<locals>.")[2].replace("<lambda>", "lambda")
        return _printable(name if module in (None, "__main__", "__mp_main__") else f"{module}.{name}")
    names = (getattr(target, attribute, None) for attribute in _MODEL_NAMES)
    model = next((each for each in names if isinstance(each, str) and each.strip()), None)
    return _printable(type(target).__name__ if model is None else f"{type(target).__name__}({model})")


def _printable(name: str) -> str:
    return "".join(char for char in name if char.isprintable())[:MAX_NAME_CHARS] or "embedder"
