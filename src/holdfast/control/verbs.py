"""The table of the control plane's verbs. Python methods, routes and commands are derived from it.

A verb's arguments are declared once, by its request (`domain/arguments.py`). This table adds the names of its method
and where it applies. `make generate` writes the methods of `ControlPlane` from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from holdfast.control import activity, bindings, costs, deliveries, hooks, hydration, jobs, memory, operations
from holdfast.domain.arguments import Argument, arguments_of
from holdfast.runtime.gate import Request


class Reach(Enum):
    """The place of a verb: the whole company, the scope that the caller names, or all that the caller may see."""

    COMPANY = "company"
    SCOPE = "scope"
    VISIBLE = "visible"


@dataclass(frozen=True, slots=True)
class VerbEntry:
    """One verb: the name of its method, and its request.

    Required arguments are positional, except sources, and so are those in `positional`. `names` maps an argument to its
    public name, where that is another. `hidden` are arguments that no surface has.
    """

    name: str
    request: type[Request[Any, Any]]
    reach: Reach = Reach.COMPANY
    positional: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return tuple(each for each in arguments_of(self.request) if each.name not in self.hidden)

    def is_positional(self, argument: Argument) -> bool:
        return (argument.required and argument.name != "source") or argument.name in self.positional

    def public_name(self, argument: Argument) -> str:
        return self.names.get(argument.name, NAMES.get(argument.name, argument.name))


# Public names that differ from the fields of requests.
NAMES: Mapping[str, str] = {"binding": "binding_key", "handle": "record_id", "handles": "record_ids"}

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
