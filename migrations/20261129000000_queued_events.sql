-- A message's own row says that it was accepted: it is the event QUEUED, with the message's id. So
-- acceptance writes no event, and no trigger of events runs for it. For endpoints that want QUEUED
-- there is a row in `events`, which workers of any version deliver.

SET LOCAL lock_timeout = '5s';
-- New partitions take their columns from the table.
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

ALTER TABLE messages
    -- Whether this row is the event QUEUED. False: the trigger below writes it. NULL: a program from
    -- before this migration wrote it.
    ADD COLUMN is_queued_event boolean;

-- The history of messages.
CREATE VIEW message_events AS
SELECT message_id, id, organization_id, position, event_type, occurred_at, data
FROM events
UNION ALL
-- CASE: a message is found by its id, and never by an index that begins with the organization.
SELECT id, id, CASE WHEN is_queued_event THEN organization_id END, NULL, 'QUEUED', created_at, NULL
FROM messages
WHERE is_queued_event;

-- As before, and writes events.
CREATE OR REPLACE FUNCTION waypost_queue_new_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO new_messages (organization_id, message_id, status, subject, recipient_count, is_test, labels)
    SELECT organization_id, id, status, lower(subject), recipient_count, is_test,
           ARRAY[waypost_label(seed, 'from', lower(from_address)),
                 waypost_label(seed, 'domain', lower(split_part(from_address, '@', -1))),
                 waypost_label(seed, 'account', coalesce(resolved_account_id, provider_account_id)::text)]
           || CASE WHEN template_id IS NOT NULL THEN ARRAY[waypost_label(seed, 'template', template_id::text)] END
           || CASE WHEN recipient_count = 1 THEN ARRAY[waypost_label(seed, 'to', encode(to_hash, 'hex'))] END
           || CASE WHEN cardinality(tags) > 0
                   THEN ARRAY(SELECT waypost_label(seed, 'tag', tag) FROM unnest(tags) tag) END
    FROM added
    CROSS JOIN LATERAL (SELECT waypost_label_seed(organization_id, waypost_message_day(id), is_test) AS seed OFFSET 0) s;
    -- An INSERT of no rows runs the triggers of events too.
    IF EXISTS (SELECT FROM added WHERE NOT is_queued_event) THEN
        INSERT INTO events (message_id, id, organization_id, event_type, occurred_at)
        SELECT id, id, organization_id, 'QUEUED', created_at
        FROM added
        WHERE NOT is_queued_event;
    END IF;
    RETURN NULL;
END
$$;
