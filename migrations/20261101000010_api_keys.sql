-- API keys that the API itself manages: where they may be used from, who made
-- them, when they were last used, and the secrets that a rotation replaced.

ALTER TABLE api_keys
    -- Networks in CIDR form; none means anywhere.
    ADD COLUMN allowed_ips text[] NOT NULL DEFAULT '{}',
    -- Written a little late and at most once a minute.
    ADD COLUMN last_used_at timestamptz,
    -- The key that made this one; NULL where the operator did.
    ADD COLUMN created_by uuid;

-- Secrets that a rotation replaced. Each opens its key until its time is up.
CREATE TABLE api_key_old_secrets (
    key_hash bytea PRIMARY KEY CHECK (length(key_hash) = 32),
    api_key_id uuid NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    valid_until timestamptz NOT NULL
);

CREATE INDEX api_key_old_secrets_key_idx ON api_key_old_secrets (api_key_id);
