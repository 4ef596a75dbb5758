"""Commands that other commands suggest: when pasted, they are accepted and act on the same store and company."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import ControlPlane
from holdfast.cli import binding, costs, credential, deliveries, jobs, operations, user, worker
from holdfast.cli.options import StoreOptions
from holdfast.cli.suggestions import suggest_command

from .conftest import Holdfast, Ran

STORE = "the company's.db"
COMPANY = "acme & sons"
WHERE = ("--space", COMPANY, "--store", STORE)
# A reader's values for the words in capitals.
MEANT = {
    "KEY": "second",
    "NAME": "somebody",
    "PROVIDER": "local",
    "MODEL": "small",
    "KIND": "other",
    "AMOUNT": "1",
    "DESCRIPTION": "November",
}
# A command with an … is incomplete; it occurs in errors that concern no particular store.
ADVICE = re.compile(r"`(holdfast [^`…]+)`")


@pytest.fixture
def plane(quiet_environment: Path) -> ControlPlane:
    return ControlPlane.open(quiet_environment / STORE, space=COMPANY, embedder="fake", work=False)


def emitted(plane: ControlPlane) -> None:
    """Emit a hook to a binding whose service does not respond."""
    plane.create_binding("far", "gateway", config={"url": "http://127.0.0.1:9", "user_id": "u"})
    plane.set_default("far")
    plane.emit("post_run_capture", "h1", "I live in Porto.", source={"kind": "run", "run_id": "r1"}, run="r1")


def dead(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    emitted(plane)
    (job,) = plane.jobs(kinds=["deliver"]).items
    plane.cancel_job(job.id)
    return holdfast("deliveries", "show", plane.deliveries().items[0].id, *WHERE)


def cancelled(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    plane.emit("post_run_capture", "h1", "I live in Porto.", source={"kind": "run", "run_id": "r1"})
    (job,) = plane.jobs(kinds=["extract"]).items
    return holdfast("jobs", "cancel", job.id, *WHERE)


def given_up(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    emitted(plane)
    plane.update_binding("far", enabled=False)
    return holdfast("worker", "--once", "--store", STORE)


def tried_again(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    emitted(plane)
    return holdfast("worker", "--once", "--store", STORE)


def switched_off(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    plane.update_binding("default", enabled=False)
    return holdfast("binding", "resolve", *WHERE)


def unserved(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    plane.create_binding("second", "local")
    plane.clear_default()
    return holdfast("binding", "resolve", *WHERE)


def deleted(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    plane.create_binding("second", "local")
    return holdfast("binding", "delete", "default", "--yes", *WHERE)


def none_left(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    plane.delete_binding("default")
    return holdfast("binding", "list", *WHERE)


def nothing_to_change(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    return holdfast("binding", "update", "default", *WHERE)


def revoked(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    holdfast("credential", "create", *WHERE, "--", "-o'hara")
    return holdfast("credential", "revoke", "--yes", *WHERE, "--", "-o'hara")


def there_already(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    holdfast("credential", "create", "the writer", "--kind", "operator", *WHERE)
    return holdfast("credential", "create", "the writer", "--kind", "operator", *WHERE)


def nobody(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    return holdfast("credential", "list", *WHERE)


def no_fees(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    return holdfast("costs", "fees", *WHERE)


def no_prices(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    return holdfast("costs", "prices", "list", *WHERE)


def a_user_revoked(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    where = ("--space", COMPANY, "--store", STORE)
    holdfast("user", "create", "ana", *where)
    return holdfast("user", "revoke", "ana", "--yes", *where)


def a_user_there_already(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    where = ("--space", COMPANY, "--store", STORE)
    holdfast("user", "create", "ana", *where)
    return holdfast("user", "create", "ana", *where)


def no_users(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    return holdfast("user", "list", "--space", COMPANY, "--store", STORE)


def no_store(holdfast: Holdfast, plane: ControlPlane) -> Ran:
    return holdfast("jobs", "list", "--space", COMPANY, "--store", "none yet.db")


SITUATIONS: dict[Callable[[Holdfast, ControlPlane], Ran], list[str]] = {
    dead: ["deliveries retry", "deliveries drop"],
    cancelled: ["jobs retry"],
    given_up: ["deliveries list --status dead"],
    tried_again: ["store jobs"],
    switched_off: ["binding enable default"],
    unserved: ["binding default KEY"],
    deleted: ["binding default KEY"],
    none_left: ["binding create KEY PROVIDER"],
    nothing_to_change: ["binding enable default"],
    revoked: ["credential rotate"],
    there_already: ["credential rotate"],
    nobody: ["credential create NAME"],
    no_fees: ["costs fee KIND AMOUNT DESCRIPTION"],
    no_prices: ["costs prices set PROVIDER MODEL"],
    a_user_revoked: ["user rotate ana"],
    a_user_there_already: ["user rotate ana"],
    no_users: ["user create NAME"],
    no_store: ["store init"],
}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.__name__)
def test_what_is_advised_can_be_pasted(
    holdfast: Holdfast, plane: ControlPlane, situation: Callable[[Holdfast, ControlPlane], Ran]
) -> None:
    with plane:
        plane.bindings()
        told = situation(holdfast, plane)
    found = ADVICE.findall(told.out + told.err)
    assert len(found) == len(SITUATIONS[situation]), told
    for each, said in zip(found, SITUATIONS[situation], strict=True):
        assert each.startswith(f"holdfast {said}")
        assert "--store" in each
        assert situation in (no_store, tried_again) or "'acme & sons'" in each
        pasted = holdfast(*(MEANT.get(word, word) for word in shlex.split(each)[1:]))
        assert pasted.code == 0, (each, pasted.err)


def test_a_store_that_was_not_given_is_not_advised(holdfast: Holdfast) -> None:
    holdfast("store", "init")
    assert "`holdfast credential create NAME`" in holdfast("credential", "list").out


def test_a_password_is_not_advised() -> None:
    chosen = StoreOptions(store="postgresql://ana:canary@db/memory?sslpassword=canary")
    told = suggest_command(chosen, "jobs retry", "job_1", company="acme")
    assert "canary" not in told
    assert told.startswith("holdfast jobs retry job_1 --space acme --store 'postgresql://ana:***@db/memory")


@pytest.mark.parametrize(
    "module", [binding, costs, credential, deliveries, jobs, operations, user, worker], ids=lambda each: each.__name__
)
def test_no_command_is_advised_without_its_place(module: object) -> None:
    """These modules print other commands only through `suggest_command`. Help texts are exempt: they know no store."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))  # type: ignore[attr-defined]
    documented = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert [text for text in sorted(said - documented) if "`holdfast" in text] == []
