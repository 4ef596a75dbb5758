-- Every write may be made again under a key, so an answer is whatever its verb keeps of it: JSON, instead of ids alone.
ALTER TABLE answers RENAME TO old_answers;
CREATE TABLE answers (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (partition_id, key)
) WITHOUT ROWID;
-- Only `add` named a turn; what else kept an answer was `remember`.
INSERT INTO answers (partition_id, key, digest, recorded_at, body)
SELECT
    partition_id, key, digest, recorded_at,
    iif(
        turn_id IS NULL,
        json_object('memory_id', json_extract(ids, '$[0]')),
        json_object('turn_id', turn_id, 'message_ids', json(ids))
    )
FROM old_answers;
DROP TABLE old_answers;

-- Who may come in from outside. Of a key only the digest is kept.
CREATE TABLE users (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    key_digest BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    rotated_at INTEGER,
    revoked_at INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
