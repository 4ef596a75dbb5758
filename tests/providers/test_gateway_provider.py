"""`gateway` against invalid services, services that return wrong records, real ones, and ones with fewer operations."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.contract import (
    CaptureRequest,
    HookContext,
    HookKind,
    ListRequest,
    NewRecord,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    SourceKind,
    SourcePayload,
    SourceRef,
)
from holdfast.domain.scope import Scope
from holdfast.domain.secret import Secret
from holdfast.errors import (
    CapabilityUnavailable,
    Conflict,
    HoldfastError,
    InvalidConfiguration,
    ProviderError,
    ProviderMalformed,
    ProviderMisconfigured,
    ProviderTimeout,
    ProviderUnavailable,
)
from holdfast.providers.gateway import GatewayAdapter, GatewayProvider, partition_mapping
from serving import HANG, HANG_UP, USER_KEY, Served, answering, http, served

CANARY = "uk_canary-77e1"
BOT = Scope("acme", agent="bot")
NEEDED = {"url": "https://memory.example.org", "user_id": "ana", "user_key": "env://HOLDFAST_SECRET_UP"}


def opened(url: str, key: str = CANARY, **config: Any) -> GatewayAdapter:
    provider = GatewayProvider()
    checked = provider.check({**NEEDED, "url": url, **config})
    adapter = provider.open(checked, {"user_key": Secret(key)}, None)
    assert isinstance(adapter, GatewayAdapter)
    return adapter


async def used(adapter: GatewayAdapter, work: Any) -> Any:
    try:
        return await work(adapter)
    finally:
        await adapter.close()


def asking(text: str = "anything", scope: Scope = BOT) -> Any:
    return lambda adapter: adapter.query(QueryRequest("up", scope, text))


# --- configuration ---


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"url": f"https://ana:{CANARY}@memory.example.org"}, "config.url"),
        ({"url": f"https://memory.example.org/?key={CANARY}"}, "config.url"),
        ({"url": "http://memory.example.org"}, "config.url"),
        ({"url": "http://10.0.0.7:8010"}, "config.url"),
        ({"url": "http://127.0.0.1.example.org"}, "config.url"),
        ({"url": "ftp://memory.example.org"}, "config.url"),
        ({"url": CANARY}, "config.url"),
        ({"user_key": CANARY}, "config.user_key"),
        ({"user_id": ""}, "config.user_id"),
        ({"api": CANARY}, "config.api"),
        ({"app_id": "a b"}, "config.app_id"),
        ({"project_id": ".."}, "config.project_id"),
        *(
            ({"everos_prefix": wrong}, "config.everos_prefix")
            for wrong in ("", "/", "api/v1", "/api/v1/", "//api", "/api//v1", "/api/../admin", "/api/./v1", "/..")
        ),
        *(
            ({"everos_prefix": wrong}, "config.everos_prefix")
            for wrong in (f"/api?key={CANARY}", f"/api#{CANARY}", f"https://{CANARY}/api", "/a%2e%2e", "/a b", "/a\n")
        ),
        ({"everos_prefix": "/" + "a" * 200}, "config.everos_prefix"),
        ({"timeout_seconds": 0}, "config.timeout_seconds"),
        ({"password": CANARY}, "config['password']"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_by_its_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidConfiguration) as told:
        GatewayProvider().check({**NEEDED, **wrong})
    assert told.value.field == field
    assert CANARY not in "".join(traceback.format_exception(told.value))


def test_plain_http_is_for_this_machine_unless_it_is_allowed() -> None:
    for url in ("http://127.0.0.1:8010", "http://localhost:8010", "http://[::1]:8010"):
        assert GatewayProvider().check({**NEEDED, "url": url})["url"] == url
    allowed = GatewayProvider().check({**NEEDED, "url": "http://10.0.0.7/", "allow_insecure": True})
    assert allowed["url"] == "http://10.0.0.7"


# --- invalid services ---


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (http(500, b'{"detail": "canary"}'), ProviderUnavailable),
        (http(503), ProviderUnavailable),
        (http(429), ProviderUnavailable),
        (http(401), ProviderMisconfigured),
        (http(403), ProviderMisconfigured),
        (http(404), ProviderError),
        (http(409), Conflict),
        (http(422), ProviderError),
        (http(302, more="Location: http://127.0.0.1:1/\r\n"), ProviderError),
        (http(200, b"<html>", "text/html"), ProviderMalformed),
        (http(200, b"[]"), ProviderMalformed),
        (http(200, b'{"results": 3, "data": 3}'), ProviderMalformed),
        (http(200, b'{"results": [3], "data": {"episodes": [3]}}'), ProviderMalformed),
        (http(200, b'{"results": [{}], "data": {"episodes": [{}]}}'), ProviderMalformed),
        (http(200, b"[" * 100_000), ProviderMalformed),
        (http(200, b'{"results": [' + b"1," * 500_000 + b"1]}"), ProviderMalformed),
        (HANG_UP, ProviderUnavailable),
    ],
)
@pytest.mark.parametrize("api", ["holdfast", "everos"])
def test_whatever_a_service_answers_is_an_error_of_ours(reply: bytes, error: type[HoldfastError], api: str) -> None:
    with answering(reply) as (url, _):
        with pytest.raises(error) as told:
            asyncio.run(used(opened(url, api=api), asking()))
    shown = "".join(traceback.format_exception(told.value))
    assert CANARY not in shown
    assert "canary" not in str(told.value)


def test_a_service_that_does_not_answer_is_not_waited_for_longer_than_configured() -> None:
    with answering(HANG) as (url, _):
        with pytest.raises(ProviderTimeout):
            asyncio.run(used(opened(url, timeout_seconds=0.2), asking()))


def test_a_service_that_is_not_there_says_that_nothing_was_sent() -> None:
    with pytest.raises(ProviderUnavailable, match="cannot be reached"):
        asyncio.run(used(opened("http://127.0.0.1:1"), asking()))


def test_of_a_write_whose_answer_was_lost_it_is_said_that_nobody_knows() -> None:
    write = RecordWriteRequest("up", BOT, (NewRecord("A fact."),))
    with answering(HANG_UP) as (url, _):
        with pytest.raises(ProviderUnavailable, match="may or may not"):
            asyncio.run(used(opened(url), lambda adapter: adapter.upsert_records(write)))


def test_the_key_travels_in_what_is_sent_and_nowhere_else() -> None:
    with answering(http(200, b'{"results": []}')) as (url, asked):
        adapter = opened(url)
        asyncio.run(used(adapter, asking()))
    assert all(f"Bearer {CANARY}".encode() in request for request in asked)
    assert CANARY not in repr(adapter) + repr(vars(adapter))


# --- services that return wrong records ---


def test_what_is_of_another_app_session_or_scope_is_left_out() -> None:
    place, other = partition_mapping.write_place(BOT), partition_mapping.write_place(Scope("globex", agent="bot"))
    mine = partition_mapping.record_session(place, BOT)
    theirs = partition_mapping.record_session(other, Scope("globex", agent="bot"))
    forged = partition_mapping.pack_metadata(Scope("globex", agent="bot"), partition_mapping.CaptureMetadata())

    def row(text: str, app: str | None, session: str | None, metadata: Any = None) -> dict[str, Any]:
        raw = {"app_id": app, "metadata": metadata or {}, "timestamp": 1_780_000_000_000}
        return {"id": f"msg_{text}", "text": text, "score": 0.5, "session_id": session, "raw": raw}

    app = f"holdfast.{place.tag}"
    results = [
        row("mine", app, f"chat:{mine}"),
        row("learned", app, None),
        row("old service", None, f"chat:{mine}"),
        row("other app", f"holdfast.{other.tag}", f"chat:{mine}"),
        row("other session", app, f"chat:{theirs}"),
        row("other scope", app, f"chat:{mine}", forged),
        row("of nowhere", None, None),
        row("of somebody", None, "chat:standup"),
    ]
    with answering(http(200, json.dumps({"results": results}).encode())) as (url, _):
        found = asyncio.run(used(opened(url), asking(scope=Scope("acme", agent="bot"))))
    assert {each.text for each in found.snippets} == {"mine", "learned", "old service"}
    assert all(each.scope.space == "acme" for each in found.snippets)


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-1e999", "1" + "0" * 400, "true", '"high"', "null", "[]"])
def test_a_score_that_is_no_number_is_none(score: str) -> None:
    place = partition_mapping.write_place(BOT)
    session = partition_mapping.record_session(place, BOT)
    body = f'{{"results": [{{"id": "m", "text": "t", "session_id": "chat:{session}", "raw": {{}}, "score": {score}}}]}}'
    with answering(http(200, body.encode())) as (url, _):
        found = asyncio.run(used(opened(url), asking()))
    assert {each.score for each in found.snippets} == {None}


# --- a real service ---


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("upstream")
    with served(str(folder / "memory.db")) as service:
        yield service


@pytest.mark.parametrize("api", ["holdfast", "everos"])
def test_what_is_shared_is_read_after_ones_own_and_not_forgotten(upstream: Served, api: str) -> None:
    company = f"shared-{api}"
    everybody, agent = Scope(company), Scope(company, agent="bot")

    async def life(adapter: GatewayAdapter) -> None:
        await adapter.upsert_records(RecordWriteRequest("up", agent, (NewRecord("Bot's note about the pier."),)))
        shared = await adapter.upsert_records(RecordWriteRequest("up", everybody, (NewRecord("The pier is open."),)))
        listed = [each.text for each in (await adapter.list(ListRequest("up", agent))).items]
        assert listed == ["Bot's note about the pier.", "The pier is open."]
        first = await adapter.list(ListRequest("up", agent, limit=1))
        second = await adapter.list(ListRequest("up", agent, first.next_cursor, 1))
        assert [each.text for each in (*first.items, *second.items)] == listed
        assert second.next_cursor is None
        found = await adapter.query(QueryRequest("up", agent, "What about the pier?"))
        assert {each.text for each in found.snippets} == set(listed)
        assert [each.text for each in (await adapter.list(ListRequest("up", everybody))).items] == ["The pier is open."]
        assert (await adapter.forget(shared.records, agent)).missing == shared.records
        assert (await adapter.forget(shared.records, everybody)).forgotten == shared.records

    asyncio.run(used(opened(upstream.url, USER_KEY, api=api, timeout_seconds=60), life))


@pytest.mark.parametrize("api", ["holdfast", "everos"])
def test_a_hook_that_is_delivered_again_is_captured_once_by_another_process_too(upstream: Served, api: str) -> None:
    scope = Scope(f"again-{api}", agent="bot", run="r1")
    hook = HookContext(HookKind.POST_RUN_CAPTURE, "hook-1", datetime(2026, 3, 1, tzinfo=UTC), "bot", "r1")
    source = SourceRef(SourceKind.RUN, scope.space, run_id="r1")
    payload = SourcePayload(text="The run ended well.")
    request = CaptureRequest("up", scope, source, payload, hook, idempotency_id=hook.hook_id)
    seen = []
    for _ in range(2):
        adapter = opened(upstream.url, USER_KEY, api=api, timeout_seconds=60)
        seen.append(asyncio.run(used(adapter, lambda adapter: adapter.capture(request))).records)
    assert seen[0] == seen[1]
    adapter = opened(upstream.url, USER_KEY, api=api, timeout_seconds=60)
    listed = asyncio.run(used(adapter, lambda adapter: adapter.list(ListRequest("up", scope)))).items
    assert [each.text for each in listed] == ["The run ended well."]


def test_an_id_that_was_used_for_another_text_is_a_conflict(upstream: Served) -> None:
    scope = Scope("conflict", agent="bot")
    source = SourceRef(SourceKind.MANUAL_NOTE, scope.space)

    async def twice(adapter: GatewayAdapter) -> None:
        for text in ("One thing.", "Another thing."):
            request = CaptureRequest("up", scope, source, SourcePayload(text=text), idempotency_id="id-1")
            await adapter.capture(request)

    with pytest.raises(Conflict):
        asyncio.run(used(opened(upstream.url, USER_KEY, timeout_seconds=60), twice))


def test_what_an_upsert_of_a_key_left_behind_is_cleared_by_the_next(upstream: Served) -> None:
    """State after a crash between writing the new record and deleting the old one."""
    scope = Scope("left", agent="bot")

    async def life(adapter: GatewayAdapter) -> None:
        place = partition_mapping.write_place(scope)
        session = partition_mapping.key_session(place, scope, "port")
        for number in range(3):
            noted = partition_mapping.CaptureMetadata(None, None, {"key": "port"})
            left = adapter._build_message(scope, f"Port {number}.", noted, adapter._next_millis())
            await adapter._service.add(adapter._app_of(place), session, [left], None)
        record = NewRecord("Port 80.", metadata={"key": "port"})
        await adapter.upsert_records(RecordWriteRequest("up", scope, (record,)))
        assert [each.text for each in (await adapter.list(ListRequest("up", scope))).items] == ["Port 80."]

    asyncio.run(used(opened(upstream.url, USER_KEY, timeout_seconds=60), life))


def test_a_service_that_cannot_forget_is_not_said_to_have_forgotten() -> None:
    place = partition_mapping.write_place(BOT)
    episode = {
        "id": "ep_1",
        "app_id": f"holdfast.{place.tag}",
        "session_id": partition_mapping.record_session(place, BOT),
        "timestamp": "2026-05-28T11:30:36.125Z",
        "episode": "A fact.",
    }
    there = http(200, json.dumps({"request_id": "x", "data": {"episodes": [episode]}}).encode())
    with answering(there) as (url, _):
        found = asyncio.run(used(opened(url, api="everos"), lambda adapter: adapter.list(ListRequest("up", BOT))))
    (handle,) = [each.handle for each in found.items][:1]
    with answering(there, http(404), there) as (url, _):
        adapter = opened(url, api="everos")
        with pytest.raises(CapabilityUnavailable, match="nothing was forgotten"):
            asyncio.run(used(adapter, lambda adapter: adapter.forget([handle], BOT)))


def test_a_handle_of_another_place_is_not_even_asked_for() -> None:
    foreign = RecordHandle(
        "gateway", partition_mapping.handle_id(partition_mapping.write_place(Scope("globex", agent="bot")), "msg_1")
    )
    with answering(http(500)) as (url, asked):
        adapter = opened(url)
        assert asyncio.run(used(adapter, lambda adapter: adapter.get(foreign, BOT))) is None
        adapter = opened(url)
        assert asyncio.run(used(adapter, lambda adapter: adapter.forget([foreign], BOT))).missing == (foreign,)
    assert not asked


@pytest.mark.parametrize(
    ("config", "prefix"),
    [
        ({}, "/api/v2/memory"),
        ({"everos_prefix": "/api/v1/memory"}, "/api/v1/memory"),
        ({"everos_prefix": "/m.1"}, "/m.1"),
    ],
)
def test_everos_is_asked_where_its_routes_are(config: dict[str, Any], prefix: str) -> None:
    nothing = http(200, b'{"request_id": "x", "data": {"episodes": []}}')
    with answering(nothing, nothing) as (url, asked):
        asyncio.run(used(opened(url, api="everos", **config), asking()))
    assert asked
    assert {request.split()[1].decode() for request in asked} == {f"{prefix}/search"}


def test_everos_keeps_no_metadata_and_says_so() -> None:
    adapter = opened("http://127.0.0.1:1", api="everos")
    assert not adapter.capabilities.correction
    with pytest.raises(CapabilityUnavailable):
        asyncio.run(adapter.query(QueryRequest("up", BOT, "x", metadata_filter={"team": "harbour"})))
    with pytest.raises(CapabilityUnavailable):
        asyncio.run(adapter.correct(RecordHandle("gateway", "x"), "text", BOT, None))
