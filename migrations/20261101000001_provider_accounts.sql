-- Provider accounts and the sender domains seen on them.

CREATE TYPE provider_type AS ENUM ('SENDGRID', 'POSTMARK', 'MAILGUN', 'SES');
CREATE TYPE domain_state AS ENUM ('verified', 'unverified', 'unknown');

CREATE TABLE provider_accounts (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    provider_type provider_type NOT NULL,
    display_name text NOT NULL,
    is_active boolean NOT NULL,
    -- AES-256-GCM, bound to the organization and this row.
    credentials_sealed bytea NOT NULL,
    -- Whether the credentials can list the account's domains at all. Where they
    -- cannot, a domain that is not recorded is unknown rather than unverified.
    domains_visible boolean NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE INDEX provider_accounts_organization_idx
    ON provider_accounts (organization_id, created_at, id);

CREATE TABLE provider_domains (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    domain text NOT NULL,
    state domain_state NOT NULL,
    dns_records jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT provider_domains_account_domain_key UNIQUE (provider_account_id, domain)
);

CREATE INDEX provider_domains_organization_idx ON provider_domains (organization_id);
