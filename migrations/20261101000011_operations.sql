-- What the scheduler works with: partitions by month, retention, and the state of its tasks.
--
-- Partitions are created and dropped while messages are accepted. Where a lock is needed that
-- every statement waits behind, it is held for one table at a time, in a transaction of its own.
-- The caller of these functions sets a lock_timeout, which bounds how long others wait.

-- The name of a month's partition.
CREATE FUNCTION waypost_partition_name(parent text, month timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT
AS $$
    SELECT parent || to_char(month AT TIME ZONE 'UTC', '"_y"YYYY"m"MM')
$$;

-- The tables that are partitioned by the message's id, the one created last first. Each of them
-- has a default partition, and by that it is recognized.
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

-- The partitions there are, and those that are detached and not dropped.
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

-- Creates one table's partition of the month that begins at `month`, and returns whether it was
-- missing. Rows of the month that lie in the default partition are moved. The default partition's
-- storage parameters are copied.
CREATE FUNCTION waypost_create_partition(parent text, month timestamptz) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    partition text := waypost_partition_name(parent, month);
    key_column text;
    storage text;
    low uuid := waypost_uuid_floor(month);
    high uuid := waypost_uuid_floor((month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC');
BEGIN
    -- One at a time.
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
    -- Locked only now, when little is left to do. A statement that writes into the default
    -- partition waits before it takes its snapshot: with an older one it would find its rows
    -- gone. Writes to other partitions do not wait; reads of all partitions do.
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
    EXECUTE format(
        'WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
        parent || '_default', key_column, low, key_column, high, partition);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, partition, low, high);
    RETURN true;
END
$$;

-- Creates the partitions of all tables for `months` months from the month of `start` on, and
-- returns how many were missing. It holds the locks of all tables until the commit: for a
-- database that is not in use.
CREATE FUNCTION waypost_create_partitions(start timestamptz, months integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    month timestamptz;
    t record;
    made integer := 0;
BEGIN
    FOR step IN 0 .. months - 1 LOOP
        month := (date_trunc('month', start AT TIME ZONE 'UTC') + make_interval(months => step)) AT TIME ZONE 'UTC';
        FOR t IN SELECT * FROM waypost_partitioned_tables() LOOP
            IF waypost_create_partition(t.parent, month) THEN
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- Months whose messages are being dropped. A row lives until nothing is left of its month.
CREATE TABLE partition_drops (
    -- When the month begins.
    month timestamptz PRIMARY KEY,
    -- Whether partition_drop_deltas covers all of its messages.
    is_counted boolean NOT NULL DEFAULT false,
    -- When its messages were detached. The rest of the month is dropped whatever the rules of
    -- retention say by then.
    detached_at timestamptz
);

-- How many messages such a month holds, as changes to be summed. Counting takes long, and the
-- lock of a detachment must not last: so the month is counted before, while a trigger on its
-- partition records what changes.
CREATE TABLE partition_drop_deltas (
    month timestamptz NOT NULL,
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    change bigint NOT NULL
);

CREATE INDEX partition_drop_deltas_month_idx ON partition_drop_deltas (month);

-- Records what changes in a partition of messages that is to be dropped.
CREATE FUNCTION waypost_record_partition_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.status = NEW.status THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO partition_drop_deltas (month, organization_id, status, change)
        VALUES (TG_ARGV[0]::timestamptz, OLD.organization_id, OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO partition_drop_deltas (month, organization_id, status, change)
        VALUES (TG_ARGV[0]::timestamptz, NEW.organization_id, NEW.status, 1);
    END IF;
    RETURN NULL;
END
$$;

-- Begins to drop a month: from the commit on, changes in it are recorded.
CREATE FUNCTION waypost_begin_partition_drop(month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO partition_drops (month) VALUES (waypost_begin_partition_drop.month) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        -- This waits for all transactions that write into the partition.
        EXECUTE format(
            'CREATE TRIGGER record_partition_change AFTER INSERT OR DELETE OR UPDATE OF status ON %I
             FOR EACH ROW EXECUTE FUNCTION waypost_record_partition_change(%L)',
            waypost_partition_name('messages', month), month);
    END IF;
END
$$;

-- Counts the messages of a month that is to be dropped. From the commit on, the sum of its
-- changes is what it holds at every moment: one snapshot counts the messages and subtracts what
-- the trigger had recorded by then.
CREATE FUNCTION waypost_count_partition_drop(month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM partition_drops d
    WHERE d.month = waypost_count_partition_drop.month AND NOT d.is_counted
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    EXECUTE format(
        'INSERT INTO partition_drop_deltas (month, organization_id, status, change)
         SELECT $1, organization_id, status, sum(change)
         FROM (SELECT organization_id, status, count(*) AS change
               FROM %I
               GROUP BY organization_id, status
               UNION ALL
               SELECT organization_id, status, -change
               FROM partition_drop_deltas
               WHERE month = $1) counted
         GROUP BY organization_id, status
         HAVING sum(change) <> 0',
        waypost_partition_name('messages', month)) USING month;
    UPDATE partition_drops d SET is_counted = true WHERE d.month = waypost_count_partition_drop.month;
END
$$;

-- Detaches one table's partition of a month and renames it, so that it differs from one in use:
-- DETACHED. ABSENT where there is none, HELD where a message of the month is not finished. For
-- messages it also subtracts the month from the totals.
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
    -- The parent first, as every statement does: in the other order two transactions would
    -- wait for each other. A retry that would add work to the month has read the message and
    -- its body by then, or waits and finds neither.
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    IF EXISTS (SELECT FROM outbox WHERE message_id >= low AND message_id < high) THEN
        RETURN 'HELD';
    END IF;
    IF parent = 'messages' THEN
        UPDATE partition_drops d
        SET detached_at = now()
        WHERE d.month = waypost_detach_partition.month AND d.is_counted;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the messages of % are not counted', month;
        END IF;
        WITH taken AS (
            DELETE FROM partition_drop_deltas d
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

-- Turns off autovacuum on a partition that is to be detached: autovacuum would hold its lock for
-- longer than a detachment waits. The lock for this blocks no reads or writes.
CREATE FUNCTION waypost_disable_autovacuum(parent text, month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('ALTER TABLE IF EXISTS %I SET (autovacuum_enabled = false)', waypost_partition_name(parent, month));
END
$$;

-- Drops a partition that is detached.
CREATE FUNCTION waypost_drop_detached(parent text, month timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', waypost_partition_name(parent, month) || '_dropped');
END
$$;

-- Deletes those of the given messages that are finished, with all their rows, and returns how
-- many they were. It is for messages that do not go with their month: an organization keeps them
-- for a shorter time, or the month could not be dropped whole.
CREATE FUNCTION waypost_delete_messages(ids uuid[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone uuid[];
    organizations uuid[];
    t record;
BEGIN
    -- In the order in which every transaction locks them: attempts, recipients, messages.
    PERFORM FROM send_attempts WHERE message_id = ANY(ids) ORDER BY message_id, id FOR UPDATE;
    PERFORM FROM recipients WHERE message_id = ANY(ids) ORDER BY message_id, position FOR UPDATE;
    -- A statement of its own sees what the transactions did for which those above waited. A
    -- retry locks the recipients first, so no message can be retried from here on.
    SELECT array_agg(m.id), array_agg(m.organization_id) INTO gone, organizations
    FROM (SELECT id, organization_id, status
          FROM messages
          WHERE id = ANY(ids)
          ORDER BY id
          FOR UPDATE) m
    WHERE m.status NOT IN ('QUEUED', 'SENDING')
      AND NOT EXISTS (SELECT FROM outbox WHERE message_id = m.id);
    -- new_messages before message_subjects: folding moves subjects from one to the other.
    UPDATE new_messages
    SET subject = NULL
    WHERE (organization_id, message_id) IN (SELECT organization_id, id FROM messages WHERE id = ANY(gone));
    -- By its key, which begins with the organization: by the message's id alone, a deletion
    -- would read all subjects of a month.
    EXECUTE 'DELETE FROM message_subjects s
             USING unnest($1, $2) AS g (organization_id, id)
             WHERE s.organization_id = g.organization_id AND s.message_id = g.id AND s.message_id = ANY($2)'
        USING organizations, gone;
    DELETE FROM unknown_attempts WHERE message_id = ANY(gone);
    -- The table created last comes first, and messages come last.
    FOR t IN SELECT * FROM waypost_partitioned_tables() WHERE parent <> 'message_subjects' LOOP
        EXECUTE format('DELETE FROM %I WHERE %I = ANY($1)', t.parent, t.key_column) USING gone;
    END LOOP;
    RETURN coalesce(cardinality(gone), 0);
END
$$;

-- Deletes the bodies of those of the given messages that are finished, and returns how many they
-- were.
CREATE FUNCTION waypost_delete_bodies(ids uuid[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone bigint;
BEGIN
    -- A retry locks the recipients first, so no message can be retried from here on.
    PERFORM FROM recipients WHERE message_id = ANY(ids) ORDER BY message_id, position FOR NO KEY UPDATE;
    -- A statement of its own sees what the transactions did for which the one above waited.
    DELETE FROM message_bodies
    WHERE message_id = ANY(ids)
      AND NOT EXISTS (SELECT FROM outbox WHERE outbox.message_id = message_bodies.message_id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

-- Deletes rows that hang on finished messages: at most `rows_max` of each table, and none that is
-- locked. It returns how many they were. A message may have more events and deliveries than one
-- transaction should delete.
CREATE FUNCTION waypost_delete_message_history(ids uuid[], rows_max integer) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    done uuid[];
    parent text;
    shed bigint;
    total bigint := 0;
BEGIN
    SELECT array_agg(id) INTO done
    FROM messages
    WHERE id = ANY(ids) AND status NOT IN ('QUEUED', 'SENDING')
      AND NOT EXISTS (SELECT FROM outbox WHERE message_id = messages.id);
    FOREACH parent IN ARRAY ARRAY['webhook_attempts', 'webhook_deliveries', 'provider_events', 'events'] LOOP
        EXECUTE format(
            'DELETE FROM %1$I
             WHERE message_id = ANY($1)
               AND ctid = ANY(ARRAY(SELECT ctid
                                    FROM %1$I
                                    WHERE message_id = ANY($1)
                                    LIMIT $2
                                    FOR UPDATE SKIP LOCKED))',
            parent)
            USING done, rows_max;
        GET DIAGNOSTICS shed = ROW_COUNT;
        total := total + shed;
    END LOOP;
    RETURN total;
END
$$;

-- Deletes rows of default partitions that are older than every month there is and whose message
-- is deleted: what was recorded of a message while its month was dropped. It deletes at most
-- `row_limit` rows of each table, and returns how many they were.
CREATE FUNCTION waypost_delete_orphans(row_limit integer) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    oldest uuid := (SELECT waypost_uuid_floor(min(month))
                    FROM waypost_partitions()
                    WHERE parent = 'messages' AND is_attached);
    t record;
    step bigint;
    swept bigint := 0;
BEGIN
    FOR t IN SELECT * FROM waypost_partitioned_tables() WHERE parent <> 'messages' LOOP
        EXECUTE format(
            'DELETE FROM %1$I
             WHERE ctid = ANY(ARRAY(SELECT d.ctid
                                    FROM %1$I d
                                    WHERE d.%2$I < $1 AND NOT EXISTS (SELECT FROM messages m WHERE m.id = d.%2$I)
                                    LIMIT $2))',
            t.parent || '_default', t.key_column) USING oldest, row_limit;
        GET DIAGNOSTICS step = ROW_COUNT;
        swept := swept + step;
    END LOOP;
    RETURN swept;
END
$$;

-- The last runs of the scheduler's tasks, a row for each task, so that an operator sees whether
-- they run on time. Times are PostgreSQL's own.
CREATE TABLE scheduler_tasks (
    name text PRIMARY KEY,
    -- The interval between runs.
    interval_ms bigint NOT NULL,
    -- The process that ran it last.
    leader text NOT NULL,
    -- When the task was first seen.
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    -- When the latest run began, and when the latest finished run ended.
    last_started_at timestamptz NOT NULL,
    last_finished_at timestamptz,
    -- When the latest successful run ended.
    last_succeeded_at timestamptz,
    -- How long the latest finished run took.
    run_ms bigint,
    -- Why it failed, if it did. Without addresses and secrets, as in the log.
    last_error text
) WITH (fillfactor = 50);

-- This month and the next two. The scheduler creates the later ones.
SELECT waypost_create_partitions(now(), 3);
