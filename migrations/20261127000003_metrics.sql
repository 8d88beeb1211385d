-- Metrics by account, tag and recipient domain, of one tag, account or template, with how long
-- accepting to sending and sending to delivery took. Counted by quarters of an hour, since time
-- zones differ by quarters.

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

ALTER TABLE recipients
    -- The domain of the address, in lower case; NULL if it was erased, and of recipients that
    -- were accepted before the column existed.
    ADD COLUMN domain text;

-- Nothing has been released with this type: no API of a version before runs.
ALTER TYPE new_recipient
    ADD ATTRIBUTE domain text;

DROP TRIGGER count_events ON events;
DROP TRIGGER recount_deliveries ON events;
DROP FUNCTION waypost_count_events();
DROP FUNCTION waypost_recount_deliveries();
DROP FUNCTION waypost_metric_dimensions(uuid, integer);
DROP FUNCTION waypost_metric_provider(uuid);

ALTER TABLE metric_deltas RENAME COLUMN hour TO quarter;
-- The account's id. Of counts made before accounts were told apart: the type of its provider.
ALTER TABLE metric_deltas RENAME COLUMN provider TO account;
ALTER TABLE metric_deltas
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}',
    -- Empty where it is not known.
    ADD COLUMN recipient_domain text NOT NULL DEFAULT '',
    -- waypost_metric_time of what is counted as sent, from acceptance.
    ADD COLUMN sent_in smallint,
    -- waypost_metric_time of what is counted as delivered, from sending.
    ADD COLUMN delivered_in smallint;

ALTER TABLE metric_rollups RENAME TO old_rollups;
ALTER TABLE metric_days RENAME TO old_days;
ALTER TABLE old_rollups RENAME CONSTRAINT metric_rollups_pkey TO old_rollups_pkey;
ALTER TABLE old_days RENAME CONSTRAINT metric_days_pkey TO old_days_pkey;
ALTER TYPE metric_dimension RENAME TO old_dimension;

-- By what recipients are told apart. ACCEPT_TO_SENT counts as sent, and SENT_TO_DELIVERED as
-- delivered, by waypost_metric_time.
CREATE TYPE metric_dimension AS ENUM ('TOTAL', 'ACCOUNT', 'DOMAIN', 'RECIPIENT_DOMAIN', 'TAG', 'TEMPLATE',
                                      'ACCEPT_TO_SENT', 'SENT_TO_DELIVERED');

-- The pairs of which there are roll-ups: of the messages that have one value of the first
-- dimension, or of all of them, the numbers by the second.
CREATE TABLE metric_pairs (
    filter metric_dimension NOT NULL,
    grouped_by metric_dimension NOT NULL,
    PRIMARY KEY (filter, grouped_by)
);
INSERT INTO metric_pairs
VALUES ('TOTAL', 'TOTAL'), ('TOTAL', 'ACCOUNT'), ('TOTAL', 'DOMAIN'), ('TOTAL', 'RECIPIENT_DOMAIN'),
       ('TOTAL', 'TAG'), ('TOTAL', 'TEMPLATE'),
       ('ACCOUNT', 'TOTAL'), ('ACCOUNT', 'DOMAIN'), ('ACCOUNT', 'RECIPIENT_DOMAIN'), ('ACCOUNT', 'TAG'),
       ('ACCOUNT', 'TEMPLATE'), ('ACCOUNT', 'ACCEPT_TO_SENT'), ('ACCOUNT', 'SENT_TO_DELIVERED'),
       ('TAG', 'TOTAL'), ('TAG', 'ACCOUNT'), ('TAG', 'DOMAIN'), ('TAG', 'TEMPLATE'),
       ('TEMPLATE', 'TOTAL'), ('TEMPLATE', 'ACCOUNT'), ('TEMPLATE', 'DOMAIN'), ('TEMPLATE', 'TAG');

-- The sums of a quarter of an hour. The key begins with what a query names, so that it reads
-- only the rows of its own.
CREATE TABLE metric_rollups (
    organization_id uuid NOT NULL,
    filter metric_dimension NOT NULL,
    -- Its value: the id of the account or template, or the tag; empty for TOTAL.
    filter_key text NOT NULL,
    grouped_by metric_dimension NOT NULL,
    quarter timestamptz NOT NULL,
    -- The value by which it is grouped; empty for TOTAL.
    key text NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    opened bigint NOT NULL,
    clicked bigint NOT NULL,
    bounced bigint NOT NULL,
    complained bigint NOT NULL,
    unsubscribed bigint NOT NULL,
    PRIMARY KEY (organization_id, filter, filter_key, grouped_by, quarter, key)
) WITH (fillfactor = 70);

