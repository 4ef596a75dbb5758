"""The default tools, their descriptions, and what they answer to wrong calls."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.memory import ASSISTANT_SOURCE, Trust
from holdfast.domain.reference_message import LABEL
from holdfast.domain.tokens import token_counter
from holdfast.mcp.server import INSTRUCTIONS
from holdfast.mcp.tool_choices import ToolChoice
from holdfast.search.embedders.static import StaticEmbedder
from mcp_lines import Opened, server_of

Speak = Callable[..., Client]
ANA, BEN = (Actor(ActorKind.USER, name, "default") for name in ("ana", "ben"))
ID = re.compile("(?:mem|msg)_[0-9a-f]{32}")


def texts(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


def test_the_tools_cost_a_model_less_than_1500_tokens(opened: Opened, speak: Speak) -> None:
    async def listed() -> str:
        async with opened() as caller, speak(server_of(caller)) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["recall", "search", "remember", "correct", "forget"]
            hidden = {"output_schema"}  # which clients check, and no model reads
            return "".join(tool.model_dump_json(by_alias=True, exclude_none=True, exclude=hidden) for tool in tools)

    count = token_counter(None, StaticEmbedder())
    assert count is not None
    assert count(asyncio.run(listed())) + count(INSTRUCTIONS) < 1_500


def test_hints_say_which_tools_read_and_which_destroy(opened: Opened, speak: Speak) -> None:
    async def hints() -> dict[str, Any]:
        found = {}
        async with opened() as caller:
            for choice in ToolChoice:
                async with speak(server_of(caller, choice)) as client:
                    for tool in (await client.list_tools()).tools:
                        jsonschema_rs.meta.validate(tool.input_schema)
                        jsonschema_rs.meta.validate(tool.output_schema or {})
                        found[tool.name] = tool.annotations
        return found

    found = asyncio.run(hints())
    assert all(each.open_world_hint is False for each in found.values())
    assert {name for name, each in found.items() if each.destructive_hint} == {"forget", "memory.forget"}
    writes = {"remember", "correct", "forget", "memory_write_candidate", "memory_import"}
    writes |= {"memory.note", "memory.correct", "memory.forget"}
    assert {name for name, each in found.items() if not each.read_only_hint} == writes
    assert {name for name, each in found.items() if not each.idempotent_hint} == {
        "correct", "memory.note", "memory.correct",
    }  # fmt: skip


def test_forget_needs_the_token_of_a_preview_of_exactly_this(opened: Opened, speak: Speak) -> None:
    async def forget() -> None:
        async with opened() as caller, speak(server_of(caller)) as client:
            first, second = [
                (await client.call_tool("remember", {"text": text})).structured_content["record_id"]
                for text in ("Ana lives in Lisbon.", "Ana plays the cello.")
            ]

            async def count() -> int:
                return len((await caller.memory.list()).items)

            preview = await client.call_tool("forget", {"record_ids": [first]})
            assert preview.structured_content["forgotten"] is False
            assert preview.structured_content["records"] == [{"record_id": first, "text": "Ana lives in Lisbon."}]
            token = preview.structured_content["token"]
            assert token in texts(preview)
            for wrong in ({"record_ids": [first], "token": "guess"}, {"record_ids": [first, second], "token": token}):
                refused = await client.call_tool("forget", wrong)
                assert refused.is_error
                assert "without a token for a new preview" in texts(refused)
            await client.call_tool("correct", {"record_id": first, "text": "Ana lives in Porto."})
            assert (await client.call_tool("forget", {"record_ids": [first], "token": token})).is_error
            assert await count() == 2
            token = (await client.call_tool("forget", {"record_ids": [first]})).structured_content["token"]
            done = await client.call_tool("forget", {"record_ids": [first], "token": token})
            assert done.structured_content["forgotten"] is True
            assert await count() == 1

    asyncio.run(forget())


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("recal", {"query": "x"}, "there is no tool 'recal'; did you mean recall?"),
        ("delete", {"record_ids": ["x"]}, "did you mean forget?"),
        ("recall", {}, "query: is missing. Put that right"),
        ("recall", {"q": "x"}, "q: is not a field here; did you mean query?"),
        ("search", {"query": "x", "limt": 3}, "has an unknown field; did you mean limit?"),
        ("search", {"query": "x", "top_k": "three"}, "top_k: expected a whole number"),
        ("search", {"query": "x", "said_from": "yesterday"}, "said_from"),
        ("remember", {"text": ""}, "text: "),
        ("remember", {"text": "x", "subject_id": "ben"}, "has an unknown field"),
        ("remember", {"text": "x", "user_id": "ben"}, "has an unknown field"),
        ("correct", {"record_id": "mem_none", "text": "x"}, "Use only ids and names that a tool has shown"),
        ("forget", {"record_ids": []}, "record_ids: is an empty list; give at least one id"),
        ("forget", {"record_ids": ["mem_none"]}, "Use only ids and names"),
    ],
)
def test_a_wrong_call_is_a_result_that_says_what_to_do(
    opened: Opened, speak: Speak, name: str, arguments: dict[str, Any], answer: str
) -> None:
    async def call() -> None:
        async with opened() as caller, speak(server_of(caller)) as client:
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert answer in texts(result)
            assert (await caller.memory.list()).items == ()

    asyncio.run(call())


def test_a_user_sees_and_changes_nothing_of_another(opened: Opened, speak: Speak) -> None:
    """Also not by an id, which another user may have learned."""

    async def visit() -> None:
        async with opened(ANA) as anas:
            bens = type(anas)(anas.service, BEN, "default", anas.adapter)
            await anas.memory.add("The vault code is 4711.", subject="ana", conversation="c1")
            async with speak(server_of(anas)) as client:
                secret = (await client.call_tool("remember", {"text": "Ana's vault code is 4711."})).structured_content
                token = (await client.call_tool("forget", {"record_ids": [secret["record_id"]]})).structured_content[
                    "token"
                ]
            before = (await anas.memory.get(secret["record_id"], subject="ana")).to_dict()
            async with speak(server_of(bens)) as client:
                own = secret["record_id"]
                answers = [
                    await client.call_tool("recall", {"query": "What is the vault code?"}),
                    await client.call_tool("search", {"query": "What is the vault code?"}),
                    await client.call_tool("correct", {"record_id": own, "text": "It is 0000."}),
                    await client.call_tool("forget", {"record_ids": [own]}),
                    await client.call_tool("forget", {"record_ids": [own], "token": token}),
                    await client.get_prompt("what-do-you-know-about-me"),
                    await client.read_resource("holdfast://memories/recent"),
                    await client.read_resource("holdfast://conversation/c1"),
                ]
                with pytest.raises(MCPError):
                    await client.read_resource(f"holdfast://skill/{own}")
            assert not any("4711" in answer.model_dump_json() for answer in answers)
            for choice in (ToolChoice.COMPANY, ToolChoice.RUNTIME):
                async with speak(server_of(bens, choice)) as client:
                    for tool, arguments in (
                        ("memory.search", {"query": "vault code", "subject_id": "ana"}),
                        ("memory.get", {"record_id": own, "subject_id": "ana"}),
                        ("memory_recall", {"query": "vault code", "scope": {"chat_id": "c1"}}),
                        ("memory_export", {"chat_id": "c1"}),
                    ):
                        if tool.startswith("memory.") == (choice is ToolChoice.COMPANY):
                            assert "4711" not in (await client.call_tool(tool, arguments)).model_dump_json()
            assert (await anas.memory.get(own, subject="ana")).to_dict() == before

    asyncio.run(visit())


# Text that imitates the lines of an answer, its label and its ids.
_FORGERIES = st.lists(
    st.sampled_from(
        [LABEL, "mem_" + "0" * 32, "[memory, 2026-01-01]", "\n", "\r\n", "\u2028", "| ", "1.", "Ignore", "‮"]
    )
    | st.text(max_size=6),
    min_size=1,
    max_size=8,
).map(" ".join)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_FORGERIES.filter(str.strip), min_size=1, max_size=3, unique=True))
def test_no_stored_text_forges_a_line(opened: Opened, speak: Speak, hostile: list[str]) -> None:
    async def answers() -> list[tuple[str, int]]:
        async with opened() as caller:
            everything = [record.id for record in (await caller.memory.list()).items]
            if everything:
                await caller.memory.forget(everything)
            for text in hostile:
                try:
                    await caller.memory.remember(text)
                except Exception:  # noqa: BLE001 - a text that cannot be stored
                    return []
            stored = [record.id for record in (await caller.memory.list()).items]
            async with speak(server_of(caller)) as client:
                search = await client.call_tool("search", {"query": hostile[0]})
                preview = await client.call_tool("forget", {"record_ids": stored})
                recent = await client.read_resource("holdfast://memories/recent")
            shown = len(search.structured_content["results"])
            return [
                (texts(search), 1 + shown if shown else 1),
                (texts(preview), 3 + len(stored)),
                (recent.contents[0].text, 1 + len(stored)),
            ]

    for text, lines in asyncio.run(answers()):
        assert len(text.splitlines()) == lines, text
        assert not re.search("[\u202e\u2028\r]", text)


def test_results_match_their_schemas_and_mark_texts_as_data(opened: Opened, speak: Speak) -> None:
    async def call() -> None:
        async with opened() as caller, speak(server_of(caller)) as client:
            schemas = {tool.name: tool.output_schema or {} for tool in (await client.list_tools()).tools}
            await caller.memory.add([{"role": "user", "sender": "ana", "text": "I moved to Lisbon."}])
            written = await client.call_tool("remember", {"text": "Ana lives in Lisbon."})
            again = await client.call_tool("remember", {"text": "Ana lives in Lisbon."})
            assert again.structured_content["record_id"] == written.structured_content["record_id"]
            record_id = written.structured_content["record_id"]
            recalled = await client.call_tool("recall", {"query": "Where does Ana live?"})
            found = await client.call_tool("search", {"query": "Where does Ana live?", "limit": 5})
            nothing = await client.call_tool(
                "search", {"query": "x", "said_from": "2001-01-01", "said_to": "2001-01-02"}
            )
            assert texts(recalled) == recalled.structured_content["reference"]
            assert texts(recalled).startswith(LABEL)
            assert texts(found).startswith(LABEL)
            assert found.structured_content["notice"] == LABEL
            assert ID.findall(texts(found)) == [each["record_id"] for each in found.structured_content["results"]]
            assert "[said by ana, " in texts(found)
            assert nothing.structured_content["results"] == []
            preview = await client.call_tool("forget", {"record_ids": [record_id]})
            for name, result in (("remember", written), ("recall", recalled), ("search", found), ("forget", preview)):
                jsonschema_rs.Draft202012Validator(schemas[name]).validate(result.structured_content)
            assert json.dumps(written.structured_content)

    asyncio.run(call())


def test_what_one_assistant_stored_may_fill_a_recall_and_is_believed_little(opened: Opened, speak: Speak) -> None:
    facts = ["lives in Lisbon", "has a dog", "works at a bank", "drinks tea", "plays the violin", "drives a Volvo"]

    async def recalled() -> dict[str, Any]:
        async with opened() as caller, speak(server_of(caller)) as client:
            for fact in facts:
                stored = await client.call_tool("remember", {"text": f"Ana {fact}."})
            answer = await client.call_tool("recall", {"query": "What is known about Ana?"})
            memory = await caller.memory.get(stored.structured_content["record_id"])
            assert (memory.trust, memory.source) == (Trust.LOW, ASSISTANT_SOURCE)
            return dict(answer.structured_content)

    assert len(asyncio.run(recalled())["record_ids"]) == len(facts)
