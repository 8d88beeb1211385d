-- Who records what providers tell knows what each copy was and what it becomes, and so
-- counts it itself, first opens and clicks too; the trigger leaves those alone. As before,
-- but for that.
CREATE OR REPLACE FUNCTION waypost_count_events() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    has_plain boolean;
    has_first boolean;
BEGIN
    SELECT bool_or(event_type IN ('SENT', 'DELIVERED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
                   AND NOT counts_itself),
           bool_or(event_type IN ('OPENED', 'CLICKED') AND NOT counts_itself)
    INTO has_plain, has_first
    FROM added;
    IF has_plain THEN
        INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT d.organization_id, date_trunc('hour', a.occurred_at, 'UTC'), d.provider, d.domain, d.template,
               count(*) FILTER (WHERE a.event_type = 'SENT'),
               count(*) FILTER (WHERE a.event_type = 'DELIVERED'),
               0, 0,
               count(*) FILTER (WHERE a.event_type = 'BOUNCED'),
               count(*) FILTER (WHERE a.event_type = 'COMPLAINED'),
               count(*) FILTER (WHERE a.event_type = 'UNSUBSCRIBED')
        FROM added a
        CROSS JOIN LATERAL waypost_metric_dimensions(a.message_id, a.position) d
        WHERE a.event_type IN ('SENT', 'DELIVERED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
          AND NOT a.counts_itself
        GROUP BY 1, 2, 3, 4, 5;
    END IF;
    IF has_first THEN
        -- Locked in one order, and by a statement of its own: of two events that
        -- race to be a recipient's first, the second then sees the first.
        PERFORM r.position
        FROM (SELECT DISTINCT message_id, position
              FROM added
              WHERE event_type IN ('OPENED', 'CLICKED') AND NOT counts_itself
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
            WHERE event_type IN ('OPENED', 'CLICKED') AND NOT counts_itself
              -- Machines that open and follow links are in the history only.
              AND data -> 'isBot' IS DISTINCT FROM 'true'
            GROUP BY message_id, position, event_type
        ), first AS (
            SELECT e.*, r.before
            FROM earliest e
            CROSS JOIN LATERAL (
                SELECT CASE e.event_type WHEN 'OPENED' THEN opened_at ELSE clicked_at END AS before
                FROM recipients
                WHERE message_id = e.message_id AND position = e.position
                LIMIT 1
            ) r
            WHERE r.before IS NULL OR e.occurred_at < r.before
        ), marked AS (
            UPDATE recipients r
            SET opened_at = coalesce(f.opened_at, r.opened_at),
                clicked_at = coalesce(f.clicked_at, r.clicked_at)
            FROM (
                SELECT message_id, position,
                       min(occurred_at) FILTER (WHERE event_type = 'OPENED') AS opened_at,
                       min(occurred_at) FILTER (WHERE event_type = 'CLICKED') AS clicked_at
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
                   coalesce(sum(m.change) FILTER (WHERE m.event_type = 'CLICKED'), 0) AS clicked
            FROM moves m
            CROSS JOIN LATERAL waypost_metric_dimensions(m.message_id, m.position) d
            GROUP BY 1, 2, 3, 4, 5
        )
        INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT organization_id, hour, provider, domain, template, 0, 0, opened, clicked, 0, 0, 0
        FROM counted
        WHERE opened <> 0 OR clicked <> 0;
    END IF;
    RETURN NULL;
END
$$;
