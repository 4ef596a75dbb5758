"""The transaction of a PostgreSQL store: the shared one, plus locks that serialize writes."""

from __future__ import annotations

from holdfast.domain.access import Grant
from holdfast.domain.operations import Operation
from holdfast.domain.scope import Partition
from holdfast.stores.postgres.commit_outcome import CommitProof
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.sql.transaction import SqlTransaction


class PostgresTransaction(SqlTransaction):
    """Implements `ports.Transaction`. `recorded` is the later proof of its commit."""

    dialect = POSTGRES

    def __init__(self, session: PostgresSession, grant: Grant) -> None:
        super().__init__(session, grant, session.known)
        self.session = session
        self.recorded: CommitProof | None = None

    def enter(self, partition: Partition) -> bool:
        self.session.lock_space(partition.space)
        return self.session.lock_partition(partition)

    def record(self, operation: Operation) -> None:
        super().record(operation)
        self.recorded = CommitProof(operation.id)

    def settle(self, operation: Operation) -> None:
        super().settle(operation)
        # An earlier transaction recorded it.
        self.recorded = CommitProof(operation.id, settled=True)
