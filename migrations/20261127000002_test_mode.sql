-- Test mode: messages for which no provider is called. Lists, their counters and metrics keep
-- them apart from live ones.

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

-- What a simulated provider does with a test.
CREATE TYPE test_outcome AS ENUM
    ('delivered', 'bounced', 'complained', 'deferred', 'failed', 'suppressed', 'unknown', 'failover');

-- Whether everything that the key sends is a test.
ALTER TABLE api_keys
    ADD COLUMN is_test boolean NOT NULL DEFAULT false;

-- No release wrote is_test. It is not NULL from now on, so that an index can begin with it.
ALTER TABLE messages
    DROP COLUMN is_test,
    ADD COLUMN is_test boolean NOT NULL DEFAULT false,
    -- NULL for a live message.
    ADD COLUMN test_outcome test_outcome;

-- The attribute stays where it is among those that the API sends.
ALTER TYPE new_message RENAME ATTRIBUTE is_test TO test_outcome;
ALTER TYPE new_message ALTER ATTRIBUTE test_outcome TYPE test_outcome;

-- The lists of live messages and those of tests: all, and those of one status. Statements compare
-- rows with all columns of an index but the last, so that the planner does not read the primary
-- key instead, where most messages may be of the other list.
DROP INDEX messages_organization_idx;
CREATE INDEX messages_organization_idx ON messages (organization_id, is_test, id);
DROP INDEX messages_status_idx;
CREATE INDEX messages_status_idx ON messages (organization_id, is_test, status, id);

ALTER TABLE message_subjects
    ADD COLUMN is_test boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT message_subjects_pkey,
    ADD PRIMARY KEY (organization_id, is_test, message_id);

ALTER TABLE new_messages
    ADD COLUMN is_test boolean NOT NULL DEFAULT false;
DROP INDEX new_messages_organization_idx;
CREATE INDEX new_messages_organization_idx ON new_messages (organization_id, is_test, message_id DESC);

ALTER TABLE message_transitions
    ADD COLUMN is_test boolean NOT NULL DEFAULT false;
ALTER TABLE message_count_deltas
    ADD COLUMN is_test boolean NOT NULL DEFAULT false;
ALTER TABLE partition_drop_deltas
    ADD COLUMN is_test boolean NOT NULL DEFAULT false;
ALTER TABLE message_counts
    ADD COLUMN is_test boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT message_counts_pkey,
    ADD PRIMARY KEY (organization_id, is_test, status);
ALTER TABLE message_hours
    ADD COLUMN is_test boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT message_hours_pkey,
    ADD PRIMARY KEY (organization_id, is_test, status, hour) INCLUDE (count);

CREATE OR REPLACE VIEW message_changes AS
SELECT organization_id, status, hour, change, is_test
FROM message_count_deltas
UNION ALL
SELECT organization_id, status, waypost_message_hour(message_id), 1, is_test
FROM new_messages
WHERE status IS NOT NULL
UNION ALL
SELECT m.organization_id, moved.status, m.hour, moved.change, m.is_test
FROM message_transitions m
CROSS JOIN LATERAL (VALUES (m.was, -m.count), (m.status, m.count)) AS moved (status, change);

