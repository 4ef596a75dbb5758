-- The state of a memory on the procedural plane, a runtime skill: what changes without a new text. A memory without a row
-- has the state of a new one. The name and the last outcome note are the text of the number `words`; `name_key` is a
-- digest of the name.
CREATE TABLE runtime_skills (
    memory_id TEXT PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    name_key BLOB NOT NULL,
    words INTEGER NOT NULL,
    enabled INTEGER NOT NULL,
    needs_approval INTEGER NOT NULL,
    revision_pending INTEGER NOT NULL,
    use_count INTEGER NOT NULL,
    validated_success_count INTEGER NOT NULL,
    mismatch_count INTEGER NOT NULL,
    last_used_at INTEGER,
    checksum INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX runtime_skills_name ON runtime_skills (partition_id, name_key);
CREATE UNIQUE INDEX runtime_skills_words ON runtime_skills (words);
