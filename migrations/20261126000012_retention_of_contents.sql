-- The contents of recipients go with the bodies of their messages, and those of attachments when
-- no message of their organization and month is left.

CREATE OR REPLACE FUNCTION waypost_delete_bodies(ids uuid[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone bigint;
BEGIN
    -- A retry locks the recipients first, so no message can be retried from here on.
    PERFORM FROM recipients WHERE message_id = ANY(ids) ORDER BY message_id, position FOR NO KEY UPDATE;
    -- A statement of its own sees what the transactions did for which the one above waited.
    DELETE FROM message_bodies
    WHERE message_id = ANY(ids)
      AND NOT EXISTS (SELECT FROM outbox WHERE outbox.message_id = message_bodies.message_id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    -- A message that keeps its body keeps these.
    DELETE FROM recipient_contents
    WHERE message_id = ANY(ids)
      AND NOT EXISTS (SELECT FROM message_bodies b WHERE b.message_id = recipient_contents.message_id);
    RETURN gone;
END
$$;

-- The key of attachment_contents is no message, so they are asked for by their month.
CREATE OR REPLACE FUNCTION waypost_delete_orphans(row_limit integer) RETURNS bigint
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
    FOR t IN SELECT *
             FROM waypost_partitioned_tables()
             WHERE parent NOT IN ('messages', 'attachment_contents') LOOP
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
    DELETE FROM attachment_contents_default
    WHERE ctid = ANY(ARRAY(
        SELECT d.ctid
        FROM attachment_contents_default d
        WHERE d.month < oldest AND waypost_is_month_unused(d.organization_id, d.month)
        LIMIT row_limit));
    GET DIAGNOSTICS step = ROW_COUNT;
    RETURN swept + step;
END
$$;

-- Whether an organization has no message of a month. `month` is its waypost_uuid_floor.
CREATE FUNCTION waypost_is_month_unused(organization_id uuid, month uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT NOT EXISTS (
        SELECT
        FROM messages m
        WHERE m.organization_id = waypost_is_month_unused.organization_id
          AND m.id >= waypost_is_month_unused.month
          AND m.id < waypost_uuid_floor(
              (waypost_uuid_time(waypost_is_month_unused.month) AT TIME ZONE 'UTC' + interval '1 month')
              AT TIME ZONE 'UTC'))
$$;

-- Until a scheduler runs, rows of recipient_contents and attachment_contents would go into their
-- default partitions.
SET LOCAL lock_timeout = '5s';
SELECT waypost_create_partitions(now(), 3);
