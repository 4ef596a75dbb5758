"""The control plane's plain routes by group: method, path and verb, and the names in which HTTP differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import Request

from holdfast.gateway.authentication import AccessRule, Authenticator
from holdfast.gateway.control.dependencies import PAGE, CompanyId, Cursor, Limit, Subjects
from holdfast.gateway.control.verb_routes import Callers, VerbRoute

# Refusals of calls that an external provider may serve: bad gateway (down, or an invalid response) and timeout.
_SERVED = (404, 409, 502, 504)


async def _find_memory(auth: Authenticator, request: Request, values: dict[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    return (await auth.company(request, values.pop("company_id"))).memory, {}


# Callers that manage the keys of a space's users, agents and operators. A key is returned once, when it is issued.
_MANAGERS = Callers(AccessRule.COMPANY, _find_memory, {"company_id": (CompanyId, ...)})
_KIND = Literal["user", "agent", "operator"]
_ID = {"user_id": "id"}
_SUBJECTS = {"subjects": (Subjects | None, None)}
ROUTES: Mapping[str, tuple[VerbRoute, ...]] = {
    "bindings": (
        VerbRoute("GET", "/providers", "providers", many="providers"),
        VerbRoute("GET", "/resolve", "resolve", (404,), name="resolve_binding", names={"binding_key": "binding_key"}),
        VerbRoute("GET", "/activity", "activity"),
        VerbRoute("GET", "/bindings/{key}", "binding", (404,)),
        VerbRoute("GET", "/targets", "targets", many="targets"),
        VerbRoute("POST", "/bindings", "create_binding", (409,), 201),
        VerbRoute("PATCH", "/bindings/{key}", "update_binding", (404, 409, 412)),
        VerbRoute("DELETE", "/bindings/{key}", "delete_binding", (404, 409), 204),
    ),
    "records": (
        VerbRoute("POST", "/capture", "capture", _SERVED, name="capture_event"),
        VerbRoute("POST", "/records", "upsert", _SERVED),
        VerbRoute("POST", "/query", "query", _SERVED, name="query_records"),
        VerbRoute("POST", "/explain", "explain", _SERVED, name="explain_query"),
        VerbRoute("GET", "/profile", "profile", _SERVED, name="get_profile"),
        VerbRoute("GET", "/records", "list", _SERVED),
        VerbRoute("GET", "/records/{record_id:path}", "get", _SERVED),
        VerbRoute("POST", "/records/{record_id:path}/correct", "correct", _SERVED),
        VerbRoute("POST", "/forget", "forget", _SERVED, name="forget_records"),
        VerbRoute("GET", "/provider-jobs", "provider_jobs", _SERVED),
        VerbRoute("POST", "/provider-jobs/{job_id}/retry", "retry_provider_job", _SERVED, body="none"),
    ),
    "operations": (
        VerbRoute("GET", "/operations", "operations"),
        VerbRoute("GET", "/operations/{operation_id}", "operation", (404,)),
        VerbRoute("GET", "/metrics", "metrics", name="get_memory_metrics"),
    ),
    "jobs": (
        VerbRoute("GET", "/extraction-jobs", "jobs", name="list_jobs", names={"kinds": "kind"}),
        VerbRoute("GET", "/extraction-jobs/{job_id}", "job", (404,)),
        VerbRoute("POST", "/extraction-jobs/{job_id}/retry", "retry_job", (404, 409), 201),
        VerbRoute("POST", "/extraction-jobs/{job_id}/cancel", "cancel_job", (404, 409)),
    ),
    "hooks": (
        VerbRoute("POST", "/hooks/{kind}", "emit", (404, 409)),
        VerbRoute("POST", "/hydrate", "hydrate", (404,), name="hydrate_run"),
        VerbRoute("GET", "/deliveries", "deliveries"),
        VerbRoute("GET", "/deliveries/{delivery_id}", "delivery", (404,)),
        VerbRoute("POST", "/deliveries/{delivery_id}/retry", "retry_delivery", (404, 409)),
        VerbRoute("POST", "/deliveries/{delivery_id}/drop", "drop_delivery", (404, 409)),
    ),
    "costs": (
        VerbRoute("GET", "/costs/summary", "cost_summary"),
        VerbRoute("GET", "/costs/events", "cost_events"),
        VerbRoute("GET", "/costs/finance", "finance_events"),
        VerbRoute("POST", "/costs/finance", "add_fee", (404,), 201),
        VerbRoute("GET", "/costs/prices", "prices", many="prices"),
        VerbRoute("PUT", "/costs/prices", "set_price"),
        VerbRoute("DELETE", "/costs/prices", "remove_price", (404,), 204),
    ),
    "credentials": (
        VerbRoute(
            "POST", "/credentials", "create_user", (409,), 201, "create_credential", _ID,
            callers=_MANAGERS, fields={"kind": (_KIND, ...), **_SUBJECTS}, without=("presented_key",),
        ),
        VerbRoute(
            "POST", "/credentials/{kind}/{id}/rotate", "rotate_user", (404,), 200, "rotate_credential", _ID,
            callers=_MANAGERS, fields={"kind": (_KIND, ...), **_SUBJECTS}, body="optional",
        ),
        VerbRoute(
            "GET", "/credentials", "users", (), 200, "list_credentials",
            callers=_MANAGERS, fields={"kind": (_KIND, "agent"), "limit": (Limit, PAGE), "cursor": (Cursor, None)},
        ),
        VerbRoute(
            "DELETE", "/credentials/{kind}/{id}", "revoke_user", (404,), 200, "revoke_credential", _ID,
            callers=_MANAGERS, fields={"kind": (_KIND, ...)},
        ),
    ),
}  # fmt: skip
