-- Events as the providers report them.

-- Each event of a provider is recorded once, however often it is reported. A repeated event finds
-- the same message, so a key within the message is enough, and retention drops the event with it.
CREATE TABLE provider_events (
    message_id uuid NOT NULL,
    -- The account that the recipient's mail went through. It is part of the key, since an
    -- account at the provider that is connected twice reports everything twice.
    provider_account_id uuid NOT NULL,
    -- The first half of the SHA-256 of the provider's id of the event.
    event_hash bytea NOT NULL CHECK (length(event_hash) = 16),
    organization_id uuid NOT NULL,
    position integer NOT NULL,
    received_at timestamptz NOT NULL,
    -- The event as received: AES-256-GCM, bound to the organization and the message.
    payload_sealed bytea NOT NULL,
    PRIMARY KEY (message_id, provider_account_id, event_hash)
) PARTITION BY RANGE (message_id);

CREATE TABLE provider_events_default PARTITION OF provider_events DEFAULT;

-- How many events of an account were acknowledged and recorded nowhere.
CREATE TABLE unrecorded_event_counts (
    provider_account_id uuid PRIMARY KEY REFERENCES provider_accounts (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    -- About a message that is not the organization's, or that is deleted.
    unmatched bigint NOT NULL,
    -- Of a form that could not be read.
    unreadable bigint NOT NULL,
    updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Signatures that do not cover the content (Mailgun's): whoever has seen one could send it with
-- other content. Only the first content that came with a signature is believed; it may come
-- again.
CREATE TABLE provider_signatures (
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    token text NOT NULL,
    -- The SHA-256 of the content.
    content_hash bytea NOT NULL CHECK (length(content_hash) = 32),
    -- From then on the signature is refused as too old, whatever its content.
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (provider_account_id, token)
);

CREATE INDEX provider_signatures_expiry_idx ON provider_signatures (provider_account_id, expires_at);
