-- A checksum per row, of all its other columns. Rows from before there were checksums get theirs in the background.
ALTER TABLE meta ADD COLUMN checksum BIGINT;
ALTER TABLE partitions ADD COLUMN checksum BIGINT;
ALTER TABLE scopes ADD COLUMN checksum BIGINT;
ALTER TABLE conversations ADD COLUMN checksum BIGINT;
ALTER TABLE embedders ADD COLUMN checksum BIGINT;
ALTER TABLE records ADD COLUMN checksum BIGINT;
ALTER TABLE texts ADD COLUMN checksum BIGINT;
ALTER TABLE resources ADD COLUMN checksum BIGINT;
ALTER TABLE vectors ADD COLUMN checksum BIGINT;
ALTER TABLE evidence ADD COLUMN checksum BIGINT;
ALTER TABLE tombstones ADD COLUMN checksum BIGINT;
ALTER TABLE answers ADD COLUMN checksum BIGINT;
ALTER TABLE credentials ADD COLUMN checksum BIGINT;
ALTER TABLE jobs ADD COLUMN checksum BIGINT;
ALTER TABLE operations ADD COLUMN checksum BIGINT;
ALTER TABLE nearest ADD COLUMN checksum BIGINT;
ALTER TABLE turns ADD COLUMN checksum BIGINT;
ALTER TABLE aliases ADD COLUMN checksum BIGINT;
ALTER TABLE events ADD COLUMN checksum BIGINT;
ALTER TABLE bindings ADD COLUMN checksum BIGINT;
ALTER TABLE binding_targets ADD COLUMN checksum BIGINT;
ALTER TABLE deliveries ADD COLUMN checksum BIGINT;
ALTER TABLE cost_events ADD COLUMN checksum BIGINT;
ALTER TABLE finance_events ADD COLUMN checksum BIGINT;
ALTER TABLE prices ADD COLUMN checksum BIGINT;
CREATE FUNCTION set_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stored BIGINT;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        stored := OLD.checksum;
        OLD.checksum := NULL;
    END IF;
    NEW.checksum := NULL;
    IF stored IS NULL OR stored = hashtextextended(OLD::text, 0) THEN
        NEW.checksum := hashtextextended(NEW::text, 0);
    -- A row that was damaged before must not become sound: it keeps its checksum, which fits again if the update restores
    -- what was there. That of deleted content must go.
    ELSIF TG_TABLE_NAME = 'records' THEN
        NEW.checksum := CASE NEW.status WHEN 'raw_deleted' THEN 0 ELSE stored END;
    ELSE
        NEW.checksum := 0;
    END IF;
    RETURN NEW;
END
$$;
-- The text of a vector would be long.
CREATE FUNCTION set_vector_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.checksum := hashtextextended(
        ROW(NEW.partition_id, NEW.number, NEW.piece, NEW.embedder_id, halfvec_send(NEW.vector), NULL)::text, 0
    );
    RETURN NEW;
END
$$;
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON meta
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON partitions
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON scopes
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON conversations
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON embedders
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON records
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON texts
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON resources
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON vectors
FOR EACH ROW EXECUTE FUNCTION set_vector_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON evidence
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON tombstones
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON answers
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON credentials
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON jobs
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON operations
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON nearest
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON turns
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON aliases
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON events
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON bindings
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON binding_targets
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON deliveries
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON cost_events
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON finance_events
FOR EACH ROW EXECUTE FUNCTION set_checksum();
CREATE TRIGGER checked BEFORE INSERT OR UPDATE ON prices
FOR EACH ROW EXECUTE FUNCTION set_checksum();
INSERT INTO meta (key, value)
SELECT 'unchecked', 'rows' WHERE EXISTS (SELECT 1 FROM meta) OR EXISTS (SELECT 1 FROM partitions)
OR EXISTS (SELECT 1 FROM credentials) OR EXISTS (SELECT 1 FROM operations);
