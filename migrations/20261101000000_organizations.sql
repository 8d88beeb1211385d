-- Organizations and their API keys. Everything else belongs to an organization.

CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- What a send from a domain that is not verified on the resolved account
    -- gets: 'reject' (422) or 'accept' (202 with domainVerified false).
    unverified_domains text NOT NULL DEFAULT 'reject'
        CHECK (unverified_domains IN ('reject', 'accept')),
    created_at timestamptz NOT NULL
);

-- Only the SHA-256 of a key is stored: keys are random, so a slow hash would
-- add cost and no safety.
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
    CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash)
);

CREATE INDEX api_keys_organization_idx ON api_keys (organization_id, created_at);
