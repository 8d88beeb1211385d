-- Unsubscribe groups, suppressions, and what leads to suppressions.

-- The topics from which a recipient may unsubscribe one by one.
CREATE TABLE unsubscribe_groups (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name text NOT NULL,
    description text,
    is_default boolean NOT NULL,
    created_at timestamptz NOT NULL,
    -- Suppressions refer to it, so that none can name another organization's group. It also
    -- serves the list, since ids are in the order of creation.
    CONSTRAINT unsubscribe_groups_organization_key UNIQUE (organization_id, id)
);

CREATE UNIQUE INDEX unsubscribe_groups_default_key
    ON unsubscribe_groups (organization_id) WHERE is_default;

CREATE TYPE suppression_source AS ENUM ('BOUNCE', 'COMPLAINT', 'MANUAL', 'IMPORT', 'UNSUBSCRIBE');

-- Addresses that get no mail, or none of one group. The address itself is never stored, only
-- the SHA-256 of its normal form.
CREATE TABLE suppressions (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    email_hash bytea NOT NULL CHECK (length(email_hash) = 32),
    -- NULL: no mail at all.
    unsubscribe_group_id uuid,
    source suppression_source NOT NULL,
    created_at timestamptz NOT NULL,
    -- Every check uses its index: by organization and hash.
    CONSTRAINT suppressions_address_key
        UNIQUE NULLS NOT DISTINCT (organization_id, email_hash, unsubscribe_group_id),
    CONSTRAINT suppressions_group_fkey
        FOREIGN KEY (organization_id, unsubscribe_group_id)
        REFERENCES unsubscribe_groups (organization_id, id) ON DELETE CASCADE
);

-- The lists, newest first: all, by source, by group.
CREATE INDEX suppressions_organization_idx ON suppressions (organization_id, id DESC);
CREATE INDEX suppressions_source_idx ON suppressions (organization_id, source, id DESC);
CREATE INDEX suppressions_group_idx ON suppressions (organization_id, unsubscribe_group_id, id DESC)
    WHERE unsubscribe_group_id IS NOT NULL;

-- The state of an organization's Bloom filter in Redis: enough to detect a filter that lost
-- writes.
CREATE TABLE suppression_filters (
    organization_id uuid PRIMARY KEY REFERENCES organizations (id) ON DELETE CASCADE,
    -- How many suppressions the organization has. Every transaction that adds or deletes
    -- some keeps it, so that the list need not count.
    entries bigint NOT NULL,
    -- The number of the filter's current build; 0 while there is none.
    generation bigint NOT NULL DEFAULT 0,
    -- The filter's size, in words of 64 bits.
    words integer NOT NULL DEFAULT 0,
    -- Suppressions added since the generation began. The filter counts them too; a filter
    -- with a lower count lost a write.
    additions bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- When an address last bounced softly: the newest times, as many as suppress it.
CREATE TABLE soft_bounces (
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    email_hash bytea NOT NULL CHECK (length(email_hash) = 32),
    bounced_at timestamptz[] NOT NULL,
    PRIMARY KEY (organization_id, email_hash)
);
