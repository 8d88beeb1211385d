-- Which mailbox provider takes the mail of a recipient's domain, as its MX records say, for the
-- conditions of routing rules. Acceptance asks for domains; the scheduler looks them up.

SET LOCAL lock_timeout = '5s';

ALTER TABLE routing_rules
    -- 'google', 'microsoft', 'yahoo', 'other'. None means every recipient.
    ADD COLUMN recipient_mailbox_providers text[] NOT NULL DEFAULT '{}';

-- Only domains that a message to them asked for. Rows that nobody asks for go after a month.
CREATE TABLE mailbox_provider_domains (
    -- In lower-case ASCII.
    domain text PRIMARY KEY,
    -- NULL before the first look-up that was answered.
    provider text CHECK (provider IN ('google', 'microsoft', 'yahoo', 'other')),
    -- When somebody asked for it last, to the day.
    wanted_at timestamptz NOT NULL,
    resolved_at timestamptz,
    -- When it is looked up next.
    check_at timestamptz NOT NULL,
    -- Look-ups that failed since the last answer.
    failures smallint NOT NULL DEFAULT 0
);

CREATE INDEX mailbox_provider_domains_check_idx ON mailbox_provider_domains (check_at);
CREATE INDEX mailbox_provider_domains_wanted_idx ON mailbox_provider_domains (wanted_at);
