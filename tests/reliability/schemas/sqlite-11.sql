BEGIN TRANSACTION;
CREATE TABLE aliases (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    key BLOB NOT NULL,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    trusted INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (partition_id, key)
) WITHOUT ROWID;
CREATE TABLE answers (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    body TEXT NOT NULL, checksum INTEGER,
    PRIMARY KEY (partition_id, key)
) WITHOUT ROWID;
INSERT INTO "answers" VALUES(1,'516f821a48aa1c3f6ef0ca9be7e86e1993c119e9466c3709e2cc7fd62a6e73d6','2d1a3167edf0f1ec0622cc73fa920684464b5484f01cf02c22f5834adb77c1a4',1767268800000000,'{"operation_id": "op_00000000000000000000000000000001", "turn_id": "turn_00000000000000000000000000000004", "message_ids": ["msg_00000000000000000000000000000002", "msg_00000000000000000000000000000003"]}',1101662178476);
INSERT INTO "answers" VALUES(1,'fbb238b163c7f78e9d9992e77167da06a1b5a7a8e404dc6a8f8fa6df144b8d0b','f377c7c3108be3df57d575c5ea23a0e27094784cd29c93c20dc07cc833799f65',1767268800000000,'{"operation_id": "op_00000000000000000000000000000011", "memory_id": "mem_00000000000000000000000000000012"}',1102796324336);
CREATE TABLE binding_targets (
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    target_id TEXT NOT NULL,
    binding_key TEXT NOT NULL, checksum INTEGER,
    PRIMARY KEY (space, kind, target_id)
) WITHOUT ROWID;
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
    deleted_at INTEGER, checksum INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE TABLE contradictions (
    memory_number INTEGER NOT NULL REFERENCES records (number),
    contradicted_id TEXT NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (memory_number, contradicted_id)
) WITHOUT ROWID;
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    app TEXT NOT NULL,
    project TEXT NOT NULL,
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    namespace TEXT NOT NULL,
    least_position INTEGER NOT NULL DEFAULT 0,
    sealed INTEGER NOT NULL DEFAULT 0, least_sequence INTEGER NOT NULL DEFAULT 1, forgotten_turns INTEGER NOT NULL DEFAULT 0, checksum INTEGER,
    UNIQUE (partition_id, name, app, project, channel, namespace)
);
INSERT INTO "conversations" VALUES(1,1,'','','','home','',0,2,1,0,1100521609217);
INSERT INTO "conversations" VALUES(2,2,'app','','c','default','',0,0,1,0,1100581207973);
INSERT INTO "conversations" VALUES(3,3,'','','','default','',1,0,2,1,1101094420271);
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
    usage TEXT NOT NULL, checksum INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE TABLE credentials (
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    role TEXT,
    subjects TEXT,
    key_digest BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    rotated_at INTEGER,
    revoked_at INTEGER, checksum INTEGER,
    PRIMARY KEY (space, kind, id)
) WITHOUT ROWID;
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
    payload INTEGER, checksum INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE TABLE embedders (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE
, checksum INTEGER);
INSERT INTO "embedders" VALUES(1,'fake:64:1',1101025572709);
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
    details TEXT, checksum INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
