-- A change of status was two deltas, one for what a message was and one for what it is.
-- Now it is one row that says both: a row to write, to index and to fold less for every
-- message that is sent. In a table of its own, so that a scheduler of the version before,
-- which knows of deltas alone, folds nothing by halves.

CREATE TABLE message_moves (
    organization_id uuid NOT NULL,
    was message_status NOT NULL,
    status message_status NOT NULL,
    count bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX message_moves_organization_idx ON message_moves (organization_id);

CREATE OR REPLACE FUNCTION waypost_count_moved_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    -- Brought together by grouping. A join would be planned once on each connection, for as
    -- few rows as came first, and compare each row with each.
    INSERT INTO message_moves (organization_id, was, status, count)
    SELECT organization_id, was, status, count(*)
    FROM (SELECT organization_id, max(status) FILTER (WHERE is_old) AS was,
                 max(status) FILTER (WHERE NOT is_old) AS status
          FROM (SELECT id, organization_id, status, true AS is_old FROM before
                UNION ALL
                SELECT id, organization_id, status, false FROM after) versions
          GROUP BY id, organization_id) moves
    WHERE was <> status
    GROUP BY organization_id, was, status;
    RETURN NULL;
END
$$;
