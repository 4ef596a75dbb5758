"""Tokenizers that callers give: their ways to return tokens, and what they may return wrongly."""

from __future__ import annotations

from collections import UserDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.tokens import is_tokenizer, token_counter
from holdfast.errors import InvalidInput


class Encoding:
    ids = (1, 2, 3)


class Encoder:
    """As those of tiktoken and tokenizers."""

    def __init__(self, tokens: Any) -> None:
        self._tokens = tokens

    def encode(self, text: str) -> Any:
        return self._tokens


class Embedder:
    def count_tokens(self, text: str) -> int:
        return 7


@pytest.mark.parametrize(
    "tokens",
    [3, np.int64(3), [1, 2, 3], (1, 2, 3), np.arange(3), Encoding(), ["a", "b", "c"], {"input_ids": [1, 2, 3]},
     UserDict({"input_ids": [1, 2, 3], "attention_mask": [1, 1, 1]})],
)  # fmt: skip
def test_tokens_are_counted_however_they_come(tokens: Any) -> None:
    for tokenizer in (Encoder(tokens), lambda text: tokens):
        assert is_tokenizer(tokenizer)
        count = token_counter(tokenizer, Embedder())
        assert count is not None
        assert count("one two three") == 3


@pytest.mark.parametrize(
    "tokens", [None, -1, True, 3.0, float("nan"), "three", b"three", {}, {"ids": [1]}, {"input_ids": None}, object()]
)
def test_what_is_no_number_of_tokens_is_refused_and_shown(tokens: Any) -> None:
    count = token_counter(lambda text: tokens, None)
    assert count is not None
    with pytest.raises(InvalidInput, match="tokenizer: must return the tokens of a text, or their number, not "):
        count("secret text")


def test_a_tokenizer_that_fails_is_named_with_its_error_and_without_the_text() -> None:
    def fail(text: str) -> int:
        raise RuntimeError("no vocabulary")

    count = token_counter(fail, None)
    assert count is not None
    with pytest.raises(InvalidInput, match=r"failed on a text of 11 characters: .*no vocabulary") as refused:
        count("secret text")
    assert "secret" not in str(refused.value)
    assert isinstance(refused.value.__cause__, RuntimeError)


def test_without_a_tokenizer_the_embedder_counts_if_it_can() -> None:
    count = token_counter(None, Embedder())
    assert count is not None
    assert count("anything") == 7
    assert token_counter(None, object()) is None


@given(st.none() | st.integers() | st.text() | st.binary() | st.lists(st.integers()))
def test_only_functions_and_encoders_are_tokenizers(value: Any) -> None:
    assert not is_tokenizer(value)