INSERT INTO "events" VALUES('default','evt_00000000000000000000000000000005','memory.write','{"space": "default", "subject": "ana", "conversation": "home"}',1,NULL,'turn_00000000000000000000000000000004',NULL,1767268800000000,'{"messages": 2}',1099648006811);
INSERT INTO "events" VALUES('default','evt_00000000000000000000000000000009','memory.write','{"space": "default", "app": "app", "channel": "c", "conversation": "default"}',2,NULL,'turn_00000000000000000000000000000008',NULL,1767268800000000,'{"messages": 1}',1103052236134);
INSERT INTO "events" VALUES('default','evt_0000000000000000000000000000000e','memory.write','{"space": "default", "subject": "ana"}',1,'long_term','mem_0000000000000000000000000000000d','058e5bf40019b0dd6db6159b6cfeeeb934fa55cf0c01870c9d9325ba8ac1497d',1767268800000000,'{"revision": 1}',1102863372900);
INSERT INTO "events" VALUES('default','evt_00000000000000000000000000000010','memory.write','{"space": "default", "subject": "ana"}',1,'long_term','mem_0000000000000000000000000000000f','1bc7d807acc2574fee35ed0065711e886408de5cd25c58f9fbe3d03ebc7e2209',1767268800000000,'{"revision": 1}',1100578527817);
INSERT INTO "events" VALUES('default','evt_00000000000000000000000000000013','memory.write','{"space": "default", "subject": "ana"}',1,'long_term','mem_00000000000000000000000000000012','6df669262f9b65a482ff4be6e8770beb74b7bbc9840a07853c8cd46b59409009',1767268800000000,'{"revision": 1}',1103172617347);
INSERT INTO "events" VALUES('default','evt_00000000000000000000000000000015','memory.write','{"space": "default", "subject": "ana"}',1,'long_term','mem_00000000000000000000000000000012','3df57325866b86ad20ff8d9729875d19a36cf02c24a336eac2da8707ad2da125',1767268800000000,'{"revision": 2}',1103330410054);
INSERT INTO "events" VALUES('default','evt_00000000000000000000000000000019','memory.write','{"space": "default", "subject": "bob", "conversation": "default"}',3,NULL,'turn_00000000000000000000000000000018',NULL,1767268800000000,'{"messages": 1}',1101093943798);
INSERT INTO "events" VALUES('default','evt_0000000000000000000000000000001b','memory.delete','{"space": "default", "subject": "bob"}',3,NULL,'msg_00000000000000000000000000000017',NULL,1767268800000000,'{"messages": 1}',1100381534953);
INSERT INTO "events" VALUES('default','evt_00000000000000000000000000000020','memory.write','{"space": "default", "subject": "bob", "conversation": "default"}',3,NULL,'turn_0000000000000000000000000000001f',NULL,1767268800000000,'{"messages": 1}',1102158825053);
CREATE TABLE evidence (
    memory_number INTEGER NOT NULL REFERENCES records (number),
    message_number INTEGER NOT NULL REFERENCES records (number), checksum INTEGER,
    PRIMARY KEY (memory_number, message_number)
) WITHOUT ROWID;
INSERT INTO "evidence" VALUES(4,1,1100274022844);
INSERT INTO "evidence" VALUES(5,2,1100195267089);
INSERT INTO "evidence" VALUES(6,1,1099570811194);
INSERT INTO "evidence" VALUES(7,1,1099863688569);
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
    estimated INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (space, id)
) WITHOUT ROWID;
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
    error TEXT
