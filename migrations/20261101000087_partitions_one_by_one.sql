-- Partitions that come and go while messages are accepted. Whatever needs the lock that
-- everybody waits behind is done for one table at a time, in a transaction of its own,
-- and whoever calls these functions sets a lock_timeout: it bounds how long others wait.

-- The name of a month's partition.
CREATE FUNCTION waypost_partition_name(parent text, month timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT
AS $$
    SELECT parent || to_char(month AT TIME ZONE 'UTC', '"_y"YYYY"m"MM')
$$;

-- The tables that are partitioned by the message id, the youngest first: one is known by
-- its default partition.
CREATE FUNCTION waypost_partitioned_tables() RETURNS TABLE (parent text, key_column text)
LANGUAGE sql STABLE
AS $$
    SELECT c.relname::text, a.attname::text
    FROM pg_partitioned_table p
    JOIN pg_class c ON c.oid = p.partrelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'messages'::regclass)
      AND to_regclass(c.relname || '_default') IS NOT NULL
    ORDER BY c.oid DESC
$$;

-- The partitions there are, and those that were detached and are still to be dropped.
CREATE FUNCTION waypost_partitions() RETURNS TABLE (parent text, month timestamptz, is_attached boolean)
LANGUAGE sql STABLE
AS $$
    SELECT t.parent,
           make_timestamptz(substring(c.relname FROM '_y(\d{4})m')::integer,
                            substring(c.relname FROM '_y\d{4}m(\d{2})')::integer, 1, 0, 0, 0, 'UTC'),
           c.relispartition
    FROM waypost_partitioned_tables() t
    JOIN pg_class c ON c.relkind = 'r'
        AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'messages'::regclass)
        AND c.relname ~ ('^' || t.parent || '_y\d{4}m\d{2}' || CASE WHEN c.relispartition THEN '$' ELSE '_dropped$' END)
$$;

-- Creates one table's partition of the month that begins at `month`, and says whether
-- it was missing. Rows that went to the default partition in the meantime are moved.
CREATE FUNCTION waypost_create_partition(parent text, month timestamptz) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    partition text := waypost_partition_name(parent, month);
    key_column text;
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
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', partition, parent);
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

-- Months whose messages are being dropped. A row lives until nothing is left of its month.
CREATE TABLE month_drops (
    -- When the month begins.
    month timestamptz PRIMARY KEY,
    -- Whether month_drop_counts holds all of its messages.
    is_counted boolean NOT NULL DEFAULT false,
    -- When its messages were detached: what else is left of it follows unasked.
    detached_at timestamptz
);

-- How many messages such a month holds, as changes to be summed. Counting takes long
-- and the lock under which it counts must not: so it is counted before, and from before
-- that on a trigger of the partition's own writes down what changes.
CREATE TABLE month_drop_counts (
    month timestamptz NOT NULL,
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    change bigint NOT NULL
);

CREATE INDEX month_drop_counts_month_idx ON month_drop_counts (month);

CREATE FUNCTION waypost_watch_dropped_month() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.status = NEW.status THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO month_drop_counts (month, organization_id, status, change)
        VALUES (TG_ARGV[0]::timestamptz, OLD.organization_id, OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO month_drop_counts (month, organization_id, status, change)
        VALUES (TG_ARGV[0]::timestamptz, NEW.organization_id, NEW.status, 1);
    END IF;
    RETURN NULL;
END
$$;

-- Begins to drop a month: from the commit on what changes in it is written down.
CREATE FUNCTION waypost_begin_month_drop(month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO month_drops (month) VALUES (waypost_begin_month_drop.month) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        -- The trigger waits for all who write into the partition.
        EXECUTE format(
            'CREATE TRIGGER watch_dropped_month AFTER INSERT OR DELETE OR UPDATE OF status ON %I
             FOR EACH ROW EXECUTE FUNCTION waypost_watch_dropped_month(%L)',
            waypost_partition_name('messages', month), month);
    END IF;
END
$$;

-- Counts the messages of a month that is being dropped. From the commit on the sum of
-- its changes is what it holds, at every moment: one snapshot counts, and takes off what
-- the trigger had written down by then.
CREATE FUNCTION waypost_count_month_drop(month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM month_drops d
    WHERE d.month = waypost_count_month_drop.month AND NOT d.is_counted
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    EXECUTE format(
        'INSERT INTO month_drop_counts (month, organization_id, status, change)
         SELECT $1, organization_id, status, sum(change)
         FROM (SELECT organization_id, status, count(*) AS change
               FROM %I
               GROUP BY organization_id, status
               UNION ALL
               SELECT organization_id, status, -change
               FROM month_drop_counts
               WHERE month = $1) counted
         GROUP BY organization_id, status
         HAVING sum(change) <> 0',
        waypost_partition_name('messages', month)) USING month;
    UPDATE month_drops d SET is_counted = true WHERE d.month = waypost_count_month_drop.month;
END
$$;

-- Detaches one table's partition of a month and renames it, so that it can be told from
-- one that is in use: DETACHED. ABSENT where there is none, HELD where a message of the
-- month still has work to do. Of messages it takes what they count for off the totals.
CREATE FUNCTION waypost_detach_partition(parent text, month timestamptz) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    partition text := waypost_partition_name(parent, month);
    low uuid := waypost_uuid_floor(month);
    high uuid := waypost_uuid_floor((month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC');
BEGIN
    IF NOT EXISTS (SELECT
                   FROM pg_inherits
                   WHERE inhrelid = to_regclass(partition) AND inhparent = to_regclass(parent)) THEN
        RETURN 'ABSENT';
    END IF;
    -- The parent first, as everybody does: in the other order two would wait for each
    -- other. Whoever owes work anew has read the message and its body by then, or waits
    -- and finds neither.
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    IF EXISTS (SELECT FROM outbox WHERE message_id >= low AND message_id < high) THEN
        RETURN 'HELD';
    END IF;
    IF parent = 'messages' THEN
        UPDATE month_drops d
        SET detached_at = now()
        WHERE d.month = waypost_detach_partition.month AND d.is_counted;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the messages of % are not counted', month;
        END IF;
        WITH taken AS (
            DELETE FROM month_drop_counts d
            WHERE d.month = waypost_detach_partition.month
            RETURNING d.organization_id, d.status, d.change
        )
        INSERT INTO message_count_deltas (organization_id, status, change)
        SELECT organization_id, status, -sum(change)
        FROM taken
        GROUP BY organization_id, status
        HAVING sum(change) <> 0;
    END IF;
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, partition);
    EXECUTE format('ALTER TABLE %I RENAME TO %I', partition, partition || '_dropped');
    RETURN 'DETACHED';
END
$$;

-- Keeps autovacuum away from a partition that is to be detached: it would hold its lock
-- for longer than a detachment waits. Nobody else waits for this lock.
CREATE FUNCTION waypost_quiet_partition(parent text, month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('ALTER TABLE IF EXISTS %I SET (autovacuum_enabled = false)', waypost_partition_name(parent, month));
END
$$;

-- Drops what was detached.
CREATE FUNCTION waypost_drop_detached(parent text, month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', waypost_partition_name(parent, month) || '_dropped');
END
$$;
