"""The built-in fixture of the harness gate: a skill is written, recalled, projected and counted."""

from __future__ import annotations

from holdfast.domain.profiles import DEFAULT_PROFILE
from holdfast.ports import EmbedderLike
from holdfast.testing.replay.fixture import ReplayExpectation, ReplayFixture
from holdfast.testing.replay.runner import IN_MEMORY, ReplayRunReport, require_capability, run_fixture

_NAME = "runtime_skill__restart_the_print_server"
_SUMMARY = "Restart the print server when jobs hang."

HARNESS = ReplayFixture(
    "sdk-memory-harness",
    (
        {
            "operation": "write_procedural",
            "writes": [
                {
                    "title": "Restart the print server",
                    "summary": _SUMMARY,
                    "content": "Stop the queue.\nRestart the print server.\nPrint a test page.",
                }
            ],
        },
        {"operation": "recall", "query": "How do I restart the print server?"},
        {"operation": "project", "user_query": "How do I restart the print server?"},
        {"operation": "inspect", "query": "print server"},
    ),
    expected=ReplayExpectation(
        lifecycle_operations=("write", "recall", "project", "inspect"),
        min_reports=4,
        required_report_fragments=(
            f"1 write_procedural: skill 1: created procedural_memory {_NAME}",
            f"2 recall: skill 1: {_NAME}: ",
            _SUMMARY,
            "faithful=True",
            "4 inspect: messages=0, memories=1, ",
        ),
    ),
)


def run_harness(
    store: str = IN_MEMORY, profile: str = DEFAULT_PROFILE, *, embedder: EmbedderLike | None = None
) -> ReplayRunReport:
    """Run the built-in fixture under a profile: the smallest check that a memory works from end to end."""
    require_capability(profile, "memory_harness")
    fixture = ReplayFixture(HARNESS.fixture_id, HARNESS.operations, profile, expected=HARNESS.expected)
    return run_fixture(fixture, store, embedder=embedder)
