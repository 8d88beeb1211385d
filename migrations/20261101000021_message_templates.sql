-- Which template and which version of it a message was rendered from, for
-- metrics. No foreign keys: a template may be deleted while its history stays.

ALTER TABLE messages
    ADD COLUMN template_id uuid,
    ADD COLUMN template_version_id uuid;
