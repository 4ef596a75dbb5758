"""Looking for damage: in the file, and in what the tables promise each other."""

from __future__ import annotations

from holdfast.domain.results import Finding
from holdfast.stores.sql.dialect import Database, Dialect

# Each finds rows that must not exist.
_CHECKS = {
    "records have their text": (
        "SELECT count(*) FROM records r LEFT JOIN texts t ON t.number = r.number WHERE t.number IS NULL"
    ),
    "vectors have their record": (
        "SELECT count(*) FROM vectors v LEFT JOIN records r"
        " ON r.number = v.number AND r.partition_id = v.partition_id WHERE r.number IS NULL"
    ),
    "records that are embedded have vectors": (
        "SELECT count(*) FROM records r WHERE r.embedder_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM vectors v"
        " WHERE v.partition_id = r.partition_id AND v.number = r.number AND v.embedder_id = r.embedder_id)"
    ),
    "records lie in the partition of their scope": (
        "SELECT count(*) FROM records r JOIN scopes s ON s.id = r.scope_id WHERE s.partition_id <> r.partition_id"
    ),
    "messages lie in a conversation of their partition": (
        "SELECT count(*) FROM records r LEFT JOIN conversations c ON c.id = r.conversation_id"
        " WHERE r.kind = 0 AND (c.id IS NULL OR c.partition_id <> r.partition_id)"
    ),
    "positions in a conversation are unique": (
        "SELECT count(*) FROM (SELECT 1 FROM records WHERE kind = 0 GROUP BY conversation_id, position"
        " HAVING count(*) > 1) AS found"
    ),
    "a memory has one current revision": (
        "SELECT count(*) FROM (SELECT id FROM records WHERE kind = 1 GROUP BY id"
        " HAVING count(*) FILTER (WHERE superseded_at IS NULL) <> 1) AS found"
    ),
    "revisions follow one another": (
        "SELECT count(*) FROM records a JOIN records b ON b.id = a.id AND b.revision = a.revision + 1"
        " WHERE a.kind = 1 AND (a.superseded_at IS NULL OR a.superseded_at <> b.recorded_at)"
    ),
    "evidence links messages and memories": (
        "SELECT count(*) FROM evidence e LEFT JOIN records m ON m.number = e.memory_number"
        " LEFT JOIN records r ON r.number = e.message_number"
        " WHERE coalesce(m.kind, -1) <> 1 OR coalesce(r.kind, -1) <> 0"
    ),
    "resources have their text": (
        "SELECT count(*) FROM resources r LEFT JOIN texts t ON t.number = r.number WHERE t.number IS NULL"
    ),
    "resources lie in the partition of their scope": (
        "SELECT count(*) FROM resources r JOIN scopes s ON s.id = r.scope_id WHERE s.partition_id <> r.partition_id"
    ),
    "numbers are given once": "SELECT count(*) FROM resources r JOIN records o ON o.number = r.number",
    "nothing forgotten is there": ("SELECT count(*) FROM tombstones t JOIN records r ON r.number = t.number"),
    "changes are known to their partition": (
        "SELECT count(*) FROM records r JOIN partitions p ON p.id = r.partition_id WHERE r.change > p.change"
    ),
}


_BLANK = (
    "SELECT count(*) FROM texts t LEFT JOIN records r ON r.number = t.number"
    " LEFT JOIN resources o ON o.number = t.number WHERE r.number IS NULL AND o.number IS NULL AND {}"
)


def check(database: Database, dialect: Dialect) -> tuple[dict[str, int], list[Finding]]:
    findings = [Finding(*found) for found in dialect.check(database)]
    for name, statement in {**_CHECKS, "texts without a record are blank": _BLANK.format(dialect.written)}.items():
        if wrong := int(database.execute(statement).fetchone()[0]):
            findings.append(Finding(name, f"{wrong} rows break this"))
    checked = {
        table: int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        for table in ("records", "vectors", "evidence", "tombstones", "operations", "jobs", "users", "resources")
    }
    return checked, findings
