"""Every snippet of the documentation runs, and the reference is complete."""

from __future__ import annotations

import contextlib
import io
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import HoldfastError
from holdfast.gateway.app import create_route_app
from holdfast.gateway.authentication import RULE
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import Metrics
from holdfast.library import AsyncMemory
from holdfast.settings import GatewayClientSettings, ModelSettings, Settings
from serving import OPERATOR_KEY, USER_KEY, served

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What a snippet prints, if the page shows it right behind.
_PRINTED = re.compile(r"^```python\n((?:(?!```)[^\n]*\n)+)```\n\n```text\n((?:(?!```)[^\n]*\n)+)```", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The server's URL on the pages; a real server replaces it.
_SERVER = "postgresql://holdfast:secret@localhost/memory"
# The gateway's URL and a user's key on the pages, replaced likewise.
_GATEWAY, _KEY = "http://127.0.0.1:8010", "uk_…"
_LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if _PYTHON.search(page.read_text("utf-8"))], ids=_named)
def test_every_python_snippet_of_a_page_runs_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    if any(_SERVER in snippet for snippet in _PYTHON.findall(text)):
        text = text.replace(_SERVER, request.getfixturevalue("postgres_url"))
    with contextlib.ExitStack() as ending:
        if any(_GATEWAY in snippet for snippet in _PYTHON.findall(text)):
            server = ending.enter_context(served(str(tmp_path / "served.db"), "static"))
            text = text.replace(_GATEWAY, server.url).replace(_KEY, USER_KEY)
        names: dict[str, object] = {"__name__": "__snippet__"}
        shown = dict(_PRINTED.findall(text))
        for number, snippet in enumerate(_PYTHON.findall(text)):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(snippet, f"{page.name}[{number}]", "exec", dont_inherit=True), names)
            if snippet in shown:
                assert _DATE.sub("…", printed.getvalue()) == _DATE.sub("…", shown[snippet])


@pytest.mark.parametrize("page", [page for page in PAGES if _SHELL.search(page.read_text("utf-8"))], ids=_named)
def test_every_shell_snippet_of_a_page_runs_in_order_against_a_gateway(page: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = "\n".join(_SHELL.findall(page.read_text("utf-8"))).replace("127.0.0.1:8010", f"127.0.0.1:{port}")
    # `-f` makes curl fail on an error status; `pipefail` passes the failure on to the shell.
    script = "set -euo pipefail\n" + script.replace("curl -s ", "curl -sf ")
    _install_program(tmp_path)
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--store", str(tmp_path / "memory.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        try:
            assert service.stdout is not None
            assert str(port) in service.stdout.readline()
            ran = subprocess.run(
                ["bash", "-c", f"PATH={tmp_path}/.venv/bin:$PATH\n{script}"],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert ran.returncode == 0, ran.stdout + ran.stderr
            found = re.findall(r'"(?:results|hits)":\[(.*?)\]', ran.stdout)
            assert found, "a page that shows the gateway ends with a search, or has a recall"
            assert all(found), f"nothing was found: {ran.stdout}"
        finally:
            service.terminate()


def _install_program(folder: Path) -> None:
    """Put `.venv/bin/holdfast` there, as `make serve` does in a checkout."""
    program = folder / ".venv" / "bin" / "holdfast"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast "$@"\n')
    program.chmod(0o700)


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"))],
    ids=_named,
)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_setting_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    for name in Settings.model_fields:
        assert f"`HOLDFAST_{name.upper()}`" in text
    for name in GatewayClientSettings.model_fields:
        assert f"`MEMORY_GATEWAY_{name.upper()}`" in text
    for name in ModelSettings.model_fields:
        assert f"| `{name.upper()}` |" in text


def test_every_error_is_in_the_reference_with_its_code() -> None:
    text = (ROOT / "docs/reference/errors.md").read_text("utf-8")
    for error in _descendants(HoldfastError):
        assert f"| `{error.__name__}` | `{error.code}` |" in text


def _descendants(kind: type[HoldfastError]) -> list[type[HoldfastError]]:
    children = [child for child in kind.__subclasses__() if child.__module__ == "holdfast.errors"]
    return [found for child in children for found in (child, *_descendants(child))]


def test_every_public_name_and_method_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/library.md").read_text("utf-8")
    for name in holdfast.__all__:
        assert f"`{name}`" in text, name
    for name in vars(AsyncMemory):
        if not name.startswith("_"):
            assert f"`{name}(" in text, name


def test_every_route_is_in_the_reference_with_who_may_call_it() -> None:
    text = (ROOT / "docs/reference/http.md").read_text("utf-8")
    app = create_route_app(None, None, GatewayConfig(operator_token=OPERATOR_KEY), Metrics())  # type: ignore[arg-type]
    for route in app.state.table:
        path = re.sub(r"^/verbs/.+", "/verbs/{action}", route.path.replace(":path", "")).replace("/api/v1/", "/api/v2/")
        for method in route.methods:
            assert f"| `{method} {path}` | {route.openapi_extra[RULE]} |" in text


SOURCES = ROOT / "src/holdfast"
MAP = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def test_the_architecture_has_a_paragraph_for_every_package() -> None:
    headings = " ".join(re.findall(r"^\*\*(`.*?`)\*\*", MAP, re.MULTILINE))
    packages = {f"{path.name}/" for path in SOURCES.iterdir() if (path / "__init__.py").exists()}
    modules = {path.name for path in SOURCES.glob("*.py")} - {"__init__.py", "__main__.py", "plane.py"}
    assert {name for name in packages | modules if f"`{name}`" not in headings} == set()


@pytest.mark.parametrize("page", [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=_named)
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    """A page names a file by its path, or by its name within the paragraph of its package."""
    known = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py")} | {
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("t*/**/*.py")
    }
    known |= {path.rpartition("/")[2] for path in known}
    named = set(re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")))
    assert named
    assert {name for name in named if name.removeprefix("src/holdfast/") not in known} == set()


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"\$ make (\w+)", (ROOT / "README.md").read_text("utf-8")):
        assert f"\n{target}:" in makefile