-- Tests have seeds of their own, so that a query for labels reads only the one kind.
CREATE FUNCTION waypost_label_seed(organization uuid, day integer, is_test boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT uuid_hash_extended(organization, CASE WHEN is_test THEN -day ELSE day END)
$$;

CREATE OR REPLACE FUNCTION waypost_queue_new_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO new_messages (organization_id, message_id, status, subject, recipient_count, is_test, labels)
    SELECT organization_id, id, status, lower(subject), recipient_count, is_test,
           ARRAY[waypost_label(seed, 'from', lower(from_address)),
                 waypost_label(seed, 'domain', lower(split_part(from_address, '@', -1))),
                 waypost_label(seed, 'account', coalesce(resolved_account_id, provider_account_id)::text)]
           || CASE WHEN template_id IS NOT NULL THEN ARRAY[waypost_label(seed, 'template', template_id::text)] END
           || CASE WHEN recipient_count = 1 THEN ARRAY[waypost_label(seed, 'to', encode(to_hash, 'hex'))] END
           || CASE WHEN cardinality(tags) > 0
                   THEN ARRAY(SELECT waypost_label(seed, 'tag', tag) FROM unnest(tags) tag) END
    FROM added
    CROSS JOIN LATERAL (SELECT waypost_label_seed(organization_id, waypost_message_day(id), is_test) AS seed OFFSET 0) s;
    RETURN NULL;
END
$$;

CREATE OR REPLACE VIEW message_labels AS
SELECT m.organization_id, m.id AS message_id,
       ARRAY(SELECT waypost_label(s.seed, label.kind, label.value)
             FROM (VALUES ('from', lower(m.from_address)),
                          ('domain', lower(split_part(m.from_address, '@', -1))),
                          ('account', coalesce(m.resolved_account_id, m.provider_account_id)::text),
                          ('template', m.template_id::text)) label (kind, value)
             WHERE label.value IS NOT NULL
             UNION ALL
             SELECT waypost_label(s.seed, 'tag', tag)
             FROM unnest(m.tags) tag
             UNION ALL
             SELECT waypost_label(s.seed, 'to', encode(r.address_hash, 'hex'))
             FROM recipients r
             WHERE r.message_id = m.id) AS labels
FROM messages m
CROSS JOIN LATERAL (
    SELECT waypost_label_seed(m.organization_id, waypost_message_day(m.id), m.is_test) AS seed OFFSET 0
) s;

DROP FUNCTION waypost_label_seed(uuid, integer);

CREATE OR REPLACE FUNCTION waypost_record_transitions() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    -- Old and new versions are matched by grouping. A join would be planned once for each
    -- connection, for as few rows as came first, and would then compare every row with
    -- every other.
    INSERT INTO message_transitions (organization_id, is_test, was, status, hour, count)
    SELECT organization_id, is_test, was, status, waypost_message_hour(id), count(*)
    FROM (SELECT id, organization_id, is_test, max(status) FILTER (WHERE is_old) AS was,
                 max(status) FILTER (WHERE NOT is_old) AS status
          FROM (SELECT id, organization_id, is_test, status, true AS is_old FROM before
                UNION ALL
                SELECT id, organization_id, is_test, status, false FROM after) versions
          GROUP BY id, organization_id, is_test) moves
    WHERE was <> status
    GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION waypost_count_deleted_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO message_count_deltas (organization_id, is_test, status, hour, change)
    SELECT organization_id, is_test, status, waypost_message_hour(id), -count(*)
    FROM removed
    GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION waypost_record_partition_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.status = NEW.status THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO partition_drop_deltas (month, organization_id, is_test, status, change)
        VALUES (TG_ARGV[0]::timestamptz, OLD.organization_id, OLD.is_test, OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO partition_drop_deltas (month, organization_id, is_test, status, change)
        VALUES (TG_ARGV[0]::timestamptz, NEW.organization_id, NEW.is_test, NEW.status, 1);
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION waypost_count_partition_drop(month timestamptz) RETURNS void
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
        'INSERT INTO partition_drop_deltas (month, organization_id, is_test, status, change)
         SELECT $1, organization_id, is_test, status, sum(change)
         FROM (SELECT organization_id, is_test, status, count(*) AS change
               FROM %I
               GROUP BY organization_id, is_test, status
               UNION ALL
               SELECT organization_id, is_test, status, -change
               FROM partition_drop_deltas
               WHERE month = $1) counted
         GROUP BY organization_id, is_test, status
         HAVING sum(change) <> 0',
        waypost_partition_name('messages', month)) USING month;
    UPDATE partition_drops d SET is_counted = true WHERE d.month = waypost_count_partition_drop.month;
END
$$;

CREATE OR REPLACE FUNCTION waypost_detach_partition(parent text, month timestamptz) RETURNS text
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
            RETURNING d.organization_id, d.is_test, d.status, d.change
        )
        INSERT INTO message_count_deltas (organization_id, is_test, status, change)
        SELECT organization_id, is_test, status, -sum(change)
        FROM taken
        GROUP BY organization_id, is_test, status
        HAVING sum(change) <> 0;
    END IF;
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, partition);
    EXECUTE format('ALTER TABLE %I RENAME TO %I', partition, partition || '_dropped');
    RETURN 'DETACHED';
END
$$;

