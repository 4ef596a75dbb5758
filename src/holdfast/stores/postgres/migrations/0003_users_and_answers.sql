-- Every write may be made again under a key, so an answer is whatever its verb keeps of it: JSON, instead of ids alone.
CREATE TABLE old_answers AS SELECT * FROM answers;
DROP TABLE answers;
CREATE TABLE answers (
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    key TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    recorded_at BIGINT NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (partition_id, key)
);
-- Only `add` named a turn; what else kept an answer was `remember`.
INSERT INTO answers (partition_id, key, digest, recorded_at, body)
SELECT
    partition_id, key, digest, recorded_at,
    CASE
        WHEN turn_id IS NULL THEN json_build_object('memory_id', ids::json ->> 0)::text
        ELSE json_build_object('turn_id', turn_id, 'message_ids', ids::json)::text
    END
FROM old_answers;
DROP TABLE old_answers;

-- Who may come in from outside. Of a key only the digest is kept.
CREATE TABLE users (
    space TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    key_digest BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    rotated_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (space, id)
);
