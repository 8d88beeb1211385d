-- What filters of message lists read: who a message is from and to, its tags, template and
-- account, as labels in one index.
--
-- A trigger computes the labels of new messages, and the scheduler indexes them with the
-- subjects. A query reads the messages that are not indexed yet beside the index, so it is
-- exact at any moment. A label is a hash, so a query compares what it finds with the message.

-- The day of a message's id, in days since 1970.
CREATE FUNCTION waypost_message_day(message uuid) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (('x' || encode(substring(uuid_send(message) FOR 6), 'hex'))::bit(48)::bigint / 86400000)::integer
$$;

-- The seed of an organization's labels of a day. So no query reads the messages of others, and
-- a query for a common value reads the newest days alone.
CREATE FUNCTION waypost_label_seed(organization uuid, day integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT uuid_hash_extended(organization, day)
$$;

-- A label. The kinds are `from`, `domain`, `account`, `template`, `tag` and `to`.
CREATE FUNCTION waypost_label(seed bigint, kind text, value text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT hashtextextended(kind || ' ' || value, seed)
$$;

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

-- The scheduler adds the labels of the recipients if there are several, which are inserted after
-- their message.
ALTER TABLE new_messages
    ADD COLUMN recipient_count integer NOT NULL DEFAULT 1,
    ADD COLUMN labels bigint[] NOT NULL DEFAULT '{}';

-- The account is the one of the acceptance; a message that another one sent is in
-- messages_moved_idx.
CREATE OR REPLACE FUNCTION waypost_queue_new_messages() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO new_messages (organization_id, message_id, status, subject, recipient_count, labels)
    SELECT organization_id, id, status, lower(subject), recipient_count,
           ARRAY[waypost_label(seed, 'from', lower(from_address)),
                 waypost_label(seed, 'domain', lower(split_part(from_address, '@', -1))),
                 waypost_label(seed, 'account', coalesce(resolved_account_id, provider_account_id)::text)]
           || CASE WHEN template_id IS NOT NULL THEN ARRAY[waypost_label(seed, 'template', template_id::text)] END
           || CASE WHEN recipient_count = 1 THEN ARRAY[waypost_label(seed, 'to', encode(to_hash, 'hex'))] END
           || CASE WHEN cardinality(tags) > 0
                   THEN ARRAY(SELECT waypost_label(seed, 'tag', tag) FROM unnest(tags) tag) END
    FROM added
    CROSS JOIN LATERAL (SELECT waypost_label_seed(organization_id, waypost_message_day(id)) AS seed OFFSET 0) s;
    RETURN NULL;
END
$$;

-- The labels of any message, also those of several recipients.
CREATE VIEW message_labels AS
SELECT m.organization_id, m.id AS message_id,
       ARRAY(SELECT waypost_label(s.seed, label.kind, label.value)
             FROM (VALUES ('from', lower(m.from_address)),
                          ('domain', lower(split_part(m.from_address, '@', -1))),
                          ('account', coalesce(m.resolved_account_id, m.provider_account_id)::text),
                          ('template', m.template_id::text)) label (kind, value)
             WHERE label.value IS NOT NULL
             UNION ALL
             SELECT waypost_label(s.seed, 'tag', tag)
             FROM unnest(m.tags) tag
             UNION ALL
             SELECT waypost_label(s.seed, 'to', encode(r.address_hash, 'hex'))
             FROM recipients r
             WHERE r.message_id = m.id) AS labels
FROM messages m
CROSS JOIN LATERAL (SELECT waypost_label_seed(m.organization_id, waypost_message_day(m.id)) AS seed OFFSET 0) s;

-- What is indexed or waits already is queued again with its labels. A status of NULL is not
-- counted again.
WITH indexed AS (
    DELETE FROM message_subjects RETURNING message_id, NULL::message_status AS status, subject
), waiting AS (
    DELETE FROM new_messages RETURNING message_id, status, subject
)
INSERT INTO new_messages (organization_id, message_id, status, subject, labels)
SELECT l.organization_id, l.message_id, queued.status, queued.subject, l.labels
FROM (SELECT * FROM indexed UNION ALL SELECT * FROM waiting) queued
JOIN message_labels l ON l.message_id = queued.message_id;

ALTER TABLE message_subjects
    ADD COLUMN labels bigint[] NOT NULL;

-- New entries gather in a pending list, as those of the subjects do.
CREATE INDEX message_subjects_labels_idx ON message_subjects
    USING gin (labels) WITH (gin_pending_list_limit = 512);

-- The messages that another account sent than the one of their acceptance.
CREATE INDEX messages_moved_idx ON messages (organization_id, provider_account_id, id)
    WHERE resolved_account_id IS NOT NULL;
