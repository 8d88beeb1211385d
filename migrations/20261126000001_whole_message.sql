-- The parts of a message beyond one subject and two bodies: kinds of recipients, headers,
-- attachments, schedule, expiry.

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

CREATE TYPE recipient_kind AS ENUM ('TO', 'CC', 'BCC');

ALTER TABLE messages
    -- Not sent before this time; NULL is at once.
    ADD COLUMN scheduled_at timestamptz,
    -- Not sent from this time on.
    ADD COLUMN expires_at timestamptz,
    -- One mail to all recipients, who see each other. NULL is a mail of its own for each.
    ADD COLUMN is_shared boolean,
    -- Only the account resolved at acceptance may send it. NULL is false.
    ADD COLUMN is_account_pinned boolean,
    -- No provider is called and nothing is counted. NULL is false.
    ADD COLUMN is_test boolean;

ALTER TABLE message_bodies
    -- An array of [name, value], in the order of the request.
    ADD COLUMN headers jsonb,
    -- An array of core::attachment::AttachmentRef.
    ADD COLUMN attachments jsonb;

ALTER TABLE recipients
    -- NULL is TO: most recipients are, and a NULL takes no room.
    ADD COLUMN kind recipient_kind;

-- What a recipient has instead of the message's content: rendered with variables of its own,
-- or metadata of its own. A column that is NULL is the message's.
CREATE TABLE recipient_contents (
    message_id uuid NOT NULL,
    position integer NOT NULL,
    organization_id uuid NOT NULL,
    subject text,
    html text,
    text text,
    metadata jsonb,
    PRIMARY KEY (message_id, position)
) PARTITION BY RANGE (message_id);

DO $$
BEGIN
    ALTER TABLE recipient_contents
        ALTER COLUMN html SET COMPRESSION lz4,
        ALTER COLUMN text SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;

CREATE TABLE recipient_contents_default PARTITION OF recipient_contents DEFAULT;

-- The content of attachments, in pieces, stored once for each organization and month whatever
-- messages, recipients and attempts use it. `month` is waypost_uuid_floor of the month of the
-- messages, so that the content goes with their month.
CREATE TABLE attachment_contents (
    month uuid NOT NULL,
    organization_id uuid NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    -- From 0.
    piece integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (month, organization_id, sha256, piece)
) PARTITION BY RANGE (month);

-- Attachments are compressed already, as a rule.
ALTER TABLE attachment_contents ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE attachment_contents_default PARTITION OF attachment_contents DEFAULT;

-- Nothing has been released with these types: no API of a version before runs.
ALTER TYPE new_message
    ADD ATTRIBUTE headers jsonb,
    ADD ATTRIBUTE attachments jsonb,
    ADD ATTRIBUTE scheduled_at timestamptz,
    ADD ATTRIBUTE expires_at timestamptz,
    ADD ATTRIBUTE is_shared boolean,
    ADD ATTRIBUTE is_account_pinned boolean,
    ADD ATTRIBUTE is_test boolean;
ALTER TYPE new_recipient
    ADD ATTRIBUTE kind recipient_kind,
    ADD ATTRIBUTE subject text,
    ADD ATTRIBUTE html text,
    ADD ATTRIBUTE text text,
    ADD ATTRIBUTE metadata jsonb;
