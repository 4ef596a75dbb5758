"""The service's metrics by name, as a scrape shows them, with the labels of each."""

from __future__ import annotations

import asyncio

from holdfast.domain.results import StoreUsage
from holdfast.domain.search import ViewCacheUsage
from holdfast.gateway.edge.observers import Metrics


def labels_by_metric() -> dict[str, tuple[str, ...]]:
    metrics = Metrics()
    metrics.memory.show_cache(lambda: ViewCacheUsage(1, 2, 3, 4, 5, 6))
    metrics.show_store(_usage)
    asyncio.run(metrics.refresh())
    # A metric with labels has no sample before it was counted, but its collector knows its labels.
    known = {name: each for name, each in metrics.registry._names_to_collectors.items() if hasattr(each, "_labelnames")}
    found = {}
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        sampled = {label: None for sample in family.samples for label in sample.labels}
        found[name] = tuple(known[family.name]._labelnames) if family.name in known else tuple(sampled)
    return {name: labels for name, labels in found.items() if not name.endswith("_created")}


async def _usage() -> StoreUsage:
    return StoreUsage(1, 2, 3, 4, 5.0)
