"""Roles over HTTP: a credential may call exactly the routes and verbs of its role."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest
from company import Company, Somebody

from holdfast import wire
from holdfast.domain.access import Action, ActorKind, ActorRole
from holdfast.domain.users import ROLES
from holdfast.gateway.app import create_route_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import Metrics
from serving import OPERATOR_KEY

EVERY = [(kind, role) for kind in ROLES for role in ROLES[kind]]
READS = {
    Action.QUERY, Action.EXPLAIN, Action.PROFILE, Action.LIST, Action.GET, Action.RESOLVE_BINDING, Action.JOBS,
    Action.SEARCH, Action.RECALL, Action.BROWSE, Action.HISTORY, Action.GET_RESOURCE, Action.LIST_RESOURCES,
    Action.STATS,
}  # fmt: skip
WRITES = {
    Action.CAPTURE, Action.RECORD_UPSERT, Action.DELIVER_HOOK, Action.ADD, Action.FLUSH, Action.REMEMBER,
    Action.ADD_RESOURCE,
}  # fmt: skip
TAKES_AWAY = {Action.CORRECT, Action.REVERT, Action.FORGET, Action.FORGET_PREVIEW, Action.DELETE_RESOURCE}
AUDITS = {
    Action.READ_OPERATIONS, Action.READ_COSTS, Action.READ_BINDINGS, Action.RESOLVE_BINDING, Action.READ_DELIVERIES,
    Action.JOBS, Action.STATS, Action.EVENTS, Action.LIST_USERS,
}  # fmt: skip
ALLOWED: dict[tuple[ActorKind, ActorRole], set[Action]] = {
    (ActorKind.OPERATOR, ActorRole.ADMIN): set(Action),
    (ActorKind.OPERATOR, ActorRole.AUDITOR): AUDITS,
    (ActorKind.AGENT, ActorRole.CURATOR): READS | WRITES | TAKES_AWAY,
    (ActorKind.AGENT, ActorRole.MEMBER): READS | WRITES,
    (ActorKind.AGENT, ActorRole.READER): READS,
    (ActorKind.USER, ActorRole.MEMBER): READS | WRITES | TAKES_AWAY,
    (ActorKind.USER, ActorRole.READER): READS,
}


class Route(NamedTuple):
    """A company's route. `placed` ones take a scope, so callers with a scope can use them; others are companywide."""

    action: Action
    method: str
    path: str
    body: dict[str, Any] | None = None
    placed: bool = False


