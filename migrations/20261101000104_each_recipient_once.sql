-- Each recipient counts once for each type of event, however many copies were sent: an
-- answer that was lost and a call made again may leave two that arrive. The first of what
-- may be told several times is marked on the recipient, as opens and clicks are.
--
-- Whoever cannot have the table soon gives up, and is run again: sends wait behind it.
-- Nobody makes partitions meanwhile, who locks it in another order.
SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));
ALTER TABLE recipients
    -- When it was sent before its owner had it tried again: it has counted as sent.
    ADD COLUMN first_sent_at timestamptz,
    ADD COLUMN bounced_at timestamptz,
    ADD COLUMN complained_at timestamptz,
    ADD COLUMN unsubscribed_at timestamptz;

CREATE OR REPLACE FUNCTION waypost_count_events() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    has_plain boolean;
    has_first boolean;
BEGIN
    SELECT bool_or(event_type IN ('SENT', 'DELIVERED') AND NOT counts_itself),
           bool_or(event_type IN ('OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
                   AND NOT counts_itself)
    INTO has_plain, has_first
    FROM added;
    IF has_plain THEN
        INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT d.organization_id, date_trunc('hour', a.occurred_at, 'UTC'), d.provider, d.domain, d.template,
               count(*) FILTER (WHERE a.event_type = 'SENT'),
               count(*) FILTER (WHERE a.event_type = 'DELIVERED'),
               0, 0, 0, 0, 0
        FROM added a
        CROSS JOIN LATERAL waypost_metric_dimensions(a.message_id, a.position) d
        WHERE a.event_type IN ('SENT', 'DELIVERED') AND NOT a.counts_itself
          AND (a.event_type <> 'SENT'
               OR (SELECT first_sent_at
                   FROM recipients
                   WHERE message_id = a.message_id AND position = a.position
                   LIMIT 1) IS NULL)
        GROUP BY 1, 2, 3, 4, 5;
    END IF;
    IF has_first THEN
        -- Locked in one order, and by a statement of its own: of two events that
        -- race to be a recipient's first, the second then sees the first.
        PERFORM r.position
        FROM (SELECT DISTINCT message_id, position
              FROM added
              WHERE event_type IN ('OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
                AND NOT counts_itself
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
              AND NOT counts_itself
              -- Machines that open and follow links are in the history only.
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
            SELECT d.organization_id, date_trunc('hour', m.at, 'UTC') AS hour, d.provider, d.domain, d.template,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'OPENED'), 0) AS opened,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'CLICKED'), 0) AS clicked,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'BOUNCED'), 0) AS bounced,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'COMPLAINED'), 0) AS complained,
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'UNSUBSCRIBED'), 0) AS unsubscribed
            FROM moves m
            CROSS JOIN LATERAL waypost_metric_dimensions(m.message_id, m.position) d
            GROUP BY 1, 2, 3, 4, 5
        )
        INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT organization_id, hour, provider, domain, template, 0, 0, opened, clicked, bounced, complained,
               unsubscribed
        FROM counted
        WHERE opened <> 0 OR clicked <> 0 OR bounced <> 0 OR complained <> 0 OR unsubscribed <> 0;
    END IF;
    RETURN NULL;
END
$$;
