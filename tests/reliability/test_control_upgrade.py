"""Upgrade from schema 7: keys stay valid, and the audit trail can be filtered by what it already recorded."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import old_stores
import pytest

from faults.places import ON_EACH, Place, PostgresPlace, SqlitePlace
from holdfast.domain.access import LOCAL_OPERATOR, Action, ActorKind, authorize
from holdfast.domain.bindings import first_binding
from holdfast.domain.contract import SourceKind
from holdfast.domain.jobs import JobFilter
from holdfast.domain.operations import OperationFilter, OperationType
from holdfast.domain.scope import Scope
from holdfast.domain.times import from_micros
from holdfast.domain.users import User
from holdfast.testing.store_suite.control_scribe import ControlScribe
from holdfast.testing.store_suite.scribe import EVERYTHING
from postgres import schema_of

AT = 1_767_268_800_000_000
PARTS = {"space": "acme", "agent": "ann", "project": "pü", "issue": "i", "run": "r"}
BEFORE = (
    f"INSERT INTO users (space, id, key_digest, created_at, revoked_at) VALUES ('acme', 'bo', {{}}, {AT}, {AT + 1})",
    "INSERT INTO operations (space, id, scope, actor_kind, actor_id, action, outcome, touched, started_at,"
    f" duration_micros) VALUES ('acme', 'op_1', '{json.dumps(PARTS)}', 'agent', 'ann', 'add', 'succeeded', 1, {AT}, 5)",
    "INSERT INTO operations (space, id, scope, actor_kind, actor_id, action, outcome, touched, started_at,"
    f" duration_micros) VALUES ('acme', 'op_2', '{{\"space\": \"acme\"}}', 'agent', 'ann', 'search', 'failed', 0,"
    f" {AT}, 5)",
    "INSERT INTO jobs (id, kind, space, scope, record_ids, status, attempt, retry_of, created_at, run_after) VALUES"
    f" ('job_1.2', 'extract', 'acme', '{json.dumps(PARTS)}', '[]', 'queued', 2, 'job_1', {AT}, {AT})",
)
GRANT = authorize(LOCAL_OPERATOR, Action.MANAGE_BINDINGS, Scope(space="acme"))


@pytest.fixture
def older(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Place:
    """A store of schema 7 with content for the control plane to query."""
    digest = ("x'{}'" if kind == "sqlite" else "decode('{}', 'hex')").format("ab" * 32)
    statements = [statement.replace("{}", digest) for statement in BEFORE]
    if kind == "sqlite":
        place: Place = SqlitePlace(tmp_path)
        old_stores.restore(kind, 7, place)
        with closing(sqlite3.connect(place.location, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)
        return place
    server = request.getfixturevalue("postgres")
    place = PostgresPlace(server)
    old_stores.restore(kind, 7, place, server)
    for statement in statements:
        server.execute(f"SET search_path = {schema_of(place.location)}, public; {statement}")
    return place


@pytest.mark.parametrize("kind", ON_EACH)
def test_a_store_of_schema_7_is_one_that_a_control_plane_can_ask(older: Place) -> None:
    async def whole() -> None:
        async with older.store() as store:
            user = User("bo", "acme", from_micros(AT), revoked_at=from_micros(AT + 1))
            assert await store.read(GRANT, lambda r: r.users.find("bo")) == (user, b"\xab" * 32)
            assert await store.read(EVERYTHING, lambda r: r.users.find_by_key(b"\xab" * 32)) == user
            assert await store.read(GRANT, lambda r: list(r.users.page(None, 9, ActorKind.AGENT))) == []
            for wanted in (
                OperationFilter(agent="ann"),
                OperationFilter(project="pü", type=OperationType.CAPTURE),
                OperationFilter(issue="i"),
                OperationFilter(run="r"),
            ):
                (found,) = await store.read(GRANT, lambda r, w=wanted: r.operations.page(w, None, 9))
                assert (found.id, found.scope, found.attribution) == ("op_1", Scope(**PARTS), None)
            everything = await store.read(GRANT, lambda r: r.operations.page(OperationFilter(), None, 9))
            assert [each.id for each in everything] == ["op_2", "op_1"]
            asked = OperationFilter(source_kind=SourceKind.RUN)
            assert await store.read(GRANT, lambda r: list(r.operations.page(asked, None, 9))) == []
            (job,) = await store.read(GRANT, lambda r: r.jobs.page(JobFilter(run="r"), from_micros(AT), None, 9))
            assert (job.id, job.retry_of, job.cause) == ("job_1.2", "job_1", None)
            assert await store.read(GRANT, lambda r: list(r.bindings.find_all())) == [first_binding("acme")]
            if older.kind == "sqlite":  # a server's dump does not contain the sequence counters
                await store.write(GRANT, ControlScribe("acme").everything())
            assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity("e")))[1] == []

    asyncio.run(whole())
