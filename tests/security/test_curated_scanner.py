"""The scanner of curated memory is best effort: its rate on a corpus is measured here, and published by halves."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanner_corpus import attacks, honest

from holdfast.agent.curated.threats import threat_in

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "security.md"
# Patterns were developed on the first half alone.
HALVES = {"developed on": 0, "held back": 1}
CLASSES = ("encodings", "languages", "markdown")


def rate(half: int, kind: str) -> tuple[int, int]:
    texts = attacks(half)[kind].values()
    return sum(bool(threat_in(text)) for text in texts), len(texts)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_published_rate_is_the_measured_one(kind: str) -> None:
    found = [rate(half, kind) for half in HALVES.values()]
    row = f"| {kind} | " + " | ".join(f"{blocked} of {count}" for blocked, count in found) + " |"
    assert row in PAGE.read_text("utf-8"), row


def test_the_published_false_alarms_are_the_measured_ones() -> None:
    found = [(sum(bool(threat_in(text)) for text in honest(half)), len(honest(half))) for half in HALVES.values()]
    row = "| honest notes blocked | " + " | ".join(f"{blocked} of {count}" for blocked, count in found) + " |"
    assert row in PAGE.read_text("utf-8"), row


def test_the_halves_share_no_sentence() -> None:
    first, second = ({text for group in attacks(half).values() for text in group.values()} for half in HALVES.values())
    assert not first & second
    assert not set(honest(0)) & set(honest(1))
