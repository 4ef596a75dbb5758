"""Kill and stall workers: every job ends, none is lost, and only the newest token commits.

Triggers of the test record each change of a job and each new memory with its PostgreSQL transaction. An effect that is
not in the transaction that ends its job was not fenced by a token.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from crews import PROGRAM, Workers, embeddings
from hook_deaths import SPACE, WHOLE, Both, do, emit
from ledgers import KEY, LedgerProvider, installed, ledger

import holdfast
from holdfast.app import open_engine
from holdfast.control.bindings import CreateBinding, SetTarget
from holdfast.domain import ids
from holdfast.domain.access import LOCAL_OPERATOR, storewide_grant
from holdfast.domain.bindings import TargetKind
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import JobKind, NewJob
from holdfast.domain.scope import Scope
from holdfast.library import AsyncMemory
from holdfast.ports import Transaction
from holdfast.settings import Settings
from postgres import Server, schema_of

KILLS = int(os.environ.get("HOLDFAST_WORKER_KILLS", "8"))
KINDS = ("index", "extract", "deliver")
EACH = -(-int(os.environ.get("HOLDFAST_WORKER_KILL_JOBS", str(38 * KILLS))) // len(KINDS))  # jobs of each kind
LEASE_SECONDS = 1
WORKERS = 4
PATIENCE_SECONDS = 120 + 5 * KILLS

_WATCHED = """
CREATE TABLE seen_jobs (tx xid8, id text, token bigint, was text, became text, lease bigint);
CREATE TABLE seen_memories (tx xid8, id text, revision bigint);
CREATE TABLE seen_vectors (tx xid8, number bigint);
CREATE TABLE seen_deliveries (tx xid8, id text);
CREATE FUNCTION see_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen_jobs VALUES (pg_current_xact_id(), NEW.id, NEW.token, OLD.status, NEW.status, NEW.lease_until);
    RETURN NULL; END $$;
CREATE FUNCTION see_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen_memories VALUES (pg_current_xact_id(), NEW.id, NEW.revision);
    RETURN NULL; END $$;
CREATE FUNCTION see_vector() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen_vectors VALUES (pg_current_xact_id(), NEW.number);
    RETURN NULL; END $$;
CREATE FUNCTION see_delivery() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen_deliveries VALUES (pg_current_xact_id(), NEW.id);
    RETURN NULL; END $$;
CREATE TRIGGER see_job AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION see_job();
CREATE TRIGGER see_memory AFTER INSERT ON records FOR EACH ROW EXECUTE FUNCTION see_memory();
CREATE TRIGGER see_vector AFTER INSERT ON vectors FOR EACH ROW EXECUTE FUNCTION see_vector();
CREATE TRIGGER see_delivery AFTER UPDATE ON deliveries FOR EACH ROW
    WHEN (OLD.status <> 'delivered' AND NEW.status = 'delivered') EXECUTE FUNCTION see_delivery();
"""


def ask(server: Server, url: str, statement: str) -> list[Any]:
    with server.connect() as connection:
        connection.execute(f'SET search_path TO "{schema_of(url)}", public')  # type: ignore[call-overload]
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


async def queue(url: str, settings: Settings, each: int, path: Path) -> None:
    """Queue `each` jobs of each kind: a message to index, one to extract from per subject, and a hook to deliver."""
    engine = await open_engine(url, settings, embedder="openai:crash", work=False, providers=Both(LedgerProvider()))
    memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
    core = engine._core
    try:
        added = await asyncio.gather(*(memory.add("I live in Lisbon.", subject=f"s{number}") for number in range(each)))

        def extract(transaction: Transaction) -> None:
            for number, turn in enumerate(added):
                scope = Scope(space=SPACE, subject=f"s{number}", conversation="default")
                job = NewJob(JobKind.EXTRACT, scope, tuple(map(str, turn.message_ids)))
                transaction.jobs.enqueue(JobId(core.ids.new(ids.JOB)), job, core.clock.now())

        await core.store.write(storewide_grant(), extract)
        await do(engine, CreateBinding(WHOLE, "elsewhere", KEY, {"path": str(path)}))
        await do(engine, SetTarget(WHOLE, TargetKind.COMPANY, SPACE, "elsewhere"))
        await asyncio.gather(*(emit(engine, f"h{number}") for number in range(each)))
    finally:
        await engine.close()


def worked_off(server: Server, url: str, workers: Workers, jobs: int) -> int:
    """Kill a worker whenever some more jobs have ended, stall one now and then, and return the number of kills."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    every = max(1, jobs // (KILLS + 1))
    killed = 0
    while True:
        assert time.monotonic() < deadline, workers.log()[-4000:]
        counts = dict(ask(server, url, "SELECT status, count(*) FROM jobs GROUP BY status"))
        if not counts.get("queued", 0) + counts.get("running", 0):
            return killed
        ended = counts.get("succeeded", 0)
        if killed < KILLS and ended >= (killed + 1) * every:
            workers.kill_one()
            killed += 1
            if killed % 4 == 0:
                workers.stall_one(2.5 * LEASE_SECONDS)
        time.sleep(0.02)


