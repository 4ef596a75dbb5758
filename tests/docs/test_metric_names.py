"""Every metric that the service counts is in its guide, with its labels."""

from __future__ import annotations

from pathlib import Path

from holdfast.gateway.edge.observers import Metrics

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
