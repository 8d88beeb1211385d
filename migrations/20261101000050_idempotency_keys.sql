-- Idempotency keys: requests that are done once however often they come, with
-- what they were answered.

CREATE TABLE idempotency_keys (
    -- No foreign key: it would lock the organization's row for every send.
    organization_id uuid NOT NULL,
    -- SHA-256 of the path and the key. Keys are the callers' texts and may hold
    -- personal data.
    key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
    -- SHA-256 of the body as JSON, whatever its white space and order.
    body_hash bytea NOT NULL CHECK (length(body_hash) = 32),
    -- What the request was answered, written in the transaction of its work. Sealed,
    -- since it may hold a secret; of a send the receipt as JSON, which holds ids and
    -- numbers, and of a message in a batch with a key the words of its refusal too.
    -- NULL is seen only of a batch that is not through: it is written in parts.
    answer bytea,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, key_hash)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- For forgetting the old ones.
CREATE INDEX idempotency_keys_created_idx ON idempotency_keys (created_at);
