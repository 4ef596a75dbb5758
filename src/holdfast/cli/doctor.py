"""`doctor`: checks everything that a memory needs. Each line says what to do if something is wrong."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import holdfast
from holdfast.app import find_wide_store_files, store_model_verbs
from holdfast.cli.exits import ExitCode
from holdfast.cli.formatting import format_count
from holdfast.cli.health import Check, CheckHealth
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, StoreOptions, expand_options
from holdfast.cli.settings_check import check_settings, shown_settings
from holdfast.cli.store_access import MEMORY, location, server_settings, store_exists
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line, quote_word
from holdfast.domain.custom_embedder import DERIVED, NAMED
from holdfast.domain.location import is_server_url, redact_location
from holdfast.domain.manifest import MENDS, REBUILDS, ROWS, RepairAction
from holdfast.domain.model_endpoint import ModelProtocol, choose_endpoint, validate_model
from holdfast.domain.results import UNCHECKED, Finding, Stats, Verification
from holdfast.domain.scope import EVERYWHERE
from holdfast.errors import AccessDenied, ConfigurationError, HoldfastError
from holdfast.installation import install_command
from holdfast.settings import MODEL_VERBS, Settings, read_settings

_LEAST_PYTHON = (3, 11)
_LEAST_SQLITE = (3, 35, 0)  # the first with RETURNING
_LITTLE_SPACE = 500 * 1024 * 1024
_NO_SPACE = 20 * 1024 * 1024


@expand_options
def doctor(
    chosen: StoreOptions,
    settings: Annotated[
        bool, typer.Option("--settings", help="Only list every setting, and where it comes from.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check Python, the settings, the embedder, the store and the disk. Exit code 1 if something fails."""
    if settings:
        _list_settings(chosen, as_json)
        return
    checks = list(run_checks(chosen))
    failed = any(check.health is CheckHealth.FAIL for check in checks)
    if as_json:
        print_json({"ok": not failed, "checks": checks, "settings": shown_settings(chosen)})
    else:
        _show(checks)
    if failed:
        raise typer.Exit(ExitCode.PROBLEM)


def _list_settings(chosen: StoreOptions, as_json: bool) -> None:
    from holdfast.cli import render

    shown = shown_settings(chosen)
    if as_json:
        print_json({"settings": shown})
    else:
        render.show_table(("setting", "value", "from"), [(each.name, each.value, each.origin) for each in shown], "")


def run_checks(chosen: StoreOptions) -> Iterator[Check]:
    yield _version(
        "python", platform.python_version(), sys.version_info[:2] >= _LEAST_PYTHON, "install Python 3.11 or newer"
    )
    new_enough = sqlite3.sqlite_version_info >= _LEAST_SQLITE
    yield _version("sqlite", sqlite3.sqlite_version, new_enough, "use a Python that comes with SQLite 3.35 or newer")
    try:
        path = location(chosen)
    except ConfigurationError as error:
        advice = "correct or remove it; `holdfast doctor --settings` says where it is"
        yield Check("settings", CheckHealth.FAIL, str(error), advice)
        return
    yield from check_settings(chosen)
    if is_server_url(path):
        yield from _server(path)
        return
    yield _approximate(path)
    yield from _privacy(path, chosen)
    yield _documents()
    embedder = _embedder(chosen)
    yield embedder
    if embedder.health is not CheckHealth.FAIL:
        yield from _store(path, chosen)
    yield from _model(path)
    yield from _operator_token(path)
    yield _transports()
    if "://" not in path:
        yield _disk(path)


def _version(name: str, found: str, new_enough: bool, advice: str) -> Check:
    return Check(name, CheckHealth.OK, found) if new_enough else Check(name, CheckHealth.FAIL, found, advice)


def _approximate(path: str) -> Check:
    """Check whether large partitions can be searched with an index."""
    least = read_settings().approximate_from
    if not least:
        return Check("large partitions", CheckHealth.OK, "searched exactly: HOLDFAST_APPROXIMATE_FROM is 0")
    if "://" not in path and importlib.util.find_spec("usearch") is None:
        detail = f"searched exactly, even from {least:,} records on: usearch is not installed"
        return Check("large partitions", CheckHealth.OK, detail, f"`{install_command('approximate')}`, to index them")
    return Check("large partitions", CheckHealth.OK, f"searched with an index from {least:,} records on")


