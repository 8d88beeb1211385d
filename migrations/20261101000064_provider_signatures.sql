-- Signatures of providers that cover only themselves (Mailgun's): whoever has seen
-- one could put it on a content of their own. The first content that came with one
-- is the only one; it may come again.
CREATE TABLE provider_signatures (
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    token text NOT NULL,
    -- The SHA-256 of the content.
    content_hash bytea NOT NULL CHECK (length(content_hash) = 32),
    -- From then on the signature is too old anyway.
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (provider_account_id, token)
);

CREATE INDEX provider_signatures_expiry_idx ON provider_signatures (provider_account_id, expires_at);
