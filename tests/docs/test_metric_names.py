"""Every metric that the service counts is in its guide, with its labels."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry

from holdfast.domain.search import ViewCacheUsage
from holdfast.gateway.edge.observers import MemoryCounters, Metrics

PAGE = Path(__file__).parents[2] / "docs/how-to/run-the-service.md"


def test_every_metric_of_memory_is_in_the_guide_with_its_labels() -> None:
    text = PAGE.read_text("utf-8")
    found = [each for each in Metrics().registry._collector_to_names if hasattr(each, "_labelnames")]
    named = {each._name: (each._type, each._labelnames) for each in found}
    ours = {name: told for name, told in named.items() if name.startswith("holdfast_memory_")}
    assert len(ours) == 7
    for name, (kind, labels) in ours.items():
        shown = f"{name}_total" if kind == "counter" else name
        assert f"| `{shown}` | {', '.join(labels)} |" in text


def test_every_metric_of_the_cache_is_in_the_guide_with_its_labels() -> None:
    text, registry = PAGE.read_text("utf-8"), CollectorRegistry()
    MemoryCounters(registry).show_cache(lambda: ViewCacheUsage(1, 2, 3, 4, 5, 6))
    families = [each for each in registry.collect() if each.name.startswith("holdfast_view_cache_")]
    assert len(families) == 5
    for family in families:
        labels = {label for each in family.samples for label in each.labels}
        shown = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"| `{shown}` | {', '.join(labels)} |" in text
