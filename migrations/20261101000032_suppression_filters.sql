-- What Postgres knows of an organization's suppression filter in Redis: enough to
-- tell one that lost something from one that did not.

CREATE TABLE suppression_filters (
    organization_id uuid PRIMARY KEY REFERENCES organizations (id) ON DELETE CASCADE,
    -- How many suppressions the organization has. Kept by every transaction that
    -- adds or deletes some, so that the list need not count.
    entries bigint NOT NULL,
    -- Which building of the filter is the present one; 0 while there is none.
    generation bigint NOT NULL DEFAULT 0,
    -- The filter's size, in words of 64 bits.
    words integer NOT NULL DEFAULT 0,
    -- Suppressions added since the generation began. The filter counts them too;
    -- one that counted fewer lost a write.
    additions bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