def _documents() -> Check:
    """Check whether code in a document could be confined."""
    from holdfast.app import document_barriers

    present, missing = document_barriers()
    if not missing:
        return Check("documents", CheckHealth.OK, f"are read behind {' and '.join(present)}")
    advice = "use Linux 5.13 or newer, and let containers use seccomp and Landlock"
    if present:
        detail = (
            f"are read behind {present[0]} alone, and the memory of this process is hidden: {missing[0]} is missing"
        )
        return Check("documents", CheckHealth.WARN, detail, advice)
    lacking = "no process can be confined here: seccomp and landlock are missing"
    if read_settings().unconfined_documents:
        detail = f"are read although {lacking}; HOLDFAST_UNCONFINED_DOCUMENTS allows it"
        return Check("documents", CheckHealth.WARN, detail, advice)
    detail = f"other than plain text are refused: {lacking}"
    return Check("documents", CheckHealth.WARN, detail, f"{advice}; or set HOLDFAST_UNCONFINED_DOCUMENTS")


def _embedder(chosen: StoreOptions) -> Check:
    """Check the embedder with one word, in a temporary store."""
    try:
        with holdfast.open(MEMORY, embedder=chosen.embedder, settings=read_settings(), work=False) as memory:
            explained = memory.explain("hello")
    except HoldfastError as error:
        return Check(
            "embedder", CheckHealth.FAIL, str(error), "correct --embedder or HOLDFAST_EMBEDDER; static needs nothing"
        )
    if "embedder" in explained.query:
        advice = "check HOLDFAST_EMBEDDER_URL and HOLDFAST_EMBEDDER_KEY, and that the endpoint is up"
        return Check("embedder", CheckHealth.FAIL, f"{explained.embedder} does not answer", advice)
    return Check("embedder", CheckHealth.OK, explained.embedder)


def _privacy(path: str, chosen: StoreOptions) -> Iterator[Check]:
    """Warn of files of the store that others may use."""
    for own in (True, False):
        if wide := [str(file) for file in find_wide_store_files(path) if file.own is own]:
            whose = "" if own else ", and belong to another user"
            protect = f"`chmod go= {' '.join(map(quote_word, wide))}`, as their owner"
            advice = f"`{_store_command(chosen, 'store repair --apply')}`" if own else protect
            yield Check("privacy", CheckHealth.WARN, f"can be read by others{whose}: {', '.join(wide)}", advice)


def _store_command(chosen: StoreOptions, path: str) -> str:
    """A command for this store, with its embedder."""
    embedder = "" if chosen.embedder is None else f" --embedder {quote_word(chosen.embedder)}"
    return suggest_command(chosen, path) + embedder


def _store(path: str, chosen: StoreOptions) -> Iterator[Check]:
    if path == MEMORY:
        yield Check(
            "store", CheckHealth.WARN, ":memory: is gone when a command ends", "give the path of a file with --store"
        )
        return
    try:
        if not store_exists(path):
            yield _missing(path, chosen)
            return
        with holdfast.open(path, embedder=chosen.embedder, settings=read_settings(), work=False) as memory:
            found, verification = memory.stats(space=EVERYWHERE), memory.verify()
    except HoldfastError as error:
        yield Check("store", CheckHealth.FAIL, str(error))
        return
    yield _write_access(path)
    yield Check("contents", CheckHealth.OK, _contents(found))
    yield from _vectors(found.embedder, chosen.embedder or read_settings().embedder)
    for finding in verification.findings:
        yield Check("integrity", CheckHealth.FAIL, f"{finding.check}: {finding.problem}", _how_to_mend(finding, chosen))
    counts = dict(verification.checked)
    if unchecked := counts.pop(UNCHECKED, 0):
        detail = f"{unchecked:,} rows from before there were checksums are not checked"
        yield Check(
            "integrity", CheckHealth.WARN, detail, f"`{_store_command(chosen, 'worker --once')}` adds their checksums"
        )
    elif verification.ok:
        yield Check("integrity", CheckHealth.OK, f"{sum(counts.values()):,} rows checked")
    yield from _unproven_operators(verification, chosen)
    yield _waiting(found, chosen)


def _unproven_operators(verification: Verification, chosen: StoreOptions) -> Iterator[Check]:
    """Warn of operators that anybody on this machine could have made, when a gateway needed no token."""
    for operator in verification.unproven_operators:
        detail = (
            f"the key of operator {operator.id} of space {operator.space} was made by a caller without a credential"
        )
        remove = suggest_command(chosen, "credential revoke", operator.id, kind="operator", company=operator.space)
        yield Check("operators", CheckHealth.WARN, detail, f"`{remove}` removes it, if you did not make it yourself")


