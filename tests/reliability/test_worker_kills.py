"""Workers that are killed and stalled: every job ends, none is lost, and nothing commits but under the newest token.

What commits is seen by PostgreSQL itself: triggers of the test write down, with its transaction, each change of a job
and each memory. An effect without the end of a job in the same transaction would be one that no token fenced.
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

import holdfast
from holdfast.domain import ids
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import JobKind, NewJob
from holdfast.domain.scope import Scope
from holdfast.ports import Transaction
from holdfast.runtime.worker import storewide
from holdfast.settings import Settings
from postgres import Server, schema_of

KILLS = int(os.environ.get("HOLDFAST_WORKER_KILLS", "8"))
JOBS = int(os.environ.get("HOLDFAST_WORKER_KILL_JOBS", str(38 * KILLS)))
LEASE_SECONDS = 1
WORKERS = 4
PATIENCE_SECONDS = 120 + 5 * KILLS

_WATCHED = """
CREATE TABLE seen_jobs (tx xid8, id text, token bigint, was text, became text, lease bigint);
CREATE TABLE seen_memories (tx xid8, id text, revision bigint);
CREATE FUNCTION see_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen_jobs VALUES (pg_current_xact_id(), NEW.id, NEW.token, OLD.status, NEW.status, NEW.lease_until);
    RETURN NULL; END $$;
CREATE FUNCTION see_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen_memories VALUES (pg_current_xact_id(), NEW.id, NEW.revision);
    RETURN NULL; END $$;
CREATE TRIGGER see_job AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION see_job();
CREATE TRIGGER see_memory AFTER INSERT ON records FOR EACH ROW EXECUTE FUNCTION see_memory();
"""


def ask(server: Server, url: str, statement: str) -> list[Any]:
    with server.connect() as connection:
        connection.execute(f'SET search_path TO "{schema_of(url)}", public')  # type: ignore[call-overload]
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


async def queue(url: str, settings: Settings, extractions: int) -> None:
    """As many index jobs as extractions: one message each, of a subject of its own."""
    async with holdfast.open_async(url, embedder="openai:crash", settings=settings, work=False) as memory:
        core = memory._service._core  # type: ignore[attr-defined]
        added = await asyncio.gather(
            *(memory.add("I live in Lisbon.", subject=f"s{number}") for number in range(extractions))
        )

        def extract(transaction: Transaction) -> None:
            for number, each in enumerate(added):
                scope = Scope(space="default", subject=f"s{number}", conversation="default")
                job = NewJob(JobKind.EXTRACT, scope, tuple(map(str, each.message_ids)))
                transaction.enqueue(JobId(core.ids.new(ids.JOB)), job, core.clock.now())

        await core.store.write(storewide(), extract)


def worked_off(server: Server, url: str, workers: Workers, jobs: int) -> int:
    """Kill a worker each time that some more jobs have ended, and stall one now and then; how many were killed."""
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
    with embeddings() as endpoint:
        settings = Settings(embedder_url=endpoint)
        asyncio.run(queue(postgres_url, settings, JOBS // 2))
        ask(postgres, postgres_url, _WATCHED)
        environment = {
            "HOLDFAST_EMBEDDER": "openai:crash",
            "HOLDFAST_EMBEDDER_URL": endpoint,
            "HOLDFAST_JOB_LEASE_SECONDS": str(LEASE_SECONDS),
        }
        with Workers(postgres_url, "index,extract", WORKERS, tmp_path, **environment) as workers:
            assert worked_off(postgres, postgres_url, workers, JOBS) == KILLS
        log = workers.log()
    jobs = ask(postgres, postgres_url, "SELECT id, kind, status, token, attempt, error FROM jobs")
    ended = Counter((kind, status) for _, kind, status, _, _, _ in jobs)
    assert ended == {("index", "succeeded"): JOBS // 2, ("extract", "succeeded"): JOBS // 2}, (ended, log[-4000:])
    assert max(token for _, _, _, token, _, _ in jobs) > 1, "no job was ever taken over"
    nothing_happened_twice(postgres, postgres_url, JOBS)
    with holdfast.open(postgres_url, embedder="openai:crash", settings=settings, work=False) as memory:
        assert memory.verify().ok
        assert memory.stats().pending_vectors == 0
    print(f"{KILLS} kills, {len(jobs)} jobs, {sum(token > 1 for _, _, _, token, _, _ in jobs)} taken over,"
          f" {log.count('taken over by')} late commits refused")  # fmt: skip


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
    """It is stopped when its effect is about to be written, and goes on when another has done the job."""
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
            while not done:  # until the lease has ended
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
    # The token that a job ended under is the newest that it was ever claimed under.
    newest = dict(ask(server, url, "SELECT id, max(token) FROM seen_jobs GROUP BY id"))
    assert {job_id: token for _, job_id, token in ends} == newest
    # An extraction makes one memory, in the transaction in which it ends.
    extractions = dict(ask(server, url, "SELECT id, kind FROM jobs"))
    by_end = Counter(tx for tx, job_id, _ in ends if extractions[job_id] == "extract")
    by_effect = Counter(tx for (tx,) in ask(server, url, "SELECT tx FROM seen_memories"))
    assert by_effect == by_end
    assert ask(server, url, "SELECT max(revision) FROM seen_memories") == [(1,)]
