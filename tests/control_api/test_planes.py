"""The blocking and the asynchronous control plane: same methods, opening and closing."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import Actor, ActorKind, AsyncControlPlane, ControlPlane
from holdfast.domain.contract import RecordHandle, SourceKind, SourceRef
from holdfast.errors import AccessDenied, InvalidInput, NotFound, StoreClosed
from serving import OPERATOR_KEY, USER_KEY, served

METHODS = [
    "activity", "add_fee", "binding", "bindings", "cancel_job", "capture", "clear_default", "clear_override", "close",
    "correct", "cost_events", "cost_summary", "create_binding", "delete_binding", "deliveries", "delivery",
    "drop_delivery", "emit", "explain", "finance_events", "forget", "get", "hydrate", "job", "jobs", "list", "metrics",
    "operation", "operations", "prices", "profile", "provider_jobs", "providers", "query", "remove_price", "resolve",
    "retry_delivery", "retry_job", "retry_provider_job", "set_default", "set_override", "set_price", "targets",
    "update_binding", "upsert",
]  # fmt: skip


def methods(of: type) -> dict[str, object]:
    return {name: found for name, found in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


def test_the_calls_are_these() -> None:
    assert sorted(methods(AsyncControlPlane)) == METHODS


def test_the_blocking_face_has_every_method_with_the_same_signature() -> None:
    blocking, core = methods(ControlPlane), methods(AsyncControlPlane)
    assert set(blocking) == set(core)
    for name in core:
        assert inspect.signature(blocking[name]) == inspect.signature(core[name]), name  # type: ignore[arg-type]
        assert inspect.iscoroutinefunction(core[name]), name
        assert inspect.getdoc(blocking[name]) == inspect.getdoc(core[name]), name
        assert inspect.getdoc(core[name]), name


def test_help_explains_every_argument() -> None:
    for name, method in methods(ControlPlane).items():
        text = inspect.getdoc(method) or ""
        for argument in list(inspect.signature(method).parameters)[1:]:  # type: ignore[arg-type]
            if argument not in ("key", "agent", "job_id", "operation_id", "delivery_id", "idempotency_key"):
                assert re.search(rf"^(.*, )?{argument}(, .*)?: ", text, re.MULTILINE), f"{name}: {argument}"


def test_a_new_company_is_served_by_our_own_store(tmp_path: Path) -> None:
    with ControlPlane.open(tmp_path / "memory.db", space="acme", embedder="fake", work=False) as plane:
        plane.upsert("Releases go out on Tuesdays.", agent="builder")
        found = plane.query("When are releases?", agent="builder")
        assert [each.text for each in found.result.snippets] == ["Releases go out on Tuesdays."]
        assert (found.binding, found.provider) == ("default", "local")
        (binding,) = plane.bindings()
        assert (binding.key, binding.provider, binding.created_at) == ("default", "local", None)
        operation = plane.operation(found.operation_id)
        assert operation.attribution is not None
        assert operation.attribution.binding == "default"


def test_companies_do_not_see_each_other(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    with ControlPlane.open(place, space="acme", embedder="fake", work=False) as plane:
        plane.upsert("Releases go out on Tuesdays.")
        plane.create_binding("second", "local")
    with ControlPlane.open(place, space="other", embedder="fake", work=False) as plane:
        assert plane.query("releases").result.snippets == ()
        assert [each.key for each in plane.bindings()] == ["default"]
        assert all(each.scope.space == "other" for each in plane.operations().items)


def test_it_opens_in_an_agents_name(tmp_path: Path) -> None:
    agent = Actor(ActorKind.AGENT, "builder", "acme")
    with ControlPlane.open(tmp_path / "memory.db", space="acme", actor=agent, embedder="fake", work=False) as plane:
        plane.upsert("The build runs on two cores.")
        (found,) = plane.list().result.items
        assert found.scope is not None
        assert found.scope.agent == "builder"
        with pytest.raises(AccessDenied):
            plane.bindings()
        with pytest.raises(AccessDenied):
            plane.query("cores", agent="tester")


def test_it_opens_without_an_event_loop_of_its_own(tmp_path: Path) -> None:
    async def work() -> int:
        plane = await AsyncControlPlane.open(tmp_path / "memory.db", embedder="fake", work=False)
        async with plane:
            return len(await plane.bindings())

    assert asyncio.run(work()) == 1


def test_a_server_has_the_same_control_plane(tmp_path: Path) -> None:
    with (
        served(str(tmp_path / "memory.db")) as server,
        ControlPlane.open(server.url, key=OPERATOR_KEY, space="acme") as plane,
    ):
        plane.create_binding("mine", "local", hooks={"issue_comment_capture": True})
        assert plane.set_override("builder", "mine").binding_key == "mine"
        assert plane.resolve(agent="builder").binding_key == "mine"
        (written,) = plane.upsert("The deploy is on Tuesdays.", agent="builder", idempotency_key="k").result.records
        assert plane.upsert("The deploy is on Tuesdays.", agent="builder", idempotency_key="k").result.records == (
            written,
        )
        assert plane.get(written, agent="builder").result.text == "The deploy is on Tuesdays."
        (found,) = plane.query("When is the deploy?", agent="builder").result.snippets
        plane.correct(found.handle, "The deploy is on Mondays.", agent="builder")
        emitted = plane.emit(
            "issue_comment_capture", "c1", "Ship it.", source={"kind": "issue_comment"}, agent="builder"
        )
        assert plane.delivery(emitted.deliveries[0].id).status == "delivered"
        assert "Mondays" in plane.hydrate("deploy", agent="builder", budget_ms=5_000).preamble
        assert plane.set_price("model", input_micros=150_000) in plane.prices()
        plane.remove_price("model")
        fee = plane.add_fee("storage", "Disk.", 19_900_000)
        assert plane.finance_events().items == (fee,)
        page = plane.operations(agent="builder", type="query", limit=1)
        assert plane.operation(page.items[0].id) == page.items[0]
        assert plane.metrics().queries >= 2
        assert [each.key for each in plane.bindings()] == ["default", "mine"]
        assert plane.forget(written, agent="builder").result.missing == ()
        with pytest.raises(NotFound):
            plane.get(written, agent="builder")
        with pytest.raises(InvalidInput, match="outcome"):
            plane.operations(outcome="fine")


def test_a_users_key_reaches_no_other_company_over_a_server(tmp_path: Path) -> None:
    with served(str(tmp_path / "memory.db")) as server:
        with ControlPlane.open(server.url, key=USER_KEY) as own:
            assert own.upsert("I keep bees.").result.records
        with ControlPlane.open(server.url, key=USER_KEY, space="acme") as other:
            for call in (lambda: other.query("bees"), other.operations, other.bindings):
                with pytest.raises(AccessDenied):
                    call()


def test_a_closed_one_says_so(tmp_path: Path) -> None:
    plane = ControlPlane.open(tmp_path / "memory.db", embedder="fake", work=False)
    plane.close()
    plane.close()
    with pytest.raises(StoreClosed):
        plane.bindings()


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with ControlPlane.open(tmp_path / "memory.db", embedder="fake", work=False) as plane:
        for field, call in {
            "source.kind": lambda: plane.capture("x", source="gossip"),
            "source": lambda: plane.capture("x", source={"kind": "run", "run": "r1"}),
            "source.space": lambda: plane.capture("x", source=SourceRef(SourceKind.RUN, "elsewhere")),
            "payload": lambda: plane.capture({"words": "x"}, source="run"),
            "records[0]": lambda: plane.upsert([{"txt": "x"}]),
            "records[0].text": lambda: plane.upsert([{"summary": "x"}]),
            "records": lambda: plane.upsert(3),  # type: ignore[arg-type]
            "mode": lambda: plane.capture("x", source="run", mode="whole"),
            "intent": lambda: plane.query("x", intent="gossip"),
            "hooks": lambda: plane.create_binding("a", "local", hooks={"after_lunch": True}),
            "since": lambda: plane.operations(since="yesterday"),
            "outcome": lambda: plane.operations(outcome="fine"),
            "state": lambda: plane.jobs(state="lost"),
        }.items():
            with pytest.raises(InvalidInput) as caught:
                call()
            assert caught.value.field == field
        with pytest.raises(TypeError, match="agnt"):
            plane.query("x", agnt="builder")  # type: ignore[call-arg]
        with pytest.raises(NotFound):
            plane.get("mem_none")


def test_a_handle_of_another_provider_names_nothing_here(tmp_path: Path) -> None:
    with holdfast.ControlPlane.open(tmp_path / "memory.db", embedder="fake", work=False) as plane:
        (record,) = plane.upsert("Releases go out on Tuesdays.").result.records
        assert plane.get(record).result.text == plane.get(record.record_id).result.text
        with pytest.raises(NotFound, match="'elsewhere'"):
            plane.get(RecordHandle("elsewhere", record.record_id))


def test_the_old_import_path_works_and_warns() -> None:
    sys.modules.pop("holdfast.plane", None)  # the warning is given once per process
    with pytest.warns(DeprecationWarning, match="moved to holdfast.control_api"):
        old = importlib.import_module("holdfast.plane")
    assert old.ControlPlane is holdfast.ControlPlane
    assert old.AsyncControlPlane is holdfast.AsyncControlPlane
