-- What the leading scheduler did last, a row for each of its tasks: so that an
-- operator sees whether they keep their rhythm. Times are Postgres' own.
CREATE TABLE scheduler_tasks (
    name text PRIMARY KEY,
    -- Its rhythm.
    every_ms bigint NOT NULL,
    -- The process that ran it last.
    leader text NOT NULL,
    -- Since when it is on the list.
    known_since timestamptz NOT NULL DEFAULT now(),
    -- When the latest run began, and when the latest one that ended did.
    last_started_at timestamptz NOT NULL,
    last_finished_at timestamptz,
    -- When the latest run ended that did what it was to do.
    last_succeeded_at timestamptz,
    -- How long the latest run that ended took.
    took_ms bigint,
    -- Why it failed, if it did. Without addresses or secrets, as in the log.
    last_error text
) WITH (fillfactor = 50);
