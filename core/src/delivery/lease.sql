-- $1 message ids, $2 chunks, $3 the worker, $4 recipients of a chunk, $5 now, $6 the largest bodies to
-- read, in bytes, $7 ids and $8 accounts of predicted attempts, $9 whether the commit may return before it
-- is on disk, $10 and $11 the first and the last message id, so that only their partitions are read.
WITH live_worker AS (
    SELECT id, CASE WHEN $9 THEN set_config('synchronous_commit', 'off', true) END
    FROM workers
    WHERE id = $3 AND leased_until > clock_timestamp()
    FOR KEY SHARE
), unleased AS (
    -- With `ANY`, Postgres looks each row up by its key. With `=` it might join and read the whole outbox,
    -- if the outbox was nearly empty when the statement was planned.
    SELECT o.message_id, o.chunk, requested.attempt_id, requested.predicted_account_id
    FROM UNNEST($1::uuid[], $2::int[], $7::uuid[], $8::uuid[])
      AS requested (message_id, chunk, attempt_id, predicted_account_id)
    JOIN outbox o ON o.message_id = ANY(ARRAY[requested.message_id]) AND o.chunk = ANY(ARRAY[requested.chunk])
    WHERE o.leased_by IS NULL AND o.dead_at IS NULL
    FOR UPDATE OF o SKIP LOCKED
), leased AS (
    UPDATE outbox o
    SET leased_by = live_worker.id
    FROM unleased, live_worker
    WHERE o.message_id = ANY(ARRAY[unleased.message_id]) AND o.chunk = ANY(ARRAY[unleased.chunk])
    RETURNING o.message_id, o.chunk, o.organization_id, o.losses, unleased.attempt_id,
              unleased.predicted_account_id
), due AS (
    UPDATE recipients r
    SET status = 'SENDING'
    FROM leased l
    WHERE r.message_id = l.message_id
      AND r.position >= l.chunk * $4 AND r.position < (l.chunk + 1) * $4
      AND r.status IN ('QUEUED', 'SENDING')
      AND r.next_attempt_at <= $5
    RETURNING l.*, r.position, r.address_sealed, r.address_hash, r.unknowns, r.failover, r.rounds,
              r.recoverable, r.kind
), with_message AS (
    SELECT d.*, m.*,
           coalesce(d.attempt_id IS NOT NULL AND m.recipient_count = 1
                    AND m.account_id = d.predicted_account_id AND NOT m.large AND m.test_outcome IS NULL
                    AND (m.expires_at IS NULL OR m.expires_at > greatest($5, clock_timestamp()))
                    AND d.losses = 0 AND d.unknowns = 0 AND d.failover = 0 AND d.rounds = 0
                    AND NOT EXISTS (
                        SELECT 1
                        FROM suppressions s
                        WHERE s.organization_id = d.organization_id AND s.email_hash = d.address_hash
                          AND (s.unsubscribe_group_id IS NULL
                               OR s.unsubscribe_group_id = m.unsubscribe_group_id)),
                    false) AS is_prewritten
    FROM (
        -- Each message is read once, with its first due recipient.
        SELECT *, row_number() OVER (PARTITION BY message_id ORDER BY position) = 1 AS is_first
        FROM due
    ) d
    LEFT JOIN LATERAL (
        SELECT m.subject, m.tags, m.created_at, m.retried_at, m.routing_rule_id,
               coalesce(m.resolved_account_id, m.provider_account_id) AS account_id,
               m.unsubscribe_group_id, m.track_opens, m.track_clicks, m.recipient_count,
               m.scheduled_at, m.expires_at, m.is_shared, m.is_account_pinned, m.test_outcome, m.traceparent,
               b.from_mailbox, b.reply_to, b.headers, b.attachments, s.large,
               EXISTS (SELECT FROM recipient_contents c WHERE c.message_id = d.message_id
                                                          AND c.message_id BETWEEN $10 AND $11)
                   AS has_recipient_contents,
               CASE WHEN NOT s.large THEN b.html END AS html,
               CASE WHEN NOT s.large THEN b.text END AS text
        FROM messages m
        JOIN message_bodies b ON b.message_id = d.message_id
        CROSS JOIN LATERAL (
            SELECT coalesce(octet_length(b.html), 0) + coalesce(octet_length(b.text), 0) > $6 AS large
        ) s
        WHERE m.id = d.message_id AND d.is_first
          AND m.id BETWEEN $10 AND $11 AND b.message_id BETWEEN $10 AND $11
        LIMIT 1
    ) m ON true
), prewritten AS (
    INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at)
    SELECT message_id, attempt_id, organization_id, position, account_id, $5
    FROM with_message
    WHERE is_prewritten
)
SELECT l.message_id AS "message_id!", l.chunk AS "chunk!", l.organization_id AS "organization_id!",
       l.losses AS "losses!", coalesce(r.is_prewritten, false) AS "is_prewritten!",
       r.attempt_id AS "attempt_id?: SendAttemptId", r.position AS "position?",
       r.address_sealed AS "address_sealed?", r.address_hash AS "address_hash?: AddressHash",
       r.unknowns AS "unknowns?", r.failover AS "failover?", r.rounds AS "rounds?",
       r.recoverable AS "recoverable?", r.subject AS "subject?", r.tags AS "tags?",
       r.created_at AS "created_at?", r.retried_at AS "retried_at?", r.routing_rule_id AS "routing_rule_id?",
       r.account_id AS "account_id?", r.unsubscribe_group_id AS "unsubscribe_group_id?",
       r.track_opens AS "track_opens?", r.track_clicks AS "track_clicks?",
       r.recipient_count AS "recipient_count?", r.from_mailbox AS "from_mailbox?", r.reply_to AS "reply_to?",
       r.large AS "is_body_left_out?", r.html AS "html?", r.text AS "text?", r.kind AS "kind?: RecipientKind",
       r.headers AS "headers?: Json<Vec<(String, String)>>",
       r.attachments AS "attachments?: Json<Vec<AttachmentRef>>", r.scheduled_at AS "scheduled_at?",
       r.expires_at AS "expires_at?", r.is_shared AS "is_shared?",
       r.is_account_pinned AS "is_account_pinned?", r.test_outcome AS "test_outcome?: SimulatedOutcome",
       r.has_recipient_contents AS "has_recipient_contents?", r.traceparent AS "traceparent?"
FROM leased l
-- Each row of `with_message` has one in `leased`, so this returns the rows of a LEFT JOIN. Postgres knows
-- the size of neither and might run a LEFT JOIN as a nested loop; it never does so with a FULL JOIN.
FULL JOIN with_message r ON r.message_id = l.message_id AND r.chunk = l.chunk
