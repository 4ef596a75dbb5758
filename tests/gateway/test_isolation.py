"""Isolation over HTTP: every route, called by each of six users in each of three apps, looking for the others' data.

The routes come from the route table. A route without a probe or an access rule fails.
"""

from __future__ import annotations

import io
import itertools
import json
import logging
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import MOMENT, TOKEN, Gateway, Visitor, serving, table

from holdfast.gateway.authentication import RULE, AccessRule
from holdfast.gateway.edge.observers import JsonFormatter
from holdfast.wire import control_verbs

USERS = [f"user-{number}" for number in range(6)]
APPS = ["default", "second", "third"]
SCOPES = [["current_chat"], ["resources"], ["current_chat", "resources", "all_user_memory"]]


ROUTES = sorted({(method, route.path) for route in table() for method in route.methods})


@dataclass
class Home:
    """One user in one app, and the ids of its records, which contain a unique word."""

    visitor: Visitor
    canary: str
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class Village:
    gateway: Gateway
    homes: dict[tuple[str, str], Home]
    log: io.StringIO

    def others(self, home: Home) -> list[Home]:
        return [other for other in self.homes.values() if other is not home]


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Village]:
    place: Path = tmp_path_factory.mktemp("village") / "memory.db"
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("holdfast")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        with serving(place, token=TOKEN, request_logs=True, rate_per_minute=0) as gateway:
            homes = {(user, app): settled(gateway, user, app) for user, app in itertools.product(USERS, APPS)}
            yield Village(gateway, homes, log)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def settled(gateway: Gateway, user: str, app: str) -> Home:
    visitor = replace(gateway.user(user), app_id=app)
    home = Home(visitor, f"zq{secrets.token_hex(8)}")
    said = visitor.add(f"The lantern says {home.canary}.", session="chat:one")
    home.ids["message"] = said.json()["message_ids"][0]
    corrected = visitor.add(f"The anchor says {home.canary}.", session="chat:one", at=MOMENT + 50)
    override = visitor.http.patch(
        f"/memories/{corrected.json()['message_ids'][0]}",
        params={"app_id": app},
        json={"text": f"The anchor always says {home.canary}."},
        headers=visitor.headers,
    )
    home.ids["memory"] = override.json()["id"]
    made = visitor.upload(f"The harbour document says {home.canary}.".encode(), f"{home.canary}.txt")
    home.ids["resource"] = made.json()["resource_id"]
    home.ids["session"] = made.json()["session_id"]
    preview = visitor.http.post("/memories/forget", json={**visitor.signed, "session_id": "chat:one"})
    home.ids["token"] = preview.json()["token"]
    page = visitor.http.get("/memories", params={"limit": 1, "app_id": app}, headers=visitor.headers)
    home.ids["registry"] = f"tools-of-{home.canary}"
    tools = [{"tool_id": f"say-{home.canary}", "schema_fingerprint": "s1"}]
    registered = visitor.http.put(
        f"/agent-tool-registries/{home.ids['registry']}",
        params={"app_id": app},
        json={"registry_id": home.ids["registry"], "tools": tools},
        headers=visitor.headers,
    )
    assert registered.json()["changed"]
    home.ids["cursor"] = page.json()["next_cursor"]
    return home


Probe = Callable[[Home, Home, list[str]], list[httpx2.Response]]
# The body of a request, for the caller's home and another.
Body = Callable[[Home, Home], dict[str, Any]]


def _get(path: str) -> Probe:
    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me = mine.visitor
        named = path.format(record_id=theirs.ids["message"], resource_id=theirs.ids["resource"])
        memory = path.format(record_id=theirs.ids["memory"], resource_id=theirs.ids["resource"])
        params = {"app_id": me.app_id}
        return [me.http.get(each, params=params, headers=me.headers) for each in {named, memory}]

    return probe


def _listed(path: str) -> Probe:
    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me = mine.visitor
        asked: list[dict[str, str]] = [{}, {"cursor": theirs.ids["cursor"]}]
        if path == "/memories":
            asked += [{"session_id": theirs.ids["session"]}, {"session_id": "chat:one"}]
        return [me.http.get(path, params={"app_id": me.app_id, **each}, headers=me.headers) for each in asked]

    return probe


