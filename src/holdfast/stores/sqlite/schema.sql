-- Numbers (rowids) are the store's own and never leave it. Moments are microseconds since the epoch, in UTC.
-- In scopes and conversations, '' stands for a part that is not given. `checksum` is of all other columns of the row; it
-- is missing in rows from before there were checksums, until a job adds it.

-- Facts about the store itself.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    checksum INTEGER
) WITHOUT ROWID;

-- The unit of statistics, postings and vectors. `change` grows with every transaction that touches it.
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('subject', 'agent', 'shared')),
    owner TEXT NOT NULL,
    change INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER,
    UNIQUE (space, kind, owner)
);

-- Every distinct scope that a record has.
CREATE TABLE scopes (
    id INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    space TEXT NOT NULL,
    app TEXT NOT NULL,
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    subject TEXT NOT NULL,
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    run TEXT NOT NULL,
    issue TEXT NOT NULL,
    namespace TEXT NOT NULL,
    checksum INTEGER,
    UNIQUE (partition_id, conversation, app, project, agent, subject, channel, run, issue, namespace, space)
);

-- A thread of messages. Runs and issues come and go within one. Positions below `sealed` have been flushed. The next
-- message comes after the last that is there, and not below `least_position`: where one was forgotten, none comes again.
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    app TEXT NOT NULL,
    project TEXT NOT NULL,
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    namespace TEXT NOT NULL,
    least_position INTEGER NOT NULL DEFAULT 0,
    sealed INTEGER NOT NULL DEFAULT 0,
    least_sequence INTEGER NOT NULL DEFAULT 1,
    forgotten_turns INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER,
    UNIQUE (partition_id, name, app, project, channel, namespace)
);

CREATE TABLE embedders (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    checksum INTEGER
);

