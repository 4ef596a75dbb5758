"""Shared fixtures, the folder of temporary files, the `postgres` marker, and a summary of the slowest files."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import holdfast
import leftovers
from blank import blank
from holdfast.search.embedders.static import StaticEmbedder
from postgres import AnyServer, serving
from probes import SteppingClock

# Syncs are free in memory, and the code under test still makes all of them. Durability tests do not rely on the disk:
# their shim drops whatever was not synced (`faults/disk.py`).
_MEMORY = Path("/dev/shm")
_NEEDED_BYTES = 4 << 30


def _use_memory_for_temporary_files() -> None:
    if not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < _NEEDED_BYTES:
        return
    # Some tests compile a library and load it.
    if not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


_use_memory_for_temporary_files()


def pytest_configure(config: pytest.Config) -> None:
    """Restore Ctrl-C, which tests send: a shell lets background programs and their children ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        leftovers.kill_when_we_are_gone()


# `make test` checks PostgreSQL against the store contract and against the answers of SQLite. All other tests on
# PostgreSQL have the marker `postgres` and run in `make test-postgres`. Their fixtures set it, or the parameter
# `postgres.ON_POSTGRES`.
_NEEDS_POSTGRES = {"postgres", "postgres_url", "migrated_url"}
_CONTRACT = {"test_postgres_contract.py", "test_same_answers.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # `make test` looks for them there: collecting all tests again takes as long as a slow test.
        assert item.get_closest_marker("alone") is None or item.path.parent.name == "gateway", item.nodeid
        if item.path.name not in _CONTRACT and _NEEDS_POSTGRES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.postgres)


_SLOWEST = 10


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the slowest files."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) > _SLOWEST:
        terminalreporter.section(f"slowest {_SLOWEST} of {len(seconds)} files")
        for file, spent in seconds.most_common(_SLOWEST):
            terminalreporter.write_line(f"{spent:7.1f} s  {file}")


# No test measures the duration of an example: a busy machine must not fail one.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of a real small model."""
    directory = Path(os.environ.get("HOLDFAST_EVAL", Path(__file__).parents[2] / "shared" / "eval")) / "minilm"
    if not directory.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no model at {directory}: set HOLDFAST_EVAL")
        pytest.skip(f"no model at {directory}: set HOLDFAST_EVAL")
    return directory


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture(scope="session")
def static_embedder() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[holdfast.Memory]:
    """A memory in a file, without a worker: background work happens when a test drains it."""
    with holdfast.open(blank(tmp_path / "memory.db"), embedder="fake", work=False) as opened:
        yield opened


@pytest.fixture
def timed(tmp_path: Path, clock: SteppingClock) -> Iterator[holdfast.Memory]:
    """A memory in a file, with the test's clock."""
    with holdfast.open(blank(tmp_path / "timed.db"), embedder="fake", work=False, clock=clock) as opened:
        yield opened


@pytest.fixture
def meaningful(tmp_path: Path, static_embedder: StaticEmbedder) -> Iterator[holdfast.Memory]:
    """A memory in a file with the default embedder, for tests where the meaning of words matters."""
    with holdfast.open(blank(tmp_path / "meaningful.db"), embedder=static_embedder, work=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres() -> Iterator[AnyServer]:
    """The PostgreSQL of this test session (`postgres.py`)."""
    yield from serving()


@pytest.fixture
def postgres_url(postgres: AnyServer) -> Iterator[str]:
    """A location on the server where no store exists yet."""
    url = postgres.store_url()
    yield url
    postgres.drop(url)


@pytest.fixture
def migrated_url(postgres: AnyServer) -> Iterator[str]:
    """An empty store on the server, with its schema; the counterpart of `blank` for files."""
    url = postgres.migrated_url()
    yield url
    postgres.drop(url)
