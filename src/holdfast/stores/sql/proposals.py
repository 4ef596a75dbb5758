"""The tables of proposals. Id and document are in `texts`, where a forget blanks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.domain.scope import SCOPE_PARTS, Scope
from holdfast.domain.stored_proposals import ProposalStatus, StoredProposal
from holdfast.domain.times import from_micros, to_micros
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import NewRows, insert_statement
from holdfast.stores.sql.grant_scope import GrantScope, SqlRepository
from holdfast.stores.sql.write_scope import WriteScope

_COLUMNS = ("scope_id", "id_key", "partition_id", "words", "status", "created_at", "decided_at")
_TABLES = "proposals p JOIN scopes s ON s.id = p.scope_id"
# As long as a record is masked, nothing that rests on it is shown.
_SHOWN = (
    "NOT EXISTS (SELECT 1 FROM proposal_records q JOIN records r ON r.id = q.record_id WHERE q.words = p.words"
    " AND r.status IN ('masked', 'raw_deleted'))"
)
_EXACTLY = " AND ".join(f"s.{part} = ?" for part in SCOPE_PARTS)


class SqlProposalReader(SqlRepository):
    """Implements `ProposalReader`."""

    def find(self, scope: Scope, proposal_id: str) -> StoredProposal | None:
        found = self._select(scope, "AND p.id_key = ?", [rows.key_of(proposal_id)])
        return found[0] if found else None

    def page(self, scope: Scope, status: ProposalStatus | None, limit: int) -> Sequence[StoredProposal]:
        condition, values = ("", []) if status is None else ("AND p.status = ?", [status])
        return self._select(scope, f"{condition} ORDER BY p.created_at DESC, p.words DESC LIMIT {limit:d}", values)

    def count(self, scope: Scope, status: ProposalStatus) -> int:
        condition, values = self._of(scope)
        found = self._db.execute(
            f"SELECT count(*) FROM {_TABLES} WHERE {condition} AND {_SHOWN} AND p.status = ?", [*values, status]
        )
        return int(found.fetchone()[0])

    def is_cited(self, scope: Scope, record_id: str, status: ProposalStatus) -> bool:
        condition, values = self._of(scope)
        found = self._db.execute(
            f"SELECT 1 FROM {_TABLES} JOIN proposal_records q ON q.words = p.words WHERE {condition}"
            " AND q.record_id = ? AND p.status = ? LIMIT 1",
            [*values, record_id, status],
        )
        return found.fetchone() is not None

    def _of(self, scope: Scope) -> tuple[str, list[Any]]:
        """Return the condition that a proposal is of exactly this scope, and within the grant."""
        within, values = self._scope.within("p")
        return f"{within} AND {_EXACTLY}", [*values, *rows.scope_values(scope)]

    def _select(self, scope: Scope, tail: str, values: Sequence[Any]) -> list[StoredProposal]:
        condition, named = self._of(scope)
        found = self._db.execute(
            f"SELECT t.external_id, p.status, t.text, p.created_at, p.decided_at FROM {_TABLES}"
            f" JOIN texts t ON t.number = p.words WHERE {condition} AND {_SHOWN} {tail}",
            [*named, *values],
        )
        return [
            StoredProposal(
                scope, name, ProposalStatus(status), document, from_micros(created_at), rows.moment(decided_at)
            )
            for name, status, document, created_at, decided_at in found.fetchall()
        ]


class SqlProposalWriter(SqlProposalReader):
    """Implements `ProposalWriter`."""

    _scope: WriteScope

    def add(self, proposal: StoredProposal, record_ids: Sequence[str]) -> bool:
        partition = self._scope.partition_id(proposal.scope.partition)
        scope, key = self._scope.scope_id(partition, proposal.scope), rows.key_of(proposal.proposal_id)
        if self._words(scope, key) is not None:
            return False
        words = self._put_words(proposal)
        values = (
            scope, key, partition, words, proposal.status, to_micros(proposal.created_at),
            rows.micros(proposal.decided_at),
        )  # fmt: skip
        self._db.execute(insert_statement("proposals", _COLUMNS), values)
        links = [(record_id, words) for record_id in dict.fromkeys(record_ids)]
        self._scope.dialect.insert(self._db, "proposal_records", ("record_id", "words"), links)
        return True

    def replace(self, proposal: StoredProposal) -> None:
        partition = self._scope.partition_id(proposal.scope.partition)
        scope, key = self._scope.scope_id(partition, proposal.scope), rows.key_of(proposal.proposal_id)
        before, words = self._words(scope, key), self._put_words(proposal)
        self._db.execute(f"{self._scope.dialect.blank_texts} WHERE number = ?", (before,))
        self._db.execute("UPDATE proposal_records SET words = ? WHERE words = ?", (words, before))
        self._db.execute(
            "UPDATE proposals SET words = ?, status = ?, decided_at = ? WHERE scope_id = ? AND id_key = ?",
            (words, proposal.status, rows.micros(proposal.decided_at), scope, key),
        )

    def _words(self, scope: int, key: bytes | None) -> int | None:
        found = self._db.execute("SELECT words FROM proposals WHERE scope_id = ? AND id_key = ?", (scope, key))
        row = found.fetchone()
        return None if row is None else int(row[0])

    def _put_words(self, proposal: StoredProposal) -> int:
        drawn = self._scope.dialect.reserve_numbers(self._db, 1)
        words = (proposal.proposal_id, proposal.document)
        return self._scope.dialect.add_text(self._db, drawn, NewRows(("external_id", "text"), [words]))


# --- forgetting -------------------------------------------------------------------------------------------------------


def proposals_resting_on(scope: GrantScope, record_ids: Sequence[str]) -> list[int]:
    """Return the numbers of the proposals of the grant's space that rest on any of the records."""
    own, values = _in_space(scope)
    statement = f"SELECT q.words FROM proposal_records q JOIN proposals p ON p.words = q.words WHERE {{}} AND {own}"
    return sorted({int(row[0]) for row in scope.rows_among("q.record_id", record_ids, statement, values)})


def proposals_of_subject(scope: GrantScope, subject: str) -> list[int]:
    """Return the numbers of the proposals about a subject that the grant reaches."""
    within, values = scope.within("p")
    found = scope.database.execute(
        f"SELECT p.words FROM {_TABLES} WHERE {within} AND s.subject = ?", [*values, subject]
    )
    return sorted(int(row[0]) for row in found.fetchall())


def forget_proposals(scope: WriteScope, numbers: Sequence[int]) -> None:
    """Delete proposals, and blank what they say."""
    for table in ("proposal_records", "proposals"):
        for condition, named in scope.among("words", numbers):
            scope.database.execute(f"DELETE FROM {table} WHERE {condition}", named)
    for condition, named in scope.among("number", numbers):
        scope.database.execute(f"{scope.dialect.blank_texts} WHERE {condition}", named)


def _in_space(scope: GrantScope) -> tuple[str, list[Any]]:
    if scope.grant.everywhere:
        return "TRUE", []
    return "p.partition_id IN (SELECT id FROM partitions WHERE space = ?)", [scope.grant.scope.space]
