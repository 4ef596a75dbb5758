"""Skills that a model learns: from turns with tools, and only after an approval if strangers had a say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from writers import ANA, CHAT, Host, Proposing, hosting

from holdfast import AsyncMemory
from holdfast.domain.access import storewide_grant
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Plane
from holdfast.domain.runtime_api.skills import RuntimeSkillListRequest, RuntimeSkillSummary
from holdfast.domain.runtime_api.transcripts import CanonicalTurnDelta, TurnMessage
from holdfast.domain.runtime_api.writing import MemoryMaintainRequest
from holdfast.domain.transcript import Message, Role
from holdfast.ports import CurationResult, ModelCallUsage, Proposal
from holdfast.runtime.skills.read_skills import ListSkills

STEPS = "Build the image, run the migration, then switch the traffic."


class Teaching(Proposing):
    """A curator that proposes the messages of users as procedures."""

    def __init__(self) -> None:
        super().__init__(lambda messages: [])
        self.taught: list[list[str]] = []

    async def curate_procedures(self, messages: Sequence[Message]) -> CurationResult:
        self.taught.append([message.text for message in messages])
        made = [
            Proposal(each.text, (MessageId(each.id),), plane=Plane.PROCEDURAL)
            for each in messages
            if each.role is Role.USER
        ]
        return CurationResult(tuple(made), ModelCallUsage("test-model", 1, 10, 2))


async def skills(host: Host) -> list[RuntimeSkillSummary]:
    verb = ListSkills(host._governance, RuntimeSkillListRequest())
    report = await host.engine.perform(host._actor, verb.action, lambda: verb, space=ANA.space)
    return list(report.runtime_skills)


def play(location: str, scene: Callable[[Host, Teaching], Awaitable[None]]) -> None:
    async def whole() -> None:
        curator = Teaching()
        async with hosting(location, curator=curator) as host:
            await scene(host, curator)

    asyncio.run(whole())


def test_a_turn_without_tools_teaches_no_skill(location: str) -> None:
    async def scene(host: Host, curator: Teaching) -> None:
        await host.said(STEPS)
        report = await host.maintain(MemoryMaintainRequest(scope=CHAT))
        assert report.usage is not None
        assert report.usage.requests == 1
        assert curator.taught == []
        assert await skills(host) == []

    play(location, scene)


def test_a_turn_with_tools_teaches_a_skill_once(location: str) -> None:
    async def scene(host: Host, curator: Teaching) -> None:
        await host.said(STEPS)
        request = MemoryMaintainRequest(scope=CHAT, tool_calls=("shell",))
        report = await host.maintain(request)
        assert report.usage is not None
        assert report.usage.requests == 2
        (skill,) = await skills(host)
        assert skill.name == "runtime_skill__build_the_image_run_the_migration_then_switch_th"
        assert not skill.needs_approval
        assert not (await host.maintain(request)).changed
        assert len(await skills(host)) == 1
        assert curator.taught == [[STEPS]]

    play(location, scene)


@pytest.mark.parametrize("external", [False, True])
def test_a_delivered_turn_with_observations_teaches_a_skill(location: str, external: bool) -> None:
    async def scene(host: Host, curator: Teaching) -> None:
        delta = CanonicalTurnDelta(
            "t-1",
            "delivered",
            (TurnMessage(STEPS, authority="user_asserted"),),
            "Done.",
            CHAT,
            tool_observations=(TurnMessage("exit code 0"),),
            external_content_used=external,
        )
        await host.finalize_turn_and_maintain(delta)
        await host.engine._core.drain()
        (skill,) = await skills(host)
        assert skill.needs_approval is external
        assert all("exit code" not in text for texts in curator.taught for text in texts)

    play(location, scene)


def test_what_external_content_taught_waits_for_an_approval(location: str) -> None:
    async def scene(host: Host, curator: Teaching) -> None:
        await host.said(STEPS)
        request = MemoryMaintainRequest(scope=CHAT, tool_calls=("browser",), external_content_used=True)
        (verdict,) = (await host.maintain(request)).semantic_governance.verdicts
        assert verdict.verdict == "deferred"
        (skill,) = await skills(host)
        assert skill.needs_approval

    play(location, scene)


def test_what_is_taught_in_other_words_is_the_same_skill(location: str) -> None:
    async def scene(host: Host, curator: Teaching) -> None:
        for turn, text in (
            ("t1", STEPS),
            ("t2", STEPS.replace("the image", "the images")),
            ("t3", "Ask Ana to do it."),
        ):
            await host.said(text, turn=turn)
            await host.maintain(MemoryMaintainRequest(scope=CHAT, tool_calls=("shell",)))
        assert len(await skills(host)) == 2
        (first,) = [each for each in await skills(host) if "build" in each.name]
        assert len((await host.memory(first.memory_id)).evidence) == 2

    play(location, scene)


def test_what_one_turn_teaches_twice_is_one_skill(location: str) -> None:
    async def scene(host: Host, curator: Teaching) -> None:
        await host.said(STEPS, "Ask Ana to do it.", STEPS.replace("the image", "the images"))
        await host.maintain(MemoryMaintainRequest(scope=CHAT, tool_calls=("shell",)))
        learned = {skill.title: skill for skill in await skills(host)}
        assert learned.keys() == {STEPS, "Ask Ana to do it."}
        assert len((await host.memory(learned[STEPS].memory_id)).evidence) == 2

    play(location, scene)


def test_a_skill_goes_with_the_messages_that_taught_it(location: str) -> None:
    async def scene(host: Host, curator: Teaching) -> None:
        said = await host.said(STEPS)
        await host.maintain(MemoryMaintainRequest(scope=CHAT, tool_calls=("shell",)))
        assert await skills(host)
        memory = AsyncMemory(host.engine)
        assert (await memory.forget(said[0], subject="ana")).memories == 1
        assert await skills(host) == []
        grant = storewide_grant()
        _, findings = await host.engine._core.store.read(grant, lambda reader: reader.maintenance.integrity("any"))
        assert findings == []

    play(location, scene)
