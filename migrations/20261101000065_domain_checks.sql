-- Domains are looked at again: verified ones may turn unverified, and others are
-- waited for.

ALTER TABLE provider_domains
    -- Whether it was added through Waypost. What the provider's list does not show
    -- for its own reasons (Mailgun's shows one domain, a Postmark server token sees
    -- none) is not taken for vanished then.
    ADD COLUMN is_added boolean NOT NULL DEFAULT false,
    -- When the provider last said how it stands.
    ADD COLUMN checked_at timestamptz,
    -- When it is to be asked again.
    ADD COLUMN check_at timestamptz NOT NULL DEFAULT now() + interval '5 minutes';

CREATE INDEX provider_domains_check_idx ON provider_domains (check_at);

-- A look that finds everything as it was changes nothing for routing, and there are
-- many of them.
DROP TRIGGER routing_changed ON provider_domains;
CREATE TRIGGER routing_changed AFTER INSERT OR DELETE ON provider_domains
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
CREATE TRIGGER routing_state_changed AFTER UPDATE ON provider_domains
    FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state
          OR OLD.domain IS DISTINCT FROM NEW.domain
          OR OLD.provider_account_id IS DISTINCT FROM NEW.provider_account_id
          OR OLD.organization_id IS DISTINCT FROM NEW.organization_id)
    EXECUTE FUNCTION waypost_routing_changed('organization_id');