_NOTE = {"kind": "manual_note"}
_HOOK = {"hook_id": "h1", "source": {"kind": "run", "run_id": "r1"}, "payload": {"text": "The cat sat."}}
ROUTES: dict[str, Route] = {
    "list_providers": Route(Action.READ_BINDINGS, "GET", "/providers"),
    "resolve_binding": Route(Action.RESOLVE_BINDING, "GET", "/resolve", None, True),
    "list_activity": Route(Action.READ_BINDINGS, "GET", "/activity"),
    "list_bindings": Route(Action.READ_BINDINGS, "GET", "/bindings"),
    "get_binding": Route(Action.READ_BINDINGS, "GET", "/bindings/default"),
    "list_targets": Route(Action.READ_BINDINGS, "GET", "/targets"),
    "create_binding": Route(Action.MANAGE_BINDINGS, "POST", "/bindings", {"key": "another", "provider": "local"}),
    "update_binding": Route(Action.MANAGE_BINDINGS, "PATCH", "/bindings/default", {"enabled": True}),
    "set_default_binding": Route(Action.MANAGE_BINDINGS, "PUT", "/default-binding", {"binding_key": "default"}),
    "get_default_binding": Route(Action.READ_BINDINGS, "GET", "/default-binding"),
    "set_agent_binding": Route(Action.MANAGE_BINDINGS, "PUT", "/agents/sam/binding", {"binding_key": "default"}),
    "get_agent_binding": Route(Action.READ_BINDINGS, "GET", "/agents/sam/binding"),
    "clear_agent_binding": Route(Action.MANAGE_BINDINGS, "DELETE", "/agents/sam/binding"),
    "delete_binding": Route(Action.MANAGE_BINDINGS, "DELETE", "/bindings/another"),
    "capture_event": Route(Action.CAPTURE, "POST", "/capture", {"source": _NOTE, "payload": {"text": "Cats."}}, True),
    "upsert_records": Route(Action.RECORD_UPSERT, "POST", "/records", {"records": [{"text": "Cats."}]}, True),
    "query_records": Route(Action.QUERY, "POST", "/query", {"query": "cat"}, True),
    "explain_query": Route(Action.EXPLAIN, "POST", "/explain", {"query": "cat"}, True),
    "get_profile": Route(Action.PROFILE, "GET", "/profile", None, True),
    "list_records": Route(Action.LIST, "GET", "/records", None, True),
    "get_record": Route(Action.GET, "GET", "/records/mem_1", None, True),
    "correct_record": Route(Action.CORRECT, "POST", "/records/mem_1/correct", {"text": "Dogs."}, True),
    "forget_records": Route(Action.FORGET, "POST", "/forget", {"record_ids": ["mem_1"]}, True),
    "list_provider_jobs": Route(Action.JOBS, "GET", "/provider-jobs", None, True),
    "retry_provider_job": Route(Action.MANAGE_JOBS, "POST", "/provider-jobs/job_1/retry", {}, True),
    "emit_hook": Route(Action.DELIVER_HOOK, "POST", "/hooks/post_run_capture", _HOOK, True),
    "hydrate_run": Route(Action.QUERY, "POST", "/hydrate", {"query": "cat"}, True),
    "list_deliveries": Route(Action.READ_DELIVERIES, "GET", "/deliveries"),
    "get_delivery": Route(Action.READ_DELIVERIES, "GET", "/deliveries/dlv_1"),
    "retry_delivery": Route(Action.MANAGE_DELIVERIES, "POST", "/deliveries/dlv_1/retry"),
    "drop_delivery": Route(Action.MANAGE_DELIVERIES, "POST", "/deliveries/dlv_1/drop"),
    "list_operations": Route(Action.READ_OPERATIONS, "GET", "/operations"),
    "get_operation": Route(Action.READ_OPERATIONS, "GET", "/operations/op_1"),
    "get_memory_metrics": Route(Action.READ_OPERATIONS, "GET", "/metrics"),
    "list_jobs": Route(Action.JOBS, "GET", "/extraction-jobs"),
    "get_job": Route(Action.JOBS, "GET", "/extraction-jobs/job_1"),
    "retry_job": Route(Action.MANAGE_JOBS, "POST", "/extraction-jobs/job_1/retry"),
    "cancel_job": Route(Action.MANAGE_JOBS, "POST", "/extraction-jobs/job_1/cancel"),
    "summarize_costs": Route(Action.READ_COSTS, "GET", "/costs/summary"),
    "list_cost_events": Route(Action.READ_COSTS, "GET", "/costs/events"),
    "list_finance_events": Route(Action.READ_COSTS, "GET", "/costs/finance"),
    "add_finance_event": Route(
        Action.MANAGE_COSTS, "POST", "/costs/finance", {"kind": "other", "description": "x", "amount_micros": 1}
    ),
    "list_prices": Route(Action.READ_COSTS, "GET", "/costs/prices"),
    "set_price": Route(Action.MANAGE_COSTS, "PUT", "/costs/prices", {"provider": "model", "input_micros": 5}),
    "remove_price": Route(Action.MANAGE_COSTS, "DELETE", "/costs/prices?provider=model"),
    "create_credential": Route(Action.CREATE_USER, "POST", "/credentials", {"kind": "agent", "id": "new"}),
    "rotate_credential": Route(Action.CREATE_USER, "POST", "/credentials/agent/new/rotate", {}),
    "revoke_credential": Route(Action.REVOKE_USER, "DELETE", "/credentials/agent/new"),
    "list_credentials": Route(Action.LIST_USERS, "GET", "/credentials"),
    "clear_default_binding": Route(Action.MANAGE_BINDINGS, "DELETE", "/default-binding"),
}
# Without a scope in the request, a caller with its own scope sees its own.
OF_ITS_OWN = {"list_jobs", "get_job"}
# Tools call the verbs above; every actor of the company may list the tools.
TOOLS = {"list_tools", "use_tool"}


def _served() -> dict[str, Any]:
    app = create_route_app(None, None, GatewayConfig(operator_token=OPERATOR_KEY), Metrics())  # type: ignore[arg-type]
    return {route.name: route for route in app.state.table if route.path.startswith("/companies/")}


SERVED = _served()


def test_every_route_of_a_company_is_tried() -> None:
    assert set(SERVED) - TOOLS <= set(ROUTES)
    for name, route in SERVED.items():
        if name in ROUTES:
            pattern = re.sub(r"\{[^}]+\}", "[^?]+", route.path.removeprefix("/companies/{company_id}/memory"))
            assert re.fullmatch(pattern, ROUTES[name].path.partition("?")[0]), name
            assert ROUTES[name].method in route.methods


def _asked(somebody: Somebody, route: Route, own: dict[str, str]) -> Any:
    if route.body is None or route.method == "GET":
        return somebody(route.method, route.path, params=own if route.placed else None)
    return somebody(route.method, route.path, json={**route.body, **(own if route.placed else {})})


def _refusals(acme: Company) -> list[dict[str, Any]]:
    """Sam's refusals in the audit trail. They are written with the next commit, so commit first."""
    acme.somebody("agent", "last")
    found = acme.operator.get("/operations", outcome="refused", limit=200)["operations"]
    return [row for row in found if "sam" in str(row["actor"])]


