-- The work that is owed, as rows: one per chunk of a message's recipients,
-- written in the transaction that accepted the message and deleted in the one
-- that records the last final outcome. What Redis holds are hints at these rows.

CREATE TABLE workers (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    started_at timestamptz NOT NULL,
    -- All leases of this worker end here; its heartbeat moves it on.
    leased_until timestamptz NOT NULL
);

CREATE TABLE outbox (
    message_id uuid NOT NULL,
    -- Which hundred of the message's recipients: position / 100.
    chunk integer NOT NULL,
    organization_id uuid NOT NULL,
    -- The worker that holds the lease. No foreign key, so that acceptance and
    -- claims take no lock on the worker's row.
    leased_by uuid,
    -- When the relay looks at the row if nobody has finished it by then.
    wake_at timestamptz NOT NULL,
    PRIMARY KEY (message_id, chunk)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX outbox_wake_at_idx ON outbox (wake_at);
