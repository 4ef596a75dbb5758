"""Authority comes from credentials alone: a local process without one gets nothing, on any route, at any start."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.served import Gateway, serving
from holdfast.app import open_engine
from holdfast.cli import main
from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind
from holdfast.domain.scope import Scope
from holdfast.errors import ConfigurationError
from holdfast.gateway.operator_token import find_local_token, operator_token, read_token, token_file
from holdfast.runtime.users import CreateUser, RevokeUser
from holdfast.settings import Settings
from postgres import ON_POSTGRES
from serving import answering, http

ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
PUBLIC = {"/healthz", "/readyz"}
# For people, and the document itself: none of them is in the document.
PAGES = {"/", "/docs", "/openapi.json"}
PATIENCE_SECONDS = 60
NOBODY = 65534  # an account that is not ours
FORKS = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def default_start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """`holdfast serve` as a first user starts it, without any setting: its folder and address.

    When it ends, it has not printed its token.
    """
    folder = tmp_path_factory.mktemp("first start")
    token_place, log = folder / "memory.db.operator-token", folder / "log"
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0"]
    with (
        log.open("w") as written,
        subprocess.Popen(
            command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=written, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"http://[\d.:]+\d", first)
            assert found, log.read_text()
            yield folder, found.group()
            process.send_signal(signal.SIGTERM)
            printed = first + process.communicate(timeout=PATIENCE_SECONDS)[0] + log.read_text()
            assert (read_token(token_place) or "") not in printed
        finally:
            process.kill()


# --- every route ----------------------------------------------------------------------------------------------------


OWN_VALUES: dict[str, Any] = {"session_id": "chat:1", "timestamp": 1_780_000_000_000}


def smallest(schema: dict[str, Any], schemas: dict[str, Any], name: str = "") -> Any:
    """The smallest value of a schema, with values of its own where the schema does not say everything."""
    if "$ref" in schema:
        return smallest(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return smallest(several[0], schemas, name)
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            wanted = [*schema.get("required", ()), *(["user_id"] if "user_id" in properties else [])]
            return {each: smallest(properties[each], schemas, each) for each in wanted}
        case "array":
            return [smallest(schema["items"], schemas)] * schema.get("minItems", 0)
        case "integer" | "number":
            return OWN_VALUES.get(name, int(schema.get("minimum", 1)))
        case "boolean":
            return True
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    return OWN_VALUES.get(name, "x" * max(schema.get("minLength", 1), 1))


def requests(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A valid request for each route: its method, its path, and what it carries."""
    schemas = document["components"]["schemas"]
    for template, operations in document["paths"].items():
        for method, operation in operations.items():
            path, query = template, {}
            for each in operation.get("parameters", ()):
                value = smallest(each["schema"], schemas, each["name"])
                if each["in"] == "path":
                    path = path.replace(f"{{{each['name']}}}", str(value))
                elif each.get("required"):
                    query[each["name"]] = value
            carried: dict[str, Any] = {"params": query}
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                carried["json"] = smallest(content["application/json"]["schema"], schemas)
            elif content:
                carried["files"] = {"file": ("notes.txt", b"Herons eat fish.", "text/plain")}
            yield method.upper(), path, carried


# What else somebody without a credential may try.
GUESSES = [
    {"Authorization": "Bearer uk_guessed"},
    {"Authorization": "Bearer ok_guessed"},
    {"Authorization": f"Bearer {'0' * 64}"},
    {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"},
]


def test_no_route_serves_a_local_process_without_a_credential(default_start: tuple[Path, str]) -> None:
    """The document names all routes: a test of the schema compares it with the table."""
    folder, url = default_start
    token = (folder / "memory.db.operator-token").read_text().strip()
    with httpx2.Client(base_url=url, timeout=30) as client:
        routes = list(requests(client.get("/openapi.json").json()))
        for number, (method, path, carried) in enumerate(routes):
            for guess in ({}, GUESSES[number % len(GUESSES)]):
                answer = client.request(method, path, headers=guess, **carried)
                wanted = 200 if path in PUBLIC else 401
                assert answer.status_code == wanted, f"{method} {path} {guess}: {answer.text}"
                assert token not in answer.text
        assert not PAGES & {path for _, path, _ in routes}
        for path in PAGES:
            page = client.get(path, headers={"Accept": "text/html"})
            assert page.status_code == 200
            assert token not in page.text
    assert len(routes) > 140


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 405),
        ("GET", "/docs/", 404),
        ("GET", "/companies", 404),
        ("GET", "/../metrics", 401),
        ("GET", "//metrics", 404),
        ("GET", "/metrics/", 404),
        ("POST", "/metrics", 405),
        ("PUT", "/users", 405),
        ("TRACE", "/users", 405),
        ("OPTIONS", "/companies/acme/memory/bindings", 405),
        ("HEAD", "/metrics", 405),
        ("HEAD", "/companies/acme/memory/credentials", 405),
    ],
)
def test_a_path_or_method_that_is_not_served_says_nothing_else(
    default_start: tuple[Path, str], method: str, path: str, status: int
) -> None:
    answer = httpx2.request(method, default_start[1] + path)
    assert answer.status_code == status, answer.text
    assert "holdfast_memory" not in answer.text


