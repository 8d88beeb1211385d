-- What it takes to be told of events by a provider.

ALTER TABLE provider_accounts
    -- The last part of the account's webhookUrl: 32 characters of base62. It finds
    -- the account; what it may tell is decided by its signature.
    ADD COLUMN event_token text,
    -- What the provider's calls are verified with, sealed like the credentials;
    -- NULL until it is known, and nothing is believed until then.
    ADD COLUMN event_secrets_sealed bytea,
    -- When a call was last found to be genuine for the first time since the
    -- secrets were set: eventsVerified.
    ADD COLUMN events_verified_at timestamptz;

-- gen_random_uuid() draws from the same strong source.
UPDATE provider_accounts
SET event_token = replace(gen_random_uuid()::text, '-', '');

ALTER TABLE provider_accounts
    ALTER COLUMN event_token SET NOT NULL,
    ALTER COLUMN event_token SET DEFAULT replace(gen_random_uuid()::text, '-', ''),
    ADD CONSTRAINT provider_accounts_event_token_key UNIQUE (event_token);
