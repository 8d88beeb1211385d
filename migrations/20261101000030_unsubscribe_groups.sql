-- Unsubscribe groups: the subjects that a recipient may unsubscribe from one by
-- one.

CREATE TABLE unsubscribe_groups (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name text NOT NULL,
    description text,
    is_default boolean NOT NULL,
    created_at timestamptz NOT NULL,
    -- What suppressions refer to, so that none can name another organization's
    -- group. It also serves the list, since ids are in the order of creation.
    CONSTRAINT unsubscribe_groups_organization_key UNIQUE (organization_id, id)
);

CREATE UNIQUE INDEX unsubscribe_groups_default_key
    ON unsubscribe_groups (organization_id) WHERE is_default;