def _changed(method: str, path: str, body: dict[str, Any] | None = None) -> Probe:
    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me, sent = mine.visitor, {"json": body} if body else {}
        answers = [
            me.http.request(
                method,
                path.format(record_id=theirs.ids[kind], resource_id=theirs.ids["resource"]),
                params={"app_id": me.app_id},
                headers=me.headers,
                **sent,
            )
            for kind in ("message", "memory")
        ]
        assert {answer.status_code for answer in answers} == {404}
        return answers

    return probe


def _registry(method: str, *, named: bool = True) -> Probe:
    """Call the route of another's registry, or of all. An error repeats the name that was asked for."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me = mine.visitor
        name = theirs.ids["registry"] if named else ""
        path = f"/agent-tool-registries/{name}".rstrip("/")
        sent = {"json": {"registry_id": "mine", "tools": []}} if method == "PUT" else {}
        answer = me.http.request(method, path, params={"app_id": me.app_id}, headers=me.headers, **sent)
        assert answer.status_code == ((422 if method == "PUT" else 404) if named else 200)
        if not named:
            assert mine.canary in answer.text
        return [] if named else [answer]

    return probe


def _search(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    me = mine.visitor
    asked = [
        {"query": f"lantern {theirs.canary}"},
        {"query": "lantern anchor harbour", "top_k": 100},
        {"query": theirs.canary, "filters": {"session_id": theirs.ids["session"]}},
        {"query": theirs.canary, "filters": {"sender_id": theirs.visitor.user_id}, "method": "keyword"},
        {"query": theirs.canary, "method": "vector"},
    ]
    answers = [me.search(conversation_id="one", scope=scope, **each) for each in asked]
    everything = [found["text"] for found in answers[1].json()["results"]]
    assert all(mine.canary in text for text in everything)
    return answers


def _search_as_another(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    body = {**mine.visitor.signed, "user_id": theirs.visitor.user_id, "query": "lantern", "scope": ["all_user_memory"]}
    answer = mine.visitor.http.post("/memories/search", json=body)
    if theirs.visitor.user_id != mine.visitor.user_id:
        assert answer.status_code == 401
    return [answer]


def _recall(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    me = mine.visitor
    asked = [
        {"query": f"lantern {theirs.canary}", "min_score": 0, "budget_chars": 10_000},
        {"query": "lantern anchor harbour", "top_k": 100, "conversation_id": "one", "scope": scope},
        {"query": theirs.canary, "filters": {"session_id": theirs.ids["session"]}, "min_score": 0},
    ]
    answers = [me.http.post("/memories/recall", json={**me.signed, **each}) for each in asked]
    assert all(answer.status_code == 200 for answer in answers)
    assert all(mine.canary in found["text"] for found in answers[0].json()["results"])
    body = {**me.signed, "user_id": theirs.visitor.user_id, "query": "lantern"}
    answers.append(me.http.post("/memories/recall", json=body))
    if theirs.visitor.user_id != me.user_id:
        assert answers[-1].status_code == 401
    return answers


def _both(*probes: Probe) -> Probe:
    return lambda mine, theirs, scope: [answer for probe in probes for answer in probe(mine, theirs, scope)]


def _add(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    return [mine.visitor.add(f"Mine is {mine.canary}.", session="chat:add")]


def _flush(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    return [mine.visitor.flush("chat:one"), mine.visitor.flush("chat:nowhere")]


def _forget(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    me = mine.visitor
    wanted: list[dict[str, Any]] = [
        {"ids": [theirs.ids["message"]]},
        {"ids": [theirs.ids["memory"]], "token": theirs.ids["token"]},
        {"session_id": theirs.ids["session"]},
        {"session_id": theirs.ids["session"], "token": theirs.ids["token"]},
        {"session_id": "chat:one", "token": theirs.ids["token"]},
        {"everything": True, "token": theirs.ids["token"]},
    ]
    answers = [me.http.post("/memories/forget", json={**me.signed, **each}) for each in wanted]
    assert not any(answer.status_code == 200 and answer.json()["receipt"] for answer in answers[:4])
    assert not any(answer.json().get("ids") for answer in answers[:4])
    return answers


def _operators(method: str, path: str, body: dict[str, Any] | None = None) -> Probe:
    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        sent = {"json": body} if body else {}
        named = path.format(user_id=theirs.visitor.user_id)
        answer = mine.visitor.http.request(method, named, headers=mine.visitor.headers, **sent)
        assert answer.status_code == 401
        return [answer]

    return probe


def _sign_up(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    answer = mine.visitor.http.post("/users", json={"user_id": theirs.visitor.user_id}, headers=mine.visitor.headers)
    assert answer.status_code == (200 if theirs.visitor.user_id == mine.visitor.user_id else 401)
    assert not answer.json().get("user_key")
    return [answer]


def _public(path: str) -> Probe:
    return lambda mine, theirs, scope: [mine.visitor.http.get(path)]


def _uploaded(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    return [mine.visitor.upload(f"Again mine: {mine.canary}.".encode())]


def _external(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    body = {**mine.visitor.signed, "uri": "https://example.org/x", "text": f"Elsewhere: {mine.canary}."}
    return [mine.visitor.http.post("/resources/external", json=body)]


def _verb(action: str) -> Probe:
    """Probe a library verb: in another user's scope, and in the caller's own scope with another user's ids."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        answers = []
        for subject in (theirs.visitor.user_id, mine.visitor.user_id, None):
            body = _verb_body(action, mine, theirs, subject)
            answer = mine.visitor.http.post(f"/verbs/{action}", json=body, headers=mine.visitor.headers)
            assert answer.status_code < 500, answer.text
            if subject is None or subject != mine.visitor.user_id:
                assert answer.status_code in (403, 404, 422), (action, answer.text)
            answers.append(answer)
        return answers

    return probe


