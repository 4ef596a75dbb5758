"""Every metric that the service counts is in its guide, with its labels."""

from __future__ import annotations

from pathlib import Path

from metric_labels import labels_by_metric

PAGE = Path(__file__).parents[2] / "docs/how-to/run-the-service.md"


def test_every_metric_is_in_the_guide_with_its_labels() -> None:
    text = PAGE.read_text("utf-8")
    ours = {name: labels for name, labels in labels_by_metric().items() if name.startswith("holdfast_")}
    assert len(ours) == 21
    for name, labels in ours.items():
        assert f"| `{name}` | {', '.join(labels)} |" in text
