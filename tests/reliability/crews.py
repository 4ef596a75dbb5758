"""Worker processes that a test kills, stalls and replaces, and a slow HTTP embedder."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROGRAM = [sys.executable, "-c", "from holdfast.cli import main; raise SystemExit(main())"]
PATIENCE_SECONDS = 120


class _Embeddings(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(random.uniform(0.0, 0.02))  # so that a kill interrupts workers at work
        rows = [{"index": index, "embedding": [1.0, float(len(text))]} for index, text in enumerate(body["input"])]
        answer = json.dumps({"data": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        with contextlib.suppress(OSError):  # the client may be dead
            self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of killed clients."""


@contextlib.contextmanager
def embeddings() -> Iterator[str]:
    """The address of an OpenAI-compatible endpoint that embeds anything."""
    server = _Server(("127.0.0.1", 0), _Embeddings)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


class Workers:
    """A constant number of `holdfast worker` processes on one store."""

    def __init__(self, location: str, kinds: str, count: int, logs: Path, **environment: str) -> None:
        self._command = [*PROGRAM, "worker", location, "--kinds", kinds]
        self._logs = logs
        path = os.pathsep.join([*environment.pop("PYTHONPATH", "").split(os.pathsep), *sys.path])
        self._environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path.strip(os.pathsep), **environment}
        self._started = 0
        self._chance = random.Random(7)
        self.running = [self._start() for _ in range(count)]

    def _start(self) -> subprocess.Popen[bytes]:
        self._started += 1
        with (self._logs / f"worker-{self._started}.log").open("wb") as log:
            return subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def kill_one(self) -> None:
        """Send SIGKILL to a random worker and start another in its place."""
        index = self._chance.randrange(len(self.running))
        victim = self.running[index]
        assert victim.poll() is None, f"a worker ended by itself: {self.log()[-4000:]}"
        victim.kill()
        victim.wait(PATIENCE_SECONDS)
        self.running[index] = self._start()

    def stall_one(self, seconds: float) -> None:
        """Send SIGSTOP to a random worker, and SIGCONT after `seconds`; the others go on."""
        victim = self._chance.choice(self.running)
        victim.send_signal(signal.SIGSTOP)

        def wake() -> None:
            with contextlib.suppress(ProcessLookupError):
                victim.send_signal(signal.SIGCONT)

        threading.Timer(seconds, wake).start()

    def log(self) -> str:
        return "".join(path.read_text("utf-8", "replace") for path in sorted(self._logs.glob("worker-*.log")))

    def stop(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.running:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
