-- At most $4 attempts of the account $1 after those that were read, up to the id $2, and at most $4 of its
-- deferrals. An attempt from the id $3 on that has not ended holds up those after it. $5 recipient domains of a
-- month are counted on their own.
WITH cursor AS (
    -- Another roll-up that holds it reads these attempts.
    SELECT provider_account_id, organization_id, read_to
    FROM attempt_rollup_cursors
    WHERE provider_account_id = $1
    FOR UPDATE SKIP LOCKED
), found AS (
    SELECT s.*
    FROM cursor c
    CROSS JOIN LATERAL (
        SELECT id, message_id, position, started_at, finished_at, outcome
        FROM send_attempts
        WHERE provider_account_id = c.provider_account_id AND id > c.read_to AND id < $2
          AND organization_id = c.organization_id
        ORDER BY id
        LIMIT $4
    ) s
), read AS (
    SELECT *
    FROM (SELECT *, bool_or(outcome IS NULL AND id >= $3) OVER (ORDER BY id) AS is_held_up FROM found) f
    WHERE NOT is_held_up
), moved AS (
    UPDATE attempt_rollup_cursors
    SET read_to = (SELECT id FROM read ORDER BY id DESC LIMIT 1)
    WHERE provider_account_id = $1 AND EXISTS (SELECT FROM read)
), deferrals AS (
    DELETE FROM deferral_deltas
    WHERE ctid = ANY(ARRAY(SELECT d.ctid
                           FROM deferral_deltas d
                           WHERE d.provider_account_id = $1 AND EXISTS (SELECT FROM cursor)
                           LIMIT $4
                           FOR UPDATE OF d SKIP LOCKED))
    RETURNING quarter, recipient_domain, deferred
), changes AS (
    SELECT waypost_quarter(coalesce(a.finished_at, a.started_at)) AS quarter, coalesce(r.domain, '') AS domain,
           CASE WHEN a.outcome = 'ACCEPTED' AND a.finished_at IS NOT NULL
                THEN waypost_metric_time(a.started_at, a.finished_at) ELSE -1 END AS accepted_in,
           1 AS attempts, (a.outcome IS NOT DISTINCT FROM 'ACCEPTED')::int AS accepted,
           (a.outcome IS NOT DISTINCT FROM 'REJECTED')::int AS rejected, 0 AS deferred
    FROM read a
    -- Each look-up has a LIMIT, so that it uses the primary key.
    LEFT JOIN LATERAL (
        SELECT is_test FROM messages WHERE id = a.message_id LIMIT 1
    ) m ON true
    LEFT JOIN LATERAL (
        SELECT domain FROM recipients WHERE message_id = a.message_id AND position = a.position LIMIT 1
    ) r ON true
    WHERE m.is_test IS NOT TRUE
    UNION ALL
    SELECT quarter, recipient_domain, -1, 0, 0, 0, deferred
    FROM deferrals
), summed AS (
    SELECT date_trunc('month', quarter, 'UTC') AS month, quarter, domain, accepted_in::smallint AS accepted_in,
           sum(attempts) AS attempts, sum(accepted) AS accepted, sum(rejected) AS rejected, sum(deferred) AS deferred
    FROM changes
    GROUP BY 1, 2, 3, 4
), unknown AS (
    SELECT c.organization_id, n.*, row_number() OVER (PARTITION BY n.month ORDER BY n.domain) AS nth
    FROM (SELECT DISTINCT month, domain FROM summed WHERE domain NOT IN ('', '(other)')) n
    CROSS JOIN cursor c
    WHERE NOT EXISTS (
        SELECT
        FROM metric_keys k
        WHERE k.organization_id = c.organization_id AND k.month = n.month AND k.grouped_by = 'RECIPIENT_DOMAIN'
          AND k.key = n.domain)
), listed AS (
    INSERT INTO metric_keys (organization_id, month, grouped_by, key)
    SELECT organization_id, month, 'RECIPIENT_DOMAIN', domain
    FROM unknown u
    WHERE nth + (SELECT count(*)
                 FROM metric_keys k
                 WHERE k.organization_id = u.organization_id AND k.month = u.month
                   AND k.grouped_by = 'RECIPIENT_DOMAIN') <= $5
    ORDER BY organization_id, month, domain
    -- Another roll-up may have met it at the same time.
    ON CONFLICT (organization_id, month, grouped_by, key) DO UPDATE
    SET key = EXCLUDED.key
    RETURNING month, key
), counted AS (
    SELECT c.organization_id, c.provider_account_id, s.quarter,
           CASE WHEN EXISTS (SELECT FROM unknown u WHERE u.month = s.month AND u.domain = s.domain)
                 AND NOT EXISTS (SELECT FROM listed l WHERE l.month = s.month AND l.key = s.domain)
                THEN '(other)' ELSE s.domain END AS recipient_domain,
           s.accepted_in, sum(s.attempts) AS attempts, sum(s.accepted) AS accepted, sum(s.rejected) AS rejected,
           sum(s.deferred) AS deferred
    FROM summed s
    CROSS JOIN cursor c
    GROUP BY 1, 2, 3, 4, 5
), by_quarter AS (
    INSERT INTO attempt_quarters (organization_id, provider_account_id, quarter, recipient_domain, accepted_in,
                                  attempts, accepted, rejected, deferred)
    SELECT *
    FROM counted
    ON CONFLICT (provider_account_id, quarter, recipient_domain, accepted_in) DO UPDATE
    SET attempts = attempt_quarters.attempts + EXCLUDED.attempts,
        accepted = attempt_quarters.accepted + EXCLUDED.accepted,
        rejected = attempt_quarters.rejected + EXCLUDED.rejected,
        deferred = attempt_quarters.deferred + EXCLUDED.deferred
), by_day AS (
    INSERT INTO attempt_days (organization_id, provider_account_id, day, recipient_domain, accepted_in, attempts,
                              accepted, rejected, deferred)
    SELECT organization_id, provider_account_id, date_trunc('day', quarter, 'UTC'), recipient_domain, accepted_in,
           sum(attempts), sum(accepted), sum(rejected), sum(deferred)
    FROM counted
    GROUP BY 1, 2, 3, 4, 5
    ON CONFLICT (provider_account_id, day, recipient_domain, accepted_in) DO UPDATE
    SET attempts = attempt_days.attempts + EXCLUDED.attempts,
        accepted = attempt_days.accepted + EXCLUDED.accepted,
        rejected = attempt_days.rejected + EXCLUDED.rejected,
        deferred = attempt_days.deferred + EXCLUDED.deferred
)
SELECT (SELECT count(*) FROM read) + (SELECT count(*) FROM deferrals) AS "taken!"
