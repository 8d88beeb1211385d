-- How provider accounts do by recipient domain: what became of attempts and how long accepted ones
-- took, and which mails were put off. Nothing is written for a mail that is sent: the scheduler reads
-- the attempts, and the function that counts events writes a row for what was put off.

SET LOCAL lock_timeout = '5s';

-- Mails that were put off, by the quarter of an hour of the event. Rows live until they are rolled up.
CREATE TABLE deferral_deltas (
    organization_id uuid NOT NULL,
    provider_account_id uuid NOT NULL,
    quarter timestamptz NOT NULL,
    -- Empty where it is not known.
    recipient_domain text NOT NULL,
    deferred bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX deferral_deltas_account_idx ON deferral_deltas (provider_account_id);

-- How far the attempts of an account are rolled up.
CREATE TABLE attempt_rollup_cursors (
    provider_account_id uuid PRIMARY KEY REFERENCES provider_accounts (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    -- The last attempt that was read. Ids of attempts begin with their time.
    read_to uuid NOT NULL
) WITH (fillfactor = 50);

-- Attempts of the time before are not read: there may be millions.
INSERT INTO attempt_rollup_cursors (provider_account_id, organization_id, read_to)
SELECT id, organization_id, waypost_uuid_floor(now())
FROM provider_accounts;

-- The attempts of a quarter of an hour, by when they ended. No foreign key: the rows of a deleted
-- account go when they expire, and not while somebody waits for its deletion.
CREATE TABLE attempt_quarters (
    organization_id uuid NOT NULL,
    provider_account_id uuid NOT NULL,
    quarter timestamptz NOT NULL,
    -- A domain of metric_keys, `(other)`, or empty where it is not known.
    recipient_domain text NOT NULL,
    -- waypost_metric_time of an accepted attempt, from its beginning; -1 for all others.
    accepted_in smallint NOT NULL,
    attempts bigint NOT NULL,
    accepted bigint NOT NULL,
    rejected bigint NOT NULL,
    deferred bigint NOT NULL,
    PRIMARY KEY (provider_account_id, quarter, recipient_domain, accepted_in)
) WITH (fillfactor = 70);

CREATE INDEX attempt_quarters_quarter_idx ON attempt_quarters (quarter);

-- The attempts of a day of UTC.
CREATE TABLE attempt_days (
    organization_id uuid NOT NULL,
    provider_account_id uuid NOT NULL,
    day timestamptz NOT NULL,
    recipient_domain text NOT NULL,
    accepted_in smallint NOT NULL,
    attempts bigint NOT NULL,
    accepted bigint NOT NULL,
    rejected bigint NOT NULL,
    deferred bigint NOT NULL,
    PRIMARY KEY (provider_account_id, day, recipient_domain, accepted_in)
) WITH (fillfactor = 70);

CREATE INDEX attempt_days_day_idx ON attempt_days (day);

-- As before, and counts what was put off: each attempt once, however often its recipient's server
-- asks to try again.
CREATE OR REPLACE FUNCTION waypost_count_events() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    has_plain boolean;
    has_first boolean;
    has_deferred boolean;
BEGIN
    SELECT bool_or(event_type IN ('SENT', 'DELIVERED') AND NOT is_counted),
           bool_or(event_type IN ('OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
                   AND NOT is_counted),
           bool_or(event_type = 'DEFERRED')
    INTO has_plain, has_first, has_deferred
    FROM added;
    IF has_deferred THEN
        -- The transaction holds the lock of the recipient, so no other one counts the same attempt.
        INSERT INTO deferral_deltas (organization_id, provider_account_id, quarter, recipient_domain, deferred)
        SELECT d.organization_id, coalesce(s.provider_account_id, d.account::uuid), waypost_quarter(a.occurred_at),
               d.recipient_domain, count(*)
        FROM (SELECT message_id, position, data ->> 'attemptId' AS attempt, min(occurred_at) AS occurred_at
              FROM added
              WHERE event_type = 'DEFERRED'
              GROUP BY 1, 2, 3) a
        CROSS JOIN LATERAL waypost_metric_dimensions(a.message_id, a.position) d
        LEFT JOIN LATERAL (
            SELECT provider_account_id
            FROM send_attempts
            WHERE message_id = a.message_id AND id = a.attempt::uuid
            LIMIT 1
        ) s ON true
        WHERE (SELECT e.id
               FROM events e
               WHERE e.message_id = a.message_id AND e.position = a.position AND e.event_type = 'DEFERRED'
                 AND e.data ->> 'attemptId' IS NOT DISTINCT FROM a.attempt
                 AND (e.message_id, e.id) NOT IN (SELECT message_id, id FROM added)
               LIMIT 1) IS NULL
        GROUP BY 1, 2, 3, 4;
    END IF;
    IF has_plain THEN
        INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, tags, recipient_domain,
                                   sent_in, delivered_in,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT d.organization_id, waypost_quarter(a.occurred_at), d.account, d.domain, d.template, d.tags,
               d.recipient_domain,
               CASE a.event_type WHEN 'SENT' THEN waypost_metric_time(d.accepted_at, a.occurred_at) END,
               CASE a.event_type WHEN 'DELIVERED' THEN waypost_metric_time(d.sent_at, a.occurred_at) END,
               count(*) FILTER (WHERE a.event_type = 'SENT'),
               count(*) FILTER (WHERE a.event_type = 'DELIVERED'),
               0, 0, 0, 0, 0
        FROM added a
        CROSS JOIN LATERAL waypost_metric_dimensions(a.message_id, a.position) d
        WHERE a.event_type IN ('SENT', 'DELIVERED') AND NOT a.is_counted
          AND (a.event_type <> 'SENT'
               OR (SELECT first_sent_at
                   FROM recipients
                   WHERE message_id = a.message_id AND position = a.position
                   LIMIT 1) IS NULL)
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
    END IF;
    IF has_first THEN
        -- Recipients are locked in one order, and by a statement of its own: of two events
        -- that race to be a recipient's first, the second then sees the first.
        PERFORM r.position
        FROM (SELECT DISTINCT message_id, position
              FROM added
              WHERE event_type IN ('OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
                AND NOT is_counted
              ORDER BY message_id, position) a
        CROSS JOIN LATERAL (
            SELECT position
            FROM recipients
            WHERE message_id = a.message_id AND position = a.position
            FOR NO KEY UPDATE
        ) r;
        WITH earliest AS (
            SELECT message_id, position, event_type, min(occurred_at) AS occurred_at
            FROM added
            WHERE event_type IN ('OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
              AND NOT is_counted
              -- Opens and clicks by machines are in the history only.
              AND data -> 'isBot' IS DISTINCT FROM 'true'
            GROUP BY message_id, position, event_type
        ), first AS (
            SELECT e.*, r.before
            FROM earliest e
            CROSS JOIN LATERAL (
                SELECT CASE e.event_type
                       WHEN 'OPENED' THEN opened_at
                       WHEN 'CLICKED' THEN clicked_at
                       WHEN 'BOUNCED' THEN bounced_at
                       WHEN 'COMPLAINED' THEN complained_at
                       ELSE unsubscribed_at
                       END AS before
                FROM recipients
                WHERE message_id = e.message_id AND position = e.position
                LIMIT 1
            ) r
            WHERE r.before IS NULL OR e.occurred_at < r.before
        ), marked AS (
            UPDATE recipients r
            SET opened_at = coalesce(f.opened_at, r.opened_at),
                clicked_at = coalesce(f.clicked_at, r.clicked_at),
                bounced_at = coalesce(f.bounced_at, r.bounced_at),
                complained_at = coalesce(f.complained_at, r.complained_at),
                unsubscribed_at = coalesce(f.unsubscribed_at, r.unsubscribed_at)
            FROM (
                SELECT message_id, position,
                       min(occurred_at) FILTER (WHERE event_type = 'OPENED') AS opened_at,
                       min(occurred_at) FILTER (WHERE event_type = 'CLICKED') AS clicked_at,
                       min(occurred_at) FILTER (WHERE event_type = 'BOUNCED') AS bounced_at,
                       min(occurred_at) FILTER (WHERE event_type = 'COMPLAINED') AS complained_at,
                       min(occurred_at) FILTER (WHERE event_type = 'UNSUBSCRIBED') AS unsubscribed_at
                FROM first
                GROUP BY message_id, position
            ) f
            WHERE r.message_id = f.message_id AND r.position = f.position
              AND r.message_id = ANY(ARRAY(SELECT message_id FROM first))
        ), moves AS (
            SELECT message_id, position, event_type, occurred_at AS at, 1 AS change FROM first
            UNION ALL
            SELECT message_id, position, event_type, before, -1 FROM first WHERE before IS NOT NULL
        ), counted AS (
            SELECT d.organization_id, waypost_quarter(m.at) AS quarter, d.account, d.domain, d.template, d.tags,
                   d.recipient_domain,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'OPENED'), 0) AS opened,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'CLICKED'), 0) AS clicked,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'BOUNCED'), 0) AS bounced,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'COMPLAINED'), 0) AS complained,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'UNSUBSCRIBED'), 0) AS unsubscribed
            FROM moves m
            CROSS JOIN LATERAL waypost_metric_dimensions(m.message_id, m.position) d
            GROUP BY 1, 2, 3, 4, 5, 6, 7
        )
        INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, tags, recipient_domain,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT organization_id, quarter, account, domain, template, tags, recipient_domain,
               0, 0, opened, clicked, bounced, complained, unsubscribed
        FROM counted
        WHERE opened <> 0 OR clicked <> 0 OR bounced <> 0 OR complained <> 0 OR unsubscribed <> 0;
    END IF;
    RETURN NULL;
END
$$;
