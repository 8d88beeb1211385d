-- Webhooks: where customers want to be told of events, and what was told.

CREATE TYPE webhook_delivery_status AS ENUM ('PENDING', 'DELIVERED', 'FAILED');

CREATE TABLE webhook_endpoints (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    url text NOT NULL,
    events event_type[] NOT NULL,
    is_active boolean NOT NULL,
    -- The signing secret, bound to the organization and this row.
    secret_sealed bytea NOT NULL,
    -- The first failure since the last success; NULL while it works. Five days of
    -- it deactivate the endpoint.
    failing_since timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE INDEX webhook_endpoints_organization_idx ON webhook_endpoints (organization_id, id);

-- Secrets that were replaced and still sign beside the new one until their end.
CREATE TABLE webhook_endpoint_old_secrets (
    webhook_endpoint_id uuid NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    secret_sealed bytea NOT NULL,
    valid_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (webhook_endpoint_id, created_at)
);

-- One event for one endpoint. What it says is read from the event, the message and
-- the recipient when it is sent; nothing is copied.
CREATE TABLE webhook_deliveries (
    message_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- No foreign keys: events come faster than endpoints go. The deliveries of an
    -- endpoint that is deleted are deleted after it, in steps.
    webhook_endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    event_type event_type NOT NULL,
    -- The recipient: one of its own for each recipient of a QUEUED event too.
    position integer NOT NULL,
    status webhook_delivery_status NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    -- When it is due; NULL once it ended.
    next_attempt_at timestamptz,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (message_id, id)
) PARTITION BY RANGE (message_id);

-- The list of an endpoint, newest first, and of one status.
CREATE INDEX webhook_deliveries_endpoint_idx ON webhook_deliveries (webhook_endpoint_id, id DESC);
CREATE INDEX webhook_deliveries_status_idx ON webhook_deliveries (webhook_endpoint_id, status, id DESC);
-- What is due at an endpoint.
CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (webhook_endpoint_id, next_attempt_at)
    WHERE status = 'PENDING';

CREATE TABLE webhook_deliveries_default PARTITION OF webhook_deliveries DEFAULT;

-- One call to an endpoint.
CREATE TABLE webhook_attempts (
    message_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    webhook_delivery_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    duration_ms integer NOT NULL,
    -- The HTTP status; NULL where no answer came.
    status_code integer,
    -- The first KiB of the answer, or what went wrong.
    answer text,
    PRIMARY KEY (message_id, id)
) PARTITION BY RANGE (message_id);

CREATE INDEX webhook_attempts_delivery_idx ON webhook_attempts (message_id, webhook_delivery_id);

CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;

SELECT waypost_create_partitions(now(), 3);
