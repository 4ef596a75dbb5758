-- A position is counted from the messages that are there; where one was forgotten, none comes again. A process of an older
-- version that still has the store open must not go on counting by itself: under the new name it cannot.
ALTER TABLE conversations RENAME COLUMN next_position TO least_position;

-- From PostgreSQL 18 on, NOT NULL has a name too.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_constraint
        WHERE conrelid = 'conversations'::regclass AND conname = 'conversations_next_position_not_null'
    ) THEN
        ALTER TABLE conversations
        RENAME CONSTRAINT conversations_next_position_not_null TO conversations_least_position_not_null;
    END IF;
END
$$;
