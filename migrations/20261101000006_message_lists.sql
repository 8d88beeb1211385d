-- What lists of messages read: totals, counts by the hour, and the index of subjects.
--
-- Triggers on `messages` record every insert, change of status and deletion as rows to be
-- folded. The scheduler folds them into the counters and fills the index. A query reads both,
-- so it is exact at any moment, and no row is hot.

-- The search in subjects. A trigram index costs more to write than all else of a message, and
-- a message is updated several times: so subjects have a narrow table of their own, which
-- acceptance does not write.
CREATE TABLE message_subjects (
    organization_id uuid NOT NULL,
    message_id uuid NOT NULL,
    -- In lower case.
    subject text NOT NULL,
    PRIMARY KEY (organization_id, message_id)
) PARTITION BY RANGE (message_id);

-- The organization comes first, so that a search does not read the subjects of others. New
-- entries gather in a pending list: to write them one by one costs four times as much, and a
-- long list slows every search.
CREATE INDEX message_subjects_trigram_idx ON message_subjects
    USING gin (organization_id, subject gin_trgm_ops) WITH (gin_pending_list_limit = 512);

CREATE TABLE message_subjects_default PARTITION OF message_subjects DEFAULT;

-- The hour of a message's id.
CREATE FUNCTION waypost_message_hour(message uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT to_timestamp(('x' || encode(substring(uuid_send(message) FOR 6), 'hex'))::bit(48)::bigint
                        / 3600000 * 3600)
$$;

-- Messages that are not counted or whose subjects are not indexed.
CREATE TABLE new_messages (
    organization_id uuid NOT NULL,
    message_id uuid NOT NULL,
    -- The first one; NULL where the message is counted already.
    status message_status,
    -- In lower case; NULL where the message is deleted already.
    subject text
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Totals and searches read the rows of one organization.
CREATE INDEX new_messages_organization_idx ON new_messages (organization_id, message_id DESC);

-- Changes of status that are not folded: so many messages went from one status to another.
CREATE TABLE message_transitions (
    organization_id uuid NOT NULL,
    was message_status NOT NULL,
    status message_status NOT NULL,
    count bigint NOT NULL,
    -- The hour of the messages' ids; NULL where only the totals change.
    hour timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX message_transitions_organization_idx ON message_transitions (organization_id);

-- Other changes of the counters that are not folded: deletions, and months that were dropped.
CREATE TABLE message_count_deltas (
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    change bigint NOT NULL,
    -- As in message_transitions.
    hour timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX message_count_deltas_organization_idx ON message_count_deltas (organization_id);

-- Everything that is not folded, as changes of the counters.
CREATE VIEW message_changes AS
SELECT organization_id, status, hour, change
FROM message_count_deltas
UNION ALL
SELECT organization_id, status, waypost_message_hour(message_id), 1
FROM new_messages
WHERE status IS NOT NULL
UNION ALL
SELECT m.organization_id, moved.status, m.hour, moved.change
FROM message_transitions m
CROSS JOIN LATERAL (VALUES (m.was, -m.count), (m.status, m.count)) AS moved (status, change);

-- How many messages an organization has in each status.
CREATE TABLE message_counts (
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (organization_id, status)
) WITH (fillfactor = 50);

-- The same for each hour, by the time in the messages' ids: it finds a page in the middle of
-- millions of messages without reading up to it. An hour that all messages have left stays
-- with a count of 0. The index holds the count, since a query sums all hours of a list.
CREATE TABLE message_hours (
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    hour timestamptz NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (organization_id, status, hour) INCLUDE (count)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- For deleting the hours of a month that was dropped.
CREATE INDEX message_hours_hour_idx ON message_hours (hour);

-- One function for each operation, since each has other transition tables.
CREATE FUNCTION waypost_queue_new_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO new_messages (organization_id, message_id, status, subject)
    SELECT organization_id, id, status, lower(subject)
    FROM added;
    RETURN NULL;
END
$$;

CREATE FUNCTION waypost_record_transitions() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    -- Old and new versions are matched by grouping. A join would be planned once for each
    -- connection, for as few rows as came first, and would then compare every row with
    -- every other.
    INSERT INTO message_transitions (organization_id, was, status, hour, count)
    SELECT organization_id, was, status, waypost_message_hour(id), count(*)
    FROM (SELECT id, organization_id, max(status) FILTER (WHERE is_old) AS was,
                 max(status) FILTER (WHERE NOT is_old) AS status
          FROM (SELECT id, organization_id, status, true AS is_old FROM before
                UNION ALL
                SELECT id, organization_id, status, false FROM after) versions
          GROUP BY id, organization_id) moves
    WHERE was <> status
    GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END
$$;

CREATE FUNCTION waypost_count_deleted_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO message_count_deltas (organization_id, status, hour, change)
    SELECT organization_id, status, waypost_message_hour(id), -count(*)
    FROM removed
    GROUP BY 1, 2, 3;
    RETURN NULL;
END
$$;

CREATE TRIGGER queue_new_messages AFTER INSERT ON messages
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_queue_new_messages();
CREATE TRIGGER record_transitions AFTER UPDATE ON messages
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_record_transitions();
-- To detach or drop a partition fires no trigger: waypost_detach_partition subtracts what the
-- partition held.
CREATE TRIGGER count_deleted_messages AFTER DELETE ON messages
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_count_deleted_messages();
