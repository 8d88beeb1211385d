-- Rules that prefer healthy targets: how much of their weights accounts have left, for all mail and
-- for mail to a domain.

SET LOCAL lock_timeout = '5s';

ALTER TABLE routing_rules
    ADD COLUMN prefer text NOT NULL DEFAULT 'weight' CHECK (prefer IN ('weight', 'health'));

CREATE INDEX routing_rules_health_idx ON routing_rules (organization_id) WHERE prefer = 'health';

-- The scheduler keeps them: only of accounts that are targets of such a rule, and only below 100.
CREATE TABLE account_health_factors (
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    -- Empty for all domains.
    recipient_domain text NOT NULL,
    -- What is left of the weight.
    percent smallint NOT NULL CHECK (percent BETWEEN 1 AND 99),
    -- Since when too much of its mail fails, or failed when it last did.
    bad_since timestamptz NOT NULL,
    -- When the percent changed last.
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (provider_account_id, recipient_domain)
);

CREATE INDEX account_health_factors_organization_idx ON account_health_factors (organization_id);

CREATE TRIGGER routing_changed AFTER INSERT OR UPDATE OR DELETE ON account_health_factors
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