def test_every_job_ends_once_however_many_workers_are_killed(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger"
    with embeddings() as endpoint:
        settings = Settings(embedder_url=endpoint)
        asyncio.run(queue(postgres_url, settings, EACH, path))
        ask(postgres, postgres_url, _WATCHED)
        environment = {
            "HOLDFAST_EMBEDDER": "openai:crash",
            "HOLDFAST_EMBEDDER_URL": endpoint,
            "HOLDFAST_JOB_LEASE_SECONDS": str(LEASE_SECONDS),
            "PYTHONPATH": installed(tmp_path / "installed"),
        }
        with Workers(postgres_url, "index,extract,deliver", WORKERS, tmp_path, **environment) as workers:
            assert worked_off(postgres, postgres_url, workers, len(KINDS) * EACH) == KILLS
        log = workers.log()
    jobs = ask(postgres, postgres_url, "SELECT id, kind, status, token, attempt, error FROM jobs")
    ended = Counter((kind, status) for _, kind, status, _, _, _ in jobs)
    assert ended == {(kind, "succeeded"): EACH for kind in KINDS}, (ended, log[-4000:])
    assert max(token for _, _, _, token, _, _ in jobs) > 1, "no job was ever taken over"
    nothing_happened_twice(postgres, postgres_url, len(KINDS) * EACH)
    entries = [entry["id"] for entry in ledger(path)]
    assert set(entries) == {f"h{number}" for number in range(EACH)}
    statuses = ask(postgres, postgres_url, "SELECT status, count(*) FROM deliveries GROUP BY status")
    assert statuses == [("delivered", EACH)]
    trail = "SELECT coalesce(error_code, outcome), count(*) FROM operations WHERE action = 'capture' GROUP BY 1"
    outcomes = dict(ask(postgres, postgres_url, trail))
    assert outcomes.pop("succeeded") == EACH
    # A worker killed during a call leaves `unknown`; a worker that lost its lease cancels its call.
    assert set(outcomes) <= {"unknown", "cancelled"}
    with holdfast.open(postgres_url, embedder="openai:crash", settings=settings, work=False) as memory:
        assert memory.verify().ok
        assert memory.stats(space="*").pending_vectors == 0
    print(f"{KILLS} kills, {len(jobs)} jobs, {sum(token > 1 for _, _, _, token, _, _ in jobs)} taken over,"
          f" {log.count('taken over by')} late commits refused,"
          f" {len(entries)} calls outside for {EACH} hooks, {outcomes.get('unknown', 0)} of them unknown")  # fmt: skip


_STALLS = """
import os, signal, time
from faults import points
from holdfast.cli import main
from holdfast.runtime import worker
worker.HEARTBEATS_PER_LEASE = 0.001  # one in the same transaction would keep the job's row, stalled or not
# The thread that sends it would go on for a moment, and into the partition, which nobody else could enter then.
points.at("job.finish.before", 1, lambda: (os.kill(os.getpid(), signal.SIGSTOP), time.sleep(0.5)))
raise SystemExit(main())
"""


def is_stopped(process: subprocess.Popen[str]) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_worker_that_stalled_beyond_its_lease_commits_nothing(postgres: Server, postgres_url: str) -> None:
    """Stop the worker just before it writes its effect; resume it after another worker has done the job."""
    with holdfast.open(postgres_url, embedder="fake", work=False) as memory:
        memory.add("I live in Lisbon.", subject="ana")
        memory.flush(subject="ana")
    ask(postgres, postgres_url, _WATCHED)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "HOLDFAST_EMBEDDER": "fake"}
    environment |= {"HOLDFAST_JOB_LEASE_SECONDS": "1"}
    command = [sys.executable, "-c", _STALLS, "worker", postgres_url]
    deadline = time.monotonic() + PATIENCE_SECONDS
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as stalled:
        try:
            while not is_stopped(stalled):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            done = 0
            while not done:  # until the lease has expired
                assert time.monotonic() < deadline
                once = subprocess.run(
                    [*PROGRAM, "worker", postgres_url, "--once", "--json"],
                    env=environment,
                    stdout=subprocess.PIPE,
                    timeout=60,
                )
                done = json.loads(once.stdout)["done"]
            stalled.send_signal(signal.SIGCONT)
            assert stalled.stderr is not None
            assert "was taken over by another worker" in stalled.stderr.readline()
            stalled.terminate()
            assert stalled.wait(PATIENCE_SECONDS) == 0
        finally:
            stalled.kill()
    nothing_happened_twice(postgres, postgres_url, 1)
    assert ask(postgres, postgres_url, "SELECT status, token, attempt FROM jobs") == [("succeeded", 2, 1)]


def nothing_happened_twice(server: Server, url: str, jobs: int) -> None:
    ends = ask(server, url, "SELECT tx, id, token FROM seen_jobs WHERE became = 'succeeded' AND was = 'running'")
    assert len(ends) == len({job_id for _, job_id, _ in ends}) == jobs
    # Each job ended under the newest token it was ever claimed under.
    newest = dict(ask(server, url, "SELECT id, max(token) FROM seen_jobs GROUP BY id"))
    assert {job_id: token for _, job_id, token in ends} == newest
    # A job takes effect in the transaction that ends it: an extraction makes one memory, a memory and an indexed
    # message have one vector each, and a delivery arrives once.
    kinds = dict(ask(server, url, "SELECT id, kind FROM jobs"))

    def ended_in(*named: str) -> Counter[str]:
        return Counter(tx for tx, job_id, _ in ends if kinds[job_id] in named)

    def seen(table: str) -> Counter[str]:
        return Counter(tx for (tx,) in ask(server, url, f"SELECT tx FROM {table}"))

    assert seen("seen_memories") == ended_in("extract")
    assert seen("seen_vectors") == ended_in("extract", "index")
    assert seen("seen_deliveries") == ended_in("deliver")
    assert ask(server, url, "SELECT max(revision) FROM seen_memories") == [(1,)]
