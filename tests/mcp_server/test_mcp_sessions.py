"""Whole sessions: every revision of the protocol, in memory, over lines, as processes and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from holdfast.app import open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.reference_message import LABEL
from holdfast.gateway.app import create_route_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import Metrics
from holdfast.mcp.server import INSTRUCTIONS
from holdfast.mcp.session import ToolCaller
from holdfast.mcp.stdio import MAX_LINE_BYTES
from holdfast.mcp.tool_choices import ToolChoice
from holdfast.opening import Opening
from holdfast.settings import Settings
from mcp_lines import REVISIONS, Lines, Opened, server_of, speaking
from processor_time import within_limit
from serving import OPERATOR_KEY, USER_KEY, Served, served

Speak = Callable[..., Client]
INPUTS = int(os.environ.get("HOLDFAST_MCP_INPUTS", "200"))
PROCESSES = int(os.environ.get("HOLDFAST_MCP_PROCESSES", "2"))


async def use(client: Client, revision: str) -> None:
    """A session that uses all that there is."""
    assert client.protocol_version == revision
    assert client.instructions == INSTRUCTIONS
    assert len((await client.list_tools()).tools) == 5
    statement = f"The lantern of {revision} hangs in the hall."
    written = (await client.call_tool("remember", {"text": statement})).structured_content
    recalled = await client.call_tool("recall", {"query": f"Where does the lantern of {revision} hang?"})
    assert statement in recalled.content[0].text
    found = (await client.call_tool("search", {"query": statement, "top_k": 20})).structured_content["results"]
    assert written["record_id"] in {each["record_id"] for each in found}
    right = {"record_id": written["record_id"], "text": f"The lantern of {revision} hangs in the kitchen."}
    assert (await client.call_tool("correct", right)).structured_content["revision"] == 2
    assert [str(each.uri) for each in (await client.list_resources()).resources] == [
        "holdfast://memories/recent", "holdfast://skills",
    ]  # fmt: skip
    assert len((await client.list_resource_templates()).resource_templates) == 2
    recent = (await client.read_resource("holdfast://memories/recent")).contents[0].text
    assert recent.startswith(LABEL)
    assert "kitchen" in recent
    with pytest.raises(MCPError, match="there is no such resource"):
        await client.read_resource("holdfast://memories/all")
    assert len((await client.list_prompts()).prompts) == 2
    known = await client.get_prompt("what-do-you-know-about-me")
    assert "kitchen" in known.messages[1].content.text
    assert "call remember once" in (await client.get_prompt("remember-this-conversation")).messages[0].content.text
    preview = (await client.call_tool("forget", {"record_ids": [written["record_id"]]})).structured_content
    again = {"record_ids": [written["record_id"]], "token": preview["token"]}
    assert (await client.call_tool("forget", again)).structured_content["forgotten"] is True


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_session_in_memory(opened: Opened, speak: Speak, revision: str) -> None:
    async def session() -> None:
        async with opened() as caller, speak(server_of(caller), revision) as client:
            await use(client, revision)

    asyncio.run(session())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with served(str(tmp_path_factory.mktemp("mcp") / "memory.db")) as found:
        yield found


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_session_over_http(service: Served, speak: Speak, revision: str) -> None:
    async def session() -> None:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {USER_KEY}"}) as http:
            transport = streamable_http_client(f"{service.url}/mcp", http_client=http)
            async with speak(transport, revision) as client:
                await use(client, revision)

    asyncio.run(session())


def test_several_servers_on_one_file_at_once(tmp_path: Path, speak: Speak, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a process of its own, as clients start them, with the oldest, the newest and another revision."""
    command = [sys.executable, "-m", "holdfast", "mcp", "--store", str(tmp_path / "memory.db")]
    starting = StdioServerParameters(command=command[0], args=command[1:])

    async def one(revision: str) -> None:
        async with speak(stdio_client(starting), revision) as client:
            await use(client, revision)
            await client.call_tool("remember", {"text": f"{revision} was here."})

    async def all_at_once() -> str:
        wanted = (REVISIONS[0], REVISIONS[-1], *REVISIONS[1:-1])[:PROCESSES]
        async with speak(stdio_client(starting), wanted[0]) as first:
            await asyncio.gather(*(one(revision) for revision in wanted[1:]))
            await use(first, wanted[0])
            return str((await first.read_resource("holdfast://memories/recent")).contents[0].text)

    recent = asyncio.run(all_at_once())
    assert recent.count(" was here.") == PROCESSES - 1


