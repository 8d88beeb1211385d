-- Every event that someone subscribed to owes deliveries, from its own transaction
-- on: a trigger writes them, so that no code path and no operator's SQL can forget
-- to. It also wakes who serves the endpoint, only where there is something to do.

-- The time in a UUIDv7.
CREATE FUNCTION waypost_uuid_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT to_timestamp(('x0000' || left(replace(id::text, '-', ''), 12))::bit(64)::bigint / 1000.0)
$$;

CREATE FUNCTION waypost_owe_webhooks() RETURNS trigger
LANGUAGE plpgsql
-- Endpoints are looked up by index, whatever the planner believes of tables that have
-- just grown.
SET enable_seqscan = off
AS $$
DECLARE
    owed uuid[];
BEGIN
    -- For most organizations nobody did, and that must cost next to nothing.
    IF NOT EXISTS (SELECT
                   FROM webhook_endpoints
                   WHERE is_active AND organization_id = ANY(ARRAY(SELECT organization_id FROM added))) THEN
        RETURN NULL;
    END IF;
    WITH delivery AS (
        INSERT INTO webhook_deliveries (message_id, id, organization_id, webhook_endpoint_id, event_id,
                                        event_type, position, status, next_attempt_at, created_at)
        SELECT a.message_id,
               -- A UUIDv7 of the event's time, so that lists by id are in order.
               (left(a.id::text, 18) || substr(gen_random_uuid()::text, 19))::uuid,
               a.organization_id, e.id, a.id, a.event_type, p.position, 'PENDING',
               -- Due at once, whatever the clock of whoever recorded it says.
               least(t.recorded_at, now()), t.recorded_at
        FROM added a
        JOIN webhook_endpoints e
          ON e.organization_id = a.organization_id AND e.is_active AND a.event_type = ANY(e.events)
        CROSS JOIN LATERAL (SELECT waypost_uuid_time(a.id) AS recorded_at) t
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

CREATE TRIGGER owe_webhooks AFTER INSERT ON events
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_owe_webhooks();