def _operator_token(path: str) -> Iterator[Check]:
    """Check the file of the operator token, if there is one."""
    from holdfast.gateway.operator_token import read_token, token_file

    file = token_file(path)
    if file is None:
        return
    try:
        found = read_token(file)
    except ConfigurationError as error:
        yield Check("operator token", CheckHealth.FAIL, str(error))
        return
    if found is not None:
        yield Check("operator token", CheckHealth.OK, f"{file} can be read by this account alone")


# The transports of runtimes at the service's address, and the paths of each.
_PATHS = {"http": "/memory", "mcp": "/mcp"}
_CALLERS = "callers need a key of a user, an agent or an operator, or the operator token; an address is no credential"


def _transports() -> Check:
    """List the address that `holdfast serve` listens on, its transports, and who may call them."""
    settings = read_settings()
    address = f"[{settings.host}]" if ":" in settings.host else settings.host
    listed = [f"{name} ({_PATHS[name]})" for name in settings.listed_transports]
    offered = f"runtimes over {' and '.join(listed)}" if listed else "no runtimes: HOLDFAST_TRANSPORTS is none"
    detail = f"`holdfast serve` listens on {on_one_line(address)}:{settings.port}, and offers {offered}; {_CALLERS}"
    return Check("transports", CheckHealth.OK, detail)


def _how_to_mend(finding: Finding, chosen: StoreOptions) -> str:
    mend = MENDS.get(finding.check)
    if mend is RepairAction.REINDEX or finding.check in REBUILDS:
        return f"`{_store_command(chosen, 'store rebuild')}`; nothing that was said or learned is lost"
    if finding.check == ROWS:
        return ""
    return "restore the store from a backup" if mend is None else f"`{_store_command(chosen, 'store repair --apply')}`"


def _vectors(made_by: str, chosen: str) -> Iterator[Check]:
    """Warn if the stored vectors are by an embedder that is not configured."""
    if made_by.partition(":")[0] != chosen.partition(":")[0]:
        detail = f"by {made_by}, which is not configured: nothing is searched by meaning or embedded"
        kind, _, name = made_by.partition(":")
        like = {"onnx": ":DIRECTORY", "openai": ":MODEL"}.get(kind, "")
        advice = f"name it with --embedder or HOLDFAST_EMBEDDER, as {kind}{like}"
        if kind in (DERIVED, NAMED):
            program = f"the Python program whose embedder is {name.rsplit(':', 2)[0]:.80}"
            advice = f"search by meaning in {program}; here, `--method keyword` searches by words"
        yield Check("vectors", CheckHealth.WARN, detail, on_one_line(advice))


def _server(path: str) -> Iterator[Check]:
    """Check that a server answers, and what the key reaches. Its embedder, store and disk are its own concern."""
    try:
        with holdfast.open(path, settings=server_settings(path)) as memory:
            found = memory.stats()
    except AccessDenied as error:
        yield Check("server", CheckHealth.FAIL, str(error), "set HOLDFAST_KEY to a user's key or the operator's token")
        return
    except HoldfastError as error:
        yield Check("server", CheckHealth.FAIL, str(error))
        return
    yield Check("server", CheckHealth.OK, f"{path} answers, and accepts the key")
    yield Check("contents", CheckHealth.OK, _contents(found))


def _missing(path: str, chosen: StoreOptions) -> Check:
    folder = Path(path).absolute().parent
    if "://" not in path and not folder.is_dir():
        problem, advice = "does not exist", f"`mkdir -p {quote_word(str(folder))}`, or name another with --store"
    elif "://" not in path and not os.access(folder, os.W_OK):
        problem, advice = "cannot be written", "change its permissions, or use --store"
    else:
        detail = f"there is none at {redact_location(path)} yet"
        return Check("store", CheckHealth.WARN, detail, f"`{_store_command(chosen, 'store init')}` creates it")
    return Check("store", CheckHealth.FAIL, f"the folder {folder} {problem}", advice)


