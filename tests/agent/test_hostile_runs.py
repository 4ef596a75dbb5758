"""Hostile text in files, at the gateway or in earlier sessions never becomes part of the system prompt."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import HARMLESS, HOSTILE, RECALLED
from recorded import Recorded, agent, calls, configured, curate, outside_of, recorded, system_of

from holdfast.agent.gateway import REFERENCE_LABEL
from holdfast.agent.ports import Reply, Role
from holdfast.agent.result import Layer
from holdfast.domain.visible_text import one_line

ATTACKS = {**HOSTILE, **RECALLED}
_BLOCKED = re.compile(r"\[BLOCKED: [^\]\n]*\]")
_USAGE = re.compile(r"\d+% — [\d,]+ of")
_RESULT = re.compile(r"\d+\. \[[^\]]*\] .|\(\d+ more left out")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("gateway") / "memory.db") as running:
        yield running


def test_the_corpus_is_as_large_as_it_must_be() -> None:
    assert len(HOSTILE) >= 60
    assert len(RECALLED) >= 10


def test_no_hostile_entry_of_a_file_reaches_the_system_prompt(tmp_path: Path) -> None:
    async def run() -> None:
        limits = {"memoryChars": 100_000, "userChars": 100_000}
        folder = configured(tmp_path, {"mode": "curated", "curated": limits})
        blocked = set[str]()
        async with agent(folder, *[Reply("Yes.")] * len(HOSTILE)) as running:
            for name, text in HOSTILE.items():
                curate(folder, user=f"Likes tea.\n§\n{text}\n§\nLives in Lisbon.")
                await running.loop.run("Are you there?")
                given = running.model.asked[-1]
                assert [message.content for message in outside_of(given)] == ["Are you there?"]
                system = system_of(given)
                assert text not in system, name
                if "[BLOCKED: " in system:
                    blocked.add(_USAGE.sub("…", _BLOCKED.sub("…", system)))
                else:
                    # A file with characters that are invalid in text is not used at all, and the prompt says so.
                    assert "USER.md of curated memory is not used" in system, name
                    assert "Lisbon" not in system, name
        # Apart from the reason of the block, all prompts are equal: none contains any part of a blocked entry.
        assert len(blocked) == 1
        assert "- Likes tea.\n- …\n- Lives in Lisbon." in blocked.pop()

    asyncio.run(run())


def test_harmless_entries_all_reach_it(tmp_path: Path) -> None:
    async def run() -> None:
        folder = configured(tmp_path, {"mode": "curated", "curated": {"memoryChars": 100_000}})
        curate(folder, memory="\n§\n".join(HARMLESS))
        async with agent(folder, Reply("Yes.")) as running:
            await running.loop.run("Are you there?")
        system = system_of(running.model.asked[0])
        assert "BLOCKED" not in system
        assert [entry for entry in HARMLESS if "\n  ".join(entry.splitlines()) not in system] == []

    asyncio.run(run())


def test_nothing_that_is_recalled_changes_the_system_prompt_or_forges_a_line(gateway: Recorded, tmp_path: Path) -> None:
    async def run() -> tuple[set[str], int]:
        folder = configured(tmp_path, {"mode": "memory_gateway", "gateway": gateway.config()})
        systems, recalled = set[str](), 0
        async with agent(folder, *[Reply("Yes.")] * len(ATTACKS)) as running:
            for number, (name, text) in enumerate(ATTACKS.items()):
                await gateway.remember(f"attack-{number}", text)
                result = await running.loop.run(one_line(text)[:500] or "Nothing?", f"attack-{number}")
                recalled += bool(result.explained.of(Layer.GATEWAY))
                asked = running.model.asked[-1]
                systems.add(system_of(asked))
                *reference, prompt = outside_of(asked)
                assert [message.role for message in (*reference, prompt)] == [Role.USER] * (len(reference) + 1), name
                assert len(reference) <= 1, name
                for message in reference:
                    label, *lines = message.content.split("\n")
                    assert label.startswith(REFERENCE_LABEL), name
                    assert len(lines) == len(message.content.splitlines()) - 1, name
                    assert [line for line in lines if not _RESULT.match(line)] == [], name
        return systems, recalled

    systems, recalled = asyncio.run(run())
    assert len(systems) == 1
    # All but those without a word and those that the gateway refuses to store.
    assert recalled >= len(ATTACKS) - 5


def test_what_session_search_and_tools_give_stays_an_answer_of_a_tool(tmp_path: Path) -> None:
    async def run() -> None:
        def look() -> list[str]:
            """Look."""
            return [text for text in ATTACKS.values() if len(text) < 500]

        search = calls(("session_search", {"query": "previous instructions request tea", "limit": 10}), ("look", {}))
        folder = configured(tmp_path, {"mode": "curated"})
        said: list[Any] = [Reply(text) for text in HOSTILE.values()]
        async with agent(folder, *said, search, Reply("Yes."), tools=[look]) as running:
            for number, text in enumerate(HOSTILE.values()):
                await running.loop.run(text.replace("\x00", ""), f"old-{number}")
            result = await running.loop.run("Are you there?", "new")
            before, after = running.model.asked[-2:]
            assert system_of(before) == system_of(after)
            prompt, called, found, looked = outside_of(after)
            assert [message.role for message in (prompt, called, found, looked)] == [
                Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL,
            ]  # fmt: skip
            assert len(json.loads(found.content)["results"]) == len(result.explained.of(Layer.SESSIONS)) == 10

    asyncio.run(run())
