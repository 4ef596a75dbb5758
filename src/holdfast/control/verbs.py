"""The table of the control plane's verbs. Python methods, routes and commands are derived from it.

A verb's arguments are declared once, by its request (`domain/arguments.py`). This table adds the names of its method
and where it applies. `make generate` writes the methods of `ControlPlane` from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.control import activity, bindings, costs, deliveries, hooks, hydration, jobs, memory, operations
from holdfast.runtime.verb_entry import Reach, VerbEntry

VERBS: Mapping[str, VerbEntry] = {
    entry.name: entry
    for entry in (
        VerbEntry("providers", bindings.ListProviders),
        VerbEntry("binding", bindings.GetBinding),
        VerbEntry("create_binding", bindings.CreateBinding),
        VerbEntry("update_binding", bindings.UpdateBinding),
        VerbEntry("delete_binding", bindings.DeleteBinding),
        VerbEntry("targets", bindings.ListTargets),
        VerbEntry(
            "resolve", bindings.ResolveBinding, Reach.SCOPE, positional=("binding_key",), names={"binding_key": "key"}
        ),
        VerbEntry("activity", activity.ListActivity),
        VerbEntry("capture", memory.Capture, Reach.SCOPE, hidden=("hook",)),
        VerbEntry("upsert", memory.UpsertRecords, Reach.SCOPE),
        VerbEntry("query", memory.Query, Reach.SCOPE, hidden=("hook",)),
        VerbEntry("explain", memory.ExplainQuery, Reach.SCOPE),
        VerbEntry("list", memory.ListRecords, Reach.SCOPE),
        VerbEntry("get", memory.GetRecord, Reach.SCOPE),
        VerbEntry("forget", memory.ForgetProviderRecords, Reach.SCOPE),
        VerbEntry("correct", memory.CorrectRecord, Reach.SCOPE),
        VerbEntry("profile", memory.ReadProviderProfile, Reach.SCOPE),
        VerbEntry("provider_jobs", memory.ListProviderJobs, Reach.SCOPE),
        VerbEntry("retry_provider_job", memory.RetryProviderJob, Reach.SCOPE),
        VerbEntry("emit", hooks.EmitHook, Reach.SCOPE),
        VerbEntry("hydrate", hydration.Hydrate, Reach.SCOPE),
        VerbEntry("operations", operations.ListOperations),
        VerbEntry("operation", operations.GetOperation),
        VerbEntry("metrics", operations.GetMetrics),
        VerbEntry("jobs", jobs.ListControlJobs, Reach.VISIBLE),
        VerbEntry("job", jobs.GetJob, Reach.VISIBLE),
        VerbEntry("retry_job", jobs.RetryJob),
        VerbEntry("cancel_job", jobs.CancelJob),
        VerbEntry("deliveries", deliveries.ListDeliveries),
        VerbEntry("delivery", deliveries.GetDelivery),
        VerbEntry("retry_delivery", deliveries.RetryDelivery),
        VerbEntry("drop_delivery", deliveries.DropDelivery),
        VerbEntry("cost_summary", costs.SummarizeCosts, positional=("group",), names={"group": "by"}),
        VerbEntry("cost_events", costs.ListCostEvents),
        VerbEntry("add_fee", costs.AddFinanceEvent),
        VerbEntry("finance_events", costs.ListFinanceEvents),
        VerbEntry("prices", costs.ListPrices),
        VerbEntry("set_price", costs.SetPrice, positional=("model",)),
        VerbEntry("remove_price", costs.RemovePrice, positional=("model",)),
    )
}
