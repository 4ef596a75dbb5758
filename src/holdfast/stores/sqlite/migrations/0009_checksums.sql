-- A checksum per row. Old rows get theirs in the background, and those of old texts in a table of their own: their rows
-- must not grow.
ALTER TABLE meta ADD COLUMN checksum INTEGER;
ALTER TABLE partitions ADD COLUMN checksum INTEGER;
ALTER TABLE scopes ADD COLUMN checksum INTEGER;
ALTER TABLE conversations ADD COLUMN checksum INTEGER;
ALTER TABLE embedders ADD COLUMN checksum INTEGER;
ALTER TABLE records ADD COLUMN checksum INTEGER;
ALTER TABLE texts ADD COLUMN checksum INTEGER;
ALTER TABLE resources ADD COLUMN checksum INTEGER;
ALTER TABLE vectors ADD COLUMN checksum INTEGER;
ALTER TABLE evidence ADD COLUMN checksum INTEGER;
ALTER TABLE tombstones ADD COLUMN checksum INTEGER;
ALTER TABLE answers ADD COLUMN checksum INTEGER;
ALTER TABLE credentials ADD COLUMN checksum INTEGER;
ALTER TABLE jobs ADD COLUMN checksum INTEGER;
ALTER TABLE operations ADD COLUMN checksum INTEGER;
ALTER TABLE nearest ADD COLUMN checksum INTEGER;
ALTER TABLE turns ADD COLUMN checksum INTEGER;
ALTER TABLE aliases ADD COLUMN checksum INTEGER;
ALTER TABLE events ADD COLUMN checksum INTEGER;
ALTER TABLE bindings ADD COLUMN checksum INTEGER;
ALTER TABLE binding_targets ADD COLUMN checksum INTEGER;
ALTER TABLE deliveries ADD COLUMN checksum INTEGER;
ALTER TABLE cost_events ADD COLUMN checksum INTEGER;
ALTER TABLE finance_events ADD COLUMN checksum INTEGER;
ALTER TABLE prices ADD COLUMN checksum INTEGER;
CREATE TABLE text_checksums (
    number INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL
);
INSERT INTO meta (key, value)
SELECT 'unchecked', 'rows' WHERE EXISTS (SELECT 1 FROM meta) OR EXISTS (SELECT 1 FROM partitions)
OR EXISTS (SELECT 1 FROM credentials) OR EXISTS (SELECT 1 FROM operations);
