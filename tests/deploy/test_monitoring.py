"""The dashboard and the alert rules name metrics, labels, routes and reasons that the service has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from metric_labels import labels_by_metric

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
# Prometheus adds these to each metric.
TARGET = {"job", "instance"}
_LEGEND = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


class Expression(NamedTuple):
    where: str
    text: str
    legend: str

    @property
    def parsed(self) -> promql_parser.Expr:
        return promql_parser.parse(self.text.replace("$__rate_interval", "5m"))

    @property
    def nodes(self) -> list[Any]:
        found: list[Any] = []
        promql_parser.walk(self.parsed, found.append)
        return found

    @property
    def selectors(self) -> list[promql_parser.VectorSelector]:
        return [node for node in self.nodes if isinstance(node, promql_parser.VectorSelector)]


@cache
def dashboard() -> Any:
    return json.loads((FOLDER / "grafana-dashboard.json").read_text("utf-8"))


def _panels() -> list[Any]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


@cache
def rules() -> list[Any]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"]
    return list(group["rules"])


@cache
def expressions() -> list[Expression]:
    shown = [
        Expression(panel["title"], target["expr"], target["legendFormat"])
        for panel in _panels()
        for target in panel["targets"]
    ]
    marks = [Expression(each["name"], each["expr"], each["textFormat"]) for each in dashboard()["annotations"]["list"]]
    alerts = [Expression(rule["alert"], rule["expr"], " ".join(rule["annotations"].values())) for rule in rules()]
    return shown + marks + alerts


def _known_labels() -> dict[str, set[str]]:
    """The labels of everything that a selector may name; a histogram has three series."""
    known = {"up": TARGET}
    for name, labels in labels_by_metric().items():
        known[name] = {*labels, *TARGET}
        if name.endswith("_seconds"):
            known |= {
                f"{name}_bucket": {*labels, *TARGET, "le"},
                f"{name}_count": known[name],
                f"{name}_sum": known[name],
            }
    return known


@pytest.mark.parametrize("broken", ["sum by (x (up)", "rate(up)", "up{job=}", "sum(rate(up[5m])"])
def test_a_broken_expression_is_found(broken: str) -> None:
    with pytest.raises(ValueError):
        promql_parser.parse(broken)


def test_every_expression_names_metrics_and_labels_that_exist() -> None:
    known = _known_labels()
    for each in expressions():
        assert each.selectors, each.where
        for selector in each.selectors:
            assert selector.name in known, each.where
            assert {matcher.name for matcher in selector.matchers.matchers} <= known[selector.name], each.where
        reached = set.union(*(known[selector.name or ""] for selector in each.selectors))
        for node in each.nodes:
            modifier = getattr(node, "modifier", None)
            assert set(getattr(modifier, "labels", ())) <= reached, each.where


def test_a_legend_shows_labels_that_its_expression_keeps() -> None:
    for each in expressions():
        kept = [set(node.modifier.labels) for node in each.nodes if getattr(node, "modifier", None) and
                isinstance(node, promql_parser.AggregateExpr)]  # fmt: skip
        reached = set.union(*(_known_labels()[selector.name or ""] for selector in each.selectors))
        assert set(_LEGEND.findall(each.legend)) <= (set.union(*kept) if kept else reached), each.where


def test_every_metric_of_the_service_is_on_the_dashboard() -> None:
    shown = {selector.name or "" for each in expressions() for selector in each.selectors}
    shown = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    assert {name for name in labels_by_metric() if name.startswith("holdfast_")} - shown == set()


def test_every_value_that_an_alert_selects_exists() -> None:
    guide = (ROOT / "docs/how-to/run-the-service.md").read_text("utf-8")
    reference = (ROOT / "docs/reference/http.md").read_text("utf-8")
    values = {
        "reason": set(re.findall(r"\d{3} `(\w+)`", guide)),
        "route": set(re.findall(r"^\| `[A-Z]+ (\S+)` \|", reference, re.MULTILINE)),
        "state": {"queued", "running", "failed"},
        "result": {"hit", "miss", "empty"},
    }
    for each in expressions():
        for selector in each.selectors:
            for matcher in selector.matchers.matchers:
                for value in _alternatives(matcher.value) if matcher.name in values else ():
                    assert value in values[matcher.name], (each.where, value)


def _alternatives(pattern: str) -> list[str]:
    head, _, rest = pattern.partition("(")
    return [f"{head}{each}" for each in rest.removesuffix(")").split("|")] if rest else pattern.split("|")


def test_panels_have_their_own_ids_and_places_and_the_chosen_source() -> None:
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(ids) == len(set(ids))
    places = [
        (x, y)
        for at in (panel["gridPos"] for panel in dashboard()["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in _panels():
        assert panel["title"]
        assert [panel["datasource"], *(target["datasource"] for target in panel["targets"])].count(source) == 1 + len(
            panel["targets"]
        )


def test_every_alert_says_how_bad_it_is_what_happens_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}
    jobs = [
        each["job_name"] for each in yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))["scrape_configs"]
    ]
    assert jobs == ["holdfast", "holdfast-workers"]


@pytest.fixture
def scraped(tmp_path: Path) -> Iterator[str]:
    """The metrics of a running service."""
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "serve",
        "--port",
        "0",
        "--json",
        "--store",
        str(tmp_path / "memory.db"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        try:
            assert service.stdout is not None
            url = json.loads(service.stdout.readline())["url"]
            token = (tmp_path / "memory.db.operator-token").read_text("utf-8").strip()
            yield httpx2.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}).raise_for_status().text
        finally:
            service.terminate()


def test_the_running_service_shows_all_these_metrics(scraped: str) -> None:
    families = {each.name: each for each in text_string_to_metric_families(scraped)}
    shown = {f"{name}_total" if each.type == "counter" else name for name, each in families.items()}
    assert set(labels_by_metric()) <= shown
    assert families["holdfast_store_up"].samples[0].value == 1
    assert families["holdfast_http_requests_limit"].samples[0].value == 128


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_each_alert_fires_when_it_should() -> None:
    for command in (
        ["check", "rules", FOLDER / "alerts.yaml"],
        ["test", "rules", Path(__file__).parent / "alerts_test.yaml"],
    ):
        ran = subprocess.run(["promtool", *command], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
