-- Messages that go one by one took their subjects along by the message's id alone. The key of
-- message_subjects begins with the organization, so that each step read all subjects of the
-- month. As before, but for that.
CREATE OR REPLACE FUNCTION waypost_delete_messages(ids uuid[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone uuid[];
    organizations uuid[];
    t record;
BEGIN
    -- Locked in the order in which everybody locks them: attempts, recipients, messages.
    PERFORM FROM send_attempts WHERE message_id = ANY(ids) ORDER BY message_id, id FOR UPDATE;
    PERFORM FROM recipients WHERE message_id = ANY(ids) ORDER BY message_id, position FOR UPDATE;
    -- A statement of its own sees what those did for whom the ones above waited. Who has
    -- a message tried again holds its recipients, so nobody does from here on.
    SELECT array_agg(m.id), array_agg(m.organization_id) INTO gone, organizations
    FROM (SELECT id, organization_id, status
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
    EXECUTE 'DELETE FROM message_subjects s
             USING unnest($1, $2) AS g (organization_id, id)
             WHERE s.organization_id = g.organization_id AND s.message_id = g.id AND s.message_id = ANY($2)'
        USING organizations, gone;
    DELETE FROM unknown_attempts WHERE message_id = ANY(gone);
    -- Messages are the oldest and come last.
    FOR t IN SELECT * FROM waypost_partitioned_tables() WHERE parent <> 'message_subjects' LOOP
        EXECUTE format('DELETE FROM %I WHERE %I = ANY($1)', t.parent, t.key_column) USING gone;
    END LOOP;
    RETURN coalesce(cardinality(gone), 0);
END
$$;
