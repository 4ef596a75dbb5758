-- Derived. Which large partitions have an approximate index of their vectors of an embedder: a partial index of
-- `vectors` by this name, which the server keeps up to date.
CREATE TABLE nearest (
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    embedder_id BIGINT NOT NULL REFERENCES embedders (id),
    name TEXT COLLATE "C" NOT NULL,
    dimensions INTEGER NOT NULL,
    records BIGINT NOT NULL,
    change BIGINT NOT NULL,
    recall DOUBLE PRECISION NOT NULL,
    built_at BIGINT NOT NULL,
    PRIMARY KEY (partition_id, embedder_id)
);
