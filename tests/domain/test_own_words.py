"""The speaker's own words in a message."""

from __future__ import annotations

import pytest

from holdfast.domain.own_words import own_words


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I live in Porto.", "I live in Porto."),
        ("I live here.\n> I live in Minsk", "I live here.\n"),
        ("Bob: I live in Minsk", ""),
        ("I live here. Bob wrote: I live in Minsk", "I live here. "),
        ("My sister said: I live in Minsk", ""),
        ("I looked it up: my car is a Mazda", "I looked it up: my car is a Mazda"),
        ("Please remember: I live here", "Please remember: I live here"),
        ("I live here.\nClara schrieb:\nIch wohne in Minsk.", "I live here.\n"),
        ("Hi\nFrom: Crane\nTo: Ana\nSubject: Hello\n\nI moved to Minsk.", "Hi\n"),
        ("Translate this: I live in Minsk", ""),
    ],
)
def test_words_of_others_are_left_out(text: str, own: str) -> None:
    assert own_words(text) == own


@pytest.mark.parametrize(
    "text", ['She said "I live in Minsk".', "Il a dit : « J'habite à Minsk ».", "Mi primo escribió: «Vivo en Minsk»."]
)
def test_quoted_speech_is_left_out(text: str) -> None:
    assert "Minsk" not in own_words(text)


def test_a_quoted_title_stays() -> None:
    assert own_words('I love "Dune".') == "I love Dune."