-- The sums of a day of UTC.
CREATE TABLE metric_days (
    organization_id uuid NOT NULL,
    filter metric_dimension NOT NULL,
    filter_key text NOT NULL,
    grouped_by metric_dimension NOT NULL,
    day timestamptz NOT NULL,
    key text NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    opened bigint NOT NULL,
    clicked bigint NOT NULL,
    bounced bigint NOT NULL,
    complained bigint NOT NULL,
    unsubscribed bigint NOT NULL,
    PRIMARY KEY (organization_id, filter, filter_key, grouped_by, day, key)
) WITH (fillfactor = 70);

-- The tags and recipient domains that have sums of their own in a month of UTC: the first that
-- the scheduler meets, up to a number. The others are counted together as `(other)`.
CREATE TABLE metric_keys (
    organization_id uuid NOT NULL,
    month timestamptz NOT NULL,
    grouped_by metric_dimension NOT NULL,
    key text NOT NULL,
    PRIMARY KEY (organization_id, month, grouped_by, key)
);

INSERT INTO metric_rollups
SELECT organization_id, 'TOTAL', '',
       CASE dimension WHEN 'PROVIDER' THEN 'ACCOUNT' ELSE dimension::text END::metric_dimension,
       hour, key, sent, delivered, opened, clicked, bounced, complained, unsubscribed
FROM old_rollups;
INSERT INTO metric_days
SELECT organization_id, filter, filter_key, grouped_by, date_trunc('day', quarter, 'UTC'), key,
       sum(sent), sum(delivered), sum(opened), sum(clicked), sum(bounced), sum(complained), sum(unsubscribed)
FROM metric_rollups
GROUP BY 1, 2, 3, 4, 5, 6;
DROP TABLE old_rollups, old_days;
DROP TYPE old_dimension;

