-- Provider accounts, their sender domains, and the rules that choose an account.

CREATE TYPE provider_type AS ENUM ('SENDGRID', 'POSTMARK', 'MAILGUN', 'SES', 'SMTP');
CREATE TYPE domain_state AS ENUM ('verified', 'unverified', 'unknown');

CREATE TABLE provider_accounts (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    provider_type provider_type NOT NULL,
    display_name text NOT NULL,
    is_active boolean NOT NULL,
    -- AES-256-GCM, bound to the organization and this row.
    credentials_sealed bytea NOT NULL,
    -- Whether the credentials may list the account's domains. Where they may not, a domain
    -- without a row is unknown rather than unverified.
    domains_visible boolean NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- The last part of the account's webhookUrl, 32 characters. It finds the account; the
    -- signature of a call decides whether the call is believed.
    event_token text NOT NULL,
    -- The keys that verify the provider's calls, sealed like the credentials. While they
    -- are NULL no call is believed.
    event_secrets_sealed bytea,
    -- When the first genuine call arrived since the keys were set: eventsVerified.
    events_verified_at timestamptz,
    -- Limits over all workers; NULL means none.
    max_rate_per_second integer CHECK (max_rate_per_second BETWEEN 1 AND 100000),
    max_concurrency integer CHECK (max_concurrency BETWEEN 1 AND 10000),
    -- How often the account was repaired. What was found at an earlier revision does not count.
    revision integer NOT NULL DEFAULT 0,
    -- Why the account cannot send, and since when. Both are set or neither is.
    sending_paused_reason text,
    sending_paused_since timestamptz,
    CONSTRAINT provider_accounts_event_token_key UNIQUE (event_token),
    CONSTRAINT provider_accounts_sending_paused_check
        CHECK ((sending_paused_reason IS NULL) = (sending_paused_since IS NULL))
);

CREATE INDEX provider_accounts_organization_idx
    ON provider_accounts (organization_id, created_at, id);

CREATE TRIGGER routing_changed AFTER INSERT OR UPDATE OR DELETE ON provider_accounts
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');

-- The provider type of every account there ever was. Events still arrive after an account
-- is deleted, and metrics count them by provider.
CREATE TABLE provider_account_types (
    provider_account_id uuid PRIMARY KEY,
    provider_type provider_type NOT NULL
);

CREATE FUNCTION waypost_record_account_type() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO provider_account_types (provider_account_id, provider_type)
    VALUES (NEW.id, NEW.provider_type)
    ON CONFLICT (provider_account_id) DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER record_account_type AFTER INSERT ON provider_accounts
    FOR EACH ROW EXECUTE FUNCTION waypost_record_account_type();

-- The sender domains of an account. The scheduler checks each again: a verified domain may
-- become unverified, and the others are expected to become verified.
CREATE TABLE provider_domains (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    domain text NOT NULL,
    state domain_state NOT NULL,
    dns_records jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    -- Whether it was added through Waypost. Such a domain stays when the provider's list
    -- does not show it: Mailgun's list shows one domain, and a Postmark server token sees
    -- none.
    is_added boolean NOT NULL DEFAULT false,
    -- When the provider last reported its state.
    checked_at timestamptz,
    -- When it is checked next.
    check_at timestamptz NOT NULL,
    CONSTRAINT provider_domains_account_domain_key UNIQUE (provider_account_id, domain)
);

CREATE INDEX provider_domains_organization_idx ON provider_domains (organization_id);
CREATE INDEX provider_domains_check_idx ON provider_domains (check_at);

CREATE TRIGGER routing_changed AFTER INSERT OR DELETE ON provider_domains
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
-- Most checks find nothing new. They change only the times, which routing does not need.
CREATE TRIGGER routing_state_changed AFTER UPDATE ON provider_domains
    FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state
          OR OLD.domain IS DISTINCT FROM NEW.domain
          OR OLD.provider_account_id IS DISTINCT FROM NEW.provider_account_id
          OR OLD.organization_id IS DISTINCT FROM NEW.organization_id)
    EXECUTE FUNCTION waypost_routing_changed('organization_id');

-- Locks on something at a provider, so that two requests do not create it twice. A lock
-- expires by itself, since its holder may have died.
CREATE TABLE provider_claims (
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    -- What is being changed: 'event-webhook', 'domain:example.com'.
    subject text NOT NULL,
    -- Only the holder releases the lock.
    holder uuid NOT NULL,
    held_until timestamptz NOT NULL,
    PRIMARY KEY (provider_account_id, subject)
);

-- Which account takes a message, by its sender domain and tags.
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
    -- No foreign key: a rule stays, inactive, when its account is deleted.
    provider_account_id uuid NOT NULL,
    fallback_provider_account_ids uuid[] NOT NULL,
    on_unknown text NOT NULL CHECK (on_unknown IN ('wait', 'resend', 'fail')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- In the order in which rules are tried.
CREATE INDEX routing_rules_organization_idx
    ON routing_rules (organization_id, priority DESC, created_at, id);

CREATE TRIGGER routing_changed AFTER INSERT OR UPDATE OR DELETE ON routing_rules
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
