"""The samples for proxies and Kubernetes agree with the service: ports, paths, limits, settings and rights."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import PROBES
from holdfast.settings import Settings
from serving import OPERATOR_KEY

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVICE = GatewayConfig(operator_token=OPERATOR_KEY)  # as it is by default
SETTINGS = {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}
NGINX = (DEPLOY / "proxy" / "nginx.conf").read_text("utf-8")
CADDY = (DEPLOY / "proxy" / "Caddyfile").read_text("utf-8")


# --- proxies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", [NGINX, CADDY], ids=["nginx", "Caddy"])
def test_a_proxy_lets_through_what_the_service_takes_and_keeps_connections_shorter(sample: str) -> None:
    (size,) = re.findall(r"(?:client_max_body_size|max_size) (\d+)(?:m;|MiB)", sample)
    assert int(size) * 1024 * 1024 == SERVICE.max_upload_bytes
    (idle,) = re.findall(r"(?:keepalive_timeout|keepalive) (\d+)s", sample)
    assert int(idle) < SERVICE.idle_seconds
    assert f"127.0.0.1:{SERVICE.port}" in sample
    assert re.search(r"/metrics (?:\{\s*return )?404", sample)
    assert {"HOLDFAST_ALLOWED_HOSTS", "HOLDFAST_TRUSTED_PROXIES"} <= set(re.findall(r"HOLDFAST_\w+", sample))


def test_nginx_passes_on_who_calls_and_by_which_name() -> None:
    headers = dict(re.findall(r"proxy_set_header (\S+)\s+(\S+);", NGINX))
    assert headers["Host"] == "$http_host"
    assert headers["X-Forwarded-For"] == "$remote_addr"
    assert headers["X-Forwarded-Proto"] == "$scheme"


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_accepts_its_sample(tmp_path: Path) -> None:
    key, chain = tmp_path / "privkey.pem", tmp_path / "fullchain.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", chain, "-subj", "/CN=x"],
        check=True,
        capture_output=True,
    )
    (tmp_path / "holdfast.conf").write_text(NGINX.replace("/etc/letsencrypt/live/memory.example.org", str(tmp_path)))
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid; events {{}} http {{ access_log off; include {tmp_path}/holdfast.conf; }}")
    checked = subprocess.run(
        ["nginx", "-t", "-e", "stderr", "-p", tmp_path, "-c", whole], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="Caddy is not installed")
def test_caddy_accepts_its_sample(tmp_path: Path) -> None:
    checked = subprocess.run(
        ["caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "proxy" / "Caddyfile"],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/usr/local/bin"},
    )
    assert checked.returncode == 0, checked.stderr


# --- Kubernetes ------------------------------------------------------------------------------------------------------


@cache
def objects() -> list[Any]:
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    assert len(files) == 2
    return [each for file in files for each in yaml.safe_load_all(file.read_text("utf-8"))]


def pods() -> list[Any]:
    return [each["spec"]["template"]["spec"] for each in objects() if "template" in each["spec"]]


def containers() -> list[Any]:
    return [container for pod in pods() for container in pod["containers"]]


def test_a_pod_has_no_rights_that_it_does_not_need() -> None:
    assert len(pods()) == 3
    for pod in pods():
        context = pod["securityContext"]
        # As the image says.
        assert f"USER {context['runAsUser']}:{context['runAsGroup']}" in (DEPLOY / "Dockerfile").read_text("utf-8")
        assert context["runAsNonRoot"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
    for container in containers():
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {"/data", "/tmp"} <= {mount["mountPath"] for mount in container["volumeMounts"]}


def test_what_a_container_is_given_are_settings() -> None:
    for pod in pods():
        (container,) = pod["containers"]
        values = {each["name"]: each.get("value") for each in container["env"]}
        assert {name for name in values if name != "POD_IP"} <= SETTINGS
        Settings.model_validate(
            {name.removeprefix("HOLDFAST_").lower(): value for name, value in values.items() if value is not None}
        )
        (secrets,) = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
        assert {item["path"].upper() for item in secrets["items"]} <= SETTINGS
        assert "holdfast_operator_token" in {item["path"] for item in secrets["items"]}
        assert secrets["defaultMode"] & 0o007 == 0
        (mount,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "secrets"]
        assert mount == values["HOLDFAST_SECRETS_DIR"]


def test_the_service_is_asked_on_its_port_whether_it_lives_and_is_ready() -> None:
    served = [container for container in containers() if container["args"][0] == "serve"]
    assert len(served) == 2
    for container in served:
        assert container["ports"] == [{"name": "http", "containerPort": SERVICE.port}]
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
        for probe in ("startupProbe", "readinessProbe"):
            assert container[probe]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert set(PROBES) == {"/healthz", "/readyz"}
    for service in (each for each in objects() if each["kind"] == "Service"):
        assert service["spec"]["ports"] == [{"name": "http", "port": SERVICE.port, "targetPort": "http"}]


def test_a_pod_has_time_to_finish() -> None:
    for pod in pods():
        (container,) = pod["containers"]
        pause = int(container.get("lifecycle", {}).get("preStop", {"exec": {"command": [0]}})["exec"]["command"][-1])
        assert pod["terminationGracePeriodSeconds"] > pause + SERVICE.shutdown_seconds


def test_only_a_store_in_a_file_is_kept_by_one_process() -> None:
    for each in objects():
        if each["kind"] == "StatefulSet":
            assert each["spec"]["replicas"] == 1
            assert [claim["metadata"]["name"] for claim in each["spec"]["volumeClaimTemplates"]] == ["data"]
        if each["kind"] == "Deployment":
            (secrets,) = [volume for volume in each["spec"]["template"]["spec"]["volumes"] if "secret" in volume]
            assert "holdfast_store" in {item["path"] for item in secrets["secret"]["items"]}


def test_the_labels_that_are_selected_are_those_of_the_pods() -> None:
    labelled = [each["spec"]["template"]["metadata"]["labels"] for each in objects() if "template" in each["spec"]]
    for each in objects():
        selector = each["spec"]["selector"]
        wanted = selector.get("matchLabels", selector)
        assert [labels for labels in labelled if wanted.items() <= labels.items()]
