"""The benchmark runs to its end; its tables, chart and verdicts come from its measurements."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench.engine import asked, report  # noqa: E402

from bench import chart  # noqa: E402

SMALL = ["--systems=holdfast", "--stores=sqlite", "--records=200", "--sizes=1200", "--scale=1200", "--large=1000"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of one run at the smallest size, in separate processes."""
    out = tmp_path_factory.mktemp("bench") / "engine.json"
    command = [
        sys.executable,
        "-m",
        "bench.engine",
        *SMALL,
        "--limit-seconds=5",
        "--cold-runs=1",
        "--rounds=2",
        f"--out={out}",
    ]
    subprocess.run(command, cwd=ROOT, check=True, timeout=240, capture_output=True)
    found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return found


def test_every_step_of_a_run_gives_a_figure(results: dict[str, Any]) -> None:
    step = results["stores"]["sqlite"]["1200"]
    assert step["fill"]["records"] == 1200
    assert {"small", "large", "everything"} <= step["warm"].keys()
    assert [run["taken_ms"] for run in step["cold"]["large"]]
    assert min(step["adds"].values()) > 0
    assert step["disk_bytes"] > 1200 * 512, "a vector of 256 halves alone takes as much"
    system = results["systems"]["holdfast"]
    # At this size each user has two records, of the ten requested.
    assert system["found"] == pytest.approx(0.2)
    assert system["reopened"]["found"] == 2


def test_what_is_measured_in_turns_is_counted_together(results: dict[str, Any]) -> None:
    system = results["systems"]["holdfast"]
    # Of 200 records, 20 are added one at a time, in each of two rounds.
    assert (system["rounds"], system["one"]["count"]) == (2, 40)
    assert system["one"]["per_second"] == pytest.approx(40 / system["one"]["seconds"])


def test_queries_were_embedded_before_the_clock_ran(results: dict[str, Any]) -> None:
    assert results["systems"]["holdfast"]["surprises"] == 0
    assert results["stores"]["sqlite"]["1200"]["warm"]["surprises"] == 0


def test_what_was_not_measured_is_neither_kept_nor_broken(results: dict[str, Any]) -> None:
    rows = {row.asked: row for row in asked.rows(results)}
    probe = next(row for words, row in rows.items() if "half of the raw commit probe" in words)
    assert probe.holds is not None
    assert all(row.holds is None for words, row in rows.items() if "mem0" in words or "PostgreSQL" in words)
    assert "not measured in this run" in report.written(results)


def test_a_slower_search_does_not_hold(results: dict[str, Any]) -> None:
    slow = json.loads(json.dumps(results))
    slow["stores"]["sqlite"]["1200"]["warm"]["small"]["p50_ms"] = 3.5
    [row] = [row for row in asked.rows(slow) if "p50 at most 3 ms" in row.asked]
    assert (row.measured, row.holds) == ("3.50 ms", False)


def test_the_chart_is_a_picture_with_a_description(results: dict[str, Any]) -> None:
    root = ElementTree.fromstring(chart.drawn(results))
    names = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert names["title"]
    assert "single adds a second" in (names["desc"] or "")


def test_a_system_that_failed_is_shown_as_such(results: dict[str, Any]) -> None:
    broken = {**results, "systems": {**results["systems"], "mem0": {"failed": "gave up after 5 s"}}}
    assert "gave up after 5 s" in report.written(broken)
    assert "mem0" in chart.drawn(broken)
