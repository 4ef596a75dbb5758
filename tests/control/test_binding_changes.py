"""A call starts with the binding that the last call resolved (an optimistic read), yet follows a change at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from desk import ACME, BOT, NOTE, WHOLE, Desk, text
from misbehaving import HostileProvider, handle

from holdfast.control import memory
from holdfast.control.bindings import ClearTarget, CreateBinding, DeleteBinding, SetTarget, UpdateBinding
from holdfast.control.memory import Query, UpsertRecords
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import ANY_PROVIDER, NewRecord
from holdfast.domain.scope import Scope
from holdfast.errors import BindingDisabled, BindingNotFound, HoldfastError
from holdfast.runtime.gate import CompositeRequest
from holdfast.search.embedders.fake import FakeEmbedder

ANY = handle(provider=ANY_PROVIDER)
VERBS: dict[str, Callable[[], Any]] = {
    "Capture": lambda: memory.Capture(BOT, NOTE, text("The cat sat.")),
    "UpsertRecords": lambda: UpsertRecords(BOT, (NewRecord("The cat sat."),)),
    "Query": lambda: Query(BOT, "cat"),
    "ExplainQuery": lambda: memory.ExplainQuery(BOT, "cat"),
    "ListRecords": lambda: memory.ListRecords(BOT),
    "GetRecord": lambda: memory.GetRecord(BOT, ANY),
    "ForgetProviderRecords": lambda: memory.ForgetProviderRecords(BOT, (ANY,)),
    "CorrectRecord": lambda: memory.CorrectRecord(BOT, ANY, "The dog sat."),
    "ReadProviderProfile": lambda: memory.ReadProviderProfile(BOT),
    "ListProviderJobs": lambda: memory.ListProviderJobs(BOT),
    "RetryProviderJob": lambda: memory.RetryProviderJob(BOT, "job_1"),
}

# Each change by another process, and the binding that serves the agent afterwards; None if no binding can.
CHANGES: list[tuple[Any, str | None]] = [
    (SetTarget(WHOLE, TargetKind.COMPANY, ACME, "elsewhere"), "elsewhere"),
    (UpdateBinding(WHOLE, "elsewhere", enabled=False), None),
    (SetTarget(WHOLE, TargetKind.AGENT, "bot", "default"), "default"),
    (UpdateBinding(WHOLE, "elsewhere", enabled=True), "default"),
    (ClearTarget(WHOLE, TargetKind.AGENT, "bot"), "elsewhere"),
    (UpdateBinding(WHOLE, "elsewhere", config={"colour": "red"}), "elsewhere"),
    (DeleteBinding(WHOLE, "elsewhere"), None),
    (SetTarget(WHOLE, TargetKind.COMPANY, ACME, "default"), "default"),
]


def test_every_verb_that_a_binding_serves_is_here() -> None:
    found = {
        name for name, each in vars(memory).items() if isinstance(each, type) and issubclass(each, CompositeRequest)
    }
    assert found - {"CompositeRequest", "CompanyCall"} == set(VERBS)


@pytest.fixture
def colleague(location: str, desk: Desk, runner: asyncio.Runner) -> Iterator[Desk]:
    """Another process on the same store."""
    opened = runner.run(Desk.opened(location, HostileProvider()))
    yield opened
    runner.run(opened.close())


@pytest.mark.parametrize("name", VERBS)
def test_a_change_by_another_process_is_followed_by_the_next_call(
    desk: Desk, colleague: Desk, runner: asyncio.Runner, name: str
) -> None:
    async def served_by() -> str | None:
        """The binding in the call's row. The call itself may fail."""
        asked = len(desk.hostile.asked)
        try:
            await desk.do(VERBS[name]())
        except (BindingDisabled, BindingNotFound):
            return None
        except HoldfastError:
            pass
        row = [each for each in await desk.rows() if each.action is type(VERBS[name]()).action][-1]
        assert row.attribution is not None
        binding = row.attribution.binding
        assert len(desk.hostile.asked) - asked == (binding == "elsewhere"), "the row says it, and it is not so"
        return binding

    async def scene() -> None:
        await colleague.do(CreateBinding(WHOLE, "elsewhere", "hostile"))
        assert [await served_by(), await served_by()] == ["default", "default"]
        for change, serves in CHANGES:
            await colleague.do(change)
            assert [await served_by(), await served_by()] == [serves, serves], change

    runner.run(scene())


def test_a_change_of_configuration_reaches_the_provider(desk: Desk, colleague: Desk, runner: asyncio.Runner) -> None:
    async def scene() -> tuple[int, int]:
        await colleague.bind_outside()
        await desk.do(Query(BOT, "cat"))
        before = desk.hostile.opened
        await desk.do(Query(BOT, "cat"))
        same = desk.hostile.opened
        await colleague.do(UpdateBinding(WHOLE, "elsewhere", config={"colour": "red"}))
        await desk.do(Query(BOT, "cat"))
        return same - before, desk.hostile.opened - same

    assert runner.run(scene()) == (0, 1)


class Meddling(FakeEmbedder):
    """Runs `happens` once, while it embeds."""

    happens: Callable[[], Any] | None = None

    async def embed(self, *given: Any) -> Any:
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()
        return await super().embed(*given)


@pytest.mark.parametrize("name", ["Query", "UpsertRecords"])
def test_a_change_in_the_middle_of_a_call_is_followed_by_that_call(
    location: str, hostile: HostileProvider, runner: asyncio.Runner, name: str
) -> None:
    async def scene() -> None:
        embedder = Meddling()
        desk = await Desk.opened(location, hostile, embedder=embedder)
        try:
            await desk.do(VERBS[name]())
            embedder.happens = desk.bind_outside
            answer = await desk.do(VERBS[name]())
            assert (answer.binding, [verb for verb, _ in hostile.asked]) == ("elsewhere", [ASKED[name]])
            (row,) = [each for each in await desk.rows() if each.id == answer.operation_id]
            assert row.attribution is not None
            assert (row.attribution.binding, row.attribution.provider) == ("elsewhere", "hostile")
            found = await desk.do(memory.ListRecords(BOT, binding_key="default"))
            assert len(found.result.items) == (name == "UpsertRecords")  # of the first call, not of the second
        finally:
            await desk.close()

    runner.run(scene())


ASKED = {"Query": "query", "UpsertRecords": "upsert_records"}


def test_what_is_supposed_is_bounded(desk: Desk, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.runtime.gate._MOST_SUPPOSED", 3)
    for number in range(10):
        runner.run(desk.do(Query(Scope(space=ACME, agent=f"bot{number}"), "cat")))
        assert len(desk.engine._core.supposed) <= 3
