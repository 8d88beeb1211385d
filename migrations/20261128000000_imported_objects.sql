-- What an import from another provider made, so that a repeated import makes nothing twice and
-- callers find a template by the id that it had there.

CREATE TYPE import_source AS ENUM ('SENDGRID', 'POSTMARK', 'MAILGUN', 'SES', 'RESEND');

CREATE TYPE imported_kind AS ENUM ('TEMPLATE', 'WEBHOOK_ENDPOINT');

CREATE TABLE imported_objects (
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    vendor import_source NOT NULL,
    kind imported_kind NOT NULL,
    -- The id there. An object with an alias has a second row, with the alias.
    vendor_id text NOT NULL,
    -- The object here. It may have been deleted since.
    id uuid NOT NULL,
    -- SHA-256 of what was imported. NULL until the import of the object is complete.
    fingerprint bytea CHECK (length(fingerprint) = 32),
    imported_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, vendor, kind, vendor_id)
);
