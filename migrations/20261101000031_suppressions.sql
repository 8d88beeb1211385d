-- Suppressions: addresses that are not sent to, everywhere or in one group. The
-- address itself is never here, only the SHA-256 of its normal form.

CREATE TYPE suppression_source AS ENUM ('BOUNCE', 'COMPLAINT', 'MANUAL', 'IMPORT', 'UNSUBSCRIBE');

CREATE TABLE suppressions (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    email_hash bytea NOT NULL CHECK (length(email_hash) = 32),
    -- NULL: everywhere.
    unsubscribe_group_id uuid,
    source suppression_source NOT NULL,
    created_at timestamptz NOT NULL,
    -- Also the way in for every check: by organization and hash.
    CONSTRAINT suppressions_address_key
        UNIQUE NULLS NOT DISTINCT (organization_id, email_hash, unsubscribe_group_id),
    CONSTRAINT suppressions_group_fkey
        FOREIGN KEY (organization_id, unsubscribe_group_id)
        REFERENCES unsubscribe_groups (organization_id, id) ON DELETE CASCADE
);

-- The lists: all, by source, by group; newest first.
CREATE INDEX suppressions_organization_idx ON suppressions (organization_id, id DESC);
CREATE INDEX suppressions_source_idx ON suppressions (organization_id, source, id DESC);
CREATE INDEX suppressions_group_idx ON suppressions (organization_id, unsubscribe_group_id, id DESC)
    WHERE unsubscribe_group_id IS NOT NULL;
