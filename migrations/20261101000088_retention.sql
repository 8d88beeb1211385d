-- Messages that go one by one: those of an organization that keeps them for a shorter
-- time than others, and those that their month left behind.

-- Deletes those of some messages that have no work to do any more, with all that is
-- theirs, and says how many they were.
CREATE FUNCTION waypost_delete_messages(ids uuid[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone uuid[];
    t record;
BEGIN
    -- Locked in the order in which everybody locks them: attempts, recipients, messages.
    PERFORM FROM send_attempts WHERE message_id = ANY(ids) ORDER BY message_id, id FOR UPDATE;
    PERFORM FROM recipients WHERE message_id = ANY(ids) ORDER BY message_id, position FOR UPDATE;
    -- A statement of its own sees what those did for whom the ones above waited. Who has
    -- a message tried again holds its recipients, so nobody does from here on.
    SELECT array_agg(m.id) INTO gone
    FROM (SELECT id, status
          FROM messages
          WHERE id = ANY(ids)
          ORDER BY id
          FOR UPDATE) m
    WHERE m.status NOT IN ('QUEUED', 'SENDING')
      AND NOT EXISTS (SELECT FROM outbox WHERE message_id = m.id);
    -- The queue before message_subjects: what leaves it goes there.
    DELETE FROM message_subject_queue
    WHERE (organization_id, message_id) IN (SELECT organization_id, id FROM messages WHERE id = ANY(gone));
    DELETE FROM unknown_attempts WHERE message_id = ANY(gone);
    -- Messages are the oldest and come last.
    FOR t IN SELECT * FROM waypost_partitioned_tables() LOOP
        EXECUTE format('DELETE FROM %I WHERE %I = ANY($1)', t.parent, t.key_column) USING gone;
    END LOOP;
    RETURN coalesce(cardinality(gone), 0);
END
$$;

-- Deletes rows of default partitions that are older than every month there is and whose
-- message is gone, up to `row_limit` of each table, and says how many they were: what
-- was recorded of a message while its month was dropped.
CREATE FUNCTION waypost_sweep_defaults(row_limit integer) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    oldest uuid := (SELECT waypost_uuid_floor(min(month))
                    FROM waypost_partitions()
                    WHERE parent = 'messages' AND is_attached);
    t record;
    step bigint;
    swept bigint := 0;
BEGIN
    FOR t IN SELECT * FROM waypost_partitioned_tables() WHERE parent <> 'messages' LOOP
        EXECUTE format(
            'DELETE FROM %1$I
             WHERE ctid = ANY(ARRAY(SELECT d.ctid
                                    FROM %1$I d
                                    WHERE d.%2$I < $1 AND NOT EXISTS (SELECT FROM messages m WHERE m.id = d.%2$I)
                                    LIMIT $2))',
            t.parent || '_default', t.key_column) USING oldest, row_limit;
        GET DIAGNOSTICS step = ROW_COUNT;
        swept := swept + step;
    END LOOP;
    RETURN swept;
END
$$;
