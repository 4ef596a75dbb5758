"""Static checks of the files in `deploy/`, which cannot be run everywhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.gateway.config import GatewayConfig
from holdfast.settings import Settings
from serving import OPERATOR_KEY

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_SECRET = re.compile(r"token|password|secret|key|credential", re.IGNORECASE)
# A name, a version of at least two numbers, optionally more of a tag, optionally a digest.
_PINNED = re.compile(r"[a-z0-9./-]+:v?\d+(\.\d+)+[\w.-]*(@sha256:[0-9a-f]{64})?")
SETTINGS = {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}
SERVICE = GatewayConfig(operator_token=OPERATOR_KEY)  # as it is by default
SHUTDOWN_SECONDS = SERVICE.shutdown_seconds


# --- the image ------------------------------------------------------------------------------------------------------


@cache
def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)
    ]


def all_of(word: str) -> list[str]:
    return [rest for found, rest in instructions() if found == word]


def test_the_base_is_pinned() -> None:
    arguments = dict(argument.split("=", 1) for argument in all_of("ARG"))
    for image in all_of("FROM"):
        name = re.sub(r"\$\{(\w+)\}", lambda found: arguments[found.group(1)], image.split()[0])
        assert _PINNED.fullmatch(name), name


def test_it_does_not_run_as_root_and_nothing_is_done_as_root_afterwards() -> None:
    final = instructions()[max(i for i, (word, _) in enumerate(instructions()) if word == "FROM") :]
    words = [word for word, _ in final]
    user = dict(final)["USER"].split(":")[0]
    assert user.isdigit()
    assert int(user) > 0
    assert "RUN" not in words[words.index("USER") :]
    assert f"--uid {user}" in dict(final)["RUN"]


def test_no_secret_is_in_the_image() -> None:
    for word in ("ENV", "ARG", "LABEL"):
        for rest in all_of(word):
            assert not [name for name in re.findall(r"(\S+?)=", rest) if _SECRET.search(name)], rest
    assert not all_of("ADD")
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in ignored
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    assert not [name for name in allowed if _SECRET.search(name)]
    for copied in all_of("COPY"):
        if not copied.startswith("--from"):
            for source in copied.split()[:-1]:
                assert source in allowed, f"{source} is not sent to the builder"
                assert (ROOT / source).exists(), source


def test_the_settings_in_it_are_settings() -> None:
    given = {name: value for rest in all_of("ENV") for name, value in re.findall(r"(HOLDFAST_\w+)=(\S+)", rest)}
    assert given
    assert set(given) <= SETTINGS
    assert given["HOLDFAST_PORT"] == all_of("EXPOSE")[0] == str(SERVICE.port)


def test_it_starts_without_a_shell_so_that_signals_arrive() -> None:
    assert json.loads(all_of("ENTRYPOINT")[0]) == ["holdfast"]
    assert json.loads(all_of("CMD")[0]) == ["serve"]
    assert all_of("STOPSIGNAL") == ["SIGTERM"]


def test_its_health_check_tells_a_server_from_none(tmp_path: Path) -> None:
    (check,) = all_of("HEALTHCHECK")
    command = json.loads(check[check.index("CMD ") + 4 :])
    program = """
import http.server, sys
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Healthy)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
    serving = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert serving.stdout is not None
    try:
        port = serving.stdout.readline().strip()
        here = [sys.executable, *(part.replace("8010", port) for part in command[1:])]
        assert subprocess.run(here, timeout=30).returncode == 0
    finally:
        serving.kill()
        serving.communicate()
    assert subprocess.run(here, timeout=30, stderr=subprocess.DEVNULL).returncode != 0


def locked(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text("utf-8"), re.MULTILINE))


def test_all_that_is_installed_is_locked_with_hashes_and_is_what_is_tested() -> None:
    (install,) = [rest for rest in all_of("RUN") if "--requirement" in rest]
    assert "--require-hashes" in install
    found, tested = locked(DEPLOY / "requirements.lock"), locked(ROOT / "requirements-dev.lock")
    assert {name: version for name, version in found.items() if tested[name] != version} == {}
    entries = re.split(r"^(?=[a-z0-9-]+==)", (DEPLOY / "requirements.lock").read_text("utf-8"), flags=re.MULTILINE)
    assert not [entry.splitlines()[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["serve"], *extras["postgres"], *extras["mcp"], *extras["approximate"]]
    assert not {re.split(r"[\[<>=;\s]", name)[0] for name in wanted} - set(found)


# --- compose --------------------------------------------------------------------------------------------------------


@cache
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def test_secrets_are_files_and_are_given_to_those_who_need_them() -> None:
    assert all(set(secret) == {"file"} for secret in compose()["secrets"].values())
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "deploy/secrets/" in ignored
    assert all(secret["file"].startswith("./secrets/") for secret in compose()["secrets"].values())
    given = {name: set(service["secrets"]) for name, service in compose()["services"].items()}
    assert set.union(*given.values()) == set(compose()["secrets"])
    assert {secret.upper() for secret in given["holdfast"]} <= SETTINGS
    for service in compose()["services"].values():
        secret = [name for name in service["environment"] if _SECRET.search(name)]
        assert all(str(service["environment"][name]).startswith("/run/secrets") for name in secret)


def test_the_service_has_no_rights_that_it_does_not_need() -> None:
    service = compose()["services"]["holdfast"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all("no-new-privileges:true" in each["security_opt"] for each in compose()["services"].values())
    assert all(str(port).startswith("127.0.0.1:") for port in service["ports"])
    assert {name for name in service["environment"] if name.startswith("HOLDFAST_")} <= SETTINGS


def test_only_the_service_reaches_the_database() -> None:
    database = compose()["services"]["database"]
    assert "ports" not in database
    assert all(compose()["networks"][name].get("internal") for name in database["networks"])
    assert _PINNED.fullmatch(database["image"])


def test_it_waits_for_the_database_and_has_time_to_finish() -> None:
    service = compose()["services"]["holdfast"]
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert int(service["stop_grace_period"].removesuffix("s")) > SHUTDOWN_SECONDS
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"


# --- systemd --------------------------------------------------------------------------------------------------------


def unit(name: str) -> list[str]:
    text = (DEPLOY / "holdfast.service").read_text("utf-8")
    return re.findall(rf"^{re.escape(name)}=(.*)$", text, re.MULTILINE)


def test_the_unit_takes_secrets_as_credentials_and_has_time_to_finish() -> None:
    assert {given.split(":")[0].upper() for given in unit("LoadCredential")} <= SETTINGS
    assert "HOLDFAST_SECRETS_DIR=%d" in unit("Environment")
    assert not [given for given in unit("Environment") if _SECRET.search(given.split("=")[1])]
    assert int(unit("TimeoutStopSec")[0]) > SHUTDOWN_SECONDS
    assert unit("ExecStart")[0].endswith("holdfast serve")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    program = shutil.which("true")
    assert program is not None
    copy = tmp_path / "holdfast.service"
    copy.write_text((DEPLOY / "holdfast.service").read_text("utf-8").replace("/opt/holdfast/bin/holdfast", program))
    checked = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    exposure = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", copy], capture_output=True, text=True
    )
    level = re.search(r"exposure level for holdfast.service: ([\d.]+)", exposure.stdout)
    assert level, exposure.stderr
    assert float(level.group(1)) < 2


def test_every_link_of_the_readme_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (DEPLOY / "README.md").read_text("utf-8")):
        assert (DEPLOY / target).exists(), target
