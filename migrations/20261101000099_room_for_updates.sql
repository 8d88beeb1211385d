-- What is updated soon after it is written gets room on its page, so that its new version
-- lies beside the old one and no index has to be written (HOT). Without it a page is full
-- when its updates come: four in five attempts, and three in four recipients that were
-- claimed, went to another page and into every index anew.
--
-- Each has room for one version more of every row: versions that nobody sees any more make
-- way for the next. What is on full pages stays as it is. These locks let rows be written.

-- The default partition says how its sisters keep their rows, since PostgreSQL lets a
-- partitioned table say nothing. As before, but for that.
CREATE OR REPLACE FUNCTION waypost_create_partition(parent text, month timestamptz) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    partition text := waypost_partition_name(parent, month);
    key_column text;
    storage text;
    low uuid := waypost_uuid_floor(month);
    high uuid := waypost_uuid_floor((month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC');
BEGIN
    -- One at a time, and none beside waypost_create_partitions.
    PERFORM pg_advisory_xact_lock(hashtext('waypost_create_partitions'));
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN false;
    END IF;
    SELECT t.key_column INTO STRICT key_column
    FROM waypost_partitioned_tables() t
    WHERE t.parent = waypost_create_partition.parent;
    SELECT 'WITH (' || string_agg(format('%I = %L', o.option_name, o.option_value), ', ') || ')' INTO storage
    FROM pg_class c
    CROSS JOIN pg_options_to_table(c.reloptions) o
    WHERE c.oid = to_regclass(parent || '_default');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) %s', partition, parent, storage);
    -- Only now, when little is left to do. Whoever writes into the default partition
    -- waits before it looks: a statement that had looked already would find its rows
    -- gone. Whoever writes elsewhere does not wait, but what reads all partitions does.
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
    EXECUTE format(
        'WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
        parent || '_default', key_column, low, key_column, high, partition);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, partition, low, high);
    RETURN true;
END
$$;

ALTER TABLE outbox SET (fillfactor = 50);

DO $$
DECLARE
    room record;
BEGIN
    -- An update makes an attempt a fifth larger.
    FOR room IN SELECT c.oid::regclass AS partition, r.fillfactor
                FROM (VALUES ('send_attempts'::regclass, 45), ('recipients', 50)) r (parent, fillfactor)
                JOIN pg_inherits i ON i.inhparent = r.parent
                JOIN pg_class c ON c.oid = i.inhrelid LOOP
        EXECUTE format('ALTER TABLE %s SET (fillfactor = %s)', room.partition, room.fillfactor);
    END LOOP;
END
$$;
