-- What a template version brings besides its bodies, versions in several languages, and layouts
-- and partials. Programs of the version before read and write `html_content`, `text_content` and
-- `current_version_id`, which keep their meaning.

SET LOCAL lock_timeout = '5s';

-- Layouts and partials are parts of templates and are not sent themselves.
CREATE TYPE template_type AS ENUM ('TEMPLATE', 'LAYOUT', 'PARTIAL');

ALTER TABLE templates ADD COLUMN type template_type NOT NULL DEFAULT 'TEMPLATE';

-- Sources include a partial by its name.
CREATE UNIQUE INDEX templates_partial_name_key ON templates (organization_id, name)
    WHERE type = 'PARTIAL';

ALTER TABLE template_versions
    ADD COLUMN subject text,
    ADD COLUMN preheader text,
    -- Addresses as headers have them.
    ADD COLUMN from_mailbox text,
    ADD COLUMN reply_to text[] NOT NULL DEFAULT '{}',
    -- A language tag. NULL is the default.
    ADD COLUMN locale text,
    -- No foreign key: a layout that no current version uses can be deleted.
    ADD COLUMN layout_id uuid,
    -- What the author gave, where `html_content` and `text_content`, which are rendered, are composed
    -- of it and something else.
    ADD COLUMN html_source text,
    ADD COLUMN text_source text,
    ADD COLUMN is_text_generated boolean NOT NULL DEFAULT false,
    -- Counts how often the rendered content was composed again.
    ADD COLUMN composition integer NOT NULL DEFAULT 0;

-- The current versions of the languages. That of the default is `templates.current_version_id`.
CREATE TABLE template_locales (
    template_id uuid NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    locale text NOT NULL,
    version_id uuid NOT NULL REFERENCES template_versions (id) ON DELETE CASCADE,
    PRIMARY KEY (template_id, locale)
);

CREATE INDEX template_locales_version_idx ON template_locales (version_id);

-- The layouts and partials in a version, with those in them.
CREATE TABLE template_uses (
    version_id uuid NOT NULL REFERENCES template_versions (id) ON DELETE CASCADE,
    part_id uuid NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    -- The version of the part that was composed in.
    part_version_id uuid NOT NULL REFERENCES template_versions (id) ON DELETE CASCADE,
    PRIMARY KEY (version_id, part_id)
);

CREATE INDEX template_uses_part_idx ON template_uses (part_id);
CREATE INDEX template_uses_part_version_idx ON template_uses (part_version_id);
