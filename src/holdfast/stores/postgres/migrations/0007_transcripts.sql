-- Turns as governed evidence. What a message rests on; NULL where nobody said. Messages take the status of their turn.
ALTER TABLE records ADD COLUMN authority TEXT COLLATE "C";
-- Sequences below this one were given, also if their turns were forgotten since.
ALTER TABLE conversations ADD COLUMN least_sequence BIGINT NOT NULL DEFAULT 1;
-- How many turns were forgotten: with the last sequence, it tells how many there are.
ALTER TABLE conversations ADD COLUMN forgotten_turns BIGINT NOT NULL DEFAULT 0;
-- What no search may see. Its condition stands in the statements that use it, word by word.
CREATE INDEX records_hidden ON records (partition_id, change) WHERE status NOT IN ('accepted', 'quarantined');

-- One delivery, in order. Its messages are those of its conversation from `first_position` on, up to the next turn's;
-- `messages` counts those that were not forgotten. What a host wrote about it (its own id, who took part, references) is
-- the text of the number `words`. Our own id has no index: every add would pay for it, and nobody asks by it but for a
-- single turn.
CREATE TABLE turns (
    conversation_id BIGINT NOT NULL REFERENCES conversations (id),
    sequence BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    external_key BYTEA,
    state TEXT COLLATE "C" NOT NULL,
    delivery TEXT COLLATE "C",
    first_position BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    words BIGINT,
    PRIMARY KEY (conversation_id, sequence)
);
CREATE UNIQUE INDEX turns_external ON turns (conversation_id, external_key) WHERE external_key IS NOT NULL;
CREATE UNIQUE INDEX turns_words ON turns (words) WHERE words IS NOT NULL;
INSERT INTO turns (conversation_id, sequence, id, state, first_position, messages, recorded_at)
SELECT
    conversation_id, row_number() OVER (PARTITION BY conversation_id ORDER BY min(position)), turn_id, 'active',
    min(position), count(*), min(recorded_at)
FROM records WHERE kind = 0 GROUP BY conversation_id, turn_id;

-- Which conversation a chat id stands for. The key is a digest of the id and of where it was used.
CREATE TABLE aliases (
    partition_id BIGINT NOT NULL REFERENCES partitions (id),
    key BYTEA NOT NULL,
    conversation_id BIGINT NOT NULL REFERENCES conversations (id),
    trusted INTEGER NOT NULL,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (partition_id, key)
);

-- What became of which record. Never a text; `content_hash` is blanked when its record is forgotten.
CREATE TABLE events (
    space TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    partition_id BIGINT,
    plane TEXT COLLATE "C",
    record_key TEXT COLLATE "C",
    content_hash TEXT COLLATE "C",
    at BIGINT NOT NULL,
    details TEXT COLLATE "C",
    PRIMARY KEY (space, id)
);
CREATE INDEX events_record ON events (record_key) WHERE content_hash IS NOT NULL;

-- Whether something was forgotten is asked of each record that is taken in again.
CREATE INDEX tombstones_id ON tombstones (partition_id, id);