CREATE OR REPLACE FUNCTION waypost_delete_messages(ids uuid[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone uuid[];
    organizations uuid[];
    are_tests boolean[];
    t record;
BEGIN
    -- In the order in which every transaction locks them: attempts, recipients, messages.
    PERFORM FROM send_attempts WHERE message_id = ANY(ids) ORDER BY message_id, id FOR UPDATE;
    PERFORM FROM recipients WHERE message_id = ANY(ids) ORDER BY message_id, position FOR UPDATE;
    -- A statement of its own sees what the transactions did for which those above waited. A
    -- retry locks the recipients first, so no message can be retried from here on.
    SELECT array_agg(m.id), array_agg(m.organization_id), array_agg(m.is_test) INTO gone, organizations, are_tests
    FROM (SELECT id, organization_id, status, is_test
          FROM messages
          WHERE id = ANY(ids)
          ORDER BY id
          FOR UPDATE) m
    WHERE m.status NOT IN ('QUEUED', 'SENDING')
      AND NOT EXISTS (SELECT FROM outbox WHERE message_id = m.id);
    -- new_messages before message_subjects: folding moves subjects from one to the other.
    UPDATE new_messages
    SET subject = NULL
    WHERE (organization_id, is_test, message_id)
          IN (SELECT organization_id, is_test, id FROM messages WHERE id = ANY(gone));
    -- By its key, which begins with the organization: by the message's id alone, a deletion
    -- would read all subjects of a month.
    EXECUTE 'DELETE FROM message_subjects s
             USING unnest($1, $2, $3) AS g (organization_id, is_test, id)
             WHERE s.organization_id = g.organization_id AND s.is_test = g.is_test AND s.message_id = g.id
               AND s.message_id = ANY($3)'
        USING organizations, are_tests, gone;
    DELETE FROM unknown_attempts WHERE message_id = ANY(gone);
    -- The table created last comes first, and messages come last.
    FOR t IN SELECT * FROM waypost_partitioned_tables() WHERE parent <> 'message_subjects' LOOP
        EXECUTE format('DELETE FROM %I WHERE %I = ANY($1)', t.parent, t.key_column) USING gone;
    END LOOP;
    RETURN coalesce(cardinality(gone), 0);
END
$$;

-- A test has no dimensions, so the functions that count events do not count it.
CREATE OR REPLACE FUNCTION waypost_metric_dimensions(message uuid, place integer)
RETURNS TABLE (organization_id uuid, provider text, domain text, template text)
LANGUAGE sql STABLE
AS $$
    SELECT m.organization_id, p.provider, waypost_metric_domain(m.from_address), coalesce(m.template_id::text, '')
    FROM (SELECT * FROM messages WHERE id = message AND NOT is_test LIMIT 1) m
    -- The account that the recipient's mail went through: a failover may have changed it.
    LEFT JOIN LATERAL (
        SELECT provider_account_id
        FROM recipients
        WHERE message_id = message AND position = place
        LIMIT 1
    ) r ON true
    CROSS JOIN LATERAL waypost_metric_provider(coalesce(r.provider_account_id, m.provider_account_id)) p
$$;

-- No provider has the mail of a test, so none is asked for it.
CREATE OR REPLACE FUNCTION waypost_schedule_lookup() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO unknown_attempts (message_id, attempt_id, organization_id, position, provider_account_id,
                                  started_at, unknown_at, next_lookup_at)
    SELECT NEW.message_id, NEW.id, NEW.organization_id, NEW.position, NEW.provider_account_id,
           NEW.started_at, t.unknown_at, t.unknown_at
    FROM (SELECT coalesce(NEW.finished_at, now()) AS unknown_at) t
    WHERE NOT EXISTS (SELECT FROM messages WHERE id = NEW.message_id AND is_test)
    ON CONFLICT (message_id, attempt_id) DO NOTHING;
    RETURN NULL;
END
$$;

-- Attempts that a simulated provider accepted, until the scheduler has recorded the events that
-- follow. A row is written with the outcome of its attempt.
CREATE TABLE test_reports (
    message_id uuid NOT NULL,
    attempt_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    position integer NOT NULL,
    provider_account_id uuid NOT NULL,
    provider_message_id text,
    test_outcome test_outcome NOT NULL,
    accepted_at timestamptz NOT NULL,
    PRIMARY KEY (message_id, attempt_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The events follow soon after it.
CREATE INDEX test_reports_accepted_at_idx ON test_reports (accepted_at);
