-- How endpoints are served: by one worker at a time, which thereby bounds the calls
-- to each and knows how it fares.

ALTER TABLE webhook_endpoints
    -- The worker that serves it. No foreign key, and not freed by the reaper: what a
    -- worker held that is not alive any more is free.
    ADD COLUMN leased_by uuid,
    -- Failed calls since the last that succeeded.
    ADD COLUMN failures integer NOT NULL DEFAULT 0,
    -- No call is made before: it failed too often in a row.
    ADD COLUMN paused_until timestamptz,
    -- Until then, by Postgres' own clock, who serves it looks by itself: under load
    -- nobody need be notified.
    ADD COLUMN awake_until timestamptz,
    -- Leases and failures change a row often.
    SET (fillfactor = 50);

-- What failed at another address, or before it was switched off and on again, says
-- nothing of it now.
CREATE FUNCTION waypost_forgive_webhook_endpoint() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF NEW.url <> OLD.url OR (NEW.is_active AND NOT OLD.is_active) THEN
        NEW.failures := 0;
        NEW.paused_until := NULL;
        NEW.failing_since := NULL;
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER forgive BEFORE UPDATE OF url, is_active ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION waypost_forgive_webhook_endpoint();

-- Whoever serves it hears of every change, in the change's own transaction.
CREATE FUNCTION waypost_webhook_endpoint_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_notify('waypost_webhooks', 'changed ' || OLD.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER changed AFTER UPDATE OF url, events, is_active, secret_sealed OR DELETE ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION waypost_webhook_endpoint_changed();

-- Endpoints whose deliveries are still to be deleted.
CREATE TABLE webhook_endpoint_deletions (
    webhook_endpoint_id uuid PRIMARY KEY,
    -- By Postgres' own clock: transactions that began before may still add
    -- deliveries.
    deleted_at timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION waypost_webhook_endpoint_deleted() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO webhook_endpoint_deletions (webhook_endpoint_id) VALUES (OLD.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER deleted AFTER DELETE ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION waypost_webhook_endpoint_deleted();
