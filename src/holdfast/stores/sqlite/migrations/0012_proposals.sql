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
