"""The gate: one operation row per call, whatever the outcome; the row of a write is in the same commit."""

from __future__ import annotations

import ast
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Actor, ActorKind, Memory
from holdfast.domain.access import OF_THE_CONTROL_PLANE, OF_THE_RUNTIME, Action
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured, HoldfastError
from holdfast.ports import Purpose
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.testing.full_repr import full_repr
from probes import SteppingClock, trail_of

SOURCE = Path(holdfast.__file__).parent


class Known:
    """A memory with records, and their ids."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.message = str(memory.add("The cat sat.", subject="ana").message_ids[0])
        self.record = memory.remember("The cat is grey.", subject="ana").id
        self.spare = memory.remember("To be forgotten.", subject="ana").id
        self.corrected = memory.remember("The dog is brown.", subject="ana").id
        memory.correct(self.corrected, "The dog is black.")
        self.resource = memory.add_resource("A page.", subject="ana").resource.id
        memory.create_user("bob")


@pytest.fixture
def known(memory: Memory) -> Known:
    return Known(memory)


def rows_of(memory: Memory, call: Callable[[], Any]) -> tuple[Any, Sequence[Operation]]:
    """Return the call's answer or error, and the rows it left."""
    before = len(trail_of(memory))
    try:
        answer = call()
    except HoldfastError as error:
        answer = error
    return answer, trail_of(memory)[before:]


# Per action: the call, and the number of records it touches.
SUCCESSES: dict[Action, tuple[Callable[[Known], Any], int]] = {
    Action.ADD: (lambda it: it.memory.add(["One.", "Two."]), 2),
    Action.FLUSH: (lambda it: it.memory.flush(subject="ana"), 1),
    Action.SEARCH: (lambda it: it.memory.search("cat", top_k=1), 1),
    Action.RECALL: (lambda it: it.memory.recall("cat", top_k=1), 1),
    Action.EXPLAIN: (lambda it: it.memory.explain("cat", top_k=1), 1),
    Action.GET: (lambda it: it.memory.get(it.record), 1),
    Action.LIST: (lambda it: it.memory.list(limit=2), 2),
    Action.BROWSE: (lambda it: it.memory.browse(limit=2), 2),
    Action.HISTORY: (lambda it: it.memory.history(it.record), 1),
    Action.REMEMBER: (lambda it: it.memory.remember("Three."), 1),
    Action.CORRECT: (lambda it: it.memory.correct(it.record, "The cat is black."), 1),
    Action.REVERT: (lambda it: it.memory.revert(it.corrected, 1), 1),
    Action.FORGET_PREVIEW: (lambda it: it.memory.forget_preview(it.spare), 1),
    Action.FORGET: (lambda it: it.memory.forget(it.spare), 1),
    Action.STATS: (lambda it: it.memory.stats(), 0),
    Action.JOBS: (lambda it: it.memory.jobs(status="failed"), 0),
    Action.EVENTS: (lambda it: it.memory.events(limit=1), 1),
    Action.REBUILD: (lambda it: it.memory.rebuild(), 6),
    Action.VERIFY: (lambda it: it.memory.verify(), 0),
    Action.WORK: (lambda it: it.memory.drain(), 0),
    Action.CREATE_USER: (lambda it: it.memory.create_user("eve"), 1),
    Action.REVOKE_USER: (lambda it: it.memory.revoke_user("bob"), 1),
    Action.LIST_USERS: (lambda it: it.memory.users(), 1),
    Action.ADD_RESOURCE: (lambda it: it.memory.add_resource("One. Two.", subject="ana"), 1),
    Action.LIST_RESOURCES: (lambda it: it.memory.resources(), 1),
    Action.GET_RESOURCE: (lambda it: it.memory.resource(it.resource), 1),
    Action.DELETE_RESOURCE: (lambda it: it.memory.delete_resource(it.resource), 1),
}
WRITES = (
    Action.ADD, Action.FLUSH, Action.REMEMBER, Action.CORRECT, Action.FORGET, Action.REBUILD, Action.CREATE_USER,
    Action.REVOKE_USER, Action.ADD_RESOURCE, Action.DELETE_RESOURCE,
)  # fmt: skip
# The number of earlier calls of the action, by `Known`.
BEFORE = {Action.REMEMBER: 3, Action.CORRECT: 1, Action.ADD: 1, Action.CREATE_USER: 1, Action.ADD_RESOURCE: 1}


def test_every_action_is_tried() -> None:
    assert set(SUCCESSES) == set(Action) - OF_THE_RUNTIME - OF_THE_CONTROL_PLANE


@pytest.mark.parametrize("action", SUCCESSES)
def test_a_success_leaves_exactly_one_row(known: Known, action: Action) -> None:
    call, touched = SUCCESSES[action]
    answer, rows = rows_of(known.memory, lambda: call(known))
    assert not isinstance(answer, HoldfastError)
    (row,) = rows
    assert (row.action, row.outcome, row.error_code, row.record_count) == (action, Outcome.SUCCEEDED, None, touched)
    assert str(row.actor) == "operator:local"
    assert row.duration_micros >= 0


@pytest.mark.parametrize("action", WRITES)
def test_the_row_of_a_write_is_in_the_file_when_the_call_returns(known: Known, tmp_path: Path, action: Action) -> None:
    trail_of(known.memory)
    SUCCESSES[action][0](known)
    with sqlite3.connect(tmp_path / "memory.db") as other:
        found = other.execute("SELECT count(*) FROM operations WHERE action = ?", (action,)).fetchone()[0]
    assert found == BEFORE.get(action, 0) + 1


