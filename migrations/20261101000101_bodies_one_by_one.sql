-- Deletes the bodies of those of some messages that have no work to do, and says how many
-- they were.
CREATE FUNCTION waypost_delete_bodies(ids uuid[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone bigint;
BEGIN
    -- Who has a message tried again holds its recipients, so nobody does from here on.
    PERFORM FROM recipients WHERE message_id = ANY(ids) ORDER BY message_id, position FOR NO KEY UPDATE;
    -- A statement of its own sees what those did for whom the one above waited.
    DELETE FROM message_bodies
    WHERE message_id = ANY(ids)
      AND NOT EXISTS (SELECT FROM outbox WHERE outbox.message_id = message_bodies.message_id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;
