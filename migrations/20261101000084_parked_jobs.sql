-- Chunks that lose their workers again and again are parked: nobody leases them
-- until the operator says what is to become of them.

ALTER TABLE outbox
    -- How often a worker was lost while it held the chunk, or its handler panicked.
    ADD COLUMN losses smallint NOT NULL DEFAULT 0,
    -- Since when it is worked on, where that matters: a chunk on probation is
    -- blamed for a lost worker only from here on. NULL for all others.
    ADD COLUMN begun_at timestamptz,
    -- Set together: since when nobody may lease it, and why.
    ADD COLUMN parked_at timestamptz,
    ADD COLUMN parked_reason text,
    ADD CONSTRAINT outbox_parked_check CHECK ((parked_at IS NULL) = (parked_reason IS NULL));

CREATE INDEX outbox_parked_idx ON outbox (parked_at) WHERE parked_at IS NOT NULL;