@pytest.mark.parametrize(("kind", "role"), EVERY)
def test_a_credential_may_call_exactly_the_routes_of_its_role(acme: Company, kind: ActorKind, role: ActorRole) -> None:
    somebody = acme.somebody(kind.value, "sam", role=role.value)
    own = {ActorKind.AGENT: {"agent_id": "sam"}, ActorKind.USER: {"subject_id": "sam"}}.get(kind, {})
    refused: list[str] = []
    for name, route in ROUTES.items():
        if name not in SERVED:
            continue
        answer = _asked(somebody, route, own)
        within_reach = kind is ActorKind.OPERATOR or route.placed or name in OF_ITS_OWN
        may = route.action in ALLOWED[kind, role] and within_reach
        assert answer.status_code != 401, name
        assert (answer.status_code != 403) == may, f"{name}: {answer.status_code} {answer.text[:200]}"
        assert answer.status_code < 500, f"{name}: {answer.text[:200]}"
        assert may or answer.json()["code"] in ("access_denied", "capability_unavailable")
        refused += [] if may else [route.action.value]
    denied = [row["action"] for row in _refusals(acme) if row["error_code"] == "access_denied"]
    assert sorted(denied) == sorted(refused)


@pytest.mark.parametrize(("kind", "role"), EVERY)
def test_no_credential_opens_another_company(acme: Company, kind: ActorKind, role: ActorRole) -> None:
    somebody = acme.somebody(kind.value, "sam", role=role.value)
    elsewhere = acme.of(f"{acme.name}-other", somebody)
    own = {ActorKind.AGENT: {"agent_id": "sam"}, ActorKind.USER: {"subject_id": "sam"}}.get(kind, {})
    tried = 0
    for name, route in ROUTES.items():
        if name in SERVED:
            answer = _asked(elsewhere, route, own)
            assert (answer.status_code, answer.json()["code"]) == (403, "access_denied"), f"{name}: {answer.text[:200]}"
            tried += 1
    other = Somebody(acme.gateway.http, elsewhere.company, acme.gateway.token)
    assert other.get("/operations", limit=200)["operations"] == [], "nobody writes into another's trail"
    assert len(_refusals(acme)) == tried


SCOPED: dict[Action, dict[str, Any]] = {
    Action.ADD: {"drafts": [{"text": "The cat sat."}]},
    Action.FLUSH: {},
    Action.SEARCH: {"query": "cat"},
    Action.EXPLAIN: {"query": "cat"},
    Action.RECALL: {"query": "cat", "options": {}},
    Action.GET: {"record_id": "mem_1"},
    Action.LIST: {},
    Action.BROWSE: {},
    Action.HISTORY: {"record_id": "mem_1"},
    Action.REMEMBER: {"text": "The cat sat."},
    Action.CORRECT: {"memory_id": "mem_1", "text": "The cat ran."},
    Action.REVERT: {"memory_id": "mem_1", "revision": 1},
    Action.FORGET_PREVIEW: {"target": {"ids": ["mem_1"]}},
    Action.FORGET: {"target": {"ids": ["mem_1"]}},
    Action.ADD_RESOURCE: {"name": "cat.txt", "content": "VGhlIGNhdCBzYXQu"},
    Action.GET_RESOURCE: {"resource_id": "r_1"},
    Action.LIST_RESOURCES: {},
    Action.DELETE_RESOURCE: {"resource_id": "r_1"},
    Action.JOBS: {},
    Action.STATS: {},
    Action.EVENTS: {},
}
WHOLE: dict[Action, dict[str, Any]] = {
    Action.CREATE_USER: {"user_id": "new"},
    Action.REVOKE_USER: {"user_id": "new"},
    Action.LIST_USERS: {},
    Action.VERIFY: {},
    Action.REBUILD: {},
    Action.WORK: {},
}


def test_every_verb_is_tried() -> None:
    assert set(SCOPED) | set(WHOLE) == set(wire.VERBS)


@pytest.mark.parametrize(("kind", "role"), EVERY)
def test_a_credential_may_perform_exactly_the_verbs_of_its_role(
    acme: Company, kind: ActorKind, role: ActorRole
) -> None:
    somebody = acme.somebody(kind.value, "sam", role=role.value)
    own = {ActorKind.AGENT: {"agent": "sam"}, ActorKind.USER: {"subject": "sam"}}.get(kind, {})
    for action, body in {**SCOPED, **WHOLE}.items():
        scope = {"space": acme.name, **(own if action in SCOPED else {})}
        scope |= {"conversation": "chat"} if action in (Action.ADD, Action.FLUSH) else {}
        answer = somebody.http.post(
            f"/verbs/{action.value}",
            json={"scope": scope, **body},
            headers={"Authorization": f"Bearer {somebody.key}"},
        )
        assert answer.status_code not in (401, 500), f"{action}: {answer.text[:200]}"
        may = action in ALLOWED[kind, role]
        assert (answer.status_code != 403) == may, f"{action}: {answer.status_code} {answer.text[:200]}"
        assert answer.status_code != 422, f"{action}: {answer.text[:200]}"