, agent TEXT, project TEXT, issue TEXT, run TEXT, binding TEXT, hook TEXT, cause TEXT, checksum INTEGER) WITHOUT ROWID;
INSERT INTO "jobs" VALUES('job_0000000000000000000000000000000b','extract','default',1,'{"space": "default", "subject": "ana", "conversation": "home"}','["msg_00000000000000000000000000000002", "msg_00000000000000000000000000000003"]','succeeded',1,NULL,1,1767268800000000,1767268800000000,NULL,1767268800000000,1767268800000000,2,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1102134034379);
INSERT INTO "jobs" VALUES('job_0000000000000000000000000000001c','scrub','*',NULL,'{"space": "*"}','[]','queued',1,NULL,0,1767268800000000,1767268800000000,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1099847234252);
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
, checksum INTEGER) WITHOUT ROWID;
INSERT INTO "meta" VALUES('indexed_by','fake:64:1/1',1102262633527);
INSERT INTO "meta" VALUES('model_verbs','flush,maintain',1103328788924);
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
    built_at INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (partition_id, embedder_id)
) WITHOUT ROWID;
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
    details TEXT, checksum INTEGER,
    PRIMARY KEY (space, action, id)
) WITHOUT ROWID;
INSERT INTO "operations" VALUES('*','op_0000000000000000000000000000000c','{"space": "*"}',NULL,'operator','local','work','succeeded',NULL,1,1767268800000000,736770,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1100311503737);
INSERT INTO "operations" VALUES('default','op_00000000000000000000000000000001','{"space": "default", "subject": "ana", "conversation": "home"}',1,'operator','local','add','succeeded',NULL,2,1767268800000000,5276,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1101383189792);
INSERT INTO "operations" VALUES('default','op_00000000000000000000000000000006','{"space": "default", "app": "app", "channel": "c", "conversation": "default"}',2,'operator','local','add','succeeded',NULL,1,1767268800000000,965,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1100532017198);
INSERT INTO "operations" VALUES('default','op_00000000000000000000000000000016','{"space": "default", "subject": "bob", "conversation": "default"}',3,'operator','local','add','succeeded',NULL,1,1767268800000000,984,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1100835585021);
INSERT INTO "operations" VALUES('default','op_0000000000000000000000000000001d','{"space": "default", "subject": "bob", "conversation": "default"}',3,'operator','local','add','succeeded',NULL,1,1767268800000000,873,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1103075388681);
INSERT INTO "operations" VALUES('default','op_00000000000000000000000000000014','{"space": "default", "subject": "ana"}',1,'operator','local','correct','succeeded',NULL,1,1767268800000000,945,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1103457639441);
INSERT INTO "operations" VALUES('default','op_0000000000000000000000000000000a','{"space": "default", "subject": "ana", "conversation": "home"}',1,'operator','local','flush','succeeded',NULL,2,1767268800000000,1165,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1102578266923);
INSERT INTO "operations" VALUES('default','op_0000000000000000000000000000001a','{"space": "default", "subject": "bob"}',3,'operator','local','forget','succeeded',NULL,1,1767268800000000,2678,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1102408490366);
INSERT INTO "operations" VALUES('default','op_00000000000000000000000000000011','{"space": "default", "subject": "ana"}',1,'operator','local','remember','succeeded',NULL,1,1767268800000000,1191,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1100429862664);
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('subject', 'agent', 'shared')),
    owner TEXT NOT NULL,
    change INTEGER NOT NULL DEFAULT 0, checksum INTEGER,
    UNIQUE (space, kind, owner)
);
INSERT INTO "partitions" VALUES(1,'default','subject','ana',4,1100205197238);
INSERT INTO "partitions" VALUES(2,'default','shared','',1,1100452928160);
INSERT INTO "partitions" VALUES(3,'default','subject','bob',3,1101031241342);
CREATE TABLE prices (
    space TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    currency TEXT NOT NULL,
    input_micros INTEGER NOT NULL,
    cached_input_micros INTEGER NOT NULL,
    output_micros INTEGER NOT NULL,
    embedding_micros INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (space, provider, model)
) WITHOUT ROWID;
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
    terms BLOB NOT NULL