def _verb_body(action: str, mine: Home, theirs: Home, subject: str | None) -> dict[str, Any]:
    scope = {"space": "default", "app": mine.visitor.app_id, "subject": subject}
    conversation = {**scope, "conversation": "one"}
    target = {"ids": [theirs.ids["message"]]}
    bodies: dict[str, dict[str, Any]] = {
        "add": {"scope": {**scope, "conversation": "verbs"}, "drafts": [{"text": f"Mine is {mine.canary}."}]},
        "flush": {"scope": {**scope, "conversation": "verbs"}},
        "search": {"scope": scope, "query": theirs.canary},
        "explain": {"scope": scope, "query": "lantern", "record_id": theirs.ids["message"]},
        "recall": {"scope": scope, "query": theirs.canary},
        "get": {"scope": scope, "record_id": theirs.ids["message"]},
        "list": {"scope": scope},
        "browse": {"scope": scope},
        "history": {"scope": scope, "record_id": theirs.ids["memory"]},
        "remember": {"scope": scope, "text": f"Mine is {mine.canary}.", "evidence": [theirs.ids["message"]]},
        "correct": {"scope": scope, "memory_id": theirs.ids["memory"], "text": "Taken over."},
        "revert": {"scope": scope, "memory_id": theirs.ids["memory"], "revision": 1},
        "forget_preview": {"scope": scope, "target": target},
        "forget": {"scope": scope, "target": target},
        "jobs": {"scope": scope},
        "stats": {"scope": scope},
        "events": {"scope": scope},
        "verify": {"scope": {"space": "*"}},
        "rebuild": {"scope": {"space": "*"}},
        "work": {"scope": {"space": "*"}},
        "create_user": {"scope": {"space": "default"}, "user_id": theirs.visitor.user_id, "rotate": True},
        "revoke_user": {"scope": {"space": "default"}, "user_id": theirs.visitor.user_id},
        "list_users": {"scope": {"space": "default"}},
        "add_resource": {"scope": scope, "name": "x.txt", "content": "TWluZQ==", "media_type": "text/plain"},
        "list_resources": {"scope": scope},
        "get_resource": {"scope": scope, "resource_id": theirs.ids["resource"]},
        "delete_resource": {"scope": scope, "resource_id": theirs.ids["resource"]},
    }
    if action not in bodies:
        pytest.fail(f"the verb {action} has no probe here")
    return bodies[action] | ({"scope": conversation} if action == "flush" else {})


