"""Modules loaded at start-up, which every command, every worker and every program that opens a memory pays for.

Each test runs a fresh process and checks the modules it has loaded.
"""

from __future__ import annotations

import ast
import json
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import holdfast
from holdfast.cli.agent import Agent
from holdfast.cli.lazy import CommandEntry
from holdfast.cli.program import Program, app
from serving import answering, http

# Packages that a memory in a file does not need, and their dependencies.
HEAVY = frozenset(
    {
        *("anthropic", "fastapi", "httpx", "httpx2", "jinja2", "onnxruntime", "openai", "prometheus_client", "psycopg"),
        *("pypdf", "rich", "starlette", "typer", "usearch", "uvicorn", "wordllama"),
        *(
            "holdfast.agent",
            "holdfast.cli",
            "holdfast.client",
            "holdfast.gateway",
            "holdfast.control_api",
            "holdfast.sdk",
        ),
        *("holdfast.domain.json_values", "holdfast.domain.result_lines", "holdfast.domain.result_tables"),
        *("holdfast.control.bindings", "holdfast.control.delivery_worker", "holdfast.control.memory"),
        *(
            "holdfast.control.routing",
            "holdfast.domain.runtime_api",
            "holdfast.extract",
            "holdfast.providers.configuration",
        ),
        *("holdfast.providers.gateway", "holdfast.providers.local", "holdfast.runtime.transcripts.maintenance_job"),
        *("holdfast.stores.postgres", "holdfast.stores.sessions", "holdfast.testing", "holdfast.wire"),
    }
)
USED = """
import holdfast
with holdfast.open(given, **options) as memory:
    memory.add("I moved to Lisbon last week.", subject="ana")
    assert memory.search("Where does Ana live?", subject="ana")
"""


def loaded_by(code: str, given: str = "", **options: Any) -> set[str]:
    """The names of all modules that the process has loaded at its end."""
    program = (
        f"import json, sys\ngiven, options = {given!r}, {options!r}\n{code}\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout.splitlines()[-1]))


def of(packages: frozenset[str], loaded: set[str]) -> set[str]:
    """The modules that are, or are in, one of the packages."""
    return {name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in packages)}


def ours(loaded: set[str]) -> set[str]:
    return of(frozenset({"holdfast"}), loaded)


def test_importing_holdfast_loads_its_errors_and_nothing_else() -> None:
    loaded = loaded_by("import holdfast")
    assert ours(loaded) == {"holdfast", "holdfast.errors"}
    assert not of(frozenset({"asyncio", "dataclasses", "numpy", "pydantic", "sqlite3"}), loaded)


@pytest.mark.parametrize("embedder", ["fake", "static"])
def test_a_memory_in_a_file_is_used_without_anything_that_it_has_no_use_for(tmp_path: Path, embedder: str) -> None:
    loaded = loaded_by(USED, str(tmp_path / "memory.db"), embedder=embedder)
    assert "holdfast.stores.sqlite.store" in loaded
    assert of(HEAVY, loaded) == set()


def test_what_learns_from_words_is_loaded_with_the_first_of_them(tmp_path: Path) -> None:
    flushed = USED + "    memory.flush(subject='ana')\n    memory.drain()\n"
    assert "holdfast.extract.rule_extractor" in loaded_by(flushed, str(tmp_path / "memory.db"), embedder="fake")


def test_a_models_client_is_loaded_when_it_is_asked(tmp_path: Path) -> None:
    with answering(http(401)) as (url, asked):
        named = f"import os\nos.environ |= dict(HOLDFAST_MODEL='anthropic:claude', HOLDFAST_MODEL_URL={url!r})\n"
        assert of(HEAVY, loaded_by(named + USED, str(tmp_path / "memory.db"), embedder="fake")) == set()
        assert not asked
        flushed = "    memory.flush(subject='ana')\n    memory.drain()\n"
        loaded = loaded_by(named + USED + flushed, str(tmp_path / "memory.db"), embedder="fake")
    assert asked
    assert "anthropic" in loaded
    assert not of(frozenset({"openai"}), loaded)


def test_whoever_opens_a_memory_behind_a_server_loads_no_engine() -> None:
    code = """
import holdfast
try:
    holdfast.open("http://127.0.0.1:9", timeout_seconds=0.5)
except holdfast.HoldfastError:
    pass
else:
    raise SystemExit("somebody answered")
"""
    engine = frozenset({"holdfast.app", "holdfast.search", "holdfast.stores", "holdfast.extract", "sqlite3"})
    loaded = loaded_by(code)
    assert "holdfast.client.remote" in loaded
    assert of(engine, loaded) == set()


