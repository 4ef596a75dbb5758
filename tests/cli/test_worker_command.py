"""`holdfast worker`: its output, its work, its shutdown, and configurations that it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

import holdfast as library
from holdfast.app import open_engine
from holdfast.control.bindings import UpdateBinding
from holdfast.control.hooks import EmitHook
from holdfast.domain.access import LOCAL_OPERATOR, storewide_grant
from holdfast.domain.contract import HookKind, SourceKind, SourcePayload, SourceRef
from holdfast.domain.jobs import MAX_CLAIMS, JobKind, JobStatus
from holdfast.domain.scope import Scope
from holdfast.settings import Settings
from serving import HANG, answering

from .conftest import Holdfast

PROGRAM = [sys.executable, "-c", "from holdfast.cli import main; raise SystemExit(main())"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "HOLDFAST_EMBEDDER": "fake"}
PATIENCE_SECONDS = 60

Started = subprocess.Popen[str]


@pytest.fixture
def started() -> Iterator[list[Started]]:
    """Workers of the test, killed when it ends."""
    running: list[Started] = []
    yield running
    for process in running:
        process.kill()
        process.communicate()


def start(started: list[Started], folder: Path, *arguments: str, **environment: str) -> Started:
    process = subprocess.Popen(
        [*PROGRAM, "worker", *arguments],
        cwd=folder,
        env=ENVIRONMENT | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    return process


def ended(process: Started, number: int = signal.SIGTERM) -> str:
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    return err


def extraction_queued(folder: Path, subject: str = "ana") -> None:
    with library.open(folder / "memory.db", embedder="fake", work=False) as memory:
        memory.add("I live in Lisbon.", subject=subject)
        memory.flush(subject=subject)


def facts(folder: Path) -> list[str]:
    with library.open(folder / "memory.db", embedder="fake", work=False) as memory:
        return [memory_.text for memory_ in memory.list(kind="memory").items]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_works_until_it_is_told_to_stop(started: list[Started], tmp_path: Path, number: int) -> None:
    extraction_queued(tmp_path)
    process = start(started, tmp_path, "memory.db", "--jobs", "2")
    assert process.stdout is not None
    assert process.stderr is not None
    said = process.stdout.readline()
    assert said.startswith("Holdfast works on memory.db: ")
    assert "extract" in said
    assert "2 jobs at once" in said
    assert " of kind extract succeeded in " in process.stderr.readline()
    ended(process, number)
    assert facts(tmp_path) == ["ana lives in Lisbon."]


def test_as_json_it_says_what_it_serves_and_what_it_did(started: list[Started], tmp_path: Path) -> None:
    extraction_queued(tmp_path)
    process = start(started, tmp_path, "--json", "--kinds", "extract, index", HOLDFAST_JOB_LEASE_SECONDS="7")
    assert process.stdout is not None
    assert process.stderr is not None
    told = json.loads(process.stdout.readline())
    assert told == {"store": "memory.db", "kinds": ["extract", "index"], "jobs": 4, "lease_seconds": 7.0}
    line = json.loads(process.stderr.readline())
    assert "succeeded" in line["event"]
    ended(process)


def test_once_does_what_is_due_and_ends(holdfast: Holdfast, tmp_path: Path) -> None:
    extraction_queued(tmp_path)
    extraction_queued(tmp_path, "ben")
    ran = holdfast("worker", "--once")
    assert (ran.code, ran.out) == (0, "2 jobs done.\n")
    assert sorted(facts(tmp_path)) == ["ana lives in Lisbon.", "ben lives in Lisbon."]
    assert holdfast("worker", "--once", "--json").json == {"done": 0, "failed": 0, "tried_again": 0, "ended": 0}


def test_kinds_that_it_is_not_for_are_left_alone(holdfast: Holdfast, tmp_path: Path) -> None:
    extraction_queued(tmp_path)
    assert holdfast("worker", "--once", "--kinds", "index,scrub").out == "0 jobs done.\n"
    assert not facts(tmp_path)
    assert holdfast("worker", "--once", "--kinds", "extract").out == "1 job done.\n"


def test_once_tells_of_an_attempt_that_failed(
    holdfast: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "openai:some-model")
    monkeypatch.setenv("HOLDFAST_EMBEDDER_KEY", "canary-key")
    monkeypatch.setenv("HOLDFAST_EMBEDDER_URL", "http://127.0.0.1:1/v1")
    assert holdfast("add", "I live in Lisbon.", "--subject", "ana").code == 0
    ran = holdfast("worker", "--once", "--kinds", "index")
    assert ran.code == 1
    again = "  1 will be retried later; `holdfast store jobs` shows them.\n"
    assert ran.out == f"0 jobs done, 1 failed:\n{again}"
    assert "embedder" in ran.err
    assert "canary" not in ran.out + ran.err


def test_once_tells_of_what_ended_for_good_and_where_to_look(holdfast: Holdfast, tmp_path: Path) -> None:
    for company, hooks in {"acme": 2, "other": 1}.items():
        with library.ControlPlane.open(tmp_path / "memory.db", space=company, embedder="fake", work=False) as plane:
            plane.create_binding("far", "gateway", config={"url": "http://127.0.0.1:9", "user_id": "u"})
            plane.set_default("far")
            for number in range(hooks):
                plane.emit("post_run_capture", f"h{number}", "I live in Lisbon.", source="run")
            plane.update_binding("far", enabled=False)
    extraction_queued(tmp_path)
    ran = holdfast("worker", "--once")
    look = "`holdfast deliveries list --status dead --space"
    assert (ran.code, ran.out.splitlines()) == (
        1,
        [
            "1 job done, 3 failed:",
            f"  2 ended for good; {look} acme` shows them.",
            f"  1 ended for good; {look} other` shows them.",
        ],
    )
    assert len(holdfast("deliveries", "list", "--status", "dead", "--space", "acme", "--json").json["deliveries"]) == 2
    told = holdfast("worker", "--once", "--json")
    assert (told.code, told.json) == (0, {"done": 0, "failed": 0, "tried_again": 0, "ended": 0})


def test_stopped_in_the_middle_it_gives_its_job_back(started: list[Started], tmp_path: Path) -> None:
    with answering(HANG) as (url, asked):
        remote = {
            "HOLDFAST_EMBEDDER": "openai:some-model",
            "HOLDFAST_EMBEDDER_URL": f"{url}/v1",
            "HOLDFAST_SHUTDOWN_SECONDS": "0.2",
        }
        added = subprocess.run(
            [*PROGRAM, "add", "I live in Lisbon."], cwd=tmp_path, env=ENVIRONMENT | remote, timeout=PATIENCE_SECONDS
        )
        assert added.returncode == 0
        process = start(started, tmp_path, **remote)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not asked:
            assert time.monotonic() < deadline
            assert process.poll() is None
        ended(process)
    with library.open(tmp_path / "memory.db", embedder="fake", work=False) as memory:
        index = [job for job in memory.jobs(space="*") if job.kind == "index"]
    assert [(job.status, job.attempt, job.lease_until) for job in index] == [(JobStatus.QUEUED, 1, None)]


async def _run_ended(path: Path, subscriber: str) -> None:
    """Emit a hook, whose delivery to a subscriber is then pending."""
    engine = await open_engine(str(path), Settings(), embedder="fake", work=False)
    engine.hooks.subscribe(subscriber, [HookKind.POST_RUN_CAPTURE], print)
    source = SourceRef(SourceKind.RUN, "acme", run_id="r1")
    payload = SourcePayload(text="I live in Lisbon.")
    hook = EmitHook(Scope(space="acme", agent="bot"), HookKind.POST_RUN_CAPTURE, "run:r1", source, payload)
    await engine.perform(LOCAL_OPERATOR, hook.action, lambda: hook, space="acme")
    await engine.close()


_HANGING = """
import pathlib, time
from holdfast.domain.contract import HookKind

