"""A small conversation whose ranking identifies the version of the ranking that calibrations were fitted to."""

from __future__ import annotations

import hashlib

import holdfast

_MESSAGES = (
    ("Ana", "2026-03-02T09:00Z", "standup", "Morning! I moved to Lisbon last week, the boxes are still everywhere."),
    ("Ben", "2026-03-02T09:01Z", "standup", "Congratulations! Is the flat close to the river?"),
    ("Ana", "2026-03-02T09:02Z", "standup", "Ten minutes on foot. The release is planned for 5 May, by the way."),
    ("Cleo", "2026-03-02T09:05Z", "standup", "I will be away in April, my sister gets married in Turin."),
    ("Ben", "2026-03-09T09:00Z", "planning", "The printer on the third floor is broken again."),
    ("Cleo", "2026-03-09T09:02Z", "planning", "Please take the one beside the kitchen until Friday."),
    ("Ana", "2026-03-09T09:03Z", "planning", "The budget was approved: 84,000 euros with the audit."),
    ("Ben", "2026-03-09T09:04Z", "planning", "Who writes the minutes?"),
)
_QUERIES = (
    "Where does Ana live?",
    "When is the release?",
    "What is broken?",
    "How much is the budget?",
    "audit in April",
)


def sample_strengths() -> tuple[float, ...]:
    """Return the strengths of all hits of a few searches, in order."""
    with holdfast.open(":memory:", embedder="static") as memory:
        for conversation in ("standup", "planning"):
            messages = [
                {"sender": sender, "timestamp": at, "text": text}
                for sender, at, where, text in _MESSAGES
                if where == conversation
            ]
            memory.add(messages, subject="team", conversation=conversation)
        explained = [memory.explain(query, subject="team") for query in _QUERIES]
    return tuple(
        round(sum(part.contribution for part in hit.components), 4) for found in explained for hit in found.hits
    )


def ranking_version(strengths: tuple[float, ...]) -> str:
    """Name the version of the ranking that gave these strengths."""
    return hashlib.sha256(repr(strengths).encode()).hexdigest()[:8]
