-- The control plane. What a call was for stands in columns of its audit row, so that the trail can be asked by each.
-- Each kind of call in its order: one that is asked for needs no index, for which every add would pay with a page.
ALTER TABLE operations RENAME TO old_operations;
CREATE TABLE operations (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    partition_id INTEGER,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    error_code TEXT,
    touched INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    duration_micros INTEGER NOT NULL,
    agent TEXT,
    project TEXT,
    issue TEXT,
    run TEXT,
    binding TEXT,
    source_kind TEXT,
    hook TEXT,
    details TEXT,
    PRIMARY KEY (space, action, id)
) WITHOUT ROWID;
INSERT INTO operations (
    space, id, scope, partition_id, actor_kind, actor_id, action, outcome, error_code, touched, started_at,
    duration_micros, agent, project, issue, run
)
SELECT
    space, id, scope, partition_id, actor_kind, actor_id, action, outcome, error_code, touched, started_at,
    duration_micros,
    json_extract(scope, '$.agent'),
    json_extract(scope, '$.project'),
    json_extract(scope, '$.issue'),
    json_extract(scope, '$.run')
FROM old_operations;
DROP TABLE old_operations;
-- What the trail is asked for, each with the id, so that a page is read off in order.
CREATE INDEX operations_outcome ON operations (space, outcome, id) WHERE outcome <> 'succeeded';
CREATE INDEX operations_agent ON operations (space, agent, id) WHERE agent IS NOT NULL;
CREATE INDEX operations_agent_action ON operations (space, agent, action, id) WHERE agent IS NOT NULL;
CREATE INDEX operations_agent_outcome ON operations (space, agent, outcome, id)
WHERE agent IS NOT NULL AND outcome <> 'succeeded';
CREATE INDEX operations_project ON operations (space, project, id) WHERE project IS NOT NULL;
CREATE INDEX operations_issue ON operations (space, issue, id) WHERE issue IS NOT NULL;
CREATE INDEX operations_run ON operations (space, run, id) WHERE run IS NOT NULL;
CREATE INDEX operations_binding ON operations (space, binding, id) WHERE binding IS NOT NULL;
CREATE INDEX operations_source ON operations (space, source_kind, id) WHERE source_kind IS NOT NULL;

ALTER TABLE jobs ADD COLUMN agent TEXT;
ALTER TABLE jobs ADD COLUMN project TEXT;
ALTER TABLE jobs ADD COLUMN issue TEXT;
ALTER TABLE jobs ADD COLUMN run TEXT;
ALTER TABLE jobs ADD COLUMN binding TEXT;
ALTER TABLE jobs ADD COLUMN hook TEXT;
ALTER TABLE jobs ADD COLUMN cause TEXT;
UPDATE jobs SET
    agent = json_extract(scope, '$.agent'),
    project = json_extract(scope, '$.project'),
    issue = json_extract(scope, '$.issue'),
    run = json_extract(scope, '$.run')
WHERE coalesce(
    json_extract(scope, '$.agent'),
    json_extract(scope, '$.project'),
    json_extract(scope, '$.issue'),
    json_extract(scope, '$.run')
) IS NOT NULL;
-- The same of background work. `cause` is JSON of what it goes back to.
CREATE INDEX jobs_retry ON jobs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX jobs_space ON jobs (space, id);
CREATE INDEX jobs_ended ON jobs (space, status, id) WHERE status IN ('failed', 'cancelled');
CREATE INDEX jobs_agent ON jobs (space, agent, id) WHERE agent IS NOT NULL;
CREATE INDEX jobs_project ON jobs (space, project, id) WHERE project IS NOT NULL;
CREATE INDEX jobs_issue ON jobs (space, issue, id) WHERE issue IS NOT NULL;
CREATE INDEX jobs_run ON jobs (space, run, id) WHERE run IS NOT NULL;
CREATE INDEX jobs_binding ON jobs (space, binding, id) WHERE binding IS NOT NULL;
CREATE INDEX jobs_hook ON jobs (space, hook, id) WHERE hook IS NOT NULL;