def _control_verb(name: str) -> Probe:
    """Probe a verb of the control plane: in another user's scope, in none, and in the caller's own, always with another
    user's ids."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        handle = {"provider_key": "*", "record_id": theirs.ids["memory"]}
        values = {
            "handle": handle, "handles": [handle], "query": f"lantern {theirs.canary}", "text": "Taken over.",
            "records": [{"text": "Mine."}], "source": {"kind": "run", "space": "default"}, "payload": {"text": "Mine."},
            "key": "mine", "provider": "local", "target_id": theirs.visitor.user_id, "description": "Disk.",
            "amount_micros": 1, "price": {"provider": "model"}, "hook_id": theirs.ids["message"],
        }  # fmt: skip
        kinds = {"emit_hook": "post_run_capture", "add_finance_event": "other"}
        answers = []
        for subject in (theirs.visitor.user_id, mine.visitor.user_id, None):
            place = {"space": "default", "app": mine.visitor.app_id, "subject": subject}
            body: dict[str, Any] = {"scope": {part: value for part, value in place.items() if value is not None}}
            for each in fields(control_verbs()[name].request_type):
                if each.name != "scope" and each.default is MISSING and each.default_factory is MISSING:
                    body[each.name] = values.get(each.name, kinds.get(name, theirs.ids["message"]))
            if "kind" in body:
                body["kind"] = kinds.get(name, "agent")
            answer = mine.visitor.http.post(f"/verbs/{name}", json=body, headers=mine.visitor.headers)
            assert answer.status_code < 500, answer.text
            assert "is missing" not in answer.text, answer.text
            if subject == theirs.visitor.user_id != mine.visitor.user_id:
                assert answer.status_code in (403, 404, 422), (name, answer.text)
            answers.append(answer)
        return answers

    return probe


def _everos(path: str, *bodies: Callable[[Home, Home], dict[str, Any]]) -> Probe:
    """Probe an EverOS route: in the caller's own name, and in another user's."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me = mine.visitor
        answers = []
        for user in (me.user_id, theirs.visitor.user_id):
            for body in bodies:
                sent = {"user_id": user, "app_id": me.app_id, **body(mine, theirs)}
                answers.append(me.http.post(path, json=sent, headers=me.headers))
                if user != me.user_id and path.endswith(("/search", "/get")):
                    assert answers[-1].status_code == 403, answers[-1].text
        return answers

    return probe


CLOUD = "/api/v1/memories"


def _cloud(path: str, *bodies: Body) -> Probe:
    """Probe a route of EverOS's cloud, which knows no apps: in the caller's own name, and in another user's."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me, answers = mine.visitor, []
        for user in (me.user_id, theirs.visitor.user_id) if me.app_id == "default" else (theirs.visitor.user_id,):
            for make in bodies:
                body = make(mine, theirs)
                if "filters" in body:
                    body["filters"]["user_id"] = user
                else:
                    body["user_id"] = user
                answers.append(me.http.post(f"{CLOUD}{path}", json=body, headers=me.headers))
                expected = (403,) if user != me.user_id else (200, 204, 404)
                assert answers[-1].status_code in expected, answers[-1].text
        return answers

    return probe


def _runtime(method: str, path: str) -> Probe:
    """Probe an operation of a runtime: for another owner, for an agent, and in the caller's own name with another
    user's conversation, words and ids."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me, answers = mine.visitor, []
        body = _runtime_body(path.removeprefix("/memory/"), theirs)
        for named in ({}, {"owner_id": theirs.visitor.user_id}, {"agent_id": "bot"}):
            params = {"app_id": me.app_id, "chat_id": "one", **named}
            headers = {**me.headers, "x-idempotency-key": f"{mine.canary}-{path}-{named}"[:256]}
            sent: dict[str, Any] = {"json": body} if method == "POST" else {}
            answer = me.http.request(method, path, params=params, headers=headers, **sent)
            assert answer.status_code < 500, answer.text
            if named.get("owner_id", me.user_id) != me.user_id or "agent_id" in named:
                assert answer.status_code in (403, 405, 422), (path, answer.text)
            answers.append(answer)
        return answers

    return probe


