-- What providers told, so that each thing counts once however often it is told.

-- A provider's event, by the copy that it is about: an event that is told again
-- finds the same copy, so it is enough that it is unique within one message, and
-- retention drops it together with the message.
CREATE TABLE provider_events (
    message_id uuid NOT NULL,
    -- The account that the copy went through. An account at the provider that is
    -- connected twice tells everything twice.
    provider_account_id uuid NOT NULL,
    -- The first half of the SHA-256 of the provider's id of the event.
    event_hash bytea NOT NULL CHECK (length(event_hash) = 16),
    organization_id uuid NOT NULL,
    position integer NOT NULL,
    received_at timestamptz NOT NULL,
    -- The event as the provider told it: AES-256-GCM, bound to the organization
    -- and the message.
    told_sealed bytea NOT NULL,
    PRIMARY KEY (message_id, provider_account_id, event_hash)
) PARTITION BY RANGE (message_id);

CREATE TABLE provider_events_default PARTITION OF provider_events DEFAULT;

-- The months that the other tables have already.
SELECT waypost_create_partitions(first.month, (extract(year FROM gone) * 12 + extract(month FROM gone))::integer + 3)
FROM (SELECT date_trunc('month', coalesce(min(created_at), now()), 'UTC') AS month FROM messages) first
CROSS JOIN LATERAL age(date_trunc('month', now(), 'UTC'), first.month) AS gone;

ALTER TABLE recipients
    -- The DELIVERED event that a person's open or click stands for, until the
    -- provider tells of the delivery itself: then that event becomes the provider's.
    ADD COLUMN implied_event_id uuid;

-- Events of an account that were acknowledged and recorded nowhere.
CREATE TABLE provider_event_counts (
    provider_account_id uuid PRIMARY KEY REFERENCES provider_accounts (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    -- About a message that is not the organization's, or not there any more.
    unmatched bigint NOT NULL,
    -- Of a form that could not be read.
    unreadable bigint NOT NULL,
    updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- When an address last bounced softly: the newest times, for as many as suppress it.
CREATE TABLE soft_bounces (
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    email_hash bytea NOT NULL CHECK (length(email_hash) = 32),
    bounced_at timestamptz[] NOT NULL,
    PRIMARY KEY (organization_id, email_hash)
);

ALTER TABLE organizations
    -- Soft bounces that suppress an address; 0 means none ever do.
    ADD COLUMN soft_bounce_limit integer NOT NULL DEFAULT 5 CHECK (soft_bounce_limit >= 0),
    -- Within how many days.
    ADD COLUMN soft_bounce_window_days integer NOT NULL DEFAULT 30 CHECK (soft_bounce_window_days > 0);
