"""Isolation: no caller sees, changes or forgets records of another space, agent, subject or namespace."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.scope import Scope
from holdfast.errors import HoldfastError
from holdfast.testing.provider_suite.trial import Trial, run_on_adapter

_HELD = "The vault's combination is Periwinkle."
# Different names that careless encoding, case folding or joining would make equal.
_ALIKE = [
    ("ana", "Ana"),
    ("ana", "ana2"),
    ("a/b", "a_b"),
    ("a.b", "a b"),
    ("a%2Fb", "a/b"),
    ("a:b", "a|b"),
    ("é", "e\u0301"),
    ("ß", "ss"),
    ("x" * 256, "x" * 255 + "y"),
    ("..", "."),
    ("*", "ana"),
    ("%", "ana"),
]


class IsolationContract:
    @pytest.mark.parametrize("wall", ["space", "agent", "subject", "namespace"])
    @run_on_adapter
    async def test_nobody_reaches_what_is_behind_a_wall(self, trial: Trial, wall: str) -> None:
        here, there = _scope_pair(trial, wall, "harbour", "airport")
        await _check_isolation(trial, here, there)

    @pytest.mark.parametrize("wall", ["space", "agent", "subject", "namespace"])
    @pytest.mark.parametrize("alike", _ALIKE, ids=lambda pair: f"{pair[0][:8]}-{pair[1][:8]}")
    @run_on_adapter
    async def test_names_that_look_alike_are_two(self, trial: Trial, wall: str, alike: tuple[str, str]) -> None:
        here, there = _scope_pair(trial, wall, *alike)
        handle = await trial.note(_HELD, here)
        assert await trial.texts(here) == [_HELD]
        assert await trial.texts(there) == []
        assert await trial.find_texts("vault combination", there) == []
        assert await trial.text_of(handle, there) is None

    @run_on_adapter
    async def test_an_agent_and_a_subject_of_one_name_are_two(self, trial: Trial) -> None:
        await _check_isolation(trial, trial.scope(agent="kim"), Scope(trial.space, subject="kim"))

    @run_on_adapter
    async def test_parts_that_could_be_joined_are_kept_apart(self, trial: Trial) -> None:
        here = trial.scope(agent="a", namespace="b:c")
        there = trial.scope(agent="a:b", namespace="c")
        await _check_isolation(trial, here, there)

    @run_on_adapter
    async def test_runs_and_issues_come_and_go_without_losing_what_was_learned(self, trial: Trial) -> None:
        await trial.note("The test server is called Rook.", trial.scope(run="run-1", issue="ISS-1"))
        seen = await trial.find_texts("What is the test server called?", trial.scope(run="run-2", issue="ISS-2"))
        assert seen == ["The test server is called Rook."]


def _scope_pair(trial: Trial, wall: str, here: str, there: str) -> tuple[Scope, Scope]:
    if wall == "space":
        # Make the spaces unique to this test.
        mark = trial.space[-12:]
        here, there = f"{here[:240]}-{mark}", f"{there[:240]}-{mark}"
        if here == there:
            here = f"other-{mark}"
        return Scope(here, agent="ana"), Scope(there, agent="ana")
    if wall == "subject":
        return trial.scope(agent=None, subject=here), trial.scope(agent=None, subject=there)
    parts: list[dict[str, Any]] = [{wall: here}, {wall: there}]
    return trial.scope(**parts[0]), trial.scope(**parts[1])


async def _check_isolation(trial: Trial, here: Scope, there: Scope) -> None:
    handle = await trial.note(_HELD, here)
    own = await trial.note("The canteen closes at two.", there)
    assert await trial.texts(there) == ["The canteen closes at two."]
    assert await trial.find_texts("What is the vault's combination?", there) in ([], ["The canteen closes at two."])
    assert await trial.text_of(handle, there) is None
    done = await trial.adapter.forget([handle, own], there)
    assert (tuple(done.forgotten), tuple(done.missing)) == ((own,), (handle,))
    if trial.adapter.capabilities.correction:
        adapter: Any = trial.adapter
        with pytest.raises(HoldfastError):
            await adapter.correct(handle, "The vault is open.", there, None)
    if trial.adapter.capabilities.profile:
        adapter = trial.adapter
        assert "Periwinkle" not in str((await adapter.profile(there)).summary)
    assert await trial.text_of(handle, here) == _HELD
    assert _HELD in await trial.find_texts("What is the vault's combination?", here)
