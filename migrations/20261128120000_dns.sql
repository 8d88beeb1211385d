-- Look-ups in DNS of the sender domains of organizations, across the accounts that have them.
--
-- Triggers keep a row for every domain, so that programs of the version before need not know
-- the table.

SET LOCAL lock_timeout = '5s';

CREATE TABLE sender_domain_checks (
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    -- The name, in ASCII.
    domain text NOT NULL,
    -- Stands for the domain in the audit log.
    id uuid NOT NULL DEFAULT waypost_uuid_new(now()),
    -- When it is checked next.
    check_at timestamptz NOT NULL,
    -- When DNS was last asked; NULL before the first check.
    checked_at timestamptz,
    -- What the last check found, for lists; a report is computed of the facts.
    status text NOT NULL DEFAULT 'unknown' CHECK (status IN ('complete', 'incomplete', 'broken', 'unknown')),
    conflicts text[] NOT NULL DEFAULT '{}',
    -- What DNS said.
    facts jsonb,
    -- Which records were there before, by the id in provider_domains.
    states jsonb NOT NULL DEFAULT '{}',
    -- Since when records are gone that were there.
    broken_since timestamptz,
    PRIMARY KEY (organization_id, domain)
);

CREATE INDEX sender_domain_checks_check_idx ON sender_domain_checks (check_at);

-- The domains that are here already are checked within the first hour, one after the other.
INSERT INTO sender_domain_checks (organization_id, domain, check_at)
SELECT organization_id, domain, now() + random() * interval '1 hour'
FROM provider_domains
GROUP BY organization_id, domain;

-- Has a domain checked soon, whose accounts want records. In the order of the key, so that
-- two statements do not wait for each other.
CREATE FUNCTION waypost_sender_domain_added() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO sender_domain_checks AS c (organization_id, domain, check_at)
    SELECT DISTINCT organization_id, domain, now()
    FROM added
    ORDER BY organization_id, domain
    ON CONFLICT (organization_id, domain) DO UPDATE SET check_at = least(c.check_at, excluded.check_at);
    RETURN NULL;
END
$$;

CREATE TRIGGER check_dns_of_added AFTER INSERT ON provider_domains
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_sender_domain_added();

CREATE FUNCTION waypost_wanted_records_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO sender_domain_checks AS c (organization_id, domain, check_at)
    SELECT DISTINCT n.organization_id, n.domain, now()
    FROM after_change n
    JOIN before_change o ON o.id = n.id
    -- Their status is the provider's last verdict, which says nothing of DNS.
    WHERE (SELECT jsonb_agg(r - 'status') FROM jsonb_array_elements(o.dns_records) r)
          IS DISTINCT FROM (SELECT jsonb_agg(r - 'status') FROM jsonb_array_elements(n.dns_records) r)
    ORDER BY n.organization_id, n.domain
    ON CONFLICT (organization_id, domain) DO UPDATE SET check_at = least(c.check_at, excluded.check_at);
    RETURN NULL;
END
$$;

CREATE TRIGGER check_dns_of_changed AFTER UPDATE ON provider_domains
    REFERENCING OLD TABLE AS before_change NEW TABLE AS after_change
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_wanted_records_changed();

-- As before, with who judged the domain: here its provider.
CREATE OR REPLACE FUNCTION waypost_domain_state_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM waypost_add_organization_event(
        CASE NEW.state WHEN 'verified' THEN 'DOMAIN_VERIFIED' ELSE 'DOMAIN_BROKEN' END,
        NEW.organization_id,
        CASE WHEN NEW.checked_at IS DISTINCT FROM OLD.checked_at THEN NEW.checked_at ELSE now() END,
        jsonb_build_object('domainId', NEW.id, 'domain', NEW.domain,
                           'providerAccountId', NEW.provider_account_id, 'state', NEW.state,
                           'source', 'provider', 'records', '[]'::jsonb));
    RETURN NULL;
END
$$;
