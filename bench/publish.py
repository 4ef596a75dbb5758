"""Publish a run of `bench.engine` in the documentation: the chart, and the tables between their marks.

python -m bench.publish [bench/results/engine.json]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from bench import chart
from bench.engine import report

_ROOT = Path(__file__).parent.parent
_CHART = _ROOT / "docs" / "assets" / "engine.svg"
_RESULTS = _ROOT / "bench" / "results" / "engine.json"


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else _RESULTS
    results = json.loads(source.read_text(encoding="utf-8"))
    _CHART.parent.mkdir(parents=True, exist_ok=True)
    _CHART.write_text(chart.drawn(results), encoding="utf-8")
    _replace(_ROOT / "docs" / "measurements.md", report.written(results))
    _replace(_ROOT / "README.md", report.short(results))


def _replace(page: Path, tables: str) -> None:
    text = page.read_text(encoding="utf-8")
    marks = re.compile(r"(<!-- engine: .*? -->\n).*?(<!-- engine ends -->)", re.DOTALL)
    if len(marks.findall(text)) != 1:
        raise SystemExit(f"{page} has no single place between `<!-- engine: … -->` and `<!-- engine ends -->`")
    page.write_text(marks.sub(lambda found: f"{found[1]}\n{tables}\n\n{found[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
