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
    INSERT INTO message_moves (organization_id, was, status, count)
    SELECT a.organization_id, b.status, a.status, count(*)
    FROM after a
    JOIN before b ON b.id = a.id
    WHERE b.status <> a.status
    GROUP BY a.organization_id, b.status, a.status;
    RETURN NULL;
END
$$;