SPOKEN = "from holdfast.cli import main\nassert main(given.split()) == 0"
WAYS_IN = {"holdfast", "holdfast.errors", "holdfast.cli"} | {
    f"holdfast.cli.{name}" for name in ("exits", "json_output", "lazy", "program", "terminal_safety")
}


@pytest.mark.parametrize(
    ("typed", "besides"),
    [("", ()), ("--version", ()), ("--help", ()), ("-h", ()), ("agent", ("agent",)), ("agent --help", ("agent",))],
)
def test_the_version_and_the_lists_of_commands_load_none_of_them(typed: str, besides: tuple[str, ...]) -> None:
    loaded = loaded_by(SPOKEN, typed)
    assert ours(loaded) == WAYS_IN | {f"holdfast.cli.{name}" for name in besides}
    assert not of(frozenset({"asyncio", "numpy", "rich", "sqlite3"}), loaded)


def test_completing_the_name_of_a_command_loads_none_of_them() -> None:
    code = """
import contextlib, io, os
os.environ |= {"_HOLDFAST_COMPLETE": "complete_bash", "COMP_WORDS": "holdfast s", "COMP_CWORD": "1"}
from holdfast.cli import main
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    main([])
assert shown.getvalue().split() == ["search", "shell", "serve", "store", "space"], shown.getvalue()
"""
    assert ours(loaded_by(code)) == WAYS_IN


def test_a_command_loads_no_other(tmp_path: Path) -> None:
    loaded = loaded_by(SPOKEN, f"search lisbon --help --store {tmp_path / 'memory.db'}")
    others = {entry.where.partition(":")[0] for entry in Program.entries.values()} - {"holdfast.cli.search"}
    assert "holdfast.cli.search" in loaded
    assert loaded & others == set()
    assert not of(frozenset({"holdfast.app", "numpy", "rich", "sqlite3"}), loaded)


@pytest.mark.parametrize("group", [(), ("agent",)], ids=str)
def test_the_list_of_commands_says_of_each_what_its_own_help_does(group: tuple[str, ...]) -> None:
    found: Any = get_command(app)
    entries: dict[str, CommandEntry] = Program.entries
    for name in group:
        found, entries = found.commands[name], Agent.entries
    assert list(found.commands) == list(entries)
    for name, entry in entries.items():
        assert entry.explained == found.commands[name].short_help, name


# --- the public API -------------------------------------------------------------------------------------------------


def seen_by_type_checkers() -> dict[str, tuple[str, str]]:
    """Each name that `holdfast` imports only for type checkers, with its module and its name there."""
    body = ast.parse(Path(holdfast.__file__).read_text("utf-8")).body
    guarded = next(node for node in body if isinstance(node, ast.If)).body
    assert all(isinstance(node, ast.ImportFrom) for node in guarded)
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in guarded
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_each_name_is_loaded_from_where_type_checkers_see_it() -> None:
    seen = seen_by_type_checkers()
    assert {*seen, "HoldfastError", "errors"} == set(holdfast.__all__)
    for name, (home, there) in seen.items():
        assert getattr(holdfast, name) is getattr(import_module(home), there), name


def test_names_that_are_not_loaded_yet_are_listed_and_can_be_imported() -> None:
    code = (
        "import holdfast\nassert set(dir(holdfast)) == {*holdfast.__all__, '__version__'}\n"
        "assert 'holdfast.control_api' not in sys.modules\n"
        "from holdfast import *\nassert ControlPlane is holdfast.ControlPlane and open is holdfast.open\n"
    )
    assert "holdfast.control_api" in loaded_by(code)


def test_help_tells_of_every_public_class() -> None:
    text = pydoc.render_doc(holdfast, renderer=pydoc.plaintext)
    shown = [name for name in holdfast.__all__ if isinstance(getattr(holdfast, name), type)]
    assert len(shown) > 30
    assert [name for name in shown if f"class {getattr(holdfast, name).__name__}" not in text] == []


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="holdfast has no 'Nothing'"):
        _ = holdfast.Nothing
    with pytest.raises(ImportError):
        exec("from holdfast import Nothing")
