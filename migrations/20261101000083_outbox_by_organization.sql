-- Chunks are looked for organization by organization, so that the long backlog of
-- one hides nobody else's: by the relay, and by workers while Redis is away.
-- Nothing reads the outbox by time alone any more.

CREATE INDEX outbox_organization_id_wake_at_idx ON outbox (organization_id, wake_at);

DROP INDEX outbox_wake_at_idx;
