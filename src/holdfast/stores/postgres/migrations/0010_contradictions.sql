-- From one revision of a memory to the memories that it contradicts. Ids, because the mark stays when one of them is
-- revised. It counts while the current revisions of both have it.
CREATE TABLE contradictions (
    memory_number BIGINT NOT NULL REFERENCES records (number),
    contradicted_id TEXT COLLATE "C" NOT NULL,
    checksum BIGINT,
    PRIMARY KEY (memory_number, contradicted_id)
);
CREATE INDEX contradictions_id ON contradictions (contradicted_id);
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON contradictions
FOR EACH ROW EXECUTE FUNCTION set_checksum();