-- A message, or one revision of a memory: all that may change, and nothing that anybody wrote. `number` is that of its
-- text. `analyzer`, `flags`, `length` and `terms` are derived from the text; the keys are digests of what `texts` holds.
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    change INTEGER NOT NULL,
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    conversation_id INTEGER REFERENCES conversations (id),
    position INTEGER NOT NULL,
    turn_id TEXT,
    role TEXT,
    external_key BLOB,
    content_key BLOB,
    source_key BLOB,
    slot_key BLOB,
    plane TEXT,
    status TEXT NOT NULL,
    trust INTEGER NOT NULL,
    said_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    superseded_at INTEGER,
    valid_from INTEGER,
    valid_to INTEGER,
    analyzer INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    length INTEGER NOT NULL,
    embedder_id INTEGER REFERENCES embedders (id),
    terms BLOB NOT NULL,
    authority TEXT,
    checksum INTEGER
);
CREATE UNIQUE INDEX records_id ON records (id, revision);
CREATE INDEX records_change ON records (partition_id, change);
CREATE INDEX records_newest ON records (partition_id, substr(id, 5));
CREATE INDEX records_position ON records (conversation_id, position) WHERE conversation_id IS NOT NULL;
CREATE UNIQUE INDEX records_external ON records (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE UNIQUE INDEX records_content ON records (conversation_id, content_key) WHERE content_key IS NOT NULL;
CREATE INDEX records_slot ON records (partition_id, slot_key) WHERE slot_key IS NOT NULL;
CREATE INDEX records_source ON records (partition_id, source_key) WHERE source_key IS NOT NULL;
CREATE INDEX records_hidden ON records (partition_id, change) WHERE status NOT IN ('accepted', 'quarantined');

-- What people wrote stands apart, and its rows never move: they are appended, and blanked in place when their record is
-- forgotten. When a row grows, shrinks or is deleted, SQLite moves its neighbours between pages and leaves copies of
-- them behind, in unused parts that `secure_delete` does not reach. The text comes last: it may be long. Since no row is
-- ever deleted, the number of a new one was never another's.
CREATE TABLE texts (
    number INTEGER PRIMARY KEY,
    sender TEXT,
    source TEXT,
    external_id TEXT,
    author TEXT,
    reason TEXT,
    metadata TEXT,
    text TEXT NOT NULL,
    checksum INTEGER
);

-- The checksums of texts from before there were any: their rows must not grow. Appended, and replaced in place.
CREATE TABLE text_checksums (
    number INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL
);

-- A document that was given to be searched: what it is, and nothing that anybody wrote. Its name and where it came from
-- are the text of its number; its chunks are memories, with it as their source.
CREATE TABLE resources (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    sha256 BLOB NOT NULL,
    media_type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    checksum INTEGER
);
CREATE INDEX resources_newest ON resources (partition_id, id);
-- Not unique: the same text may be kept under several addresses.
CREATE INDEX resources_file ON resources (scope_id, sha256);

-- Derived. A partition's vectors lie together; float16, little-endian, one row per piece of a text.
CREATE TABLE vectors (
    partition_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    embedder_id INTEGER NOT NULL REFERENCES embedders (id),
    vector BLOB NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (partition_id, number, piece)
) WITHOUT ROWID;

-- From one revision of a memory to the messages that it came from.
CREATE TABLE evidence (
    memory_number INTEGER NOT NULL REFERENCES records (number),
    message_number INTEGER NOT NULL REFERENCES records (number),
    checksum INTEGER,
    PRIMARY KEY (memory_number, message_number)
) WITHOUT ROWID;
CREATE INDEX evidence_message ON evidence (message_number);

-- From one revision of a memory to the memories that it contradicts. Ids, because the mark stays when one of them is
-- revised. It counts while the current revisions of both have it.
CREATE TABLE contradictions (
    memory_number INTEGER NOT NULL REFERENCES records (number),
    contradicted_id TEXT NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (memory_number, contradicted_id)
) WITHOUT ROWID;
CREATE INDEX contradictions_id ON contradictions (contradicted_id);

-- The state of a memory on the procedural plane, a runtime skill: what changes without a new text. A memory without a row
-- has the state of a new one. The name and the last outcome note are the text of the number `words`; `name_key` is a
-- digest of the name.
CREATE TABLE runtime_skills (
    memory_id TEXT PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    name_key BLOB NOT NULL,
    words INTEGER NOT NULL,
    enabled INTEGER NOT NULL,
    needs_approval INTEGER NOT NULL,
    revision_pending INTEGER NOT NULL,
    use_count INTEGER NOT NULL,
    validated_success_count INTEGER NOT NULL,
    mismatch_count INTEGER NOT NULL,
    last_used_at INTEGER,
    checksum INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX runtime_skills_name ON runtime_skills (partition_id, name_key);
CREATE UNIQUE INDEX runtime_skills_words ON runtime_skills (words);

-- Proposals: changes that an agent suggests and an operator decides on. The id, the author and all that a proposal says are
-- the text of the number `words`; `id_key` is a digest of the id.
CREATE TABLE proposals (
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    id_key BLOB NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    words INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    checksum INTEGER,
    PRIMARY KEY (scope_id, id_key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX proposals_words ON proposals (words);
-- The records that a proposal rests on or speaks about. It is deleted with any of them.
CREATE TABLE proposal_records (
    record_id TEXT NOT NULL,
    words INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (record_id, words)
) WITHOUT ROWID;
CREATE INDEX proposal_records_words ON proposal_records (words);

-- Snapshots of the tools of a host. The id and the snapshot are the text of the number `words`; `key` is a digest of the id.
CREATE TABLE tool_registries (
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    key BLOB NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    words INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (scope_id, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX tool_registries_words ON tool_registries (words);

-- Observations of calls, folded into counts per tool, schema and task. Names and summary are the text of the number `words`,
-- the other keys are digests: of the names, of tool and schema, of the registry, of the only conversation that the
-- observations came from, and of that of the summary. Of the rows of one tool and schema, the best that is governed leads.
CREATE TABLE tool_experience (
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    key BLOB NOT NULL,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    version_key BLOB NOT NULL,
    registry_key BLOB NOT NULL,
    words INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    partial INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    noted INTEGER NOT NULL,
    confidence INTEGER NOT NULL,
    leads INTEGER NOT NULL,
    place_key BLOB,
    summary_place_key BLOB,
    recent BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (scope_id, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX tool_experience_words ON tool_experience (words);
CREATE INDEX tool_experience_leading ON tool_experience (scope_id, leads, confidence, succeeded, updated_at, key);
CREATE INDEX tool_experience_version ON tool_experience (scope_id, version_key, confidence, succeeded, updated_at, key);

-- What was forgotten: never its text. `external_key` keeps a replay of the same message from bringing it back.
CREATE TABLE tombstones (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    change INTEGER NOT NULL,
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind INTEGER NOT NULL,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    conversation_id INTEGER,
    external_key BLOB,
    forgotten_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (partition_id, change, number)
) WITHOUT ROWID;
CREATE INDEX tombstones_external ON tombstones (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE INDEX tombstones_id ON tombstones (partition_id, id);

-- Answers to idempotent calls: a digest of the request, and JSON of the ids and counts that it answered with.
CREATE TABLE answers (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (partition_id, key)
) WITHOUT ROWID;

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
    checksum INTEGER,
    PRIMARY KEY (space, kind, id)
) WITHOUT ROWID;

-- Background work, a row per attempt. `cause` is JSON of what it goes back to.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    space TEXT NOT NULL,
    partition_id INTEGER REFERENCES partitions (id),
    scope TEXT NOT NULL,
    record_ids TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    attempt INTEGER NOT NULL,
    retry_of TEXT,
    token INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    run_after INTEGER NOT NULL,
    lease_until INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    done INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    agent TEXT,
    project TEXT,
    issue TEXT,
    run TEXT,
    binding TEXT,
    hook TEXT,
    cause TEXT,
    checksum INTEGER
) WITHOUT ROWID;
CREATE INDEX jobs_due ON jobs (status, run_after) WHERE status IN ('queued', 'running');
CREATE INDEX jobs_partition ON jobs (partition_id, id);
CREATE INDEX jobs_retry ON jobs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX jobs_space ON jobs (space, id);
CREATE INDEX jobs_ended ON jobs (space, status, id) WHERE status IN ('failed', 'cancelled');
CREATE INDEX jobs_agent ON jobs (space, agent, id) WHERE agent IS NOT NULL;
CREATE INDEX jobs_project ON jobs (space, project, id) WHERE project IS NOT NULL;
CREATE INDEX jobs_issue ON jobs (space, issue, id) WHERE issue IS NOT NULL;
CREATE INDEX jobs_run ON jobs (space, run, id) WHERE run IS NOT NULL;
CREATE INDEX jobs_binding ON jobs (space, binding, id) WHERE binding IS NOT NULL;
CREATE INDEX jobs_hook ON jobs (space, hook, id) WHERE hook IS NOT NULL;

-- The audit trail, each kind of call in its order: one that is asked for needs no index, for which every add would pay
-- with a page. `details` is JSON of what the call was for and took, where there is more than the binding.
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
    checksum INTEGER,
    PRIMARY KEY (space, action, id)
) WITHOUT ROWID;
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

-- Derived. Which approximate index holds a large partition's vectors of an embedder: its files beside the store are
-- valid for as long as they match this row. It holds what had changed up to `change`; what was forgotten is blank in it
-- up to `forgotten`.
CREATE TABLE nearest (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    embedder_id INTEGER NOT NULL REFERENCES embedders (id),
    name TEXT NOT NULL,
    change INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    records INTEGER NOT NULL,
    vectors INTEGER NOT NULL,
    dimensions INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    digest BLOB NOT NULL,
    recall REAL NOT NULL,
    built_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (partition_id, embedder_id)
) WITHOUT ROWID;

-- One delivery, in order. Its messages are those of its conversation from `first_position` on, up to the next turn's;
-- `messages` counts those that were not forgotten. What a host wrote about it (its own id, who took part, references) is
-- the text of the number `words`. Our own id has no index: every add would pay for it, and nobody asks by it but for a
-- single turn.
CREATE TABLE turns (
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    sequence INTEGER NOT NULL,
    id TEXT NOT NULL,
    external_key BLOB,
    state TEXT NOT NULL,
    delivery TEXT,
    first_position INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    words INTEGER,
    checksum INTEGER,
    PRIMARY KEY (conversation_id, sequence)
) WITHOUT ROWID;
CREATE UNIQUE INDEX turns_external ON turns (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE UNIQUE INDEX turns_words ON turns (words) WHERE words IS NOT NULL;

-- Which conversation a chat id stands for. The key is a digest of the id and of where it was used.
CREATE TABLE aliases (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    key BLOB NOT NULL,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    trusted INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (partition_id, key)
) WITHOUT ROWID;

-- What became of which record. Never a text; `content_hash` is blanked when its record is forgotten.
CREATE TABLE events (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    partition_id INTEGER,
    plane TEXT,
    record_key TEXT,
    content_hash TEXT,
    at INTEGER NOT NULL,
    details TEXT,
    checksum INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE INDEX events_record ON events (record_key) WHERE content_hash IS NOT NULL;

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
    checksum INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX bindings_key ON bindings (space, key) WHERE deleted_at IS NULL;

-- Whom a binding serves: the whole company, or one agent.
CREATE TABLE binding_targets (
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    target_id TEXT NOT NULL,
    binding_key TEXT NOT NULL,
    checksum INTEGER,
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
    checksum INTEGER,
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
    checksum INTEGER,
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
    checksum INTEGER,
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
    checksum INTEGER,
    PRIMARY KEY (space, provider, model)
) WITHOUT ROWID;
