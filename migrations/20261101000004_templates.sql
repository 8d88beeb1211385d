-- Templates and their versions. A version never changes; the template names the current one.

CREATE TABLE templates (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name text NOT NULL,
    description text,
    tags text[] NOT NULL,
    -- NULL until a version exists.
    current_version_id uuid,
    -- The number of the newest version. A new version increments it first, which locks the
    -- row: so numbers have no gaps.
    version_count integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE INDEX templates_organization_idx ON templates (organization_id, created_at DESC, id DESC);

CREATE TABLE template_versions (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    template_id uuid NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    version_number integer NOT NULL CHECK (version_number > 0),
    mjml_source text,
    -- What is rendered. Where there is MJML, it is the compiled MJML.
    html_content text NOT NULL,
    text_content text,
    variables_schema jsonb,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT template_versions_number_key UNIQUE (template_id, version_number)
);

-- Apart, since the two tables refer to each other.
ALTER TABLE templates
    ADD CONSTRAINT templates_current_version_fkey
    FOREIGN KEY (current_version_id) REFERENCES template_versions (id);
