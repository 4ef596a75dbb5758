-- Proposals: changes that an agent suggests and an operator decides on. The id, the author and all that a proposal says are
-- the text of the number `words`; `id_key` is a digest of the id.
CREATE TABLE proposals (
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    id_key BLOB NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    words INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    checksum INTEGER,
    PRIMARY KEY (scope_id, id_key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX proposals_words ON proposals (words);
-- The records that a proposal rests on or speaks about. It is deleted with any of them.
CREATE TABLE proposal_records (
    record_id TEXT NOT NULL,
    words INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (record_id, words)
) WITHOUT ROWID;
CREATE INDEX proposal_records_words ON proposal_records (words);

-- Snapshots of the tools of a host. The id and the snapshot are the text of the number `words`; `key` is a digest of the id.
CREATE TABLE tool_registries (
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    key BLOB NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    words INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (scope_id, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX tool_registries_words ON tool_registries (words);
-- Observations of calls, folded into counts per tool, schema and task. Names and summary are the text of the number `words`,
-- the other keys are digests: of the names, of tool and schema, of the registry, of the only conversation that the
-- observations came from, and of that of the summary. Of the rows of one tool and schema, the best that is governed leads.
CREATE TABLE tool_experience (
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    key BLOB NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    version_key BLOB NOT NULL,
    registry_key BLOB NOT NULL,
    words INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    partial INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    noted INTEGER NOT NULL,
    confidence INTEGER NOT NULL,
    leads INTEGER NOT NULL,
    place_key BLOB,
    summary_place_key BLOB,
    recent BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (scope_id, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX tool_experience_words ON tool_experience (words);
CREATE INDEX tool_experience_leading ON tool_experience (scope_id, leads, confidence, succeeded, updated_at, key);
CREATE INDEX tool_experience_version ON tool_experience (scope_id, version_key, confidence, succeeded, updated_at, key);
