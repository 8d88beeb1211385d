-- What is larger than 2 KB is stored compressed. lz4 does that for a fraction of the CPU
-- of Postgres' own method; a server that was built without it keeps to that one.
--
-- Whoever cannot have the tables soon gives up, and is run again: sends wait behind it.
-- Nobody makes partitions meanwhile, who locks them in another order.
SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT relid FROM pg_partition_tree('message_bodies') LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN html SET COMPRESSION lz4, ALTER COLUMN text SET COMPRESSION lz4',
                       part);
    END LOOP;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;
