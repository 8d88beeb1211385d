-- Records that mails of messages with one recipient were accepted. The parameters are arrays with one
-- element for each mail, in the order of the columns of `accepted`.
WITH accepted AS (
    SELECT *
    FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[],
                $8::timestamptz[], $9::int[], $10::int[], $11::timestamptz[], $12::smallint[],
                $13::smallint[], $14::bool[])
      AS sent (message_id, attempt_id, organization_id, event_id, provider_account_id, worker,
               provider_message_id, finished_at, status_code, used, next_attempt_at, failover, rounds,
               recoverable)
), closed AS (
    UPDATE send_attempts a
    SET finished_at = sent.finished_at, outcome = 'ACCEPTED', status_code = sent.status_code, reason = NULL
    FROM accepted sent
    WHERE a.message_id = sent.message_id AND a.id = sent.attempt_id
      AND (a.outcome IS NULL OR a.outcome = 'UNKNOWN')
    RETURNING sent.*
), moved AS (
    UPDATE recipients r
    SET status = 'SENT',
        provider_account_id = c.provider_account_id,
        provider_message_id = coalesce(c.provider_message_id, r.provider_message_id),
        attempts = r.attempts + c.used,
        last_error = NULL,
        next_attempt_at = c.next_attempt_at,
        sent_at = coalesce(r.sent_at, c.finished_at),
        failover = c.failover,
        rounds = c.rounds,
        recoverable = c.recoverable
    FROM closed c
    WHERE r.message_id = c.message_id AND r.position = 0
      AND r.status IN ('SENDING', 'QUEUED', 'FAILED')
    RETURNING r.message_id, r.sent_at, r.delivered_at, r.provider_account_id, r.provider_message_id,
              c.organization_id, c.event_id, c.finished_at, c.worker, c.attempt_id, 0 AS chunk,
              c.provider_message_id AS reported_id, r.first_sent_at IS NULL AS is_first, r.domain
), message AS (
    UPDATE messages m
    SET status = 'SENT', sent_at = r.sent_at, delivered_at = r.delivered_at,
        provider_message_id = r.provider_message_id, provider_account_id = r.provider_account_id,
        resolved_account_id = CASE WHEN r.provider_account_id <> m.provider_account_id
                                   THEN coalesce(m.resolved_account_id, m.provider_account_id)
                                   ELSE m.resolved_account_id END
    FROM moved r
    WHERE m.id = r.message_id
    RETURNING r.organization_id, r.finished_at, r.provider_account_id, m.from_address, m.template_id,
              m.tags, greatest(m.created_at, m.scheduled_at) AS accepted_at, r.domain,
              r.is_first
), metric AS (
    INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, tags, recipient_domain,
                               sent_in, sent, delivered, opened, clicked, bounced, complained, unsubscribed)
    SELECT organization_id, waypost_quarter(finished_at), provider_account_id::text,
           waypost_metric_domain(from_address), coalesce(template_id::text, ''), tags, coalesce(domain, ''),
           waypost_metric_time(accepted_at, finished_at), count(*), 0, 0, 0, 0, 0, 0
    FROM message
    WHERE is_first
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
), event AS (
    INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at, data,
                        is_counted)
    SELECT message_id, event_id, organization_id, 0, 'SENT', finished_at,
           jsonb_strip_nulls(jsonb_build_object('attemptId', attempt_id, 'providerMessageId', reported_id)),
           true
    FROM moved
)
-- Ends the leases, because nothing is left to send. With `ANY`, Postgres looks each row up by its key (see
-- lease.sql).
DELETE FROM outbox o
USING moved
WHERE o.message_id = ANY(ARRAY[moved.message_id]) AND o.chunk = ANY(ARRAY[moved.chunk])
  AND o.leased_by = ANY(ARRAY[moved.worker])
RETURNING moved.attempt_id AS "attempt_id!: SendAttemptId"
