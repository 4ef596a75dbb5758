-- The same text may be kept under several addresses, each a resource of its own. That one of an address is kept once, the
-- lock over its partition sees to: the address itself stands in `texts`, where it can be blanked.
ALTER TABLE resources DROP CONSTRAINT resources_scope_id_sha256_key;
CREATE INDEX resources_file ON resources (scope_id, sha256);