def test_a_session_with_a_memory_on_a_server(service: Served, speak: Speak) -> None:
    """`holdfast mcp --store http://…` has the tools for the key's user, and says where the runtime's are."""

    async def session() -> str:
        remote, actor, space = await Opening(service.url, {"key": USER_KEY}).open_service()
        try:
            caller = ToolCaller(remote, actor, space)
            async with speak(server_of(caller)) as client:
                await use(client, REVISIONS[-1])
            async with speak(server_of(caller, ToolChoice.RUNTIME)) as client:
                return str((await client.call_tool("memory_recall", {"query": "x"})).content[0].text)
        finally:
            await remote.close()

    assert "/mcp/runtime" in asyncio.run(session())


def test_a_session_on_postgresql(postgres_url: str, speak: Speak) -> None:
    async def session() -> None:
        engine = await open_engine(postgres_url, Settings(), embedder="fake", work=False)
        try:
            async with speak(server_of(ToolCaller(engine, LOCAL_OPERATOR, "default"))) as client:
                await use(client, REVISIONS[-1])
        finally:
            await engine.close()

    asyncio.run(session())


def test_a_server_that_is_told_to_stop_does_not_wait_for_its_client(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "mcp", "--store", str(tmp_path / "memory.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        params = {"protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        print(json.dumps({**LIST, "method": "initialize", "params": params}), file=process.stdin, flush=True)
        assert json.loads(process.stdout.readline())["result"]["protocolVersion"] == REVISIONS[0]
        process.terminate()
        assert process.wait(30) == 0


# --- HTTP -------------------------------------------------------------------------------------------------------------


def send(service: Served, body: Any, key: str | None = USER_KEY, path: str = "/mcp", **headers: str) -> httpx2.Response:
    auth = {} if key is None else {"Authorization": f"Bearer {key}"}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    content = body if isinstance(body, bytes) else json.dumps(body)
    return httpx2.post(f"{service.url}{path}", content=content, headers={**accept, **auth, **headers})


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/company", "/mcp/runtime"])
def test_every_request_needs_a_key_and_passes_the_checks_of_the_edge(service: Served, path: str) -> None:
    assert "result" in send(service, LIST, path=path).json()
    assert send(service, LIST, None, path).status_code == 401
    assert send(service, LIST, "uk_unknown", path).status_code == 401
    assert send(service, LIST, path=path, Origin="https://evil.example").status_code == 403
    assert send(service, LIST, path=path, Host="evil.example").status_code == 421
    assert send(service, LIST, path=path, **{"Content-Type": "text/plain"}).status_code == 415
    assert httpx2.get(service.url + path, headers={"Authorization": f"Bearer {USER_KEY}"}).status_code == 405


def test_the_switch_of_transports_turns_it_off() -> None:
    config = GatewayConfig(operator_token=OPERATOR_KEY, transports=("http",))
    off = create_route_app(None, None, config, Metrics())  # type: ignore[arg-type]
    assert not [route.path for route in off.state.table if route.path.startswith("/mcp")]


def test_keys_decide_whose_memory_it_is(service: Served) -> None:
    issued = httpx2.post(
        f"{service.url}/users", json={"user_id": "cleo"}, headers={"Authorization": f"Bearer {OPERATOR_KEY}"}
    )
    cleo = issued.json()["user_key"]
    send(service, call("remember", text="Cleo keeps bees in Porto."), cleo)
    asked = call("recall", query="Who keeps bees?")
    assert "bees" in send(service, asked, cleo).text
    assert "Cleo keeps" not in send(service, asked, USER_KEY).text
    assert "Cleo keeps" in send(service, asked, OPERATOR_KEY).text


@pytest.mark.parametrize("revision", ["1999-01-01", "2027-01-01", "x"])
def test_a_revision_that_there_is_not_is_refused_with_those_that_there_are(service: Served, revision: str) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {"mcp-protocol-version": revision, "mcp-method": "tools/list"}
    answer = send(service, {**LIST, "params": {"_meta": meta}}, **headers)
    assert answer.status_code == 400
    assert REVISIONS[-1] in json.dumps(answer.json()["error"])


def test_an_old_revision_over_lines_is_answered_with_one_that_there_is(opened: Opened) -> None:
    async def greet() -> str:
        async with opened() as caller, speaking(caller, ToolChoice.SIMPLE) as lines:
            return str((await lines.initialize("1999-01-01"))["protocolVersion"])

    assert asyncio.run(greet()) in REVISIONS


# --- broken input -----------------------------------------------------------------------------------------------------

scraps = st.sampled_from(
    ["tools/call", "tools/list", "initialize", "server/discover", "recall", "forget", "holdfast://skill/", "2.0", ""]
) | st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | scraps,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scraps, inner, max_size=3),
    max_leaves=6,
)
requests = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | values, "method": scraps},
    optional={
        "id": st.integers() | scraps | values,
        "params": st.fixed_dictionaries(
            {},
            optional={"name": scraps, "arguments": values, "uri": scraps, "_meta": values, "protocolVersion": scraps},
        )
        | values,
    },
)
inputs = requests.map(lambda each: json.dumps(each)) | values.map(json.dumps) | st.text(max_size=20)