def _write_access(path: str) -> Check:
    """Check that an open store can be written. Opening checks its schema and brings an older one up to date."""
    detail = f"{redact_location(path)} opens, its schema is known"
    # A database that cannot be written would not have opened.
    if "://" in path or all(os.access(place, os.W_OK) for place in (path, Path(path).absolute().parent)):
        return Check("store", CheckHealth.OK, detail)
    return Check("store", CheckHealth.FAIL, detail, "make the file and its folder writable")


def _contents(found: Stats) -> str:
    return f"{format_count(found.messages, 'message')}, {format_count(found.memories, 'memory', 'memories')}"


def _model(path: str) -> Iterator[Check]:
    """Say which verbs send texts to a model. It is not called: that may cost money."""
    settings = read_settings()
    if not settings.model:
        yield Check("model", CheckHealth.OK, "none: `flush` learns by rules")
        return
    try:
        endpoint = choose_endpoint(settings.model, settings.named_model_url)
        _, url = validate_model(endpoint.model, endpoint.url)
        of_store = _verbs_of_store(path, settings)
    except HoldfastError as error:
        yield Check("model", CheckHealth.FAIL, str(error), "correct HOLDFAST_MODEL and HOLDFAST_MODEL_URL")
        return
    if endpoint.protocol is ModelProtocol.ANTHROPIC and importlib.util.find_spec("anthropic") is None:
        problem, advice = f"{settings.model} needs Anthropic's SDK", f"`{install_command('agent')}`"
        yield Check("model", CheckHealth.FAIL, problem, advice)
        return
    verbs = of_store if settings.asked_verbs is None else settings.asked_verbs
    asking = " and ".join(f"`{verb}`" for verb in sorted(verbs)) or "no verb"
    detail = f"{on_one_line(settings.model)} at {url} is asked by {asking}"
    if "flush" in verbs:
        yield Check("model", CheckHealth.OK, f"{detail}, which send it texts of conversations")
    elif settings.asked_verbs is not None:
        yield Check("model", CheckHealth.OK, f"{detail}, as HOLDFAST_MODEL_VERBS says; `flush` learns by rules")
    else:
        detail += " alone: the store is from before `flush` asked a model, so `flush` learns by rules"
        advice = "HOLDFAST_MODEL_VERBS=maintain,flush lets `flush` ask it; then texts that are flushed are sent to it"
        yield Check("model", CheckHealth.OK, detail, advice)


def _verbs_of_store(path: str, settings: Settings) -> frozenset[str]:
    """Return the verbs that ask a model in the store; of one that does not exist yet, those that it will have."""
    if path == MEMORY or settings.asked_verbs is not None or not store_exists(path):
        return MODEL_VERBS
    return asyncio.run(store_model_verbs(path, settings))


def _waiting(found: Stats, chosen: StoreOptions) -> Check:
    to_do = sum(found.jobs.get(status, 0) for status in ("queued", "running"))
    detail = f"{format_count(found.without_vectors, 'record')} without vectors, {format_count(to_do, 'job')} to do"
    if found.stale_vectors:
        detail = f"{format_count(found.stale_vectors, 'record')} with stale vectors, {detail}"
    if failed := found.jobs.get("failed", 0):
        detail += f", {format_count(failed, 'attempt')} failed"
    if found.pending_vectors or to_do:
        return Check("work", CheckHealth.WARN, detail, f"`{_store_command(chosen, 'worker --once')}` does it")
    return Check("work", CheckHealth.OK, detail)


def _disk(path: str) -> Check:
    folder = Path(path).absolute().parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    detail = f"{free / 1e9:,.1f} GB free at {folder}"
    if free < _NO_SPACE:
        return Check("disk", CheckHealth.FAIL, detail, "free some space: nothing more can be stored")
    if free < _LITTLE_SPACE:
        return Check("disk", CheckHealth.WARN, detail, "free some space soon")
    return Check("disk", CheckHealth.OK, detail)


def _show(checks: list[Check]) -> None:
    from rich.text import Text

    from holdfast.cli import render

    screen = render.console()
    styles = {CheckHealth.OK: "green", CheckHealth.WARN: "yellow", CheckHealth.FAIL: "bold red"}
    widest = max(len(check.name) for check in checks)
    for check in checks:
        head = Text(f"{check.health:<4} ", style=styles[check.health]).append(f"{check.name:<{widest}} ", style="bold")
        render.print_hanging(screen, head, on_one_line(check.detail))
        if check.advice:
            render.print_hanging(screen, Text(" " * head.cell_len), f"→ {check.advice}", style="dim")
