-- When waiting chunks are pushed for the first time, and when waiting ends without a send.

SET LOCAL lock_timeout = '5s';

ALTER TABLE outbox
    -- When a scheduled chunk is to be pushed; NULL once it was, and for all other chunks. Until
    -- then Redis does not know the chunk, and `wake_at` is later by the relay's grace.
    ADD COLUMN due_at timestamptz,
    -- From then on the chunk is not sent, and what waits of it fails; NULL is never.
    ADD COLUMN expires_at timestamptz;

-- Whether any chunk is due, and the due chunks of each organization.
CREATE INDEX outbox_due_at_idx ON outbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_organization_id_due_at_idx ON outbox (organization_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_expires_at_idx ON outbox (expires_at) WHERE expires_at IS NOT NULL AND dead_at IS NULL;

-- Nothing has been released with this type: no API of a version before runs.
ALTER TYPE new_recipient
    -- Before this time it is not due; NULL is at once.
    ADD ATTRIBUTE scheduled_at timestamptz;
