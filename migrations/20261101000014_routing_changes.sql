-- Processes remember what routing needs of an organization. Every change of it
-- tells them, in its own transaction, so that nobody can forget to.

CREATE FUNCTION waypost_routing_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    changed jsonb;
BEGIN
    IF TG_OP = 'DELETE' THEN
        changed := to_jsonb(OLD);
    ELSE
        changed := to_jsonb(NEW);
    END IF;
    -- The argument names the column that holds the organization's id.
    PERFORM pg_notify('waypost_routing', changed ->> TG_ARGV[0]);
    RETURN NULL;
END
$$;

CREATE TRIGGER routing_changed AFTER UPDATE OF unverified_domains ON organizations
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('id');
CREATE TRIGGER routing_changed AFTER INSERT OR UPDATE OR DELETE ON provider_accounts
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
CREATE TRIGGER routing_changed AFTER INSERT OR UPDATE OR DELETE ON provider_domains
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
CREATE TRIGGER routing_changed AFTER INSERT OR UPDATE OR DELETE ON routing_rules
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
