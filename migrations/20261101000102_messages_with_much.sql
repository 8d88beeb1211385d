-- A message may have more hanging on it than one transaction should delete: events that its
-- readers make, and what is told of them. Deletes of each kind so many rows at the most, and
-- none that somebody holds, of those of some messages that have no work to do, and says how
-- many rows they were.
CREATE FUNCTION waypost_shed_messages(ids uuid[], rows_max integer) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    done uuid[];
    parent text;
    shed bigint;
    total bigint := 0;
BEGIN
    SELECT array_agg(id) INTO done
    FROM messages
    WHERE id = ANY(ids) AND status NOT IN ('QUEUED', 'SENDING')
      AND NOT EXISTS (SELECT FROM outbox WHERE message_id = messages.id);
    FOREACH parent IN ARRAY ARRAY['webhook_attempts', 'webhook_deliveries', 'provider_events', 'events'] LOOP
        EXECUTE format(
            'DELETE FROM %1$I
             WHERE message_id = ANY($1)
               AND ctid = ANY(ARRAY(SELECT ctid
                                    FROM %1$I
                                    WHERE message_id = ANY($1)
                                    LIMIT $2
                                    FOR UPDATE SKIP LOCKED))',
            parent)
            USING done, rows_max;
        GET DIAGNOSTICS shed = ROW_COUNT;
        total := total + shed;
    END LOOP;
    RETURN total;
END
$$;