def test_a_secret_is_not_resolved_for_somebody_without_a_credential(
    default_start: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(http(200, b"{}")) as (foreign, asked):
        config = {"url": foreign, "user_id": "ana", "user_key": "env://HOLDFAST_SECRET_CANARY"}
        body = {"key": "theirs", "provider": "gateway", "config": config}
        room = f"{default_start[1]}/companies/default/memory"
        assert httpx2.post(f"{room}/bindings", json=body).status_code == 401
        assert httpx2.post(f"{room}/query", json={"query": "tea", "binding_key": "theirs"}).status_code == 401
        assert httpx2.post(f"{default_start[1]}/verbs/create_binding", json=body).status_code == 401
    assert asked == []


# --- signing up without a credential --------------------------------------------------------------------------------


def test_open_sign_up_makes_plain_users_and_opens_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path / "memory.db", open_sign_up=True) as gateway:
        document = gateway.http.get("/openapi.json").json()
        for method, path, carried in requests(document):
            if (method, path) != ("POST", "/users") and path not in PUBLIC:
                assert gateway.http.request(method, path, **carried).status_code == 401, path
        made = gateway.http.post("/users", json={"user_id": "ana"})
        assert made.status_code == 201
        ana = {"Authorization": f"Bearer {made.json()['user_key']}"}
        assert gateway.http.get("/memories", headers=ana).status_code == 200
        for path in ("/users", "/metrics"):
            assert gateway.http.get(path, headers=ana).status_code == 401
        assert gateway.http.get("/companies/default/memory/credentials", headers=ana).status_code == 403
        _cannot_take_over(gateway, "ana")


def _cannot_take_over(gateway: Gateway, user_id: str) -> None:
    for body in ({}, {"user_key": "uk_guessed"}):
        assert gateway.http.post("/users", json={"user_id": user_id, **body}).status_code == 409
    for field in ({"kind": "operator"}, {"role": "admin"}, {"space": "acme"}, {"rotate": True}):
        assert gateway.http.post("/users", json={"user_id": "mallory", **field}).status_code == 422


# --- the file of the token ------------------------------------------------------------------------------------------


def _race(store: str, together: Any, tokens: Any) -> None:
    together.wait()
    tokens.put(operator_token(Settings(), store))


