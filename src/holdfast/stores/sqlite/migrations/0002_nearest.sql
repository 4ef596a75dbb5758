-- Derived. Which approximate index holds a large partition's vectors of an embedder: its files beside the store are
-- valid for as long as they match this row. It holds what had changed up to `change`; what was forgotten is blank in it
-- up to `forgotten`.
CREATE TABLE nearest (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    embedder_id INTEGER NOT NULL REFERENCES embedders (id),
    name TEXT NOT NULL,
    change INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    records INTEGER NOT NULL,
    vectors INTEGER NOT NULL,
    dimensions INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    digest BLOB NOT NULL,
    recall REAL NOT NULL,
    built_at INTEGER NOT NULL,
    PRIMARY KEY (partition_id, embedder_id)
) WITHOUT ROWID;