-- The quarter of an hour of a time.
CREATE FUNCTION waypost_quarter(at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT date_bin('15 minutes', at, '2000-01-01 00:00:00+00')
$$;

-- How long something took, as the number of a step: four steps double it, and step 0 begins at
-- one millisecond.
CREATE FUNCTION waypost_metric_time(since timestamptz, at timestamptz) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT floor(4 * ln(greatest(extract(epoch FROM at - since)::float8 * 1000, 1)) / ln(2::float8))::smallint
$$;

-- The values of a delta in a dimension. Without a template, and without a tag, it is the empty text.
CREATE FUNCTION waypost_metric_keys(delta metric_deltas, dimension metric_dimension) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE dimension
           WHEN 'TOTAL' THEN ARRAY['']
           WHEN 'ACCOUNT' THEN ARRAY[delta.account]
           WHEN 'DOMAIN' THEN ARRAY[delta.domain]
           WHEN 'RECIPIENT_DOMAIN' THEN ARRAY[delta.recipient_domain]
           WHEN 'TAG' THEN CASE WHEN delta.tags = '{}' THEN ARRAY[''] ELSE delta.tags END
           WHEN 'TEMPLATE' THEN ARRAY[delta.template]
           WHEN 'ACCEPT_TO_SENT' THEN ARRAY[delta.sent_in::text]
           WHEN 'SENT_TO_DELIVERED' THEN ARRAY[delta.delivered_in::text]
           END
$$;

-- What is counted from `first` until before `last`. Whole days of UTC, from `first_day` until before
-- `last_day`, are read by the day.
CREATE FUNCTION waypost_metrics(organization uuid, filtered metric_dimension, of_key text, by_group metric_dimension,
                                first timestamptz, last timestamptz, first_day timestamptz, last_day timestamptz)
RETURNS TABLE (at timestamptz, key text, sent bigint, delivered bigint, opened bigint, clicked bigint,
               bounced bigint, complained bigint, unsubscribed bigint)
LANGUAGE sql STABLE
AS $$
    SELECT day, key, sent, delivered, opened, clicked, bounced, complained, unsubscribed
    FROM metric_days
    WHERE organization_id = organization AND filter = filtered AND filter_key = of_key AND grouped_by = by_group
      AND day >= first_day AND day < last_day
    UNION ALL
    SELECT quarter, key, sent, delivered, opened, clicked, bounced, complained, unsubscribed
    FROM metric_rollups
    WHERE organization_id = organization AND filter = filtered AND filter_key = of_key AND grouped_by = by_group
      AND quarter >= first AND quarter < first_day
    UNION ALL
    SELECT quarter, key, sent, delivered, opened, clicked, bounced, complained, unsubscribed
    FROM metric_rollups
    WHERE organization_id = organization AND filter = filtered AND filter_key = of_key AND grouped_by = by_group
      AND quarter >= last_day AND quarter < last
    UNION ALL
    SELECT d.quarter, k.key, d.sent, d.delivered, d.opened, d.clicked, d.bounced, d.complained, d.unsubscribed
    FROM metric_deltas d
    CROSS JOIN LATERAL unnest(waypost_metric_keys(d, by_group)) k (key)
    WHERE d.organization_id = organization AND d.quarter >= first AND d.quarter < last
      AND of_key = ANY(waypost_metric_keys(d, filtered)) AND k.key IS NOT NULL
$$;

-- The values of a delta for one recipient of a message, and the times from which `sent_in` and
-- `delivered_in` count; no row for a test, which counts nowhere. Each look-up has a LIMIT, so
-- that it uses the primary key, whatever the planner believes of tables that have just grown.
CREATE FUNCTION waypost_metric_dimensions(message uuid, place integer)
RETURNS TABLE (organization_id uuid, account text, domain text, template text, tags text[], recipient_domain text,
               accepted_at timestamptz, sent_at timestamptz)
LANGUAGE sql STABLE
AS $$
    -- The account that the recipient's mail went through: a failover may have changed it.
    SELECT m.organization_id, coalesce(r.provider_account_id, m.provider_account_id)::text,
           waypost_metric_domain(m.from_address), coalesce(m.template_id::text, ''), m.tags, coalesce(r.domain, ''),
           greatest(m.created_at, m.scheduled_at), r.sent_at
    FROM (SELECT * FROM messages WHERE id = message LIMIT 1) m
    LEFT JOIN LATERAL (
        SELECT provider_account_id, domain, sent_at
        FROM recipients
        WHERE message_id = message AND position = place
        LIMIT 1
    ) r ON true
    WHERE NOT m.is_test
$$;

-- Counts events that do not count themselves (events.is_counted), so that no code path and
-- no SQL of an operator can leave one out.
--
-- Opens, clicks, bounces, complaints and unsubscribes count each recipient once, at the time of
-- the earliest event. Events arrive in any order: where an earlier one arrives late, it is
-- counted at its time and subtracted from the other. So a mail that arrived twice, because an
-- answer was lost and the call was repeated, counts once. A message that was sent, failed and
-- was retried by its customer counts as sent once.
CREATE FUNCTION waypost_count_events() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    has_plain boolean;
    has_first boolean;
BEGIN
    SELECT bool_or(event_type IN ('SENT', 'DELIVERED') AND NOT is_counted),
           bool_or(event_type IN ('OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
                   AND NOT is_counted)
    INTO has_plain, has_first
    FROM added;
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

CREATE TRIGGER count_events AFTER INSERT ON events
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_count_events();

-- Moves an event whose time was corrected to its new time. Only DELIVERED events are
-- corrected: an open implies the delivery until the provider reports when it was.
CREATE FUNCTION waypost_recount_deliveries() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, tags, recipient_domain,
                               delivered_in, sent, delivered, opened, clicked, bounced, complained, unsubscribed)
    SELECT d.organization_id, waypost_quarter(m.occurred_at), d.account, d.domain, d.template, d.tags,
           d.recipient_domain, waypost_metric_time(d.sent_at, m.occurred_at), 0, sum(m.change), 0, 0, 0, 0, 0
    FROM (SELECT message_id, position, occurred_at, 1 AS change FROM after WHERE event_type = 'DELIVERED'
          UNION ALL
          SELECT message_id, position, occurred_at, -1 FROM before WHERE event_type = 'DELIVERED') m
    CROSS JOIN LATERAL waypost_metric_dimensions(m.message_id, m.position) d
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
    HAVING sum(m.change) <> 0;
    RETURN NULL;
END
$$;

CREATE TRIGGER recount_deliveries AFTER UPDATE ON events
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_recount_deliveries();
