"""A server process: its address, its shutdown, and configurations that it refuses."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from edged import PATIENCE, Line, request, running

from holdfast.errors import ConfigurationError
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.server import check_certificate, listen
from serving import OPERATOR_KEY

# `/wait` responds once a byte arrives on standard input.
PROGRAM = """
import asyncio, sys
from holdfast.gateway import server
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge import wrap_app
from holdfast.gateway.edge.observers import Metrics

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    if scope["path"] == "/wait":
        print("waiting", flush=True)
        await asyncio.to_thread(sys.stdin.read, 1)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})

async def main():
    try:
        edge = wrap_app(app, config, metrics)
        await server.serve(edge, config, metrics, sockets, lambda at: print(at.port, flush=True))
    finally:
        print("closed", flush=True)

config = GatewayConfig(operator_token="0123456789abcdef", port=0, shutdown_seconds=float(sys.argv[1]))
metrics = Metrics()
server.allow_many_files()
sockets = server.listen(config)
with server.logging_as_json():
    server.run(main())
"""


class Process:
    def __init__(self, shutdown_seconds: float = 15) -> None:
        self.run = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(shutdown_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.line())

    def line(self) -> str:
        assert self.run.stdout is not None
        return self.run.stdout.readline().strip()

    def wait_for(self, line: Line) -> None:
        line.send(request("GET", "/wait"))
        assert self.line() == "waiting"

    def go_on(self) -> None:
        assert self.run.stdin is not None
        self.run.stdin.write("x")
        self.run.stdin.flush()


@pytest.fixture
def process() -> Iterator[Process]:
    started = Process()
    yield started
    started.run.kill()
    started.run.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_finishes_what_it_accepted_and_ends_clean(process: Process, how: signal.Signals) -> None:
    working, idle = Line(process.port), Line(process.port)
    assert idle.ask("GET", "/").body == b"ok"
    process.wait_for(working)
    process.run.send_signal(how)
    assert idle.is_closed()
    with pytest.raises(ConnectionRefusedError):
        Line(process.port)
    process.go_on()
    assert working.answer().body == b"ok"
    out, err = process.run.communicate(timeout=PATIENCE)
    assert process.run.returncode == 0, err
    assert out.strip() == "closed"
    assert "Traceback" not in err


def test_it_does_not_wait_for_ever_for_what_does_not_end() -> None:
    process = Process(shutdown_seconds=0.3)
    try:
        working = Line(process.port)
        process.wait_for(working)
        process.run.send_signal(signal.SIGTERM)
        assert process.line() == "closed"
        process.go_on()  # so that the thread that reads standard input ends
        process.run.communicate(timeout=PATIENCE)
        assert process.run.returncode == 0
    finally:
        process.run.kill()


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"port {port}.*--port"):
            listen(GatewayConfig(operator_token=OPERATOR_KEY, port=port))


def test_localhost_is_each_of_its_addresses_on_one_port() -> None:
    sockets = listen(GatewayConfig(operator_token=OPERATOR_KEY, host="localhost", port=0))
    try:
        assert len({made.getsockname()[1] for made in sockets}) == 1
        assert "127.0.0.1" in {made.getsockname()[0] for made in sockets}
    finally:
        for made in sockets:
            made.close()


def test_what_listens_says_that_it_is_tcp_so_that_no_loop_holds_small_answers_back() -> None:
    sockets = listen(GatewayConfig(operator_token=OPERATOR_KEY, host="localhost", port=0))
    try:
        assert {made.proto for made in sockets} == {socket.IPPROTO_TCP}
    finally:
        for made in sockets:
            made.close()


def test_an_address_of_another_machine_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"not an address of this machine|cannot listen"):
        listen(GatewayConfig(host="name.invalid", operator_token=OPERATOR_KEY))


# --- TLS ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made = subprocess.run(
        [*command, "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], capture_output=True
    )
    assert made.returncode == 0, made.stderr
    return cert, key


def test_it_speaks_tls(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with running(tls_cert=cert, tls_key=key) as started:
        context = ssl.create_default_context(cafile=str(cert))
        with socket.create_connection(("127.0.0.1", started.config.port), PATIENCE) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secured:
                secured.sendall(request("POST", "/echo", b"abc"))
                answer = secured.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200")
        assert started.config.url.startswith("https://127.0.0.1:")


def test_a_certificate_that_is_none_is_said_before_anything_listens(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    with pytest.raises(ConfigurationError, match="--tls-key: there is no file"):
        check_certificate(GatewayConfig(operator_token=OPERATOR_KEY, tls_cert=cert, tls_key=tmp_path / "missing"))
    (tmp_path / "none").write_text("no key")
    with pytest.raises(ConfigurationError, match="--tls-cert, --tls-key"):
        check_certificate(GatewayConfig(operator_token=OPERATOR_KEY, tls_cert=cert, tls_key=tmp_path / "none"))
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", key, "-out", locked],
        check=True,
        capture_output=True,
    )
    with pytest.raises(ConfigurationError, match="unencrypted"):
        check_certificate(GatewayConfig(operator_token=OPERATOR_KEY, tls_cert=cert, tls_key=locked))
    check_certificate(GatewayConfig(operator_token=OPERATOR_KEY, tls_cert=cert, tls_key=key))
