-- Webhooks: the customers' endpoints, and the deliveries of events to them.

CREATE TYPE webhook_delivery_status AS ENUM ('PENDING', 'DELIVERED', 'FAILED');

-- A URL that receives events. One worker at a time delivers to it, and so bounds the calls
-- and knows the endpoint's health.
CREATE TABLE webhook_endpoints (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    url text NOT NULL,
    events event_type[] NOT NULL,
    is_active boolean NOT NULL,
    -- The signing secret, bound to the organization and this row.
    secret_sealed bytea NOT NULL,
    -- The first failure since the last success; NULL while calls succeed. Five days of
    -- failures deactivate the endpoint.
    failing_since timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- The worker that delivers to it. No foreign key, and the reaper does not clear it: a
    -- lease of a worker that is not alive counts as none.
    leased_by uuid,
    -- Failed calls since the last success.
    failures integer NOT NULL DEFAULT 0,
    -- No call is made before, after too many failures in a row.
    paused_until timestamptz,
    -- Until then, by PostgreSQL's clock, the worker polls by itself, so that events under
    -- load need no notification.
    polled_until timestamptz
) WITH (fillfactor = 50); -- Leases and failures update a row often.

CREATE INDEX webhook_endpoints_organization_idx ON webhook_endpoints (organization_id, id);

-- Failures at another URL, or from before the endpoint was deactivated, say nothing about it.
CREATE FUNCTION waypost_reset_endpoint_health() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF NEW.url <> OLD.url OR (NEW.is_active AND NOT OLD.is_active) THEN
        NEW.failures := 0;
        NEW.paused_until := NULL;
        NEW.failing_since := NULL;
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER reset_health BEFORE UPDATE OF url, is_active ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION waypost_reset_endpoint_health();

-- Notifies the worker that delivers to an endpoint of every change to it.
CREATE FUNCTION waypost_webhook_endpoint_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_notify('waypost_webhooks', 'changed ' || OLD.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER changed AFTER UPDATE OF url, events, is_active, secret_sealed OR DELETE ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION waypost_webhook_endpoint_changed();

-- Deleted endpoints whose deliveries are still to be deleted.
CREATE TABLE webhook_endpoint_deletions (
    webhook_endpoint_id uuid PRIMARY KEY,
    -- By PostgreSQL's clock: transactions that began earlier may still add deliveries.
    deleted_at timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION waypost_webhook_endpoint_deleted() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO webhook_endpoint_deletions (webhook_endpoint_id) VALUES (OLD.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER deleted AFTER DELETE ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION waypost_webhook_endpoint_deleted();

-- Secrets that were replaced. Each signs beside the current one until valid_until.
CREATE TABLE webhook_endpoint_old_secrets (
    webhook_endpoint_id uuid NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    secret_sealed bytea NOT NULL,
    valid_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (webhook_endpoint_id, created_at)
);

-- One event for one endpoint. The payload is read from the event, the message and the
-- recipient when it is sent; nothing is copied.
CREATE TABLE webhook_deliveries (
    message_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- No foreign keys: events come faster than endpoints are deleted. The deliveries of a
    -- deleted endpoint are deleted later, in steps.
    webhook_endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    event_type event_type NOT NULL,
    -- The recipient. An event about every recipient has a delivery for each of them.
    position integer NOT NULL,
    status webhook_delivery_status NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    -- When it is due; NULL once it ended.
    next_attempt_at timestamptz,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- The first attempt, with the columns of webhook_attempts; NULL until it is made. Most
    -- deliveries need one attempt. A row of its own, with two index entries, would be a third
    -- of the cost of recording it.
    first_attempt_id uuid,
    first_started_at timestamptz,
    first_duration_ms integer,
    first_status_code integer,
    first_answer text,
    PRIMARY KEY (message_id, id)
) PARTITION BY RANGE (message_id);

-- The lists of an endpoint, newest first: all, and those of one status.
CREATE INDEX webhook_deliveries_endpoint_idx ON webhook_deliveries (webhook_endpoint_id, id DESC);
CREATE INDEX webhook_deliveries_status_idx ON webhook_deliveries (webhook_endpoint_id, status, id DESC);
-- What is due at an endpoint.
CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (webhook_endpoint_id, next_attempt_at)
    WHERE status = 'PENDING';

CREATE TABLE webhook_deliveries_default PARTITION OF webhook_deliveries DEFAULT;

-- One call to an endpoint: the second of a delivery, and every later one.
CREATE TABLE webhook_attempts (
    message_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    webhook_delivery_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    duration_ms integer NOT NULL,
    -- The HTTP status; NULL where no answer came.
    status_code integer,
    -- The first KiB of the answer, or the error.
    answer text,
    PRIMARY KEY (message_id, id)
) PARTITION BY RANGE (message_id);

CREATE INDEX webhook_attempts_delivery_idx ON webhook_attempts (message_id, webhook_delivery_id);

CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;

-- Inserts one delivery for each subscribed endpoint, in the event's own transaction. A trigger
-- does it, so that no code path and no SQL of an operator can leave it out. It also notifies
-- the workers of those endpoints, where they need it.
CREATE FUNCTION waypost_insert_webhook_deliveries() RETURNS trigger
LANGUAGE plpgsql
-- Endpoints are found by index, whatever the planner believes of tables that have just grown.
SET enable_seqscan = off
AS $$
DECLARE
    owed uuid[];
BEGIN
    -- Most organizations have no endpoint for these types. That must cost next to nothing.
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
               -- Due at once, also where the clock of the recording process is ahead.
               least(t.recorded_at, now()), t.recorded_at
        FROM added a
        JOIN webhook_endpoints e
          ON e.organization_id = a.organization_id AND e.is_active AND a.event_type = ANY(e.events)
        -- OFFSET 0 computes it once for each event, and not for each of its recipients.
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
    -- Transactions that notify commit one after the other. A worker polls an endpoint under
    -- load anyway, and a paused endpoint is not called.
    PERFORM pg_notify('waypost_webhooks', 'due ' || id)
    FROM webhook_endpoints
    WHERE id = ANY(owed) AND (polled_until IS NULL OR polled_until < clock_timestamp())
      AND (paused_until IS NULL OR paused_until < clock_timestamp());
    RETURN NULL;
END
$$;

CREATE TRIGGER insert_webhook_deliveries AFTER INSERT ON events
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_insert_webhook_deliveries();
