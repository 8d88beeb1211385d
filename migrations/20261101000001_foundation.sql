-- What the other files build on: extensions, the time in an id, and the notification
-- that tells processes to reload what routing needs.

-- Both come with PostgreSQL, and the owner of a database may create them. They serve the
-- index of subjects: trigrams beside the organization's id.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- The lowest UUIDv7 of a moment.
CREATE FUNCTION waypost_uuid_floor(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || repeat('0', 20))::uuid
$$;

-- The time in a UUIDv7.
CREATE FUNCTION waypost_uuid_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT to_timestamp(('x0000' || left(replace(id::text, '-', ''), 12))::bit(64)::bigint / 1000.0)
$$;

-- Processes cache what routing needs of an organization: its settings, accounts, domains
-- and rules. This trigger function notifies them of a change in the transaction of the
-- change, so that no code path and no SQL of an operator can leave it out.
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
