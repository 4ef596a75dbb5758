"""Tokens that are easy to guess are told from random ones."""

from __future__ import annotations

import random

import pytest

from holdfast.domain.secret_strength import find_weakness

HEX, LETTERS = "0123456789abcdef", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


def test_random_tokens_are_strong() -> None:
    chance = random.Random(21)
    for alphabet, length in ((HEX, 64), (HEX, 32), (LETTERS, 24), (LETTERS, 43)):
        weak = sum(find_weakness("".join(chance.choices(alphabet, k=length))) is not None for _ in range(1_000))
        assert weak == 0, (alphabet, length)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "short",
        "changemechangeme",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "0123456789abcdef0123456789abcdef",
        "1234567812345678",
        "my-secret-operator-token",
        "Password1234567890",
        "qwertyuiopasdfghjkl",
        "change-this-to-a-long-random-string",
        "hunter2hunter2hunter2",
        "holdfast-operator-token-2026",
    ],
)
def test_words_and_repetitions_are_weak(token: str) -> None:
    assert find_weakness(token) is not None
