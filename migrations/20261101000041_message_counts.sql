-- How many messages an organization has in each status, so that lists need not
-- count them. Kept as metrics are: deltas in the transaction of every change, by
-- trigger, folded by the scheduler; a total is the counts and the deltas together.

CREATE TABLE message_count_deltas (
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    change bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX message_count_deltas_organization_idx ON message_count_deltas (organization_id);

CREATE TABLE message_counts (
    organization_id uuid NOT NULL,
    status message_status NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (organization_id, status)
) WITH (fillfactor = 50);

-- One function for each kind of change: which transition tables there are depends
-- on it.
CREATE FUNCTION waypost_count_new_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO message_count_deltas (organization_id, status, change)
    SELECT organization_id, status, count(*)
    FROM added
    GROUP BY organization_id, status;
    RETURN NULL;
END
$$;

CREATE FUNCTION waypost_count_moved_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO message_count_deltas (organization_id, status, change)
    SELECT organization_id, status, sum(change)
    FROM (SELECT organization_id, status, 1 AS change FROM after
          UNION ALL
          SELECT organization_id, status, -1 FROM before) moves
    GROUP BY organization_id, status
    HAVING sum(change) <> 0;
    RETURN NULL;
END
$$;

CREATE FUNCTION waypost_count_deleted_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO message_count_deltas (organization_id, status, change)
    SELECT organization_id, status, -count(*)
    FROM removed
    GROUP BY organization_id, status;
    RETURN NULL;
END
$$;

CREATE TRIGGER count_new_messages AFTER INSERT ON messages
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_count_new_messages();
CREATE TRIGGER count_moved_messages AFTER UPDATE ON messages
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_count_moved_messages();
-- Dropping a partition fires nothing: whoever does it subtracts what was in it.
CREATE TRIGGER count_deleted_messages AFTER DELETE ON messages
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_count_deleted_messages();

-- The messages there are. The triggers have locked the table until the commit.
INSERT INTO message_counts (organization_id, status, count)
SELECT organization_id, status, count(*)
FROM messages
GROUP BY organization_id, status;

-- The list of one status, newest first.
CREATE INDEX messages_status_idx ON messages (organization_id, status, id);
