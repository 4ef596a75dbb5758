"""On PostgreSQL, an index scan serves each page of the audit trail: no sequential scan, no sort."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from holdfast.domain.access import Action
from holdfast.domain.contract import HookKind, SourceKind
from holdfast.domain.hooks import DeliveryFilter, HookDeliveryStatus, NewDelivery
from holdfast.domain.jobs import JobFilter, JobState
from holdfast.domain.operations import Attribution, OperationFilter, OperationType, Outcome
from holdfast.ports import Transaction
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.connection import Connector
from holdfast.stores.postgres.location import parse_location
from holdfast.stores.postgres.reader import PostgresReadScope
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.sql.reader import SqlReader
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from postgres import AnyServer, schema_of

ROWS = 4_000
GRANT = management_grant()
_SCRIBE = ControlScribe()
EARLY = _SCRIBE.now() + timedelta(hours=1)
ASKED: list[tuple[OperationFilter | JobFilter | DeliveryFilter, str]] = [
    (OperationFilter(agent="agent-1"), "operations_agent"),
    (OperationFilter(project="project-1"), "operations_project"),
    (OperationFilter(issue="issue-1"), "operations_issue"),
    (OperationFilter(run="run-1"), "operations_run"),
    (OperationFilter(binding="rare"), "operations_binding"),
    (OperationFilter(source_kind=SourceKind.ISSUE), "operations_source"),
    (OperationFilter(type=OperationType.CORRECT), "operations_action"),
    (OperationFilter(type=OperationType.FORGET), "operations_action"),
    (OperationFilter(outcome=Outcome.FAILED), "operations_outcome"),
    (OperationFilter(until=EARLY), "operations_pkey"),
    (OperationFilter(agent="agent-1", type=OperationType.CORRECT), "operations_agent_action"),
    (OperationFilter(agent="agent-1", outcome=Outcome.FAILED), "operations_agent_outcome"),
    (JobFilter(agent="agent-1"), "jobs_agent"),
    (JobFilter(run="run-1"), "jobs_run"),
    (JobFilter(state=JobState.CANCELLED), "jobs_ended"),
    (DeliveryFilter(status=HookDeliveryStatus.DEAD), "deliveries_status"),
    (DeliveryFilter(to="binding:rare"), "deliveries_destination"),
    (DeliveryFilter(kind=HookKind.MANUAL_CAPTURE), "deliveries_kind"),
]


class Watched(PostgresSession):
    """Records the query plan of each page."""

    plans: list[str]

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        if "ORDER BY x.id DESC LIMIT ?" in statement:
            found = super().execute(f"EXPLAIN {statement}", values).fetchall()
            self.plans.append("\n".join(row[0] for row in found))
        return super().execute(statement, values)


@pytest.fixture(scope="module")
def filled(postgres: AnyServer) -> Iterator[str]:
    url = postgres.store_url()
    scribe = ControlScribe()

    def write(transaction: Transaction) -> None:
        for n in range(ROWS):
            scribe.clock.step(60)
            scope = scribe.scope(
                agent=f"agent-{n % 20}", project=f"project-{n % 10}", issue=f"issue-{n % 400}", run=f"run-{n // 10}"
            )
            source = scribe.source(SourceKind.ISSUE) if n % 500 == 0 else None
            transaction.operations.add(
                scribe.operation(
                    scope=scope,
                    action=Action.CORRECT if n % 500 == 1 else Action.QUERY,
                    outcome=Outcome.FAILED if n % 100 == 1 else Outcome.SUCCEEDED,
                    attribution=Attribution("rare" if n % 500 == 2 else "default", source=source),
                )
            )
            rare = n % 500 == 3
            hook = scribe.hook(HookKind.MANUAL_CAPTURE) if rare else scribe.hook()
            status = HookDeliveryStatus.DEAD if rare else HookDeliveryStatus.DELIVERED
            to = "binding:rare" if rare else "binding:other"
            transaction.deliveries.add(NewDelivery(scribe.delivery(hook=hook, status=status, to=to), None))
            job_id, job = scribe.job(scope=scope)
            transaction.jobs.enqueue(job_id, job, scribe.now())
            if rare:
                transaction.jobs.cancel(job_id, scribe.now())

    async def whole() -> None:
        store = PostgresStore(url)
        await store.write(GRANT, write)
        await store.close()

    asyncio.run(whole())
    for table in ("operations", "jobs", "deliveries"):
        postgres.execute(f"ANALYZE {schema_of(url)}.{table}")
    yield url
    postgres.drop(url)


@pytest.mark.parametrize(("wanted", "index"), ASKED, ids=[str(number) for number in range(len(ASKED))])
def test_a_page_is_read_off_an_index(
    filled: str, wanted: OperationFilter | JobFilter | DeliveryFilter, index: str
) -> None:
    connector = Connector(parse_location(filled, 10), 10)
    connector.prepare().close()
    made = connector.session()
    with closing(Watched(made.connection, made._schema, made.life)) as session:
        session.plans = []
        reader = SqlReader(PostgresReadScope(session, GRANT))
        with session.transaction("BEGIN READ ONLY"):
            if isinstance(wanted, OperationFilter):
                reader.operations.page(wanted, None, 50)
            elif isinstance(wanted, JobFilter):
                reader.jobs.page(wanted, _SCRIBE.now(), None, 50)
            else:
                reader.deliveries.page(wanted, None, 50)
        assert session.plans
        for plan in session.plans:
            # In a store of one space, the primary key serves as well as the index by space.
            named = (index, "operations_space") if index == "operations_pkey" else (index,)
            assert any(f"Index Scan Backward using {each} " in plan or f" on {each} " in plan for each in named), plan
            assert "Seq Scan" not in plan, plan
