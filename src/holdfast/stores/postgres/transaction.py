"""The transaction of a PostgreSQL store: the shared one, plus locks that serialize writes."""

from __future__ import annotations

from holdfast.domain.access import Grant
from holdfast.domain.operations import Operation
from holdfast.domain.scope import Partition
from holdfast.stores.postgres.commit_outcome import CommitProof
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.sql.grant_scope import Lazy
from holdfast.stores.sql.operations import SqlOperationWriter
from holdfast.stores.sql.transaction import SqlTransaction
from holdfast.stores.sql.write_scope import WriteScope


class PostgresWriteScope(WriteScope):
    """`proof` is the later proof of the commit: the row of the last operation that was written."""

    __slots__ = ("_session", "proof")

    def __init__(self, session: PostgresSession, grant: Grant) -> None:
        super().__init__(session, grant, POSTGRES, session.known)
        self._session = session
        self.proof: CommitProof | None = None

    def enter(self, partition: Partition) -> bool:
        self._session.lock_space(partition.space)
        return self._session.lock_partition(partition)


class PostgresOperationWriter(SqlOperationWriter):
    _scope: PostgresWriteScope

    def add(self, operation: Operation) -> None:
        super().add(operation)
        self._scope.proof = CommitProof(operation.id)

    def settle(self, operation: Operation) -> None:
        super().settle(operation)
        # An earlier transaction recorded it.
        self._scope.proof = CommitProof(operation.id, settled=True)


class PostgresTransaction(SqlTransaction):
    """Implements `ports.Transaction`."""

    operations = Lazy(PostgresOperationWriter)
    scope: PostgresWriteScope

    def __init__(self, session: PostgresSession, grant: Grant) -> None:
        self.scope = PostgresWriteScope(session, grant)
        self.session = session
