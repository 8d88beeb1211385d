-- Who is changing something at a provider just now, so that two requests do not make
-- two of it there. A row ends by itself: its holder may have died.

CREATE TABLE provider_claims (
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    -- What is being changed: 'event-webhook', 'domain:example.com'.
    subject text NOT NULL,
    -- The holder: nobody else gives the claim up.
    holder uuid NOT NULL,
    held_until timestamptz NOT NULL,
    PRIMARY KEY (provider_account_id, subject)
);
