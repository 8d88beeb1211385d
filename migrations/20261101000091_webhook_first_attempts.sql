-- Most deliveries are taken at the first call. It is kept in the delivery's own row,
-- which is written then anyway; a row of its own, with two entries in indexes, was a
-- third of what recording it cost. Further calls are rows of `webhook_attempts`.

ALTER TABLE webhook_deliveries
    -- NULL as long as no call was made, and where it was recorded before there was
    -- this column.
    ADD COLUMN first_attempt_id uuid,
    ADD COLUMN first_started_at timestamptz,
    ADD COLUMN first_duration_ms integer,
    -- As in webhook_attempts.
    ADD COLUMN first_status_code integer,
    ADD COLUMN first_answer text;

-- As before, but where nobody subscribed to any of the types that were added it ends at
-- once, and what all deliveries of an event share is worked out once for each event.
CREATE OR REPLACE FUNCTION waypost_owe_webhooks() RETURNS trigger
LANGUAGE plpgsql
-- Endpoints are looked up by index, whatever the planner believes of tables that have
-- just grown.
SET enable_seqscan = off
AS $$
DECLARE
    owed uuid[];
BEGIN
    -- For most organizations nobody did, or not to these, and that must cost next to
    -- nothing.
    IF NOT EXISTS (SELECT
                   FROM webhook_endpoints
                   WHERE is_active AND organization_id = ANY(ARRAY(SELECT organization_id FROM added))
                     AND events && ARRAY(SELECT event_type FROM added)) THEN
        RETURN NULL;
    END IF;
    WITH delivery AS (
        INSERT INTO webhook_deliveries (message_id, id, organization_id, webhook_endpoint_id, event_id,
                                        event_type, position, status, next_attempt_at, created_at)
        SELECT a.message_id,
               -- A UUIDv7 of the event's time, so that lists by id are in order.
               (t.beginning || substr(gen_random_uuid()::text, 19))::uuid,
               a.organization_id, e.id, a.id, a.event_type, p.position, 'PENDING',
               -- Due at once, whatever the clock of whoever recorded it says.
               least(t.recorded_at, now()), t.recorded_at
        FROM added a
        JOIN webhook_endpoints e
          ON e.organization_id = a.organization_id AND e.is_active AND a.event_type = ANY(e.events)
        -- Once for each event, and not for each of its recipients.
        CROSS JOIN LATERAL (SELECT left(a.id::text, 18) AS beginning, waypost_uuid_time(a.id) AS recorded_at OFFSET 0) t
        -- An event without a position is about every recipient.
        CROSS JOIN LATERAL (
            SELECT a.position
            WHERE a.position IS NOT NULL
            UNION ALL
            SELECT r.position
            FROM recipients r
            WHERE r.message_id = a.message_id AND a.position IS NULL
        ) p
        RETURNING webhook_endpoint_id
    )
    SELECT array_agg(DISTINCT webhook_endpoint_id) INTO owed FROM delivery;
    -- Transactions that notify commit one after the other. An endpoint under load is
    -- looked after anyway, and one that is spared for a while is not called.
    PERFORM pg_notify('waypost_webhooks', 'due ' || id)
    FROM webhook_endpoints
    WHERE id = ANY(owed) AND (awake_until IS NULL OR awake_until < clock_timestamp())
      AND (paused_until IS NULL OR paused_until < clock_timestamp());
    RETURN NULL;
END
$$;
