-- The search in subjects. A trigram index costs more to write than all else about a
-- message, and messages are updated several times. So subjects have a narrow table
-- of their own, and acceptance does not wait for its index: it leaves them in a
-- queue, which the scheduler empties. A search reads both.

-- Both come with Postgres; the database's owner may create them.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gin;

CREATE TABLE message_subjects (
    organization_id uuid NOT NULL,
    message_id uuid NOT NULL,
    -- In lower case.
    subject text NOT NULL,
    PRIMARY KEY (organization_id, message_id)
) PARTITION BY RANGE (message_id);

-- With the organization, so that a search does not pay for what others have sent.
-- New entries gather in a short list first: writing them one by one costs four
-- times as much, and a long list slows every search.
CREATE INDEX message_subjects_trigram_idx ON message_subjects
    USING gin (organization_id, subject gin_trgm_ops) WITH (gin_pending_list_limit = 512);

CREATE TABLE message_subjects_default PARTITION OF message_subjects DEFAULT;

CREATE TABLE message_subject_queue (
    organization_id uuid NOT NULL,
    message_id uuid NOT NULL,
    -- In lower case.
    subject text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- A search reads what an organization has waiting here.
CREATE INDEX message_subject_queue_organization_idx
    ON message_subject_queue (organization_id, message_id DESC);

CREATE FUNCTION waypost_queue_subjects() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO message_subject_queue (organization_id, message_id, subject)
    SELECT organization_id, id, lower(subject)
    FROM added;
    RETURN NULL;
END
$$;

CREATE TRIGGER queue_subjects AFTER INSERT ON messages
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_queue_subjects();

-- The messages there are. The trigger has locked the table until the commit.
INSERT INTO message_subject_queue (organization_id, message_id, subject)
SELECT organization_id, id, lower(subject)
FROM messages;

-- As before, and now for every table that is partitioned by the message id: one is
-- known by its default partition.
CREATE OR REPLACE FUNCTION waypost_create_partitions(start timestamptz, months integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    parents text[];
    key_columns text[];
    partition text;
    month timestamp;
    suffix text;
    low uuid;
    high uuid;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('waypost_create_partitions'));
    -- In the order in which they are locked: the youngest first, messages last.
    SELECT array_agg(c.relname ORDER BY c.oid DESC), array_agg(a.attname ORDER BY c.oid DESC)
    INTO parents, key_columns
    FROM pg_partitioned_table p
    JOIN pg_class c ON c.oid = p.partrelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'messages'::regclass)
      AND to_regclass(c.relname || '_default') IS NOT NULL;
    FOR step IN 0 .. months - 1 LOOP
        month := date_trunc('month', start AT TIME ZONE 'UTC') + make_interval(months => step);
        suffix := to_char(month, '"_y"YYYY"m"MM');
        low := waypost_uuid_floor(month AT TIME ZONE 'UTC');
        high := waypost_uuid_floor((month + interval '1 month') AT TIME ZONE 'UTC');
        IF EXISTS (SELECT FROM unnest(parents) AS p (parent) WHERE to_regclass(p.parent || suffix) IS NULL) THEN
            -- Whoever writes into the default partitions waits before it looks:
            -- a statement that had looked already would find its rows gone.
            PERFORM set_config('lock_timeout', '2s', true);
            EXECUTE 'LOCK TABLE '
                || (SELECT string_agg(format('%I', p.parent || '_default'), ', ' ORDER BY p.place)
                    FROM unnest(parents) WITH ORDINALITY AS p (parent, place))
                || ' IN ACCESS EXCLUSIVE MODE';
        END IF;
        FOR place IN 1 .. array_length(parents, 1) LOOP
            partition := parents[place] || suffix;
            CONTINUE WHEN to_regclass(partition) IS NOT NULL;
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', partition, parents[place]);
            EXECUTE format(
                'WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
                parents[place] || '_default', key_columns[place], low, key_columns[place], high, partition);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parents[place], partition, low, high);
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- The months that the other tables have already.
SELECT waypost_create_partitions(first.month, (extract(year FROM gone) * 12 + extract(month FROM gone))::integer + 3)
FROM (SELECT date_trunc('month', coalesce(min(created_at), now()), 'UTC') AS month FROM messages) first
CROSS JOIN LATERAL age(date_trunc('month', now(), 'UTC'), first.month) AS gone;