-- Who may come in from outside: users, agents and operators. Of a key only the digest is kept. `subjects` is JSON.
CREATE TABLE credentials (
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    role TEXT,
    subjects TEXT,
    key_digest BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    rotated_at INTEGER,
    revoked_at INTEGER,
    PRIMARY KEY (space, kind, id)
) WITHOUT ROWID;
INSERT INTO credentials (space, kind, id, key_digest, created_at, rotated_at, revoked_at)
SELECT space, 'user', id, key_digest, created_at, rotated_at, revoked_at FROM users;
DROP TABLE users;

-- Which memory serves a space. A space without any row has the first one, unwritten. What was deleted stays as a row
-- without configuration: that there was one is known, and its key is free.
CREATE TABLE bindings (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    provider TEXT NOT NULL,
    config TEXT NOT NULL,
    hooks TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER,
    updated_at INTEGER,
    deleted_at INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX bindings_key ON bindings (space, key) WHERE deleted_at IS NULL;

-- Whom a binding serves: the whole company, or one agent.
CREATE TABLE binding_targets (
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    target_id TEXT NOT NULL,
    binding_key TEXT NOT NULL,
    PRIMARY KEY (space, kind, target_id)
) WITHOUT ROWID;

-- Hooks on their way. What one carries is the text of the number `payload`, for as long as it may be needed; `digest` is
-- of it, and goes when it is forgotten. `home` is the partition that it belongs to, whether there is one or not.
CREATE TABLE deliveries (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    destination TEXT NOT NULL,
    hook_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    home TEXT NOT NULL,
    details TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'skipped', 'dead', 'dropped')),
    attempts INTEGER NOT NULL,
    reason TEXT,
    operation_id TEXT,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER,
    payload INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX deliveries_hook ON deliveries (space, destination, hook_id, home);
CREATE UNIQUE INDEX deliveries_payload ON deliveries (payload) WHERE payload IS NOT NULL;
CREATE INDEX deliveries_home ON deliveries (space, home, id);
CREATE INDEX deliveries_status ON deliveries (space, status, id);
CREATE INDEX deliveries_destination ON deliveries (space, destination, id);
CREATE INDEX deliveries_kind ON deliveries (space, kind, id);
CREATE INDEX deliveries_source ON deliveries (space, source_kind, id);

-- Metered calls. Money is in millionths of the currency's unit. `usage` is JSON of what the provider told besides.
CREATE TABLE cost_events (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    operation_id TEXT,
    binding TEXT,
    scope TEXT NOT NULL,
    agent TEXT,
    project TEXT,
    issue TEXT,
    run TEXT,
    provider TEXT NOT NULL,
    model TEXT,
    day TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    embedding_tokens INTEGER NOT NULL,
    amount_micros INTEGER NOT NULL,
    currency TEXT NOT NULL,
    estimated INTEGER NOT NULL,
    occurred_at INTEGER NOT NULL,
    usage TEXT NOT NULL,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE INDEX cost_events_time ON cost_events (space, occurred_at);

-- Flat fees and invoices.
CREATE TABLE finance_events (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    amount_micros INTEGER NOT NULL,
    currency TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    binding TEXT,
    provider TEXT,
    external_invoice_id TEXT,
    estimated INTEGER NOT NULL,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE INDEX finance_events_time ON finance_events (space, occurred_at);

-- What a million tokens cost.
CREATE TABLE prices (
    space TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    currency TEXT NOT NULL,
    input_micros INTEGER NOT NULL,
    cached_input_micros INTEGER NOT NULL,
    output_micros INTEGER NOT NULL,
    embedding_micros INTEGER NOT NULL,
    PRIMARY KEY (space, provider, model)
) WITHOUT ROWID;
