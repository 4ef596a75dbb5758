"""Tokenizers that callers give, to count the tokens of a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from operator import index
from typing import Any, Protocol, TypeAlias

from holdfast.errors import InvalidInput


class Encoder(Protocol):
    """A tokenizer object, such as one of tiktoken or of tokenizers. Its result has a length, or a list `ids`."""

    def encode(self, text: str, /) -> Any: ...


Tokenizer: TypeAlias = Encoder | Callable[[str], "int | Sized"]


def is_tokenizer(value: object) -> bool:
    # A text has an `encode` of its own: it may be meant as the name of a model.
    return not isinstance(value, str) and (callable(value) or callable(getattr(value, "encode", None)))


def token_counter(tokenizer: Tokenizer | None, embedder: object) -> Callable[[str], int] | None:
    """Return a function that counts tokens: by the tokenizer, else as the embedder does; None if neither can."""
    return _counter(tokenizer) if tokenizer is not None else getattr(embedder, "count_tokens", None)


def _counter(tokenizer: Tokenizer) -> Callable[[str], int]:
    """Return a function that counts tokens. `InvalidInput` if the tokenizer fails, or returns something else."""
    encode: Any = getattr(tokenizer, "encode", None) or tokenizer

    def count(text: str) -> int:
        try:
            tokens = encode(text)
        except Exception as error:
            raise InvalidInput("tokenizer", f"failed on a text of {len(text):,} characters: {error!r:.200}") from error
        found = _token_count(tokens)
        if found is None or found < 0:
            raise InvalidInput("tokenizer", f"must return the tokens of a text, or their number, not {tokens!r:.40}")
        return found

    return count


def _token_count(tokens: Any) -> int | None:
    """Count the tokens that a tokenizer returned; None if these are no tokens."""
    if isinstance(tokens, Mapping):  # as the tokenizers of transformers return, if they are called
        tokens = tokens.get("input_ids")
    tokens = getattr(tokens, "ids", tokens)
    if isinstance(tokens, bool | str | bytes | Mapping):
        return None
    try:
        return len(tokens) if isinstance(tokens, Sized) else index(tokens)
    except TypeError:
        return None
