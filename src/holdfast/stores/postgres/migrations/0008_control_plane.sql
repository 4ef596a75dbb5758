-- The control plane. What a call was for stands in columns of its audit row, so that the trail can be asked by each.
ALTER TABLE operations ADD COLUMN agent TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN project TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN issue TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN run TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN binding TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN source_kind TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN hook TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN details TEXT COLLATE "C";
UPDATE operations SET
    agent = scope::jsonb ->> 'agent',
    project = scope::jsonb ->> 'project',
    issue = scope::jsonb ->> 'issue',
    run = scope::jsonb ->> 'run'
WHERE coalesce(
    scope::jsonb ->> 'agent',
    scope::jsonb ->> 'project',
    scope::jsonb ->> 'issue',
    scope::jsonb ->> 'run'
) IS NOT NULL;
-- What the trail is asked for, each with the id, so that a page is read off in order. Every call pays for the first.
CREATE INDEX operations_action ON operations (space, action, id);
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

ALTER TABLE jobs ADD COLUMN agent TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN project TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN issue TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN run TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN binding TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN hook TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN cause TEXT COLLATE "C";
UPDATE jobs SET
    agent = scope::jsonb ->> 'agent',
    project = scope::jsonb ->> 'project',
    issue = scope::jsonb ->> 'issue',
    run = scope::jsonb ->> 'run'
WHERE coalesce(
    scope::jsonb ->> 'agent',
    scope::jsonb ->> 'project',
    scope::jsonb ->> 'issue',
    scope::jsonb ->> 'run'
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
    space TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C",
    subjects TEXT COLLATE "C",
    key_digest BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    rotated_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (space, kind, id)
);
INSERT INTO credentials (space, kind, id, key_digest, created_at, rotated_at, revoked_at)
SELECT space, 'user', id, key_digest, created_at, rotated_at, revoked_at FROM users;
DROP TABLE users;

-- Which memory serves a space. A space without any row has the first one, unwritten. What was deleted stays as a row
-- without configuration: that there was one is known, and its key is free.
CREATE TABLE bindings (
    space TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    config TEXT COLLATE "C" NOT NULL,
    hooks TEXT COLLATE "C" NOT NULL,
    enabled BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT,
    updated_at BIGINT,
    deleted_at BIGINT,
    PRIMARY KEY (space, id)
);
CREATE UNIQUE INDEX bindings_key ON bindings (space, key) WHERE deleted_at IS NULL;

-- Whom a binding serves: the whole company, or one agent.
CREATE TABLE binding_targets (
    space TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    target_id TEXT COLLATE "C" NOT NULL,
    binding_key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (space, kind, target_id)
);

-- Hooks on their way. What one carries is the text of the number `payload`, for as long as it may be needed; `digest` is
-- of it, and goes when it is forgotten. `home` is the partition that it belongs to, whether there is one or not.
CREATE TABLE deliveries (
    space TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    hook_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    source_kind TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    home TEXT COLLATE "C" NOT NULL,
    details TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'delivered', 'skipped', 'dead', 'dropped')),
    attempts BIGINT NOT NULL,
    reason TEXT COLLATE "C",
    operation_id TEXT COLLATE "C",
    digest TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    payload BIGINT,
    PRIMARY KEY (space, id)
);
CREATE UNIQUE INDEX deliveries_hook ON deliveries (space, destination, hook_id, home);
CREATE UNIQUE INDEX deliveries_payload ON deliveries (payload) WHERE payload IS NOT NULL;
CREATE INDEX deliveries_home ON deliveries (space, home, id);
CREATE INDEX deliveries_status ON deliveries (space, status, id);
CREATE INDEX deliveries_destination ON deliveries (space, destination, id);
CREATE INDEX deliveries_kind ON deliveries (space, kind, id);
CREATE INDEX deliveries_source ON deliveries (space, source_kind, id);

-- Metered calls. Money is in millionths of the currency's unit. `usage` is JSON of what the provider told besides.
CREATE TABLE cost_events (
    space TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    operation_id TEXT COLLATE "C",
    binding TEXT COLLATE "C",
    scope TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C",
    project TEXT COLLATE "C",
    issue TEXT COLLATE "C",
    run TEXT COLLATE "C",
    provider TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C",
    day TEXT COLLATE "C" NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    embedding_tokens BIGINT NOT NULL,
    amount_micros BIGINT NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    estimated BIGINT NOT NULL,
    occurred_at BIGINT NOT NULL,
    usage TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE INDEX cost_events_time ON cost_events (space, occurred_at);

-- Flat fees and invoices.
CREATE TABLE finance_events (
    space TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    amount_micros BIGINT NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    occurred_at BIGINT NOT NULL,
    binding TEXT COLLATE "C",
    provider TEXT COLLATE "C",
    external_invoice_id TEXT COLLATE "C",
    estimated BIGINT NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE INDEX finance_events_time ON finance_events (space, occurred_at);

-- What a million tokens cost.
CREATE TABLE prices (
    space TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    input_micros BIGINT NOT NULL,
    cached_input_micros BIGINT NOT NULL,
    output_micros BIGINT NOT NULL,
    embedding_micros BIGINT NOT NULL,
    PRIMARY KEY (space, provider, model)
);
