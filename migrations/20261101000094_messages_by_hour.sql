-- New messages are to wait in one queue, from which they are counted and their subjects
-- indexed: one trigger and one row where there were two. And they are counted by hour as
-- well, so that a page in the middle of a list of millions is found without a walk to it.
-- This makes what that needs; the migrations after it begin to use it.
SET LOCAL lock_timeout = '5s';

-- The hour of a message's id; nothing where it is not counted by hour. None is yet.
CREATE FUNCTION waypost_message_hour(message uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT NULL::timestamptz
$$;

CREATE TABLE new_messages (
    organization_id uuid NOT NULL,
    message_id uuid NOT NULL,
    -- The one that it began with; none where the message is counted already.
    status message_status,
    -- In lower case; none where the message is gone already.
    subject text
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Totals and searches read what an organization has waiting here.
CREATE INDEX new_messages_organization_idx ON new_messages (organization_id, message_id DESC);

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

-- How many messages of a status an hour holds, by the time in their ids. One that all have
-- left stays with none. The key holds the count, since all hours of a list are summed.
CREATE TABLE message_hours (
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    hour timestamptz NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (organization_id, status, hour) INCLUDE (count)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Hours go when their month has gone.
CREATE INDEX message_hours_hour_idx ON message_hours (hour);

ALTER TABLE message_count_deltas ADD COLUMN hour timestamptz;
ALTER TABLE message_moves ADD COLUMN hour timestamptz;

-- A scheduler of the version before would fold changes without their hours, for good. It
-- does not say which folding it is, and so is refused; what it leaves is counted all the same.
ALTER TABLE message_counts ADD COLUMN folding smallint NOT NULL DEFAULT 0;
ALTER TABLE message_counts ALTER COLUMN folding DROP DEFAULT;

-- What is not folded yet.
CREATE VIEW message_changes AS
SELECT organization_id, status, hour, change
FROM message_count_deltas
UNION ALL
SELECT organization_id, status, waypost_message_hour(message_id), 1
FROM new_messages
WHERE status IS NOT NULL
UNION ALL
SELECT m.organization_id, moved.status, m.hour, moved.change
FROM message_moves m
CROSS JOIN LATERAL (VALUES (m.was, -m.count), (m.status, m.count)) AS moved (status, change);

CREATE OR REPLACE FUNCTION waypost_count_moved_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    -- Brought together by grouping. A join would be planned once on each connection, for as
    -- few rows as came first, and compare each row with each.
    INSERT INTO message_moves (organization_id, was, status, hour, count)
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

CREATE OR REPLACE FUNCTION waypost_count_deleted_messages() RETURNS trigger
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
