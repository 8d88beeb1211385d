-- $1 messages, $2 their recipients, $3 claims of idempotency keys, $4 how long a key is kept,
-- $5 the error of a suppressed recipient, $6 how long the relay leaves the push to the API, $7 when the
-- newest of the claims was made, $8 the ids of the messages whose class is bulk.
WITH listed AS (
    SELECT *
    FROM UNNEST($2::new_recipient[])
), suppressed AS (
    SELECT r.message_id, r.position
    FROM listed r
    CROSS JOIN LATERAL (
        SELECT 1
        FROM suppressions s
        WHERE s.organization_id = r.organization_id AND s.email_hash = r.address_hash
          AND (s.unsubscribe_group_id IS NULL OR s.unsubscribe_group_id = r.unsubscribe_group_id)
        LIMIT 1
    ) s
    WHERE r.is_unchecked
), wanted AS (
    SELECT *
    FROM UNNEST($3::new_key_claim[]) WITH ORDINALITY
    WHERE message_id IS NULL OR message_id <> ALL (ARRAY(SELECT DISTINCT message_id FROM suppressed))
), claimed AS (
    INSERT INTO idempotency_keys (organization_id, key_hash, body_hash, answer, created_at)
    -- The key of a scheduled message lives from when the message is due.
    SELECT organization_id, key_hash, body_hash, answer, coalesce(kept_from, created_at)
    FROM wanted
    ON CONFLICT (organization_id, key_hash) DO UPDATE
    SET body_hash = EXCLUDED.body_hash, answer = EXCLUDED.answer, created_at = EXCLUDED.created_at
    WHERE idempotency_keys.created_at <= least(EXCLUDED.created_at, $7) - $4::interval
    RETURNING organization_id, key_hash
), taken AS (
    SELECT w.message_id, w.ordinality
    FROM wanted w
    WHERE NOT EXISTS (
        SELECT 1
        FROM claimed c
        WHERE c.organization_id = w.organization_id AND c.key_hash = w.key_hash)
), left_out AS (
    SELECT message_id
    FROM taken
    WHERE message_id IS NOT NULL
    UNION
    SELECT message_id
    FROM suppressed
), new AS (
    SELECT *
    FROM UNNEST($1::new_message[])
    WHERE id <> ALL (ARRAY(SELECT message_id FROM left_out))
), new_recipient AS (
    SELECT *
    FROM listed
    WHERE message_id <> ALL (ARRAY(SELECT message_id FROM left_out))
), wants_queued AS (
    SELECT organization_id
    FROM webhook_endpoints
    WHERE is_active AND events @> '{QUEUED}' AND organization_id = ANY(ARRAY(SELECT organization_id FROM new))
), message AS (
    INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject,
                          status, tags, metadata, recipient_count, created_at, unsubscribe_group_id,
                          template_id, template_version_id, routing_rule_id, track_opens,
                          track_clicks, scheduled_at, expires_at, is_shared, is_account_pinned, is_test,
                          test_outcome, traceparent, message_class, is_queued_event)
    SELECT id, organization_id, provider_account_id, from_address, to_hash, subject,
           'QUEUED', tags, metadata, recipient_count, created_at, unsubscribe_group_id,
           template_id, template_version_id, routing_rule_id, track_opens, track_clicks,
           scheduled_at, expires_at, is_shared, is_account_pinned, test_outcome IS NOT NULL, test_outcome,
           traceparent, CASE WHEN id = ANY($8::uuid[]) THEN 'bulk'::message_class END,
           organization_id <> ALL (ARRAY(SELECT organization_id FROM wants_queued))
    FROM new
), body AS (
    INSERT INTO message_bodies (message_id, organization_id, from_mailbox, reply_to, html, text, headers,
                                attachments)
    SELECT id, organization_id, from_mailbox, reply_to, html, text, headers, attachments
    FROM new
), recipient AS (
    INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash,
                            status, last_error, next_attempt_at, kind, domain)
    SELECT message_id, position, organization_id, address_sealed, address_hash,
           CASE WHEN dropped_event_id IS NULL THEN 'QUEUED' ELSE 'FAILED' END::message_status,
           CASE WHEN dropped_event_id IS NOT NULL THEN $5 END,
           coalesce(scheduled_at, 'epoch'), kind, domain
    FROM new_recipient
), content AS (
    INSERT INTO recipient_contents (message_id, position, organization_id, subject, html, text, metadata)
    SELECT message_id, position, organization_id, subject, html, text, metadata
    FROM new_recipient
    WHERE num_nonnulls(subject, html, text, metadata) > 0
), job AS (
    INSERT INTO outbox (message_id, chunk, organization_id, wake_at, due_at, expires_at)
    SELECT n.id, job.chunk, n.organization_id, coalesce(n.scheduled_at, n.created_at) + $6, n.scheduled_at,
           n.expires_at
    FROM new n
    CROSS JOIN LATERAL UNNEST(n.chunks) AS job (chunk)
)
SELECT ordinality AS "ordinality?", NULL::uuid AS "message_id?", NULL::int AS "position?"
FROM taken
UNION ALL
SELECT NULL, message_id, position
FROM suppressed