, authority TEXT, checksum INTEGER);
INSERT INTO "records" VALUES(1,'msg_00000000000000000000000000000002',0,1,1,0,1,1,0,'turn_00000000000000000000000000000004','user',X'7431160D65C1010C5E92D398569D1266',NULL,X'C54EFD770E4DD86D29EB355C8490DB5A',NULL,NULL,'accepted',3,1767268800000000,1767268800000000,NULL,NULL,NULL,1,0,4,1,X'D4D1793C8C88673C8741A276BDD1D2203FBA098E1568927A87E0E65D3AF6CC760100010001000100',NULL,1100545833779);
INSERT INTO "records" VALUES(2,'msg_00000000000000000000000000000003',0,1,1,0,1,1,1,'turn_00000000000000000000000000000004','user',NULL,NULL,X'C54EFD770E4DD86D29EB355C8490DB5A',NULL,NULL,'accepted',3,1767268800000000,1767268800000000,NULL,NULL,NULL,1,0,5,1,X'D4D1793C8C88673CB4C496750066F455983C48DCA5E42EBB40F89E395B66422F47E987DD5B67463301000100010001000100',NULL,1102361283369);
INSERT INTO "records" VALUES(3,'msg_00000000000000000000000000000007',0,2,1,0,2,2,0,'turn_00000000000000000000000000000008','assistant',NULL,NULL,NULL,NULL,NULL,'accepted',3,1767268800000000,1767268800000000,NULL,NULL,NULL,1,0,5,1,X'1AC0ECA46AE1FD0F3515600618782ACFD0F575A52DF19B4E2D6650A3C1F95FFD551C5A762E8CCEDC01000100010001000100',NULL,1102970025632);
INSERT INTO "records" VALUES(4,'mem_0000000000000000000000000000000d',1,1,2,1,3,NULL,0,NULL,NULL,NULL,NULL,NULL,X'204CAC5BC94B7D868160AEAB8849DAED','long_term','accepted',1,1767268800000000,1767268800000000,NULL,1767268800000000,NULL,1,0,4,1,X'25190115385A1A3C8741A276BDD1D2203FBA098E1568927A87E0E65D3AF6CC760100010001000100',NULL,1103614683296);
INSERT INTO "records" VALUES(5,'mem_0000000000000000000000000000000f',1,1,2,1,3,NULL,0,NULL,NULL,NULL,NULL,NULL,X'E488DB60F6299723E3C55FD8EC170093','long_term','accepted',1,1767268800000000,1767268800000000,NULL,1767268800000000,NULL,1,0,5,1,X'25190115385A1A3CB4C496750066F455983C48DCA5E42EBB40F89E395B66422F47E987DD5B67463301000100010001000100',NULL,1099716261081);
INSERT INTO "records" VALUES(6,'mem_00000000000000000000000000000012',1,1,4,1,3,NULL,0,NULL,NULL,NULL,NULL,NULL,X'31F345976C4A89536EF534541D4E8B82','long_term','accepted',3,1767268800000000,1767268800000000,1767268800000001,NULL,NULL,1,0,3,1,X'25190115385A1A3CCC06DA46ECEBBAD2BA6587C1BB84C490010001000100',NULL,1102612619302);
INSERT INTO "records" VALUES(7,'mem_00000000000000000000000000000012',2,1,4,1,3,NULL,0,NULL,NULL,NULL,NULL,NULL,X'31F345976C4A89536EF534541D4E8B82','long_term','accepted',3,1767268800000001,1767268800000001,NULL,NULL,NULL,1,0,3,1,X'25190115385A1A3CCC06DA46ECEBBAD2E0FDF6B4916FAF6C010001000100',NULL,1099793231104);
INSERT INTO "records" VALUES(9,'msg_0000000000000000000000000000001e',0,3,3,0,4,3,1,'turn_0000000000000000000000000000001f','user',NULL,NULL,NULL,NULL,NULL,'accepted',3,1767268800000000,1767268800000000,NULL,NULL,NULL,1,0,4,1,X'AF24DB6EE21DAE4F410D4C0AA8DA53F0AB5E695F912C97285854E319A9B7E7EA0100010001000100',NULL,1103175521141);
CREATE TABLE resources (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    sha256 BLOB NOT NULL,
    media_type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL
, checksum INTEGER);
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
    namespace TEXT NOT NULL, checksum INTEGER,
    UNIQUE (partition_id, conversation, app, project, agent, subject, channel, run, issue, namespace, space)
);
INSERT INTO "scopes" VALUES(1,1,'default','','','','ana','','home','','','',1100765603211);
INSERT INTO "scopes" VALUES(2,2,'default','app','','','','c','default','','','',1101651782367);
INSERT INTO "scopes" VALUES(3,1,'default','','','','ana','','','','','',1100931876177);
INSERT INTO "scopes" VALUES(4,3,'default','','','','bob','','default','','','',1100053047924);
CREATE TABLE text_checksums (
    number INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL
);
CREATE TABLE texts (
    number INTEGER PRIMARY KEY,
    sender TEXT,
    source TEXT,
    external_id TEXT,
    author TEXT,
    reason TEXT,
    metadata TEXT,
    text TEXT NOT NULL
, checksum INTEGER);
INSERT INTO "texts" VALUES(1,'ana','chat','m1',NULL,NULL,'{"k": "v"}','I live in Lisbon.',1099588813036);
INSERT INTO "texts" VALUES(2,'ana','chat',NULL,NULL,NULL,NULL,'I work as a nurse.',1101583325975);
INSERT INTO "texts" VALUES(3,'Zoë',NULL,NULL,NULL,NULL,NULL,'Zoë said: 你好',1102371759051);
INSERT INTO "texts" VALUES(4,NULL,NULL,NULL,'extractor:rules',NULL,NULL,'ana lives in Lisbon.',1099689065664);
INSERT INTO "texts" VALUES(5,NULL,NULL,NULL,'extractor:rules',NULL,NULL,'ana works as a nurse.',1101984639144);
INSERT INTO "texts" VALUES(6,NULL,NULL,NULL,'operator:local',NULL,NULL,'Ana likes tea.',1100606238221);
INSERT INTO "texts" VALUES(7,NULL,NULL,NULL,'operator:local','she said so',NULL,'Ana likes coffee.',1100008957977);
INSERT INTO "texts" VALUES(8,X'000000',NULL,X'0000',NULL,NULL,NULL,X'000000000000000000000000000000',1103782458481);
INSERT INTO "texts" VALUES(9,'bob',NULL,NULL,NULL,NULL,NULL,'still to be flushed',1101425816195);
CREATE TABLE tombstones (
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    change INTEGER NOT NULL,
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind INTEGER NOT NULL,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    conversation_id INTEGER,
    external_key BLOB,
    forgotten_at INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (partition_id, change, number)
) WITHOUT ROWID;
INSERT INTO "tombstones" VALUES(3,2,8,'msg_00000000000000000000000000000017',0,4,3,X'DCF4213271BC7324B6FA5A818C9B3DE9',1767268800000000,1100106854241);
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
    words INTEGER, checksum INTEGER,
    PRIMARY KEY (conversation_id, sequence)
) WITHOUT ROWID;
INSERT INTO "turns" VALUES(1,1,'turn_00000000000000000000000000000004',NULL,'active',NULL,0,2,1767268800000000,NULL,1101359405834);
INSERT INTO "turns" VALUES(2,1,'turn_00000000000000000000000000000008',NULL,'active',NULL,0,1,1767268800000000,NULL,1101931403678);
INSERT INTO "turns" VALUES(3,2,'turn_0000000000000000000000000000001f',NULL,'active',NULL,1,1,1767268800000000,NULL,1100499305402);
CREATE TABLE vectors (
    partition_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    embedder_id INTEGER NOT NULL REFERENCES embedders (id),
    vector BLOB NOT NULL, checksum INTEGER,
    PRIMARY KEY (partition_id, number, piece)
) WITHOUT ROWID;
INSERT INTO "vectors" VALUES(1,1,0,1,X'000000000000000000000000000088BA00000000000000000000000000000000000000000000000088B600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000088B6',1101899791858);
INSERT INTO "vectors" VALUES(1,2,0,1,X'28B700000000000000000000000028B700000000000000000000000000000000000000000000000028B7000000000000283700000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000028B700000000000000000000000000000000000000000000',1101134517018);
INSERT INTO "vectors" VALUES(1,4,0,1,X'000000000000000000000000000088BA0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000088B6000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000088B6',1099798319919);
INSERT INTO "vectors" VALUES(1,5,0,1,X'28B700000000000000000000000028B70000000000000000000000000000000000000000000000000000000000000000283700000000000000000000000000000000000000000000000028B70000000000000000000000000000000000000000000000000000000028B700000000000000000000000000000000000000000000',1099868102507);
INSERT INTO "vectors" VALUES(1,6,0,1,X'0000000000000000000000000000000000000000000000009E380000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009EB8000000000000000000000000000000000000000000000000000000000000000000000000000000009E3800000000000000000000',1101054188239);
INSERT INTO "vectors" VALUES(1,7,0,1,X'0000000000000000000000000000000000000000000000009E3800000000000000000000000000000000000000000000000000000000000000000000000000009EB800000000000000009EB800000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000',1102598097377);
INSERT INTO "vectors" VALUES(2,3,0,1,X'000000000000000000000000000000000000000000000000000000000000000028B700000000000000002837000000000000000028B70000000000000000000000000000000000000000000000000000000000000000000000002837000000000000000000000000000028370000000000000000000000000000000000000000',1101069132811);
INSERT INTO "vectors" VALUES(3,9,0,1,X'000000380000000000000000000000000000000000000000000000000000000000000000000000000000000000000000003800000000000000000000000000000000000000000000000000000000000000000000000000B800000000000000B80000000000000000000000000000000000000000000000000000000000000000',1102316940696);
CREATE INDEX evidence_message ON evidence (message_number);
CREATE INDEX tombstones_external ON tombstones (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE INDEX jobs_due ON jobs (status, run_after) WHERE status IN ('queued', 'running');
CREATE INDEX jobs_partition ON jobs (partition_id, id);
CREATE UNIQUE INDEX records_id ON records (id, revision);
CREATE INDEX records_change ON records (partition_id, change);
CREATE INDEX records_newest ON records (partition_id, substr(id, 5));
CREATE INDEX records_position ON records (conversation_id, position) WHERE conversation_id IS NOT NULL;
CREATE UNIQUE INDEX records_external ON records (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE UNIQUE INDEX records_content ON records (conversation_id, content_key) WHERE content_key IS NOT NULL;
CREATE INDEX records_slot ON records (partition_id, slot_key) WHERE slot_key IS NOT NULL;
CREATE INDEX records_source ON records (partition_id, source_key) WHERE source_key IS NOT NULL;
CREATE INDEX resources_newest ON resources (partition_id, id);
CREATE INDEX resources_file ON resources (scope_id, sha256);
CREATE INDEX records_hidden ON records (partition_id, change) WHERE status NOT IN ('accepted', 'quarantined');
CREATE UNIQUE INDEX turns_external ON turns (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE UNIQUE INDEX turns_words ON turns (words) WHERE words IS NOT NULL;
CREATE INDEX events_record ON events (record_key) WHERE content_hash IS NOT NULL;
CREATE INDEX tombstones_id ON tombstones (partition_id, id);
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
CREATE INDEX jobs_retry ON jobs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX jobs_space ON jobs (space, id);
CREATE INDEX jobs_ended ON jobs (space, status, id) WHERE status IN ('failed', 'cancelled');
CREATE INDEX jobs_agent ON jobs (space, agent, id) WHERE agent IS NOT NULL;
CREATE INDEX jobs_project ON jobs (space, project, id) WHERE project IS NOT NULL;
CREATE INDEX jobs_issue ON jobs (space, issue, id) WHERE issue IS NOT NULL;
CREATE INDEX jobs_run ON jobs (space, run, id) WHERE run IS NOT NULL;
CREATE INDEX jobs_binding ON jobs (space, binding, id) WHERE binding IS NOT NULL;
CREATE INDEX jobs_hook ON jobs (space, hook, id) WHERE hook IS NOT NULL;
CREATE UNIQUE INDEX bindings_key ON bindings (space, key) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX deliveries_hook ON deliveries (space, destination, hook_id, home);
CREATE UNIQUE INDEX deliveries_payload ON deliveries (payload) WHERE payload IS NOT NULL;
CREATE INDEX deliveries_home ON deliveries (space, home, id);
CREATE INDEX deliveries_status ON deliveries (space, status, id);
CREATE INDEX deliveries_destination ON deliveries (space, destination, id);
CREATE INDEX deliveries_kind ON deliveries (space, kind, id);
CREATE INDEX deliveries_source ON deliveries (space, source_kind, id);
CREATE INDEX cost_events_time ON cost_events (space, occurred_at);
CREATE INDEX finance_events_time ON finance_events (space, occurred_at);
CREATE INDEX contradictions_id ON contradictions (contradicted_id);
CREATE UNIQUE INDEX runtime_skills_name ON runtime_skills (partition_id, name_key);
CREATE UNIQUE INDEX runtime_skills_words ON runtime_skills (words);
COMMIT;
PRAGMA application_id = 1212957766;
PRAGMA user_version = 11;
