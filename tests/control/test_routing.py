"""The routed service port: a company bound to an external provider is served by it, through the unchanged routes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from desk import ACME, Installed, local
from keeping import KeepingProvider

from holdfast import AsyncMemory
from holdfast.app import Engine, open_engine
from holdfast.control.bindings import CreateBinding, SetTarget, UpdateBinding
from holdfast.control.deliveries import GetDelivery
from holdfast.control.hooks import EmitHook
from holdfast.control.provider_translation import TRANSLATIONS
from holdfast.control.routing import ROUTED
from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind, storewide_grant
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import HookKind, SourceKind, SourcePayload, SourceRef
from holdfast.domain.forgetting import OutsideMemory
from holdfast.domain.hooks import HookDeliveryStatus
from holdfast.domain.operations import Operation
from holdfast.domain.scope import Scope
from holdfast.errors import (
    BindingDisabled,
    CapabilityUnavailable,
    IdempotencyConflict,
    InvalidText,
    NotFound,
    ProviderError,
)
from holdfast.gateway.app import create_app
from holdfast.gateway.config import GatewayConfig
from holdfast.runtime.gate import Write
from holdfast.settings import Settings
from holdfast.testing.full_repr import full_repr
from serving import HANG, HANG_UP, USER_KEY, answering, http, served, serving, whole_chain

OPERATOR_KEY = "ok-of-the-tests-and-of-nobody-else"


@dataclass
class Front:
    """An engine with routed verbs, and an external provider that may serve them."""

    engine: Engine
    there: KeepingProvider
    runner: asyncio.Runner

    def bind(self, space: str = "default") -> None:
        whole = Scope(space=space)
        self.do(CreateBinding(whole, "elsewhere", "keeping"))
        self.do(SetTarget(whole, TargetKind.COMPANY, space, "elsewhere"))

    def do(self, verb: Any) -> Any:
        return self.runner.run(self.engine.perform(LOCAL_OPERATOR, verb.action, lambda: verb, space=verb.scope.space))

    def memory(self, **options: Any) -> AsyncMemory:
        return AsyncMemory(self.engine, **{"actor": LOCAL_OPERATOR, "space": "default", **options})

    def rows(self) -> list[Operation]:
        async def read() -> Any:
            store = self.engine._core.store
            await store.wait_for_audits()
            return await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=10_000))

        return list(self.runner.run(read()))[::-1]

    @contextmanager
    def left(self) -> Iterator[list[tuple[str, str, str | None]]]:
        """Collect action, outcome and binding of each row that the block leaves."""
        before, found = len(self.rows()), list[tuple[str, str, str | None]]()
        yield found
        found += [
            (row.action, row.outcome, row.attribution and row.attribution.binding) for row in self.rows()[before:]
        ]


@pytest.fixture
def there() -> KeepingProvider:
    return KeepingProvider()


@pytest.fixture
def front(location: str, there: KeepingProvider, runner: asyncio.Runner) -> Iterator[Front]:
    providers = Installed([local(), there])
    engine = runner.run(
        open_engine(location, Settings(), embedder="fake", work=False, providers=providers, routed=True)
    )
    yield Front(engine, there, runner)
    runner.run(engine.close())


# --- the real gateway -------------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(front: Front) -> Iterator[httpx2.Client]:
    app = create_app(front.engine, front.engine, GatewayConfig(operator_token=OPERATOR_KEY, request_logs=False).at(0))
    with serving(app) as url, httpx2.Client(base_url=url, timeout=30) as http:
        yield http


def signed_up(http: httpx2.Client, user_id: str = "ana") -> dict[str, str]:
    made = http.post("/users", json={"user_id": user_id}, headers={"Authorization": f"Bearer {OPERATOR_KEY}"})
    assert made.status_code == 201, made.text
    return {"user_id": user_id, "user_key": made.json()["user_key"]}


def said(text: str, sender: str = "ana") -> dict[str, Any]:
    return {"sender_id": sender, "role": "user", "timestamp": 1_780_000_000_000, "content": text}


def test_add_and_search_of_the_gateway_are_served_by_whom_the_company_is_bound_to(
    front: Front, gateway: httpx2.Client
) -> None:
    front.bind()
    ana = signed_up(gateway)
    with front.left() as rows:
        added = gateway.post(
            "/memories/add",
            json={**ana, "session_id": "chat:one", "messages": [said("The cat sat."), said("It rains.")]},
        )
        flushed = gateway.post("/memories/flush", json={**ana, "session_id": "chat:one"})
        found = gateway.post("/memories/search", json={**ana, "query": "cat", "conversation_id": "one"})
    assert (added.status_code, flushed.status_code, found.status_code) == (200, 200, 200), added.text + found.text
    assert added.json()["message_ids"] == ["k1", "k2"]
    assert [each["text"] for each in found.json()["results"]] == ["The cat sat."]
    assert [each["session_id"] for each in found.json()["results"]] == ["chat:one"]
    assert rows == [
        ("add", "succeeded", "elsewhere"), ("flush", "succeeded", "elsewhere"), ("search", "succeeded", "elsewhere"),
    ]  # fmt: skip
    assert front.there.asked == ["capture", "capture", "query"]
    kept = front.there.kept["k1"]
    assert kept.scope == Scope(subject="ana", app="default", project="default", conversation="one")
    assert (kept.metadata["role"], kept.metadata["sender"]) == ("user", "ana")
    stats = front.runner.run(front.memory().stats())
    assert (stats.messages, stats.memories) == (0, 0)  # nothing is in our own store


def test_what_is_somebody_elses_or_of_another_conversation_or_app_is_not_shown(
    front: Front, gateway: httpx2.Client
) -> None:
    front.bind()
    ana, bob = signed_up(gateway), signed_up(gateway, "bob")
    for who, session, app in ((ana, "chat:two", "default"), (ana, "chat:one", "mail"), (bob, "chat:one", "default")):
        body = {**who, "session_id": session, "app_id": app, "messages": [said("A cat.")]}
        assert gateway.post("/memories/add", json=body).status_code == 200
    asked = {**ana, "query": "cat", "conversation_id": "one"}
    assert gateway.post("/memories/search", json=asked).json()["results"] == []
    everything = gateway.post("/memories/search", json={**asked, "scope": ["all_user_memory"]}).json()["results"]
    assert [each["id"] for each in everything] == ["k1"]
    rows = [row for row in front.rows() if row.action == "search"]
    assert [row.attribution and row.attribution.dropped for row in rows] == [1, 1]  # Bob's record


def test_a_record_is_read_corrected_and_deleted_by_the_id_that_it_has_there(
    front: Front, gateway: httpx2.Client
) -> None:
    front.bind()
    ana = signed_up(gateway)
    key = {"Authorization": f"Bearer {ana['user_key']}"}
    gateway.post("/memories/add", json={**ana, "session_id": "chat:one", "messages": [said("The cat sat.")]})
    assert gateway.get("/memories/k1", headers=key).json()["text"] == "The cat sat."
    assert [each["id"] for each in gateway.get("/memories", headers=key).json()["memories"]] == ["k1"]
    corrected = gateway.patch("/memories/k1", json={"text": "The dog sat."}, headers=key)
    assert (corrected.status_code, corrected.json()["text"]) == (200, "The dog sat.")
    new = corrected.json()["id"]
    assert gateway.delete(f"/memories/{new}", headers=key).status_code == 200
    assert gateway.get(f"/memories/{new}", headers=key).status_code == 404
    assert front.there.kept == {}


def test_what_providers_have_no_words_for_is_refused_by_name(front: Front, gateway: httpx2.Client) -> None:
    front.bind()
    ana = signed_up(gateway)
    key = {"Authorization": f"Bearer {ana['user_key']}"}
    refused = gateway.get("/memories/k1/history", headers=key)
    assert refused.status_code == 403, refused.text
    assert (refused.json()["code"], "`elsewhere`" in refused.json()["detail"]) == ("capability_unavailable", True)
    assert front.there.asked == []


def test_a_provider_that_is_down_is_a_problem_of_its_own_and_not_ours(front: Front, gateway: httpx2.Client) -> None:
    front.bind()
    ana = signed_up(gateway)

    async def query(request: Any) -> Any:
        raise ConnectionError("hunter2")

    front.there.query = query  # type: ignore[method-assign]
    answer = gateway.post("/memories/search", json={**ana, "query": "cat", "conversation_id": "one"})
    assert answer.status_code in (502, 503), answer.text
    assert answer.json()["code"] == "provider_error"
    assert "hunter2" not in answer.text
    listed = gateway.get("/memories", headers={"Authorization": f"Bearer {ana['user_key']}"})
    assert listed.status_code == 200  # the next call is served


# --- a real service as provider ---------------------------------------------------------------------------------------


def bound_to(front: Front, url: str, **config: Any) -> None:
    given = {"url": url, "user_id": "ana", "user_key": "env://HOLDFAST_SECRET_UP", **config}
    front.do(CreateBinding(Scope(), "upstream", "gateway", given))
    front.do(SetTarget(Scope(), TargetKind.COMPANY, "default", "upstream"))


@pytest.fixture
def installed(location: str, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """A front with the installed providers, one of which calls another service."""
    monkeypatch.setenv("HOLDFAST_SECRET_UP", USER_KEY)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    engine = runner.run(open_engine(location, Settings(), embedder="fake", work=False, routed=True))
    yield Front(engine, KeepingProvider(), runner)
    runner.run(engine.close())


def test_a_company_is_served_by_another_holdfast_behind_the_same_routes(installed: Front, tmp_path: Path) -> None:
    config = GatewayConfig(operator_token=OPERATOR_KEY, request_logs=False).at(0)
    app = create_app(installed.engine, installed.engine, config)
    with served(str(tmp_path / "upstream.db")) as upstream, serving(app) as url:
        bound_to(installed, upstream.url)
        with httpx2.Client(base_url=url, timeout=30) as client:
            bob = signed_up(client, "bob")
            with installed.left() as rows:
                body = {**bob, "session_id": "chat:one", "messages": [said("The cat sat.", "bob")]}
                added = client.post("/memories/add", json=body)
                found = client.post("/memories/search", json={**bob, "query": "cat", "conversation_id": "one"})
        assert added.status_code == 200, added.text
        assert found.status_code == 200, found.text
        assert [each["text"] for each in found.json()["results"]] == ["The cat sat."]
        there = installed.runner.run(AsyncMemory(upstream.engine, actor=LOCAL_OPERATOR, space="default").stats())
    assert rows == [("add", "succeeded", "upstream"), ("search", "succeeded", "upstream")]
    assert there.messages == 1
    assert installed.runner.run(installed.memory().stats()).messages == 0


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (http(500, b'{"secret": "hunter2"}'), "provider_unavailable"),
        (http(200, b"<html>hunter2"), "provider_malformed"),
        (http(401, b"{}"), "provider_misconfigured"),
        (HANG_UP, "provider_unavailable"),
        (HANG, "provider_timeout"),
    ],
    ids=["500", "garbage", "401", "hangs up", "hangs"],
)
def test_a_service_that_fails_is_a_typed_error_in_time_and_in_the_trail(
    installed: Front, reply: bytes, code: str
) -> None:
    with answering(reply) as (url, _):
        bound_to(installed, url, timeout_seconds=1)
        with installed.left() as rows, pytest.raises(ProviderError) as raised:
            installed.runner.run(installed.memory().search("cat", subject="bob"))
    assert raised.value.code == code
    assert rows == [("search", "failed", "upstream")]
    told = whole_chain(raised.value) + full_repr(installed.rows())
    assert "hunter2" not in str(raised.value)
    assert USER_KEY not in told


# --- each verb --------------------------------------------------------------------------------------------------------


def test_every_verb_about_memory_is_routed_and_no_other() -> None:
    # Verbs that manage the store, its users and its jobs are not about memory.
    others = {
        Action.JOBS, Action.STATS, Action.REBUILD, Action.VERIFY, Action.WORK, Action.CREATE_USER, Action.REVOKE_USER,
        Action.LIST_USERS, Action.EVENTS,
    }  # fmt: skip
    from holdfast import wire

    assert {kind.action for kind in ROUTED} == set(wire.VERBS) - others


def test_where_our_own_store_serves_nothing_changes_but_that_rows_name_the_binding(front: Front) -> None:
    memory, run = front.memory(), front.runner.run
    with front.left() as rows:
        added = run(memory.add(["The cat sat."], subject="ana", idempotency_key="k"))
        assert run(memory.add(["The cat sat."], subject="ana", idempotency_key="k")).replayed
        fact = run(memory.remember("The cat is grey.", subject="ana"))
        assert run(memory.search("grey", subject="ana"))[0].id == fact.id
        assert run(memory.get(fact.id, subject="ana")).text == "The cat is grey."
        assert len(run(memory.list(subject="ana")).items) == 2
        assert "grey" in run(memory.recall("grey", subject="ana")).message
        run(memory.correct(fact.id, "The cat is black.", subject="ana"))
        assert len(run(memory.history(fact.id, subject="ana"))) == 2
        run(memory.explain("cat", subject="ana"))
        assert run(memory.forget(fact.id, subject="ana")).memories == 1
        with pytest.raises(NotFound):
            run(memory.get(fact.id, subject="ana"))
    assert added.stored == 1
    assert {binding for _, _, binding in rows} == {"default"}
    assert [action for action, _, _ in rows] == [
        "add", "add", "remember", "search", "get", "list", "recall", "correct", "history", "explain", "forget", "get",
    ]  # fmt: skip
    assert [outcome for _, outcome, _ in rows] == ["succeeded"] * 11 + ["refused"]
    touched = {str(row.action): row.record_count for row in front.rows()}
    assert (touched["search"], touched["list"], touched["recall"]) == (1, 2, 1)


def test_an_engine_that_does_not_route_keeps_to_its_own_store(
    location: str, there: KeepingProvider, runner: asyncio.Runner
) -> None:
    providers = Installed([local(), there])
    engine = runner.run(open_engine(location, Settings(), embedder="fake", work=False, providers=providers))
    front = Front(engine, there, runner)
    front.bind()
    with front.left() as rows:
        runner.run(front.memory().add(["The cat sat."]))
        assert len(runner.run(front.memory().search("cat"))) == 1
    assert rows == [("add", "succeeded", None), ("search", "succeeded", None)]
    assert not there.asked
    runner.run(engine.close())


def test_a_get_of_no_record_is_recorded_as_refused_wherever_it_is_served(front: Front) -> None:
    front.bind()
    with front.left() as rows, pytest.raises(NotFound):
        front.runner.run(front.memory().get("k9", subject="ana"))
    assert rows == [("get", "refused", "elsewhere")]


def test_recall_and_remember_are_served_too(front: Front) -> None:
    front.bind()
    memory, run = front.memory(), front.runner.run
    fact = run(memory.remember("The cat is grey.", subject="ana", metadata={"k": "v"}))
    assert (fact.id, fact.text, dict(fact.metadata)) == ("k1", "The cat is grey.", {"k": "v"})
    recalled = run(memory.recall("cat", subject="ana"))
    assert [hit.id for hit in recalled.hits] == ["k1"]
    assert "The cat is grey." in recalled.message


def test_pages_go_on_where_the_provider_left_off(front: Front) -> None:
    front.bind()
    memory, run = front.memory(), front.runner.run
    for number in range(5):
        run(memory.remember(f"Cat {number}.", subject="ana"))
    seen, cursor = [], None
    for _ in range(3):
        page = run(memory.list(subject="ana", limit=2, cursor=cursor))
        seen += [each.text for each in page.items]
        cursor = page.next_cursor
    assert (seen, cursor) == ([f"Cat {number}." for number in range(5)], None)


def test_made_again_with_its_key_nothing_is_asked_twice(front: Front) -> None:
    front.bind()
    memory, run = front.memory(), front.runner.run
    for _ in range(2):
        assert run(memory.add(["The cat sat."], subject="ana", idempotency_key="k")).message_ids == ("k1",)
        assert run(memory.remember("Grey.", subject="ana", idempotency_key="m")).id == "k2"
        assert run(memory.correct("k2", "Black.", subject="ana", idempotency_key="c")).text == "Black."
        assert run(memory.forget("k1", subject="ana", idempotency_key="f")).memories == 1
    assert front.there.asked == ["capture", "upsert_records", "correct", "forget"]
    with pytest.raises(IdempotencyConflict):
        run(memory.add(["The dog sat."], subject="ana", idempotency_key="k"))


def test_every_translated_write_can_be_replayed() -> None:
    for verb, translation in TRANSLATIONS.items():
        replays = [vars(translation).get(name) for name in ("replay_state", "from_replay")]
        assert all(replays) if issubclass(verb, Write) else not any(replays), verb.__name__


UNTOLD: dict[str, Callable[[AsyncMemory], Any]] = {
    "a moment in the past": lambda memory: memory.search("cat", as_of=datetime(2026, 1, 1, tzinfo=UTC)),
    "a radius": lambda memory: memory.search("cat", radius=0.5),
    "a way of ranking": lambda memory: memory.search("cat", method="keyword"),
    "a revision": lambda memory: memory.correct("k1", "New.", expected_revision=1),
    "a plane that is guarded": lambda memory: memory.remember("Secret.", plane="private"),
    "quarantine": lambda memory: memory.remember("Hm.", quarantined=True),
    "a revision to forget": lambda memory: memory.forget("k1", expected_revision=1),
    "a file": lambda memory: memory.add_resource("A page."),
    "an explanation": lambda memory: memory.explain("cat"),
}


@pytest.mark.parametrize("named", UNTOLD)
def test_what_cannot_be_honoured_is_refused_before_anybody_is_asked(front: Front, named: str) -> None:
    front.bind()
    with front.left() as rows, pytest.raises(CapabilityUnavailable, match="`elsewhere`"):
        front.runner.run(UNTOLD[named](front.memory()))
    assert [(outcome, binding) for _, outcome, binding in rows] == [("refused", "elsewhere")]
    assert front.there.asked == []


# --- forgetting what is here ------------------------------------------------------------------------------------------


def test_forgetting_reaches_what_is_here_and_says_what_remains_outside(
    front: Front, gateway: httpx2.Client, location: str
) -> None:
    ana, remains = signed_up(gateway), [{"binding": "elsewhere", "provider": "keeping"}]
    chat = {**ana, "session_id": "chat:one"}
    assert gateway.post("/memories/add", json={**chat, "messages": [said("The cat sat.")]}).status_code == 200
    front.bind()
    assert gateway.post("/memories/add", json={**chat, "messages": [said("It rains.")]}).status_code == 200
    scope = Scope(subject="ana", app="default", project="default", conversation="one")
    source, payload = SourceRef(SourceKind.RUN, "default", run_id="r1"), SourcePayload("We chose Lisbon.")
    (pending,) = front.do(EmitHook(scope, HookKind.POST_RUN_CAPTURE, "h1", source, payload)).deliveries
    for target in ({"everything": True}, {"session_id": "chat:one"}):
        preview = gateway.post("/memories/forget", json={**ana, **target}).json()
        assert (preview["messages"], preview["deliveries"], preview["remaining_outside"]) == (1, 1, remains)
    done = gateway.post("/memories/forget", json={**chat, "token": preview["token"]}).json()
    receipt = done["receipt"]
    assert (receipt["messages"], receipt["deliveries"], receipt["remaining_outside"]) == (1, 1, remains)
    assert (done["deliveries"], done["remaining_outside"], receipt["scrubbed"]) == (1, remains, True)
    assert front.do(GetDelivery(Scope(), pending.id)).status is HookDeliveryStatus.DROPPED
    front.runner.run(front.memory().drain())
    assert front.there.asked == ["capture"], "it was asked before, and nothing goes out any more"
    if "://" not in location:
        files = [path.read_bytes() for path in Path(location).parent.iterdir() if path.is_file()]
        assert not [text for text in (b"The cat sat.", b"We chose Lisbon.") if any(text in each for each in files)]


def test_single_records_are_forgotten_where_they_are(front: Front, gateway: httpx2.Client) -> None:
    ana = signed_up(gateway)
    added = gateway.post("/memories/add", json={**ana, "session_id": "chat:one", "messages": [said("The cat sat.")]})
    (here,) = added.json()["message_ids"]
    front.bind()
    gateway.post("/memories/add", json={**ana, "session_id": "chat:one", "messages": [said("It rains.")]})
    for record_id, counted in ((here, "messages"), ("k1", "memories")):
        body = {**ana, "ids": [record_id]}
        preview = gateway.post("/memories/forget", json=body).json()
        assert (preview["ids"], preview[counted]) == ([record_id], 1)
        wrong = gateway.post("/memories/forget", json={**body, "token": "another"})
        assert (wrong.status_code, wrong.json()["code"]) == (409, "preview_outdated")
        again = {"Idempotency-Key": record_id}
        for _ in range(2):  # repeated, it is answered as the first time
            done = gateway.post("/memories/forget", json={**body, "token": preview["token"]}, headers=again).json()
            assert (done[counted], done["remaining_outside"]) == (1, [])
    assert front.there.asked == ["capture", "forget"]
    assert gateway.post("/memories/forget", json={**ana, "ids": [here]}).status_code == 404


def test_our_own_store_serving_a_company_names_the_memories_that_its_agents_have_outside(front: Front) -> None:
    front.do(CreateBinding(Scope(), "elsewhere", "keeping"))
    done = front.runner.run(front.memory().forget(conversation="one"))
    assert done.remaining_outside == (OutsideMemory("elsewhere", "keeping"),)
    assert not done.found


def test_what_is_too_long_for_the_contract_is_named(front: Front) -> None:
    front.bind()
    memory, run = front.memory(), front.runner.run
    with pytest.raises(InvalidText, match=r"messages\[1\].text"):
        run(memory.add(["Short.", "x" * 20_001]))
    with pytest.raises(InvalidText, match="query"):
        run(memory.search("x" * 4_001))
    assert front.there.asked == []


def test_a_disabled_binding_serves_nobody(front: Front) -> None:
    front.bind()
    front.do(UpdateBinding(Scope(), "elsewhere", enabled=False))
    with pytest.raises(BindingDisabled):
        front.runner.run(front.memory().search("cat"))


def test_an_agents_own_binding_serves_its_library_calls(front: Front) -> None:
    whole = Scope(space=ACME)
    front.do(CreateBinding(whole, "elsewhere", "keeping"))
    front.do(SetTarget(whole, TargetKind.AGENT, "bot", "elsewhere"))
    bot = front.memory(actor=Actor(ActorKind.AGENT, "bot", ACME), space=ACME)
    aid = front.memory(actor=Actor(ActorKind.AGENT, "aid", ACME), space=ACME)
    with front.left() as rows:
        front.runner.run(bot.remember("The cat sat.", agent="bot"))
        front.runner.run(aid.remember("The cat sat.", agent="aid"))
    assert [binding for _, _, binding in rows] == ["elsewhere", "default"]
    assert front.there.asked == ["upsert_records"]


def test_a_provider_that_does_not_tell_where_a_record_belongs_is_taken_at_its_word(
    location: str, runner: asyncio.Runner
) -> None:
    there = KeepingProvider(telling=False)
    providers = Installed([local(), there])
    engine = runner.run(
        open_engine(location, Settings(), embedder="fake", work=False, providers=providers, routed=True)
    )
    front = Front(engine, there, runner)
    front.bind()
    memory = front.memory()
    runner.run(memory.add(["The cat sat."], subject="ana", conversation="one"))
    (hit,) = runner.run(memory.search("cat", subject="ana", conversation="one"))
    assert (hit.scope.subject, hit.scope.conversation) == ("ana", "one")
    runner.run(engine.close())
