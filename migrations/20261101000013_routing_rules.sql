-- Routing rules, and the rule that a message went by.

CREATE TABLE routing_rules (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name text NOT NULL,
    priority integer NOT NULL CHECK (priority BETWEEN 0 AND 1000),
    is_active boolean NOT NULL,
    -- "example.com", "*.example.com", or NULL for every sender.
    sender_domain text,
    -- None means every message.
    tags text[] NOT NULL,
    tag_match text NOT NULL CHECK (tag_match IN ('any', 'all')),
    -- No foreign key: a rule outlives its account, switched off.
    provider_account_id uuid NOT NULL,
    fallback_provider_account_ids uuid[] NOT NULL,
    on_unknown text NOT NULL CHECK (on_unknown IN ('wait', 'resend', 'fail')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- In the order in which they are asked.
CREATE INDEX routing_rules_organization_idx
    ON routing_rules (organization_id, priority DESC, created_at, id);

-- The rule that chose the account; NULL where none matched. No foreign key, as
-- for the account.
ALTER TABLE messages ADD COLUMN routing_rule_id uuid;
