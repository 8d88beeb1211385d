-- Who changed what. Each row is written in the transaction of the change.

CREATE TABLE audit_logs (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    -- "provider.created", "suppression.deleted", ...
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

CREATE INDEX audit_logs_organization_idx ON audit_logs (organization_id, id DESC);
