-- From one revision of a memory to the memories that it contradicts. Ids, because the mark stays when one of them is
-- revised. It counts while the current revisions of both have it.
CREATE TABLE contradictions (
    memory_number INTEGER NOT NULL REFERENCES records (number),
    contradicted_id TEXT NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (memory_number, contradicted_id)
) WITHOUT ROWID;
CREATE INDEX contradictions_id ON contradictions (contradicted_id);
