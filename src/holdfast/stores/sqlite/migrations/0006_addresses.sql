-- The same text may be kept under several addresses, each a resource of its own. That one of an address is kept once, the
-- lock over its partition sees to: the address itself stands in `texts`, where it can be blanked.
DROP INDEX resources_newest;
ALTER TABLE resources RENAME TO old_resources;
CREATE TABLE resources (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    sha256 BLOB NOT NULL,
    media_type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL
);
INSERT INTO resources (number, id, partition_id, scope_id, sha256, media_type, bytes, chunks, recorded_at)
SELECT number, id, partition_id, scope_id, sha256, media_type, bytes, chunks, recorded_at FROM old_resources;
DROP TABLE old_resources;
CREATE INDEX resources_newest ON resources (partition_id, id);
CREATE INDEX resources_file ON resources (scope_id, sha256);
