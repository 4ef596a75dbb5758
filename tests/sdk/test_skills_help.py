"""Learned skills save an agent tool calls: `bench/skills` plays 40 tasks, and publishes the figures."""

from __future__ import annotations

import asyncio

from bench.skills.__main__ import count_calls
from bench.skills.play import load_tasks, play_passes


def test_skills_save_a_third_of_the_tool_calls_and_without_them_nothing_changes(location: str) -> None:
    tasks = load_tasks()
    passes = asyncio.run(play_passes(tasks, location, "static"))
    assert len(tasks) == len({task.request for task in tasks}) == 40
    assert passes.learned == 40
    assert count_calls(passes.second) <= 0.7 * count_calls(passes.first)
    # Wrong skills are shown, too, and cost calls.
    pairs = zip(passes.first, passes.second, strict=True)
    costs = [len(after.calls) - len(before.calls) for before, after in pairs if False in after.followed]
    assert len(costs) >= 5
    assert max(costs) > 0
    assert [attempt.calls for attempt in passes.disabled] == [attempt.calls for attempt in passes.first]
