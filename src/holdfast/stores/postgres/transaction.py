"""Writing to PostgreSQL: what the stores share, and the locks that make it serial where it must be."""

from __future__ import annotations

from holdfast.domain.access import Grant
from holdfast.domain.operations import Operation
from holdfast.domain.scope import Partition
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.outcome import Proof
from holdfast.stores.postgres.session import Session
from holdfast.stores.sql.transaction import SqlTransaction


class PostgresTransaction(SqlTransaction):
    """Implements `ports.Transaction`. `recorded` is what proves, later, whether it was committed."""

    dialect = POSTGRES

    def __init__(self, session: Session, grant: Grant) -> None:
        super().__init__(session, grant, session.known)
        self.session = session
        self.recorded: Proof | None = None

    def enter(self, partition: Partition) -> bool:
        self.session.lock_space(partition.space)
        return self.session.lock_partition(partition)

    def record(self, operation: Operation) -> None:
        super().record(operation)
        self.recorded = Proof(operation.id)

    def settle(self, operation: Operation) -> None:
        super().settle(operation)
        # That it was recorded, an earlier transaction saw to.
        self.recorded = Proof(operation.id, settled=True)
