-- Organizations, their API keys, the audit log and idempotency keys.

-- Everything else belongs to an organization. Its row also holds its settings.
CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- The answer to a send from a domain that is not verified on the resolved account:
    -- 'reject' is 422, 'accept' is 202 with domainVerified false.
    unverified_domains text NOT NULL DEFAULT 'reject'
        CHECK (unverified_domains IN ('reject', 'accept')),
    created_at timestamptz NOT NULL,
    track_opens boolean NOT NULL DEFAULT true,
    track_clicks boolean NOT NULL DEFAULT true,
    -- How long messages are kept; NULL means for ever.
    retention_days integer CHECK (retention_days > 0),
    -- Requests per second; NULL means the operator's default.
    send_per_second integer CHECK (send_per_second > 0),
    other_per_second integer CHECK (other_per_second > 0),
    -- So many soft bounces within so many days suppress an address; 0 means never.
    soft_bounce_limit integer NOT NULL DEFAULT 5 CHECK (soft_bounce_limit >= 0),
    soft_bounce_window_days integer NOT NULL DEFAULT 30 CHECK (soft_bounce_window_days > 0)
);

CREATE TRIGGER routing_changed AFTER UPDATE OF unverified_domains ON organizations
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('id');
-- The tracking settings are cached with what routing needs.
CREATE TRIGGER tracking_changed AFTER UPDATE OF track_opens, track_clicks ON organizations
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('id');

-- Only the SHA-256 of a key is stored: keys are random, so a slow hash would add cost and
-- no safety.
CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name text NOT NULL,
    prefix text NOT NULL,
    key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
    permissions text[] NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    created_at timestamptz NOT NULL,
    -- Networks in CIDR form; none means anywhere.
    allowed_ips text[] NOT NULL DEFAULT '{}',
    -- Written a little late, and at most once a minute.
    last_used_at timestamptz,
    -- The key that created this one; NULL where the operator did.
    created_by uuid,
    CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash)
);

CREATE INDEX api_keys_organization_idx ON api_keys (organization_id, created_at);

-- Secrets that a rotation replaced. Each is accepted for its key until valid_until.
CREATE TABLE api_key_old_secrets (
    key_hash bytea PRIMARY KEY CHECK (length(key_hash) = 32),
    api_key_id uuid NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    valid_until timestamptz NOT NULL
);

CREATE INDEX api_key_old_secrets_key_idx ON api_key_old_secrets (api_key_id);

-- Who changed what. Each row is written in the transaction of the change.
CREATE TABLE audit_logs (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    -- "provider.created", "suppression.deleted", …
    action text NOT NULL,
    occurred_at timestamptz NOT NULL,
    actor_type text NOT NULL CHECK (actor_type IN ('api_key', 'recipient', 'system')),
    actor_id uuid,
    actor_name text,
    target_type text NOT NULL,
    target_id uuid NOT NULL,
    ip text,
    user_agent text,
    request_id text NOT NULL,
    metadata jsonb NOT NULL
);

-- The audit log is read newest first: whole, by action and by target.
CREATE INDEX audit_logs_time_idx ON audit_logs (organization_id, occurred_at DESC, id DESC);
CREATE INDEX audit_logs_action_idx ON audit_logs (organization_id, action, occurred_at DESC, id DESC);
CREATE INDEX audit_logs_target_idx ON audit_logs (organization_id, target_id, occurred_at DESC, id DESC);

-- Requests that are executed once however often they are repeated, with their answers.
CREATE TABLE idempotency_keys (
    -- No foreign key: it would lock the organization's row for every send.
    organization_id uuid NOT NULL,
    -- SHA-256 of the path and the key. Keys are the clients' texts and may hold personal
    -- data.
    key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
    -- SHA-256 of the body as JSON, whatever its white space and order.
    body_hash bytea NOT NULL CHECK (length(body_hash) = 32),
    -- The answer, written in the transaction of the request's work. It is sealed, since it
    -- may hold a secret, except for a send: its receipt is plain JSON of ids and numbers,
    -- with the text of the refusal for a message of a batch that has a key of its own.
    -- NULL is visible only while a batch is being accepted: it is written in parts.
    answer bytea,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, key_hash)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- For deleting expired keys.
CREATE INDEX idempotency_keys_created_idx ON idempotency_keys (created_at);
