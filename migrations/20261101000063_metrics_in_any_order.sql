-- Metrics that come out the same in whatever order events arrive. An open belongs
-- to the hour of the recipient's earliest one, and that may arrive after a later
-- one: then it is counted anew there and taken away from where it was. As before,
-- but for that.
CREATE OR REPLACE FUNCTION waypost_count_events() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF EXISTS (SELECT FROM added
               WHERE event_type IN ('SENT', 'DELIVERED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')) THEN
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
        GROUP BY 1, 2, 3, 4, 5;
    END IF;
    IF EXISTS (SELECT FROM added WHERE event_type IN ('OPENED', 'CLICKED')) THEN
        -- Locked in one order, and by a statement of its own: of two events that
        -- race to be a recipient's first, the second then sees the first.
        PERFORM r.position
        FROM (SELECT DISTINCT message_id, position
              FROM added
              WHERE event_type IN ('OPENED', 'CLICKED')
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
            WHERE event_type IN ('OPENED', 'CLICKED')
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

-- An event whose time is corrected is counted in its new hour and no more in the
-- old one. Only DELIVERED events are: an open stood for the delivery until the
-- provider told when it was.
CREATE FUNCTION waypost_recount_deliveries() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                               sent, delivered, opened, clicked, bounced, complained, unsubscribed)
    SELECT d.organization_id, date_trunc('hour', m.occurred_at, 'UTC'), d.provider, d.domain, d.template,
           0, sum(m.change), 0, 0, 0, 0, 0
    FROM (SELECT message_id, position, occurred_at, 1 AS change FROM after WHERE event_type = 'DELIVERED'
          UNION ALL
          SELECT message_id, position, occurred_at, -1 FROM before WHERE event_type = 'DELIVERED') m
    CROSS JOIN LATERAL waypost_metric_dimensions(m.message_id, m.position) d
    GROUP BY 1, 2, 3, 4, 5
    HAVING sum(m.change) <> 0;
    RETURN NULL;
END
$$;

CREATE TRIGGER recount_deliveries AFTER UPDATE ON events
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_recount_deliveries();