def _cloud_add(mine: Home, theirs: Home) -> dict[str, Any]:
    said = {"role": "user", "timestamp": MOMENT, "content": f"Mine is {mine.canary}."}
    return {"session_id": "cloud", "messages": [said]}


def _cloud_searches() -> list[Body]:
    kinds = ["episodic_memory", "agent_memory", "raw_message"]
    asked = {"query": "lantern anchor harbour"}
    return [
        lambda mine, theirs: {**asked, "filters": {}, "memory_types": kinds},
        lambda mine, theirs: {**asked, "filters": {"session_id": theirs.ids["session"]}, "memory_types": kinds},
        lambda mine, theirs: {**asked, "filters": {"sender_id": theirs.visitor.user_id}},
    ]


def _cloud_get(kind: str) -> Body:
    return lambda mine, theirs: {"filters": {}, "memory_type": kind, "page_size": 100}


def _cloud_task(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
    answer = mine.visitor.http.get(f"/api/v1/tasks/{theirs.ids['message']}", headers=mine.visitor.headers)
    assert answer.status_code == 404
    return [answer]


def _not_supported(method: str, path: str) -> Probe:
    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        named = re.sub(r"\{\w+\}", theirs.visitor.user_id, path)
        sent = {} if method == "GET" else {"json": {"group_id": theirs.visitor.user_id}}
        answer = mine.visitor.http.request(method, named, headers=mine.visitor.headers, **sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "NOT_SUPPORTED")
        return [answer]

    return probe


CLOUDS: dict[str, Probe] = {
    "": _cloud("", _cloud_add),
    "/agent": _cloud("/agent", _cloud_add),
    "/flush": _cloud("/flush", lambda mine, theirs: {"session_id": "one"}),
    "/agent/flush": _cloud("/agent/flush", lambda mine, theirs: {}),
    "/search": _cloud("/search", *_cloud_searches()),
    "/get": _cloud("/get", *map(_cloud_get, ("episodic_memory", "agent_case", "agent_skill"))),
    "/delete": _cloud(
        "/delete",
        lambda mine, theirs: {"memory_id": theirs.ids["message"]},
        lambda mine, theirs: {"memory_id": theirs.ids["memory"]},
        lambda mine, theirs: {"session_id": theirs.ids["session"]},
    ),
}
UNSUPPORTED = [
    ("POST", f"{CLOUD}/group"),
    ("POST", f"{CLOUD}/group/flush"),
    *((method, path) for method, path in ROUTES if re.match(r"/api/v1/(groups|senders|settings|object)\b", path)),
]


def _runtime_body(operation: str, theirs: Home) -> dict[str, Any]:
    evidence = {"candidate_id": theirs.canary[::-1], "authority": "user_asserted", "content": "It is mine."}
    said = {"turn_id": f"turn of {theirs.canary[::-1]}", "messages": [{"text": "It is mine."}]}
    bodies: dict[str, dict[str, Any]] = {
        "write": {"candidates": [{**evidence, "evidence_refs": [theirs.ids["message"]]}]},
        "recall": {"query": "lantern anchor harbour", "limit": 100, "min_score": 0.0},
        "project": {"user_query": "lantern anchor harbour", "min_score": 0.0},
        "inspect": {"query": "lantern anchor harbour"},
        "transcripts/commit": {"turn": said},
        "transcripts/replay": {"view": "host_ui", "scope": {"conversation_id": "one"}},
        "transcripts/lifecycle": {"transition": "review", "reason": "a probe", "turn_id": theirs.ids["message"]},
        "export": {"chat_id": theirs.ids["session"]},
        "import": {"snapshot": "{}", "target_chat_id": theirs.ids["session"]},
    }
    return bodies.get(operation, {})


def _protocol(path: str) -> Probe:
    """Probe a set of tools over MCP with another user's ids, and what its client reads without a tool."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        me = mine.visitor
        headers = {**me.headers, "accept": "application/json, text/event-stream"}
        asked: list[tuple[str, dict[str, Any]]] = [
            ("tools/call", {"name": name, "arguments": arguments}) for name, arguments in _tool_calls(path, theirs)
        ]
        asked += [("prompts/get", {"name": "what-do-you-know-about-me"})]
        session = theirs.ids["session"]
        for uri in ("memories/recent", "skills", "conversation/one", f"conversation/{session}", "skill/{memory}"):
            asked.append(("resources/read", {"uri": f"holdfast://{uri.format(**theirs.ids)}"}))
        return [
            me.http.post(
                path,
                params={"app_id": me.app_id},
                json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                headers=headers,
            )
            for method, params in asked
        ]

    return probe


def _tool_calls(path: str, theirs: Home) -> list[tuple[str, dict[str, Any]]]:
    words, ids = "lantern anchor harbour", theirs.ids
    whose = {"subject_id": theirs.visitor.user_id}
    candidates = [{"candidate_id": "c", "content": "Mine.", "authority": "user_asserted"}]
    calls: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "/mcp": [
            ("recall", {"query": words}),
            ("search", {"query": words, "top_k": 100}),
            ("correct", {"record_id": ids["memory"], "text": "Taken over."}),
            ("forget", {"record_ids": [ids["message"], ids["memory"]]}),
            ("forget", {"record_ids": [ids["message"]], "token": ids["token"]}),
            ("recall", {"query": words, **whose}),
        ],
        "/mcp/company": [
            ("memory.search", {"query": words}),
            ("memory.search", {"query": words, **whose}),
            ("memory.list", whose),
            ("memory.get", {"record_id": ids["memory"]}),
            ("memory.correct", {"record_id": ids["memory"], "text": "Taken over."}),
            ("memory.forget", {"record_ids": [ids["memory"]]}),
        ],
        "/mcp/runtime": [
            ("memory_recall", {"query": words, "min_score": 0.0}),
            ("memory_project", {"query": words, "min_score": 0.0}),
            ("memory_inspect", {"query": words}),
            ("memory_replay", {"chat_id": ids["session"]}),
            ("memory_export", {"chat_id": "one"}),
            ("memory_write_candidate", {"candidates": candidates, "idempotency_key": theirs.canary[::-1]}),
        ],
    }
    return calls[path]


COMPANY = "/companies/{company_id}/memory"
_SOURCE = {"source": {"kind": "run", "run_id": "r"}, "payload": {"text": "Mine."}}


def _company_body(path: str, theirs: Home) -> dict[str, Any]:
    """The body for a company's route, with another user's records where it takes any."""
    bodies: dict[str, dict[str, Any]] = {
        "/capture": _SOURCE,
        "/hooks/{kind}": {"hook_id": theirs.ids["message"], **_SOURCE},
        "/records": {"records": [{"text": "Mine."}]},
        "/query": {"query": f"lantern {theirs.canary}"},
        "/explain": {"query": "lantern anchor harbour"},
        "/hydrate": {"query": "lantern anchor harbour"},
        "/forget": {"record_ids": [theirs.ids["message"], theirs.ids["memory"]]},
        "/records/{record_id}/correct": {"text": "Taken over."},
        "/tools/{name}": {"query": "lantern anchor harbour"},
    }
    return bodies.get(path.removeprefix(COMPANY), {})


def _company(method: str, path: str) -> Probe:
    """Probe a company's route: in another user's scope, in none, and in the caller's own with another user's ids."""

    def probe(mine: Home, theirs: Home, scope: list[str]) -> list[httpx2.Response]:
        named = {
            "company_id": "default", "record_id": theirs.ids["memory"], "kind": "post_run_capture",
            "name": "memory.search", "agent_id": "bot", "credential_id": theirs.visitor.user_id,
        }  # fmt: skip
        place = re.sub(r"\{(\w+)(:path)?\}", lambda part: named.get(part[1], theirs.ids["message"]), path)
        body, answers = _company_body(path, theirs), []
        for subject in (theirs.visitor.user_id, mine.visitor.user_id, None):
            given = {} if subject is None else {"subject_id": subject}
            sent: dict[str, Any] = {"params": given}
            if method in ("POST", "PUT", "PATCH"):
                sent = {"json": {**body, **given}}
            answer = mine.visitor.http.request(method, place, headers=mine.visitor.headers, **sent)
            assert answer.status_code < 500, answer.text
            if subject not in (None, mine.visitor.user_id):
                assert answer.status_code in (403, 404, 422), answer.text
            answers.append(answer)
        return answers

    return probe


def _everos_add(mine: Home, theirs: Home) -> dict[str, Any]:
    said = {"sender_id": mine.visitor.user_id, "role": "user", "timestamp": MOMENT, "content": mine.canary}
    return {"session_id": "chat:add", "messages": [said]}


def _everos_searches() -> list[Callable[[Home, Home], dict[str, Any]]]:
    return [
        lambda mine, theirs: {"query": theirs.canary},
        lambda mine, theirs: {"query": "lantern anchor harbour", "filters": {"session_id": "one"}},
        lambda mine, theirs: {"query": theirs.canary, "filters": {"session_id": theirs.ids["session"]}},
        lambda mine, theirs: {"query": theirs.canary, "filters": {"sender_id": theirs.visitor.user_id}},
    ]


def _everos_gets() -> list[Callable[[Home, Home], dict[str, Any]]]:
    return [
        lambda mine, theirs: {"memory_type": "episode", "page_size": 100},
        lambda mine, theirs: {"memory_type": "episode", "filters": {"session_id": theirs.ids["session"]}},
    ]


EVEROS: dict[str, list[Callable[[Home, Home], dict[str, Any]]]] = {
    "add": [_everos_add],
    "flush": [lambda mine, theirs: {"session_id": "one"}, lambda mine, theirs: {"session_id": theirs.ids["session"]}],
    "search": _everos_searches(),
    "get": _everos_gets(),
}
PROBES: dict[tuple[str, str], Probe] = {
    ("GET", "/healthz"): _public("/healthz"),
    ("GET", "/readyz"): _public("/readyz"),
    ("GET", "/metrics"): _public("/metrics"),
    ("GET", "/"): _public("/"),
    ("GET", "/docs"): _public("/docs"),
    ("POST", "/users"): _sign_up,
    ("GET", "/users"): _operators("GET", "/users"),
    ("DELETE", "/users/{user_id:path}"): _operators("DELETE", "/users/{user_id}"),
    ("POST", "/memories/add"): _add,
    ("POST", "/memories/flush"): _flush,
    ("POST", "/memories/search"): _both(_search, _search_as_another),
    ("POST", "/memories/recall"): _recall,
    ("GET", "/memories"): _listed("/memories"),
    ("GET", "/memories/{record_id}"): _get("/memories/{record_id}"),
    ("GET", "/memories/{record_id}/history"): _get("/memories/{record_id}/history"),
    ("PATCH", "/memories/{record_id}"): _changed("PATCH", "/memories/{record_id}", {"text": "Taken over."}),
    ("POST", "/memories/{record_id}/revert"): _changed("POST", "/memories/{record_id}/revert", {"revision": 1}),
    ("DELETE", "/memories/{record_id}"): _changed("DELETE", "/memories/{record_id}"),
    ("POST", "/memories/forget"): _forget,
    ("POST", "/resources"): _uploaded,
    ("POST", "/resources/external"): _external,
    ("GET", "/resources"): _listed("/resources"),
    ("GET", "/resources/{resource_id}"): _get("/resources/{resource_id}"),
    ("DELETE", "/resources/{resource_id}"): _changed("DELETE", "/resources/{resource_id}"),
    ("GET", "/agent-tool-registries"): _registry("GET", named=False),
    ("GET", "/agent-tool-registries/{registry_id:path}"): _registry("GET"),
    ("PUT", "/agent-tool-registries/{registry_id:path}"): _registry("PUT"),
    ("DELETE", "/agent-tool-registries/{registry_id:path}"): _registry("DELETE"),
    ("GET", "/verbs"): lambda mine, theirs, scope: [mine.visitor.http.get("/verbs", headers=mine.visitor.headers)],
    **{
        ("POST", f"/api/{version}/memory/{name}"): _everos(f"/api/{version}/memory/{name}", *bodies)
        for version in ("v1", "v2")
        for name, bodies in EVEROS.items()
    },
    **{("POST", f"{CLOUD}{path}"): probe for path, probe in CLOUDS.items()},
    ("GET", "/api/v1/tasks/{task_id}"): _cloud_task,
    **{(method, path): _not_supported(method, path) for method, path in UNSUPPORTED},
    **{
        ("POST", path): (_control_verb if path.removeprefix("/verbs/") in control_verbs() else _verb)(
            path.removeprefix("/verbs/")
        )
        for method, path in ROUTES
        if method == "POST" and path.startswith("/verbs/")
    },
    **{(method, path): _runtime(method, path) for method, path in ROUTES if path.startswith("/memory/")},
    **{("POST", path): _protocol(path) for path in ("/mcp", "/mcp/company", "/mcp/runtime")},
    **{(method, path): _company(method, path) for method, path in ROUTES if path.startswith("/companies/")},
}


def test_every_route_says_who_may_call_it_and_has_a_probe() -> None:
    rules = {rule.value for rule in AccessRule}
    assert not [route.path for route in table() if (route.openapi_extra or {}).get(RULE) not in rules]
    assert not [route for route in ROUTES if route not in PROBES]


def walled(mine: Home, other: Home, route: tuple[str, str]) -> bool:
    """True if the route must keep the two apart. Apps divide one user's memory, but not on a company's routes, and
    EverOS's cloud knows none."""
    apart = ("/companies/", "/mcp/company", CLOUD, "/api/v1/tasks")
    return not route[1].startswith(apart) or mine.visitor.user_id != other.visitor.user_id


@pytest.mark.parametrize("route", [route for route in ROUTES if route in PROBES], ids=lambda route: " ".join(route))
def test_nobody_gets_to_see_anybody_elses_words(village: Village, route: tuple[str, str]) -> None:
    for mine in village.homes.values():
        others = [other for other in village.others(mine) if walled(mine, other, route)]
        # Only a search and a recall have a scope; each home calls every other route once.
        for index, scope in enumerate(SCOPES if route[1] in ("/memories/search", "/memories/recall") else SCOPES[-1:]):
            theirs = others[(hash((mine.canary, index)) % len(others))]
            for answer in PROBES[route](mine, theirs, scope):
                assert answer.status_code < 500, answer.text
                told = answer.text + json.dumps(dict(answer.headers))
                leaked = [other.canary for other in others if other.canary in told]
                assert not leaked, f"{route}: {told[:400]}"


def test_at_the_end_everybody_still_has_what_was_theirs(village: Village) -> None:
    for home in village.homes.values():
        me = home.visitor
        assert (
            me.http.get(f"/memories/{home.ids['memory']}", params={"app_id": me.app_id}, headers=me.headers).json()[
                "text"
            ]
            == f"The anchor always says {home.canary}."
        )
        assert any(home.canary in text for text in me.texts("harbour", "resources"))


def test_no_word_key_or_user_is_in_the_log_or_the_metrics(village: Village) -> None:
    metrics = village.gateway.http.get("/metrics", headers=village.gateway.operator).text
    log = village.log.getvalue()
    assert len(log.splitlines()) > 1_000
    assert "holdfast_http_requests_total" in metrics
    for home in village.homes.values():
        for secret in (home.canary, home.visitor.key, home.visitor.user_id):
            assert secret not in log
            assert secret not in metrics
