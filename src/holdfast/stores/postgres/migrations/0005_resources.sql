-- A document that was given to be searched: what it is, and nothing that anybody wrote. Its name and where it came from
-- are the text of its number; its chunks are memories, with it as their source.
CREATE TABLE resources (
    number BIGINT PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    scope_id BIGINT NOT NULL REFERENCES scopes (id),
    sha256 BYTEA NOT NULL,
    media_type TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL,
    chunks INTEGER NOT NULL,
    recorded_at BIGINT NOT NULL,
    UNIQUE (scope_id, sha256)
);
CREATE INDEX resources_newest ON resources (partition_id, id);