def test_processes_that_start_together_use_one_token(tmp_path: Path) -> None:
    for number in range(3):
        store, count = str(tmp_path / f"{number}.db"), 6
        together, tokens = FORKS.Barrier(count), FORKS.SimpleQueue()
        racers = [FORKS.Process(target=_race, args=(store, together, tokens)) for _ in range(count)]
        for racer in racers:
            racer.start()
        found = {tokens.get() for _ in racers}
        for racer in racers:
            racer.join(PATIENCE_SECONDS)
        assert found == {read_token(tmp_path / f"{number}.db.operator-token")}
    assert len(list(tmp_path.iterdir())) == 3, "nothing is left beside the tokens"


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_the_file_is_private_from_the_first_moment(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        token = operator_token(Settings(), str(tmp_path / "memory.db"))
    finally:
        os.umask(before)
    file = tmp_path / "memory.db.operator-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert re.fullmatch("[0-9a-f]{64}", token)


def _link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def _replace(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        file.unlink()
        make(file)

    return spoil


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    **{f"{mode:o}": (lambda file, mode=mode: file.chmod(mode), "chmod 600") for mode in (0o640, 0o620, 0o604, 0o602)},
    "a link": (_link, "cannot be read"),
    "a pipe": (_replace(os.mkfifo), "is no file"),
    "a folder": (_replace(Path.mkdir), "is no file"),
    "empty": (lambda file: file.write_text(" \n"), "holds no token"),
    "not text": (lambda file: file.write_bytes(b"\xff" * 40), "holds no token"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_file_that_others_could_know_is_refused_and_not_shown(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, said = SPOILED[how]
    token = operator_token(Settings(), str(tmp_path / "memory.db"))
    spoil(tmp_path / "memory.db.operator-token")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "fake")
    assert main(["serve", "--port", "0"]) == 2
    assert main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert said in shown.err
    assert "operator token" in shown.out
    assert token not in shown.out + shown.err
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_account_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.db.operator-token"
    operator_token(Settings(), str(tmp_path / "memory.db"))
    os.chown(file, NOBODY, NOBODY)
    with pytest.raises(ConfigurationError, match="another account"):
        operator_token(Settings(), str(tmp_path / "memory.db"))


def test_without_a_folder_of_its_own_a_token_must_be_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.delenv("HOLDFAST_OPERATOR_TOKEN", raising=False)
    for store in ("postgresql://ana:canary@db.invalid/memory", ":memory:", str(tmp_path / "file" / "memory.db")):
        assert main(["serve", "--port", "0", "--store", store]) == 2
        said = capsys.readouterr().err
        assert "HOLDFAST_OPERATOR_TOKEN" in said
        assert "--operator-token-file" in said
        assert "openssl rand -hex 32" in said
        assert "canary" not in said


def test_a_link_to_a_store_leads_to_its_token(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    assert token_file(str(tmp_path / "link.db")) == token_file(str(tmp_path / "memory.db"))


# --- the local command line -----------------------------------------------------------------------------------------


def test_the_command_line_beside_the_store_is_the_operator_and_elsewhere_nobody(
    default_start: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, url = default_start
    commands = [
        ["user", "create", "ben", "--store", url],
        ["agent", "init", "--gateway", url, "--user", "cleo", "--workspace", str(tmp_path)],
        ["doctor", "--store", url],
    ]
    for place, allowed in ((tmp_path, False), (folder, True)):
        monkeypatch.chdir(place)
        assert [main(command) == 0 for command in commands] == [allowed] * 3, capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_STORE", f"{folder}/memory.db")
    assert main(["user", "create", "dora", "--store", url]) == 0
    monkeypatch.setenv("HOLDFAST_KEY", "uk_guessed")  # goes before the file
    assert main(["user", "create", "emil", "--store", url]) == 4
    shown = capsys.readouterr()
    assert (folder / "memory.db.operator-token").read_text().strip() not in shown.out + shown.err


def test_the_token_is_for_loopback_alone(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    settings, token = Settings(store=store), operator_token(Settings(), store)
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        for url in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
            found = find_local_token(url, settings)
            assert found is not None
            assert found.get_secret_value() == token
        for url in (
            f"http://192.0.2.1:{port}",
            f"https://memory.example.org:{port}",
            f"http://127.0.0.1.example:{port}",
        ):
            assert find_local_token(url, settings) is None


def _listen_as_nobody(ports: Any) -> None:
    os.setuid(NOBODY)
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        ports.put(theirs.getsockname()[1])
        theirs.accept()


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/proc/net/tcp").exists(), reason="needs Linux and root")
def test_a_listener_of_another_account_does_not_get_the_token(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    operator_token(Settings(), store)
    ports = FORKS.SimpleQueue()
    theirs = FORKS.Process(target=_listen_as_nobody, args=(ports,))
    theirs.start()
    try:
        assert find_local_token(f"http://127.0.0.1:{ports.get()}", Settings(store=store)) is None
    finally:
        theirs.kill()
        theirs.join()


# --- keys from the time when loopback was enough --------------------------------------------------------------------

LOOPBACK = Actor(ActorKind.OPERATOR, "loopback")  # every local caller of an earlier gateway without a token


async def _mint(location: str) -> str:
    """Operators of several makers; returns the key of one that anybody could have made."""
    engine = await open_engine(location, Settings(), embedder="fake", work=False)

    async def make(actor: Actor, name: str, space: str, **more: Any) -> str:
        create = CreateUser(Scope(space), name, **more)
        return (await engine.perform(actor, Action.CREATE_USER, lambda: create, space=space)).key or ""

    operator = {"kind": ActorKind.OPERATOR}
    try:
        await make(LOCAL_OPERATOR, "ours", "acme", **operator)
        key = await make(LOOPBACK, "theirs", "acme", **operator)
        await make(LOOPBACK, "theirs", "beta", **operator)
        await make(LOOPBACK, "agent", "acme", kind=ActorKind.AGENT)
        await make(LOOPBACK, "rotated by us", "acme", **operator)
        await make(LOCAL_OPERATOR, "rotated by us", "acme", rotate=True, **operator)
        await make(LOCAL_OPERATOR, "rotated by them", "acme", **operator)
        await make(LOOPBACK, "rotated by them", "acme", rotate=True, **operator)
        await make(LOOPBACK, "revoked", "acme", **operator)
        revoke = RevokeUser(Scope("acme"), "revoked", **operator)
        await engine.perform(LOCAL_OPERATOR, Action.REVOKE_USER, lambda: revoke, space="acme")
        return key
    finally:
        await engine.close()


@pytest.mark.parametrize("kind", ["file", ON_POSTGRES])
def test_operators_that_anybody_could_make_are_listed_and_can_be_removed(
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = str(tmp_path / "memory.db") if kind == "file" else request.getfixturevalue("postgres_url")
    key = asyncio.run(_mint(place))
    monkeypatch.setenv("HOLDFAST_STORE", place)
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "fake")

    def advice() -> list[str]:
        assert main(["doctor", "--json"]) == 0
        checks = json.loads(capsys.readouterr().out)["checks"]
        return [re.findall("`(.*?)`", each["advice"])[0] for each in checks if each["name"] == "operators"]

    with serving(place) as gateway:
        room = gateway.url + "/companies/acme/memory/credentials"
        assert httpx2.get(room, headers={"Authorization": f"Bearer {key}"}).status_code == 200
        found = advice()
        assert [shlex.split(each)[3] for each in found] == ["rotated by them", "theirs", "theirs"]
        for each in found:
            assert main([*shlex.split(each)[1:], "--yes"]) == 0
        capsys.readouterr()
        assert advice() == []
        assert httpx2.get(room, headers={"Authorization": f"Bearer {key}"}).status_code == 401