def test_the_row_of_a_read_is_in_the_file_soon(known: Known, tmp_path: Path) -> None:
    known.memory.search("cat")
    deadline = time.monotonic() + 5
    with sqlite3.connect(tmp_path / "memory.db") as other:
        while not other.execute("SELECT count(*) FROM operations WHERE action = 'search'").fetchone()[0]:
            assert time.monotonic() < deadline, "the row of a read was not written within five seconds"
            time.sleep(0.01)


def test_the_rows_of_reads_are_in_the_file_after_close(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with holdfast.open(path, embedder="fake", work=False) as memory:
        for _ in range(20):
            memory.search("cat")
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT count(*) FROM operations").fetchone()[0] == 20


REFUSALS: dict[str, Callable[[Known], Any]] = {
    "invalid_text": lambda it: it.memory.add(" "),
    "invalid_scope": lambda it: it.memory.search("cat", subject=""),
    "invalid_timestamp": lambda it: it.memory.search("cat", as_of="soon"),
    "invalid_cursor": lambda it: it.memory.list(cursor="x"),
    "invalid_input": lambda it: it.memory.search("cat", top_k=0),
    "not_found": lambda it: it.memory.get("mem_nowhere"),
    "access_denied": lambda it: it.memory.add("One.", space="*"),
    "revision_conflict": lambda it: it.memory.correct(it.record, "Two.", expected_revision=7),
    "preview_outdated": lambda it: it.memory.forget(it.spare, token="0" * 32),
    "user_exists": lambda it: it.memory.create_user("bob"),
    "duplicate_id": lambda it: it.memory.add([{"text": "One.", "id": "a"}, {"text": "Two.", "id": "a"}]),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_leaves_exactly_one_row_and_changes_nothing(known: Known, code: str) -> None:
    before = known.memory.list().items
    error, rows = rows_of(known.memory, lambda: REFUSALS[code](known))
    assert isinstance(error, HoldfastError)
    assert error.code == code
    (row,) = rows
    assert (row.outcome, row.error_code, row.record_count) == (Outcome.REFUSED, code, 0)
    assert known.memory.list().items == before


class Breaking(FakeEmbedder):
    """An embedder that raises `failure` if it is set."""

    failure: Exception | None = None

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        if self.failure is not None:
            raise self.failure
        return await super().embed(texts, purpose)


@pytest.fixture
def breaking() -> Breaking:
    return Breaking()


@pytest.fixture
def fragile(tmp_path: Path, breaking: Breaking) -> Iterator[Memory]:
    with holdfast.open(tmp_path / "fragile.db", embedder=breaking, work=False) as memory:
        memory.add("The cat sat.")
        yield memory


@pytest.mark.parametrize("verb", ["add", "remember", "search", "recall", "explain"])
@pytest.mark.parametrize(
    ("failure", "code"),
    [(EmbedderMisconfigured("broken"), "embedder_misconfigured"), (RuntimeError("a bug"), "internal_error")],
)
def test_a_failure_leaves_exactly_one_row_and_changes_nothing(
    fragile: Memory, breaking: Breaking, verb: str, failure: Exception, code: str
) -> None:
    before = len(trail_of(fragile))
    breaking.failure = failure
    with pytest.raises(type(failure)):
        getattr(fragile, verb)("The dog ran.")
    (row,) = trail_of(fragile)[before:]
    assert (row.action, row.outcome, row.error_code) == (verb, Outcome.FAILED, code)
    assert fragile.stats().messages == 1


def test_a_row_says_who_did_what_where_and_when(tmp_path: Path, clock: SteppingClock) -> None:
    actor = Actor(ActorKind.AGENT, "bot", "tenant", frozenset({"ana"}))
    options = {"embedder": "fake", "work": False, "clock": clock, "space": "tenant"}
    with holdfast.open(tmp_path / "m.db", actor=actor, **options) as memory:
        started = clock.advance(days=1)
        memory.add("One.", agent="bot", subject="ana", app="mail")
        (row,) = trail_of(memory)
    assert (row.actor.kind, row.actor.id) == (ActorKind.AGENT, "bot")
    assert (row.scope.space, row.scope.subject, row.scope.app) == ("tenant", "ana", "mail")
    assert 0 <= (row.started_at - started).total_seconds() < 1
    assert row.id.startswith("op_")


def test_no_row_holds_a_text(known: Known) -> None:
    for call, _ in SUCCESSES.values():
        call(known)
    held = full_repr(trail_of(known.memory))
    assert not [word for word in ("cat", "grey", "black", "forgotten.", "Three") if word in held]


def test_a_replayed_write_leaves_its_own_row(memory: Memory) -> None:
    for _ in range(3):
        memory.add("One.", idempotency_key="k")
    assert [(row.action, row.record_count) for row in trail_of(memory)] == [("add", 1), ("add", 0), ("add", 0)]


def test_nothing_but_the_gate_writes_operations() -> None:
    """Outside the stores, which only persist rows, nothing but the gate adds or settles a row."""
    writers = {
        f"{path.relative_to(SOURCE).as_posix()}:{called}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in ("stores", "testing")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and node.args
        if (called := ast.unparse(node.func)).endswith((".audit", ".settle", ".operations.add"))
    }
    assert writers == {
        "runtime/gate.py:core.store.audit",
        "runtime/gate.py:t.operations.settle",
        "runtime/gate.py:transaction.operations.add",
        "runtime/gate.py:transaction.operations.settle",
    }


def test_nothing_but_the_gate_makes_operations() -> None:
    makers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "testing"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Operation"
    }
    assert makers == {"runtime/gate.py", "stores/sql/operations.py"}
