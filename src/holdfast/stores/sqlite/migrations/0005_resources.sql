-- A document that was given to be searched: what it is, and nothing that anybody wrote. Its name and where it came from
-- are the text of its number; its chunks are memories, with it as their source.
CREATE TABLE resources (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    sha256 BLOB NOT NULL,
    media_type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    UNIQUE (scope_id, sha256)
);
CREATE INDEX resources_newest ON resources (partition_id, id);
