-- The state of a memory on the procedural plane, a runtime skill: what changes without a new text. A memory without a row
-- has the state of a new one. The name and the last outcome note are the text of the number `words`; `name_key` is a
-- digest of the name.
CREATE TABLE runtime_skills (
    memory_id TEXT COLLATE "C" PRIMARY KEY,
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    name_key BYTEA NOT NULL,
    words BIGINT NOT NULL,
    enabled SMALLINT NOT NULL,
    needs_approval SMALLINT NOT NULL,
    revision_pending SMALLINT NOT NULL,
    use_count BIGINT NOT NULL,
    validated_success_count BIGINT NOT NULL,
    mismatch_count BIGINT NOT NULL,
    last_used_at BIGINT,
    checksum BIGINT
);
CREATE UNIQUE INDEX runtime_skills_name ON runtime_skills (partition_id, name_key);
CREATE UNIQUE INDEX runtime_skills_words ON runtime_skills (words);
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON runtime_skills
FOR EACH ROW EXECUTE FUNCTION set_checksum();
