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
