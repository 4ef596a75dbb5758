-- An add writes fewer pages: a record takes the number of its text instead of one of `sqlite_sequence`, a position is
-- counted from the messages that are there, and the audit trail lies in one tree.

-- A store that was copied lacks the texts of what was forgotten, and so perhaps the highest number that was ever given.
INSERT INTO texts (number, text)
SELECT seq, x'' FROM sqlite_sequence
WHERE name = 'records' AND seq > (SELECT coalesce(max(number), 0) FROM texts);

ALTER TABLE conversations RENAME COLUMN next_position TO least_position;

-- What refers to `records` shall go on to refer to that name.
PRAGMA legacy_alter_table = ON;
DROP INDEX records_id;
DROP INDEX records_change;
DROP INDEX records_newest;
DROP INDEX records_position;
DROP INDEX records_external;
DROP INDEX records_content;
DROP INDEX records_slot;
DROP INDEX records_source;
ALTER TABLE records RENAME TO old_records;
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    change INTEGER NOT NULL,
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    conversation_id INTEGER REFERENCES conversations (id),
    position INTEGER NOT NULL,
    turn_id TEXT,
    role TEXT,
    external_key BLOB,
    content_key BLOB,
    source_key BLOB,
    slot_key BLOB,
    plane TEXT,
    status TEXT NOT NULL,
    trust INTEGER NOT NULL,
    said_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    superseded_at INTEGER,
    valid_from INTEGER,
    valid_to INTEGER,
    analyzer INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    length INTEGER NOT NULL,
    embedder_id INTEGER REFERENCES embedders (id),
    terms BLOB NOT NULL
);
INSERT INTO records
SELECT
    number, id, revision, partition_id, change, kind, scope_id, conversation_id, position, turn_id, role,
    external_key, content_key, source_key, slot_key, plane, status, trust, said_at, recorded_at, superseded_at,
    valid_from, valid_to, analyzer, flags, length, embedder_id, terms
FROM old_records ORDER BY number;
DROP TABLE old_records;
PRAGMA legacy_alter_table = OFF;
CREATE UNIQUE INDEX records_id ON records (id, revision);
CREATE INDEX records_change ON records (partition_id, change);
CREATE INDEX records_newest ON records (partition_id, substr(id, 5));
CREATE INDEX records_position ON records (conversation_id, position) WHERE conversation_id IS NOT NULL;
CREATE UNIQUE INDEX records_external ON records (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE UNIQUE INDEX records_content ON records (conversation_id, content_key) WHERE content_key IS NOT NULL;
CREATE INDEX records_slot ON records (partition_id, slot_key) WHERE slot_key IS NOT NULL;
CREATE INDEX records_source ON records (partition_id, source_key) WHERE source_key IS NOT NULL;

DROP INDEX operations_space;
ALTER TABLE operations RENAME TO old_operations;
CREATE TABLE operations (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    partition_id INTEGER,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    error_code TEXT,
    touched INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    duration_micros INTEGER NOT NULL,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
INSERT INTO operations
SELECT
    space, id, scope, partition_id, actor_kind, actor_id, action, outcome, error_code, touched, started_at,
    duration_micros
FROM old_operations;
DROP TABLE old_operations;
