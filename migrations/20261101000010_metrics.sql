-- Metrics: how many mails were sent, delivered, opened and so on, by hour and by day.
--
-- Every event that metrics show writes a delta in its own transaction. The scheduler folds
-- deltas into roll-ups. A query reads both, so it is exact at any moment, and no row is hot.

CREATE TYPE metric_dimension AS ENUM ('TOTAL', 'PROVIDER', 'DOMAIN', 'TEMPLATE');

-- What happened to the messages of one organization in one hour, with one value of each
-- dimension. Rows live until they are folded.
CREATE TABLE metric_deltas (
    organization_id uuid NOT NULL,
    -- The hour of the events' own time.
    hour timestamptz NOT NULL,
    provider text NOT NULL,
    domain text NOT NULL,
    -- The template's id; empty where there was none.
    template text NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    opened bigint NOT NULL,
    clicked bigint NOT NULL,
    bounced bigint NOT NULL,
    complained bigint NOT NULL,
    unsubscribed bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX metric_deltas_organization_idx ON metric_deltas (organization_id);

-- The sums of an hour, once for each dimension, so that a query reads only the rows of its
-- own.
CREATE TABLE metric_rollups (
    organization_id uuid NOT NULL,
    dimension metric_dimension NOT NULL,
    hour timestamptz NOT NULL,
    -- The value of the dimension; empty for TOTAL.
    key text NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    opened bigint NOT NULL,
    clicked bigint NOT NULL,
    bounced bigint NOT NULL,
    complained bigint NOT NULL,
    unsubscribed bigint NOT NULL,
    PRIMARY KEY (organization_id, dimension, hour, key)
) WITH (fillfactor = 70);

-- The sums of a day. A breakdown by template would otherwise read a row for every template
-- and hour of its period.
CREATE TABLE metric_days (
    organization_id uuid NOT NULL,
    -- All but TOTAL, which is read by the hour.
    dimension metric_dimension NOT NULL,
    -- When the day begins, in UTC.
    day timestamptz NOT NULL,
    key text NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    opened bigint NOT NULL,
    clicked bigint NOT NULL,
    bounced bigint NOT NULL,
    complained bigint NOT NULL,
    unsubscribed bigint NOT NULL,
    PRIMARY KEY (organization_id, dimension, day, key)
) WITH (fillfactor = 70);

-- The sender domain, as metrics show it.
CREATE FUNCTION waypost_metric_domain(from_address text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT lower(split_part(from_address, '@', -1))
$$;

-- The provider of an account, as metrics show it. It returns a table, since PostgreSQL inlines
-- such a function; one that returns a value is inlined only where it reads no table.
CREATE FUNCTION waypost_metric_provider(account uuid) RETURNS TABLE (provider text)
LANGUAGE sql STABLE
AS $$
    SELECT coalesce((SELECT provider_type::text
                     FROM provider_account_types
                     WHERE provider_account_id = account
                     LIMIT 1), 'UNKNOWN')
$$;

-- The values of the dimensions for one recipient of a message. Each look-up has a LIMIT, so
-- that it uses the primary key, whatever the planner believes of tables that have just grown.
CREATE FUNCTION waypost_metric_dimensions(message uuid, place integer)
RETURNS TABLE (organization_id uuid, provider text, domain text, template text)
LANGUAGE sql STABLE
AS $$
    SELECT m.organization_id, p.provider, waypost_metric_domain(m.from_address), coalesce(m.template_id::text, '')
    FROM (SELECT * FROM messages WHERE id = message LIMIT 1) m
    -- The account that the recipient's mail went through: a failover may have changed it.
    LEFT JOIN LATERAL (
        SELECT provider_account_id
        FROM recipients
        WHERE message_id = message AND position = place
        LIMIT 1
    ) r ON true
    CROSS JOIN LATERAL waypost_metric_provider(coalesce(r.provider_account_id, m.provider_account_id)) p
$$;

-- Counts events that do not count themselves (events.is_counted), so that no code path and
-- no SQL of an operator can leave one out.
--
-- Opens, clicks, bounces, complaints and unsubscribes count each recipient once, in the hour of
-- the earliest event. Events arrive in any order: where an earlier one arrives late, it is
-- counted in its hour and subtracted from the other. So a mail that arrived twice, because an
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
        INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT d.organization_id, date_trunc('hour', a.occurred_at, 'UTC'), d.provider, d.domain, d.template,
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
        GROUP BY 1, 2, 3, 4, 5;
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

CREATE TRIGGER count_events AFTER INSERT ON events
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_count_events();

-- Moves an event whose time was corrected to its new hour. Only DELIVERED events are
-- corrected: an open implies the delivery until the provider reports when it was.
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
