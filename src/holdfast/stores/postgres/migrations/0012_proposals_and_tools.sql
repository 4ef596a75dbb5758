-- Proposals: changes that an agent suggests and an operator decides on. The id, the author and all that a proposal says are
-- the text of the number `words`; `id_key` is a digest of the id.
CREATE TABLE proposals (
    scope_id BIGINT NOT NULL REFERENCES scopes (id),
    id_key BYTEA NOT NULL,
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    words BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    decided_at BIGINT,
    checksum BIGINT,
    PRIMARY KEY (scope_id, id_key)
);
CREATE UNIQUE INDEX proposals_words ON proposals (words);
-- The records that a proposal rests on or speaks about. It is deleted with any of them.
CREATE TABLE proposal_records (
    record_id TEXT COLLATE "C" NOT NULL,
    words BIGINT NOT NULL,
    checksum BIGINT,
    PRIMARY KEY (record_id, words)
);
CREATE INDEX proposal_records_words ON proposal_records (words);
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON proposals
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON proposal_records
FOR EACH ROW EXECUTE FUNCTION set_checksum();

-- Snapshots of the tools of a host. The id and the snapshot are the text of the number `words`; `key` is a digest of the id.
CREATE TABLE tool_registries (
    scope_id BIGINT NOT NULL REFERENCES scopes (id),
    key BYTEA NOT NULL,
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    words BIGINT NOT NULL,
    checksum BIGINT,
    PRIMARY KEY (scope_id, key)
);
CREATE UNIQUE INDEX tool_registries_words ON tool_registries (words);
-- Observations of calls, folded into counts per tool, schema and task. Names and summary are the text of the number `words`,
-- the other keys are digests: of the names, of tool and schema, of the registry, of the only conversation that the
-- observations came from, and of that of the summary. Of the rows of one tool and schema, the best that is governed leads.
CREATE TABLE tool_experience (
    scope_id BIGINT NOT NULL REFERENCES scopes (id),
    key BYTEA NOT NULL,
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    version_key BYTEA NOT NULL,
    registry_key BYTEA NOT NULL,
    words BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    partial BIGINT NOT NULL,
    cancelled BIGINT NOT NULL,
    noted SMALLINT NOT NULL,
    confidence SMALLINT NOT NULL,
    leads SMALLINT NOT NULL,
    place_key BYTEA,
    summary_place_key BYTEA,
    recent BYTEA NOT NULL,
    updated_at BIGINT NOT NULL,
    checksum BIGINT,
    PRIMARY KEY (scope_id, key)
);
CREATE UNIQUE INDEX tool_experience_words ON tool_experience (words);
CREATE INDEX tool_experience_leading ON tool_experience (scope_id, leads, confidence, succeeded, updated_at, key);
CREATE INDEX tool_experience_version ON tool_experience (scope_id, version_key, confidence, succeeded, updated_at, key);
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON tool_registries
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON tool_experience
FOR EACH ROW EXECUTE FUNCTION set_checksum();