def told(event):
    pathlib.Path("told").touch()
    time.sleep(3_600)

def register(registry):
    registry.subscribe("hanging", [HookKind.POST_RUN_CAPTURE], told)
"""


def test_it_ends_although_somebody_whom_it_tells_of_a_hook_hangs(started: list[Started], tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    (installed / "hanging-1.dist-info").mkdir(parents=True)
    (installed / "hanging-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1\n")
    (installed / "hanging-1.dist-info" / "entry_points.txt").write_text("[holdfast.hooks]\nx = hanging:register\n")
    (installed / "hanging.py").write_text(_HANGING)
    asyncio.run(_run_ended(tmp_path / "memory.db", "hanging"))
    found = os.pathsep.join([ENVIRONMENT["PYTHONPATH"], str(installed)])
    process = start(started, tmp_path, "--kinds", "deliver", PYTHONPATH=found, HOLDFAST_SHUTDOWN_SECONDS="0.2")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (tmp_path / "told").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
    ended(process)
    with library.open(tmp_path / "memory.db", embedder="fake", work=False) as memory:
        delivery = [job for job in memory.jobs(space="*") if job.kind == "deliver"]
    assert [(job.status, job.attempt, job.lease_until) for job in delivery] == [(JobStatus.QUEUED, 1, None)]


def test_what_it_cannot_be_is_said(holdfast: Holdfast, tmp_path: Path) -> None:
    missing = holdfast("worker", "nowhere.db")
    assert (missing.code, "there is no store at nowhere.db" in missing.err) == (6, True)
    extraction_queued(tmp_path)
    for arguments, said in {
        ("--kinds", "extract,canary"): "there is no job kind 'canary'",
        ("--kinds", " , "): "names no job kind",
        ("--kinds", "maintain"): "HOLDFAST_MODEL",
        ("--jobs", "0"): "not between 1 and 64",
        ("memory.db", "--store", "memory.db"): "given twice",
        ("http://127.0.0.1:9",): "is a server",
    }.items():
        ran = holdfast("worker", "--once", *arguments)
        assert ran.code in (2, 6), ran
        assert said in ran.err, ran
    assert not facts(tmp_path)


# --- metrics --------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port: int = opened.getsockname()[1]
        return port


async def _to_be_given_up(path: Path) -> None:
    """Queue a delivery whose binding is then disabled, and an extraction that lost each of its workers."""
    await _run_ended(path, "audience")
    engine = await open_engine(str(path), Settings(), embedder="fake", work=False)
    off = UpdateBinding(Scope(space="acme"), "default", enabled=False)
    await engine.perform(LOCAL_OPERATOR, off.action, lambda: off, space="acme")
    kinds, lease, store = frozenset({JobKind.EXTRACT}), timedelta(microseconds=1), engine._core.store
    for _ in range(MAX_CLAIMS):
        assert await store.write(storewide_grant(), lambda t: t.jobs.claim(kinds, datetime.now(UTC), lease)) is not None
    await engine.close()


def test_its_metrics_tell_what_it_gave_up(started: list[Started], tmp_path: Path) -> None:
    asyncio.run(_to_be_given_up(tmp_path / "memory.db"))
    port = free_port()
    process = start(started, tmp_path, "--metrics-port", str(port), "--json")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert told["metrics"] == f"http://127.0.0.1:{port}/metrics"
    given_up = {
        'holdfast_memory_extraction_failures_total{company="acme"} 1.0',
        'holdfast_memory_dead_deliveries_total{company="acme"} 1.0',
    }
    bearer = {"Authorization": f"Bearer {(tmp_path / 'memory.db.operator-token').read_text().strip()}"}
    assert httpx2.get(told["metrics"]).status_code == 401
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not given_up <= set((answer := httpx2.get(told["metrics"], headers=bearer)).text.splitlines()):
        assert time.monotonic() < deadline, answer.text
        assert process.poll() is None
    assert answer.headers["content-type"].startswith("text/plain")
    assert "process_cpu_seconds_total" in answer.text
    ended(process)


def test_without_a_port_it_listens_nowhere(started: list[Started], tmp_path: Path) -> None:
    extraction_queued(tmp_path)
    process = start(started, tmp_path, "--metrics-port", "0", "--json")
    assert process.stdout is not None
    assert "metrics" not in json.loads(process.stdout.readline())
    ended(process)


def test_metrics_that_cannot_be_shown_are_said_before_the_store_is_opened(holdfast: Holdfast, tmp_path: Path) -> None:
    extraction_queued(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, said in {
            ("--metrics-port", port): f"port {port}: Address already in use; choose another with --metrics-port",
            ("--metrics-port", "70000"): "--metrics-port: 70000 is not a port",
            ("--metrics-port", "-1"): "--metrics-port: -1 is not a port",
            ("--metrics-port", port, "--metrics-host", "nowhere.invalid"): "nowhere.invalid",
            ("--metrics-host", "127.0.0.1"): "give --metrics-port too",
            ("--metrics-port", port, "--once"): "exits before metrics can be read",
        }.items():
            ran = holdfast("worker", *arguments)
            assert ran.code == 2, ran
            assert said in ran.err, ran
    assert not facts(tmp_path)


def test_it_embeds_nothing_by_an_embedder_that_nobody_named(ana: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    refused = ana("worker", "--once")
    assert refused.code == 7
    assert "was embedded by fake:" in refused.err
    assert "HOLDFAST_EMBEDDER" in refused.err
    assert ana("worker", "--once", "--kinds", "index").code == 7
    assert ana("worker", "--once", "--kinds", "extract,deliver").code == 0
