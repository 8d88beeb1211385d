-- From here on new messages go into their one queue. Only this needs the lock that sends
-- wait behind, and does nothing else under it. Whoever cannot have it soon gives up, and is
-- run again. Nobody makes partitions meanwhile, who locks in another order.
SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

DROP TRIGGER count_new_messages ON messages;
DROP TRIGGER queue_subjects ON messages;
DROP FUNCTION waypost_count_new_messages();
DROP FUNCTION waypost_queue_subjects();

CREATE TRIGGER queue_new_messages AFTER INSERT ON messages
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_queue_new_messages();

-- From a while after this on messages are counted by hour, by the time in their ids. An
-- hour is counted whole, also where the clocks of processes are some minutes ahead.
DO $$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION waypost_message_hour(message uuid) RETURNS timestamptz
         LANGUAGE sql IMMUTABLE PARALLEL SAFE
         AS $body$
             SELECT CASE WHEN message >= %L::uuid
                         THEN to_timestamp((''x'' || encode(substring(uuid_send(message) FOR 6), ''hex''))::bit(48)::bigint
                                           / 3600000 * 3600) END
         $body$',
        waypost_uuid_floor(date_trunc('hour', clock_timestamp() + interval '10 minutes', 'UTC') + interval '1 hour'));
END
$$;

-- As before; what is new and goes is counted all the same, but no longer indexed.
CREATE OR REPLACE FUNCTION waypost_delete_messages(ids uuid[]) RETURNS bigint
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
    UPDATE new_messages
    SET subject = NULL
    WHERE (organization_id, message_id) IN (SELECT organization_id, id FROM messages WHERE id = ANY(gone));
    DELETE FROM unknown_attempts WHERE message_id = ANY(gone);
    -- Messages are the oldest and come last.
    FOR t IN SELECT * FROM waypost_partitioned_tables() LOOP
        EXECUTE format('DELETE FROM %I WHERE %I = ANY($1)', t.parent, t.key_column) USING gone;
    END LOOP;
    RETURN coalesce(cardinality(gone), 0);
END
$$;
