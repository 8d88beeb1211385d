-- Erasures: what belongs to a person who asked to be forgotten is emptied, and the rows stay, so
-- that counts and the history of other recipients stay right.

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

-- When the address and all that the recipient had of its own were erased. address_sealed is
-- empty from then on. NULL for nearly all: it takes no room.
ALTER TABLE recipients ADD COLUMN erased_at timestamptz;

-- What stays of an event: what counts and states rest on, and ids that are of no person. The
-- reason, the link, the device and all else goes.
CREATE FUNCTION waypost_erased_event_data(data jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT nullif(coalesce(jsonb_object_agg(key, value), '{}'), '{}')
    FROM jsonb_each(CASE WHEN jsonb_typeof(data) = 'object' THEN data ELSE '{}' END)
    WHERE key IN ('bounceType', 'isBot', 'attemptId', 'providerMessageId', 'providerAccountId')
$$;
