"""Integrity checks: of the database itself, and of the invariants between tables."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from holdfast.domain.manifest import MENDS, RepairAction
from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.results import Finding
from holdfast.domain.transcript import Role
from holdfast.ports import TERM_BYTES
from holdfast.stores.sql.checksums import check_rows
from holdfast.stores.sql.dialect import Database, Dialect


def _quote_values(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


# Condition on `records` without an alias. `length` counts each occurrence of a term, `terms` holds each term once. No
# text is analyzed: one with a cased letter has a word.
BAD_TERMS = (
    f"status <> 'raw_deleted' AND (length(terms) % {TERM_BYTES} <> 0 OR length(terms) > {TERM_BYTES} * length"
    " OR length(terms) = 0 AND (length > 0 OR EXISTS (SELECT 1 FROM texts t WHERE t.number = records.number"
    " AND lower(t.text) <> upper(t.text))))"
)
# Condition on a vector `v`, with a dialect's `vector_bytes`: most vectors of its embedder have another length.
_BAD_VECTOR = (
    "(v.embedder_id, {0}) NOT IN (SELECT embedder_id, bytes FROM (SELECT v.embedder_id, {0} AS bytes, row_number()"
    " OVER (PARTITION BY v.embedder_id ORDER BY count(*) DESC, {0} DESC) AS place FROM vectors v"
    " WHERE {0} > 0 AND {0} % 2 = 0 GROUP BY v.embedder_id, {0}) AS usual WHERE place = 1)"
)

# The tables whose rows have a text of their own, and the column with its number.
_TEXT_OWNERS = {
    "records": "number",
    "resources": "number",
    "turns": "words",
    "deliveries": "payload",
    "runtime_skills": "words",
    "proposals": "words",
    "tool_registries": "words",
    "tool_experience": "words",
}
_SHARED_NUMBERS = " UNION ALL ".join(
    f"SELECT 1 FROM {later} k JOIN {earlier} o ON o.{_TEXT_OWNERS[earlier]} = k.{_TEXT_OWNERS[later]}"
    for earlier, later in combinations(_TEXT_OWNERS, 2)
)


# Each counts rows that must not exist.
_CHECKS = {
    "records have their text": (
        "SELECT count(*) FROM records r LEFT JOIN texts t ON t.number = r.number"
        " WHERE t.number IS NULL AND r.status <> 'raw_deleted'"
    ),
    "vectors have their record": (
        "SELECT count(*) FROM vectors v LEFT JOIN records r"
        " ON r.number = v.number AND r.partition_id = v.partition_id WHERE r.number IS NULL"
    ),
    "records that are embedded have vectors": (
        "SELECT count(*) FROM records r WHERE r.embedder_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM vectors v"
        " WHERE v.partition_id = r.partition_id AND v.number = r.number AND v.embedder_id = r.embedder_id)"
    ),
    "records have the terms of their text": f"SELECT count(*) FROM records WHERE {BAD_TERMS}",
    "records are of a known kind": (
        f"SELECT count(*) FROM records WHERE kind NOT IN (0, 1) OR status NOT IN ({_quote_values(Status)})"
        f" OR plane NOT IN ({_quote_values(Plane)}) OR trust NOT BETWEEN 0 AND {max(Trust).level}"
        f" OR kind = 1 AND plane IS NULL OR kind = 0 AND (role IS NULL OR role NOT IN ({_quote_values(Role)}))"
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
    "contradictions are of memories": (
        "SELECT count(*) FROM contradictions c LEFT JOIN records m ON m.number = c.memory_number"
        " WHERE coalesce(m.kind, -1) <> 1"
    ),
    "runtime skills have their memory and their name": (
        "SELECT count(*) FROM runtime_skills k LEFT JOIN texts t ON t.number = k.words WHERE t.number IS NULL"
        " OR NOT EXISTS (SELECT 1 FROM records r WHERE r.id = k.memory_id AND r.partition_id = k.partition_id"
        " AND r.plane = 'procedural')"
    ),
    "proposals have their text, and lie in the partition of their scope": (
        "SELECT count(*) FROM proposals p JOIN scopes s ON s.id = p.scope_id LEFT JOIN texts t ON t.number = p.words"
        " WHERE t.number IS NULL OR s.partition_id <> p.partition_id"
    ),
    "records are of a known proposal": (
        "SELECT count(*) FROM proposal_records q LEFT JOIN proposals p ON p.words = q.words WHERE p.words IS NULL"
    ),
    "tool registries have their snapshot": (
        "SELECT count(*) FROM tool_registries g LEFT JOIN texts t ON t.number = g.words LEFT JOIN scopes s"
        " ON s.id = g.scope_id WHERE t.number IS NULL OR s.id IS NULL OR s.partition_id <> g.partition_id"
    ),
    "experience with tools has its words": (
        "SELECT count(*) FROM tool_experience x LEFT JOIN texts t ON t.number = x.words LEFT JOIN scopes s"
        " ON s.id = x.scope_id WHERE t.number IS NULL OR s.id IS NULL OR s.partition_id <> x.partition_id"
    ),
    "one governed experience of a tool leads": (
        "SELECT count(*) FROM (SELECT 1 FROM tool_experience GROUP BY scope_id, version_key"
        " HAVING sum(leads) <> max(CASE WHEN confidence > 0 THEN 1 ELSE 0 END)"
        " OR min(confidence - leads) < 0) AS found"
    ),
    "resources have their text": (
        "SELECT count(*) FROM resources r LEFT JOIN texts t ON t.number = r.number WHERE t.number IS NULL"
    ),
    "resources lie in the partition of their scope": (
        "SELECT count(*) FROM resources r JOIN scopes s ON s.id = r.scope_id WHERE s.partition_id <> r.partition_id"
    ),
    "numbers are given once": f"SELECT count(*) FROM ({_SHARED_NUMBERS}) AS found",
    "messages have their turn": (
        "SELECT count(*) FROM records r LEFT JOIN turns u ON u.id = r.turn_id"
        " WHERE r.kind = 0 AND (u.id IS NULL OR u.conversation_id <> r.conversation_id)"
    ),
    "messages have the status of their turn": (
        "SELECT count(*) FROM records r JOIN turns u ON u.id = r.turn_id"
        " WHERE r.kind = 0 AND r.status <> CASE u.state WHEN 'active' THEN 'accepted' ELSE u.state END"
    ),
    "turns have their messages": (
        "SELECT count(*) FROM turns u LEFT JOIN (SELECT turn_id, count(*) AS there FROM records WHERE kind = 0"
        " GROUP BY turn_id) AS r ON r.turn_id = u.id WHERE coalesce(r.there, 0) <> u.messages"
    ),
    "turns have their words": (
        "SELECT count(*) FROM turns u LEFT JOIN texts t ON t.number = u.words"
        " WHERE u.words IS NOT NULL AND t.number IS NULL"
    ),
    "deliveries under way have what they carry": (
        "SELECT count(*) FROM deliveries d LEFT JOIN texts t ON t.number = d.payload"
        " WHERE d.payload IS NOT NULL AND (t.number IS NULL OR d.status NOT IN ('pending', 'dead'))"
    ),
    "bindings that serve somebody are there": (
        "SELECT count(*) FROM binding_targets g LEFT JOIN bindings b"
        " ON b.space = g.space AND b.key = g.binding_key AND b.deleted_at IS NULL WHERE b.id IS NULL"
    ),
    "turns are counted": (
        "SELECT count(*) FROM (SELECT c.id FROM conversations c JOIN turns u ON u.conversation_id = c.id"
        " GROUP BY c.id, c.forgotten_turns, c.least_sequence HAVING count(*) + c.forgotten_turns"
        " <> CASE WHEN max(u.sequence) >= c.least_sequence THEN max(u.sequence) ELSE c.least_sequence - 1 END) AS found"
    ),
    "deleted content is gone": (
        "SELECT count(*) FROM records r WHERE r.status = 'raw_deleted'"
        " AND (r.embedder_id IS NOT NULL OR r.content_key IS NOT NULL OR length(r.terms) > 0)"
    ),
    "nothing forgotten is there": ("SELECT count(*) FROM tombstones t JOIN records r ON r.number = t.number"),
    "changes are known to their partition": (
        "SELECT count(*) FROM records r JOIN partitions p ON p.id = r.partition_id WHERE r.change > p.change"
    ),
}


_BLANK = (
    "SELECT count(*) FROM texts t LEFT JOIN records r ON r.number = t.number AND r.status <> 'raw_deleted'"
    " LEFT JOIN resources o ON o.number = t.number LEFT JOIN turns u ON u.words = t.number"
    " LEFT JOIN deliveries d ON d.payload = t.number LEFT JOIN runtime_skills k ON k.words = t.number"
    " LEFT JOIN proposals p ON p.words = t.number"
    " LEFT JOIN tool_registries g ON g.words = t.number LEFT JOIN tool_experience x ON x.words = t.number"
    " WHERE r.number IS NULL AND o.number IS NULL AND u.id IS NULL AND d.id IS NULL AND k.memory_id IS NULL"
    " AND p.words IS NULL AND g.words IS NULL AND x.words IS NULL AND {}"
)


def bad_vectors_statement(dialect: Dialect, what: str) -> str:
    """Return a SELECT of `what` from vectors `v` that cannot be compared with others of their embedder."""
    return f"SELECT {what} FROM vectors v WHERE {_BAD_VECTOR.format(dialect.vector_bytes)}"


def check(database: Database, dialect: Dialect) -> tuple[dict[str, int], list[Finding]]:
    unchecked, findings = check_rows(database, dialect)
    try:
        findings += [Finding(*found) for found in dialect.check(database)]
    except dialect.unreadable:
        findings.append(Finding("file", "it cannot be read; restore the store from a copy"))
    more_checked, more = _check_rules(database, dialect)
    return {**more_checked, **unchecked}, [*findings, *more]


def _check_rules(database: Database, dialect: Dialect) -> tuple[dict[str, int], list[Finding]]:
    """Check the rules between rows, and count them."""
    findings: list[Finding] = []
    checks = {
        **_CHECKS,
        "vectors of one embedder are of one length": bad_vectors_statement(dialect, "count(*)"),
        "texts without a record are blank": _BLANK.format(dialect.has_text_condition),
    }
    for name, statement in checks.items():
        wrong = _count(database, dialect, statement)
        if wrong is None:
            findings.append(Finding(name, "this cannot be checked: rows cannot be read"))
        elif wrong:
            advice = (
                "; run `holdfast store rebuild` to rebuild the indexes"
                if MENDS.get(name) is RepairAction.REINDEX
                else ""
            )
            findings.append(Finding(name, f"{wrong} rows violate this{advice}"))
    checked = {
        table: _count(database, dialect, f"SELECT count(*) FROM {table}") or 0
        for table in (
            "records",
            "vectors",
            "evidence",
            "contradictions",
            "runtime_skills",
            "proposals",
            "proposal_records",
            "tool_registries",
            "tool_experience",
            "tombstones",
            "operations",
            "jobs",
            "credentials",
            "resources",
            "turns",
            "aliases",
            "events",
            "bindings",
            "deliveries",
            "cost_events",
            "finance_events",
        )
    }
    return checked, findings


def _count(database: Database, dialect: Dialect, statement: str) -> int | None:
    """Return None if the rows cannot be read."""
    try:
        return int(database.execute(statement).fetchone()[0])
    except dialect.unreadable:
        return None
