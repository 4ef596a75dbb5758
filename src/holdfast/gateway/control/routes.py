"""The control plane's plain routes by group: method, path and verb, and the names in which HTTP differs."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.gateway.control.verb_routes import VerbRoute

ROUTES: Mapping[str, tuple[VerbRoute, ...]] = {
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
}