def lines_of(text: str) -> str:
    return text.replace("\n", " ").replace("\r", " ")


def test_broken_lines_never_end_a_session(opened: Opened) -> None:
    broken: list[str] = ["", "x" * (MAX_LINE_BYTES + 10), "\udcff\udcfe", "[]", "[" * 5_000, '{"jsonrpc": "2.0"']

    @settings(max_examples=INPUTS, deadline=None, database=None, derandomize=True)
    @given(inputs)
    def gather(text: str) -> None:
        broken.append(lines_of(text))

    gather()

    async def send_all(caller: ToolCaller, lines: Lines) -> None:
        await lines.initialize(REVISIONS[0])
        for line in broken:

            async def handle(line: str = line) -> None:
                await asyncio.to_thread(lines.write, line)
                assert len((await lines.ask("tools/list"))["result"]["tools"]) == 5

            assert await within_limit(handle), line[:200]
        assert (await caller.memory.list()).items == ()

    async def session() -> None:
        async with opened() as caller, speaking(caller, ToolChoice.SIMPLE) as lines:
            await send_all(caller, lines)

    asyncio.run(session())


def test_broken_requests_over_http_have_no_answer_of_5xx(service: Served) -> None:
    with httpx2.Client() as http:

        @settings(max_examples=INPUTS // 2, deadline=None, database=None, derandomize=True)
        @given(inputs, st.sampled_from([None, REVISIONS[0], REVISIONS[-1], "x"]), st.sampled_from(list(ToolChoice)))
        def holds(text: str, revision: str | None, choice: ToolChoice) -> None:
            path = "/mcp" if choice is ToolChoice.SIMPLE else f"/mcp/{choice}"
            headers = {"Authorization": f"Bearer {USER_KEY}", "Accept": "application/json, text/event-stream"}
            named = {} if revision is None else {"mcp-protocol-version": revision}
            answer = http.post(
                service.url + path,
                content=text.encode("utf-8", "replace"),
                headers={**headers, **named, "Content-Type": "application/json"},
            )
            assert answer.status_code < 500, answer.text

        holds()
