"""`worker`: background jobs in a separate process; as many processes per store as it can serve."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.app import EMBEDDING, Engine, make_curator, open_engine
from holdfast.cli.allocator import return_unused_memory
from holdfast.cli.exits import ExitCode, UsageError
from holdfast.cli.formatting import format_count
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, StoreOptions, expand_options, option
from holdfast.cli.serve import check_installed
from holdfast.cli.store_access import require_local_store
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.jobs import JobKind
from holdfast.domain.location import redact_location
from holdfast.domain.scope import EVERYWHERE
from holdfast.settings import Settings, read_settings

if TYPE_CHECKING:
    from holdfast.gateway.metrics_server import MetricsServer

_STOPS = (signal.SIGINT, signal.SIGTERM)

Place = Annotated[
    str | None, typer.Argument(metavar="STORE", help="A path or a postgresql:// URL; the same as --store.")
]
Once = Annotated[bool, typer.Option("--once", help="Run the due jobs, then exit. Exit code 1 if a job failed.")]
AtOnce = Annotated[
    int | None, option("--jobs", "N", "Run up to N jobs at once.  [env: HOLDFAST_WORKER_JOBS; default: 4]")
]
Kinds = Annotated[OnlyText, option("--kinds", "KINDS", "Only these, comma-separated, such as extract,deliver.")]

MetricsPort = Annotated[int, option("--metrics-port", "PORT", "Serve Prometheus metrics on this port; 0: off.")]
MetricsHost = Annotated[
    OnlyText, option("--metrics-host", "ADDRESS", "Serve metrics on this address.  [default: 127.0.0.1]")
]


@expand_options
def worker(
    chosen: LocalStoreOptions,
    place: Place = None,
    once: Once = False,
    jobs: AtOnce = None,
    kinds: Kinds = None,
    metrics_port: MetricsPort = 0,
    metrics_host: MetricsHost = None,
    as_json: Json = False,
) -> None:
    """Run background jobs until Ctrl-C or SIGTERM.

    Any number of workers may run on one store. If one is killed, nothing is lost: another takes over when its lease
    expires.
    """
    settings = read_settings()
    selected = None if kinds is None else _parse_kinds(kinds)
    at_once = settings.worker_jobs if jobs is None else jobs
    if not 1 <= at_once <= 64:
        raise UsageError(f"--jobs: {at_once} is not between 1 and 64")
    if place is not None:
        if chosen.store is not None:
            raise UsageError("the store is given twice; name it once, as STORE or with --store")
        chosen = replace(chosen, store=place)
    path = require_local_store(chosen)
    return_unused_memory()
    with _serve_metrics(settings, path, metrics_host, metrics_port, once=once) as metrics, _log_to_stderr(as_json):
        work = _run_worker(path, chosen, settings, at_once, selected, metrics, once=once, as_json=as_json)
        raise typer.Exit(asyncio.run(work))


@contextlib.contextmanager
def _serve_metrics(
    settings: Settings, path: str, host: str | None, port: int, *, once: bool
) -> Iterator[MetricsServer | None]:
    """Serve metrics while the context is open, if there is a port."""
    if not port:
        if host is not None:
            raise UsageError("--metrics-host: needs a port; give --metrics-port too")
        yield None
        return
    if once:
        raise UsageError("--metrics-port: --once exits before metrics can be read; leave one of them out")
    check_installed("showing metrics")
    from holdfast.gateway.metrics_server import MetricsServer, metrics_config

    scraping = MetricsServer(metrics_config(host or "127.0.0.1", port, settings, path))
    try:
        scraping.begin()
        yield scraping
    finally:
        scraping.close()


def _parse_kinds(text: str) -> frozenset[JobKind]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in set(JobKind)]
    if unknown or not names:
        named = f"there is no job kind {on_one_line(unknown[0])!r}" if unknown else "names no job kind"
        raise UsageError(f"--kinds: {named}; give some of {', '.join(JobKind)}")
    return frozenset(map(JobKind, names))


async def _run_worker(
    path: str,
    chosen: LocalStoreOptions,
    settings: Settings,
    jobs: int,
    kinds: frozenset[JobKind] | None,
    metrics: MetricsServer | None,
    *,
    once: bool,
    as_json: bool,
) -> ExitCode:
    curator = make_curator(settings)
    engine = await open_engine(
        path,
        settings,
        embedder=chosen.embedder,
        curator=curator,
        work=False,
        embeds=kinds is None or bool(kinds & EMBEDDING),
        jobs=jobs,
        kinds=kinds,
        watcher=None if metrics is None else metrics.memory,
    )
    if metrics is not None:
        metrics.memory.show_cache(lambda: engine.cache_usage)
    try:
        if kinds and (missing := kinds - engine.crew.kinds):
            raise UsageError(f"--kinds: {', '.join(sorted(missing))} cannot run here; maintain needs HOLDFAST_MODEL")
        if once:
            done = await engine.crew.drain()
            return _report_run(chosen, done, engine.crew.failures, engine.crew.ended_badly, as_json)
        tell = partial(_print_start, path, engine, settings, jobs, metrics, as_json)
        await _run_until_stopped(engine, settings.shutdown_seconds, tell)
        return ExitCode.OK
    finally:
        await engine.close()


async def _run_until_stopped(engine: Engine, patience_seconds: float, tell: Callable[[], None]) -> None:
    """Run jobs until a signal. The first lets running jobs finish within `patience_seconds`; the second does not.

    Signal handlers are installed before `tell` reports the start. Unfinished jobs are released when the engine
    closes.
    """
    stopping, hurried = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        (hurried if stopping.is_set() else stopping).set()

    with _stop_on_signals(stop):
        tell()
        work = asyncio.create_task(engine.crew.run())
        await _wait_for_either(work, stopping.wait())
        engine.crew.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await _wait_for_either(work, hurried.wait())
        work.cancel()
        ended = (await asyncio.gather(work, return_exceptions=True))[0]
    if isinstance(ended, Exception):
        raise ended


async def _wait_for_either(work: asyncio.Task[None], other: Coroutine[Any, Any, Any]) -> None:
    """Wait for either of them."""
    waiting = asyncio.ensure_future(other)
    try:
        await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


@contextlib.contextmanager
def _stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on each SIGINT or SIGTERM while the context is open."""
    loop = asyncio.get_running_loop()

    def on_signal(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    before = {number: signal.signal(number, on_signal) for number in _STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_start(
    path: str, engine: Engine, settings: Settings, jobs: int, metrics: MetricsServer | None, as_json: bool
) -> None:
    store, kinds = on_one_line(redact_location(path)), sorted(engine.crew.kinds)
    if as_json:
        facts = {"store": store, "kinds": kinds, "jobs": jobs, "lease_seconds": settings.job_lease_seconds}
        print_json(facts if metrics is None else {**facts, "metrics": metrics.url}, indent=None)
    else:
        at = "" if metrics is None else f" Metrics: {metrics.url}."
        print(
            f"Holdfast works on {store}: {', '.join(kinds)}; {format_count(jobs, 'job')} at once.{at} Ctrl-C stops it."
        )
    sys.stdout.flush()


def _report_run(
    chosen: StoreOptions, done: int, failures: int, ended: Mapping[tuple[str, JobKind], int], as_json: bool
) -> ExitCode:
    """Report a `--once` run. Failed jobs are retried later, or ended for good; for those, say where to look."""
    for_good = sum(ended.values())
    again = failures - for_good
    if as_json:
        print_json({"done": done - failures, "failed": failures, "tried_again": again, "ended": for_good})
    elif failures:
        print(f"{format_count(done - failures, 'job')} done, {failures:,} failed:")
        if again:
            print(f"  {again:,} will be retried later; `{suggest_command(chosen, 'store jobs')}` shows them.")
        for look, number in sorted(_count_ended(chosen, ended).items()):
            print(f"  {number:,} ended for good; `{look}` shows them.")
    else:
        print(f"{format_count(done, 'job')} done.")
    return ExitCode.PROBLEM if failures else ExitCode.OK


def _count_ended(chosen: StoreOptions, ended: Mapping[tuple[str, JobKind], int]) -> Counter[str]:
    """Count ended jobs by the command that shows them: per space, its deliveries and its other jobs."""
    found: Counter[str] = Counter()
    for (space, kind), number in ended.items():
        of_deliveries = kind is JobKind.DELIVER
        path = "deliveries list --status dead" if of_deliveries else "jobs list --state failed"
        everywhere = space == EVERYWHERE
        found[
            suggest_command(chosen, "store jobs") if everywhere else suggest_command(chosen, path, company=space)
        ] += number
    return found


@contextlib.contextmanager
def _log_to_stderr(as_json: bool) -> Iterator[None]:
    """Log each worker event as one line on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter(as_json))
    logger = logging.getLogger("holdfast.worker")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


class _LineFormatter(logging.Formatter):
    """Formats one line per record. Of an exception, only the class name: its text may hold anything."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = on_one_line(record.getMessage())
        if record.exc_info and record.exc_info[0] is not None:
            message += f" ({record.exc_info[0].__name__})"
        if not self._as_json:
            return f"{at} {message}"
        return json.dumps({"time": at, "level": record.levelname.lower(), "event": message})
