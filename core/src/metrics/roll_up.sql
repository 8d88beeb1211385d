-- $1 deltas at most, of the organizations of the shard $2 and $3; $4 tags, and recipient domains, of a month are
-- counted on their own.
WITH taken AS (
    -- A second roll-up waits for this one and finds the rows gone. To lock them first would cost 3 µs and 50
    -- bytes of WAL for each.
    DELETE FROM metric_deltas
    WHERE ctid = ANY(ARRAY(SELECT ctid
                           FROM metric_deltas
                           WHERE (uuid_hash(organization_id) & $2) = $3
                           LIMIT $1))
    RETURNING *, date_trunc('month', quarter, 'UTC') AS month
), named AS (
    SELECT organization_id, month, 'TAG'::metric_dimension AS grouped_by, tag AS key
    FROM taken
    CROSS JOIN LATERAL unnest(tags) tag
    UNION
    SELECT organization_id, month, 'RECIPIENT_DOMAIN', recipient_domain
    FROM taken
    WHERE recipient_domain <> ''
), unknown AS (
    SELECT n.*, row_number() OVER (PARTITION BY organization_id, month, grouped_by ORDER BY key) AS nth
    FROM named n
    WHERE NOT EXISTS (
        SELECT
        FROM metric_keys k
        WHERE k.organization_id = n.organization_id AND k.month = n.month AND k.grouped_by = n.grouped_by
          AND k.key = n.key)
), listed AS (
    INSERT INTO metric_keys (organization_id, month, grouped_by, key)
    SELECT organization_id, month, grouped_by, key
    FROM unknown u
    WHERE nth + (SELECT count(*)
                 FROM metric_keys k
                 WHERE k.organization_id = u.organization_id AND k.month = u.month
                   AND k.grouped_by = u.grouped_by) <= $4
    ORDER BY organization_id, month, grouped_by, key
    -- Another roll-up may have met it at the same time.
    ON CONFLICT (organization_id, month, grouped_by, key) DO UPDATE
    SET key = EXCLUDED.key
    RETURNING organization_id, month, grouped_by, key
), others AS (
    SELECT organization_id, month, grouped_by, key
    FROM unknown
    EXCEPT
    SELECT organization_id, month, grouped_by, key
    FROM listed
), kept AS (
    SELECT t.*,
           CASE WHEN EXISTS (SELECT
                             FROM others o
                             WHERE o.organization_id = t.organization_id AND o.month = t.month
                               AND o.grouped_by = 'RECIPIENT_DOMAIN' AND o.key = t.recipient_domain)
                THEN '(other)'
                ELSE t.recipient_domain END AS kept_domain,
           CASE WHEN EXISTS (SELECT
                             FROM others o
                             WHERE o.organization_id = t.organization_id AND o.month = t.month
                               AND o.grouped_by = 'TAG' AND o.key = ANY(t.tags))
                THEN ARRAY(SELECT DISTINCT coalesce((SELECT '(other)'
                                                     FROM others o
                                                     WHERE o.organization_id = t.organization_id
                                                       AND o.month = t.month AND o.grouped_by = 'TAG'
                                                       AND o.key = tag), tag)
                           FROM unnest(t.tags) tag)
                ELSE t.tags END AS kept_tags
    FROM taken t
), counted AS (
    -- The columns of metric_deltas, in its order.
    SELECT organization_id, quarter, account, domain, template, sum(sent)::bigint AS sent,
           sum(delivered)::bigint AS delivered, sum(opened)::bigint AS opened, sum(clicked)::bigint AS clicked,
           sum(bounced)::bigint AS bounced, sum(complained)::bigint AS complained,
           sum(unsubscribed)::bigint AS unsubscribed, kept_tags AS tags, kept_domain AS recipient_domain, sent_in,
           delivered_in
    FROM kept
    GROUP BY organization_id, quarter, account, domain, template, kept_tags, kept_domain, sent_in, delivered_in
), summed AS (
    SELECT c.organization_id, p.filter, f.key AS filter_key, p.grouped_by, c.quarter, g.key, sum(c.sent) AS sent,
           sum(c.delivered) AS delivered, sum(c.opened) AS opened, sum(c.clicked) AS clicked,
           sum(c.bounced) AS bounced, sum(c.complained) AS complained, sum(c.unsubscribed) AS unsubscribed
    FROM counted c
    CROSS JOIN metric_pairs p
    CROSS JOIN LATERAL unnest(waypost_metric_keys(ROW(c.*)::metric_deltas, p.filter)) f (key)
    CROSS JOIN LATERAL unnest(waypost_metric_keys(ROW(c.*)::metric_deltas, p.grouped_by)) g (key)
    WHERE (p.filter = 'TOTAL' OR f.key <> '') AND g.key IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5, 6
), rolled_up AS (
    INSERT INTO metric_rollups (organization_id, filter, filter_key, grouped_by, quarter, key, sent, delivered,
                                opened, clicked, bounced, complained, unsubscribed)
    SELECT *
    FROM summed
    -- Simultaneous roll-ups lock the rows in the same order.
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (organization_id, filter, filter_key, grouped_by, quarter, key) DO UPDATE
    SET sent = metric_rollups.sent + EXCLUDED.sent,
        delivered = metric_rollups.delivered + EXCLUDED.delivered,
        opened = metric_rollups.opened + EXCLUDED.opened,
        clicked = metric_rollups.clicked + EXCLUDED.clicked,
        bounced = metric_rollups.bounced + EXCLUDED.bounced,
        complained = metric_rollups.complained + EXCLUDED.complained,
        unsubscribed = metric_rollups.unsubscribed + EXCLUDED.unsubscribed
), rolled_up_by_day AS (
    INSERT INTO metric_days (organization_id, filter, filter_key, grouped_by, day, key, sent, delivered, opened,
                             clicked, bounced, complained, unsubscribed)
    SELECT organization_id, filter, filter_key, grouped_by, date_trunc('day', quarter, 'UTC'), key, sum(sent),
           sum(delivered), sum(opened), sum(clicked), sum(bounced), sum(complained), sum(unsubscribed)
    FROM summed
    GROUP BY 1, 2, 3, 4, 5, 6
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (organization_id, filter, filter_key, grouped_by, day, key) DO UPDATE
    SET sent = metric_days.sent + EXCLUDED.sent,
        delivered = metric_days.delivered + EXCLUDED.delivered,
        opened = metric_days.opened + EXCLUDED.opened,
        clicked = metric_days.clicked + EXCLUDED.clicked,
        bounced = metric_days.bounced + EXCLUDED.bounced,
        complained = metric_days.complained + EXCLUDED.complained,
        unsubscribed = metric_days.unsubscribed + EXCLUDED.unsubscribed
)
SELECT count(*) AS "taken!" FROM taken
