-- Metrics. Every event that metrics show writes a delta in its own transaction: a
-- trigger does, so that no code path and no operator's SQL can forget to. The
-- scheduler folds deltas into hourly roll-ups; a query reads both.

CREATE TYPE metric_dimension AS ENUM ('TOTAL', 'PROVIDER', 'DOMAIN', 'TEMPLATE');

-- What happened to the messages of one organization in one hour, with one value of
-- each dimension. Rows live until the next folding.
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

-- Kept once per dimension, so that a query reads only the rows of its own.
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

-- Opens and clicks count each recipient once per message: the first ones are marked
-- here, and only they become deltas.
ALTER TABLE recipients
    ADD COLUMN opened_at timestamptz,
    ADD COLUMN clicked_at timestamptz;

-- Which provider an account was at. Events still come when the account is gone.
CREATE TABLE provider_account_types (
    provider_account_id uuid PRIMARY KEY,
    provider_type provider_type NOT NULL
);

CREATE FUNCTION waypost_remember_account_type() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO provider_account_types (provider_account_id, provider_type)
    VALUES (NEW.id, NEW.provider_type)
    ON CONFLICT (provider_account_id) DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER remember_account_type AFTER INSERT ON provider_accounts
    FOR EACH ROW EXECUTE FUNCTION waypost_remember_account_type();

INSERT INTO provider_account_types (provider_account_id, provider_type)
SELECT id, provider_type FROM provider_accounts;

-- The values of the dimensions for one copy of a message. Each look-up has a limit,
-- so that it stays one by primary key, whatever the planner believes of tables that
-- have just grown.
CREATE FUNCTION waypost_metric_dimensions(message uuid, place integer)
RETURNS TABLE (organization_id uuid, provider text, domain text, template text)
LANGUAGE sql STABLE
AS $$
    SELECT m.organization_id, coalesce(p.provider_type::text, 'UNKNOWN'),
           lower(split_part(m.from_address, '@', -1)), coalesce(m.template_id::text, '')
    FROM (SELECT * FROM messages WHERE id = message LIMIT 1) m
    -- The account that the copy went through, which a failover may have changed.
    LEFT JOIN LATERAL (
        SELECT provider_account_id
        FROM recipients
        WHERE message_id = message AND position = place
        LIMIT 1
    ) r ON true
    LEFT JOIN LATERAL (
        SELECT provider_type
        FROM provider_account_types
        WHERE provider_account_id = coalesce(r.provider_account_id, m.provider_account_id)
        LIMIT 1
    ) p ON true
$$;

CREATE FUNCTION waypost_count_events() RETURNS trigger
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
        WITH first AS (
            SELECT DISTINCT ON (a.message_id, a.position, a.event_type)
                   a.message_id, a.position, a.event_type, a.occurred_at
            FROM added a
            CROSS JOIN LATERAL (
                SELECT opened_at, clicked_at
                FROM recipients
                WHERE message_id = a.message_id AND position = a.position
                LIMIT 1
            ) r
            WHERE CASE a.event_type WHEN 'OPENED' THEN r.opened_at IS NULL
                                    WHEN 'CLICKED' THEN r.clicked_at IS NULL END
              -- Machines that open and follow links are in the history only.
              AND a.data -> 'isBot' IS DISTINCT FROM 'true'
            ORDER BY a.message_id, a.position, a.event_type, a.occurred_at
        ), marked AS (
            UPDATE recipients r
            SET opened_at = coalesce(r.opened_at, f.opened_at),
                clicked_at = coalesce(r.clicked_at, f.clicked_at)
            FROM (
                SELECT message_id, position,
                       min(occurred_at) FILTER (WHERE event_type = 'OPENED') AS opened_at,
                       min(occurred_at) FILTER (WHERE event_type = 'CLICKED') AS clicked_at
                FROM first
                GROUP BY message_id, position
            ) f
            WHERE r.message_id = f.message_id AND r.position = f.position
              AND r.message_id = ANY(ARRAY(SELECT message_id FROM first))
        )
        INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                                   sent, delivered, opened, clicked, bounced, complained, unsubscribed)
        SELECT d.organization_id, date_trunc('hour', f.occurred_at, 'UTC'), d.provider, d.domain, d.template,
               0, 0,
               count(*) FILTER (WHERE f.event_type = 'OPENED'),
               count(*) FILTER (WHERE f.event_type = 'CLICKED'),
               0, 0, 0
        FROM first f
        CROSS JOIN LATERAL waypost_metric_dimensions(f.message_id, f.position) d
        GROUP BY 1, 2, 3, 4, 5;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER count_events AFTER INSERT ON events
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_count_events();

-- What happened before. Making the trigger locked the table until this migration
-- is committed, so nothing is counted twice or left out.
INSERT INTO metric_deltas (organization_id, hour, provider, domain, template,
                           sent, delivered, opened, clicked, bounced, complained, unsubscribed)
SELECT d.organization_id, date_trunc('hour', e.occurred_at, 'UTC'), d.provider, d.domain, d.template,
       count(*) FILTER (WHERE e.event_type = 'SENT'),
       count(*) FILTER (WHERE e.event_type = 'DELIVERED'),
       0, 0,
       count(*) FILTER (WHERE e.event_type = 'BOUNCED'),
       count(*) FILTER (WHERE e.event_type = 'COMPLAINED'),
       count(*) FILTER (WHERE e.event_type = 'UNSUBSCRIBED')
FROM events e
CROSS JOIN LATERAL waypost_metric_dimensions(e.message_id, e.position) d
WHERE e.event_type IN ('SENT', 'DELIVERED', 'BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')
GROUP BY 1, 2, 3, 4, 5;
