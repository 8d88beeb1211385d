-- Further types of events for webhooks, about an organization and not about a message, and
-- endpoints that filter by tag.
--
-- An endpoint gets a further type only if its `events` name it. No other endpoint costs
-- anything: nothing is written for an organization that has none.

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

-- The values are in this file, and not in one of their own, because nothing that runs in its
-- transaction uses them: the functions below get them as text.
ALTER TYPE event_type ADD VALUE 'SUPPRESSION_CREATED';
ALTER TYPE event_type ADD VALUE 'SUPPRESSION_REMOVED';
ALTER TYPE event_type ADD VALUE 'DOMAIN_VERIFIED';
ALTER TYPE event_type ADD VALUE 'DOMAIN_BROKEN';
ALTER TYPE event_type ADD VALUE 'PROVIDER_FAILING';
ALTER TYPE event_type ADD VALUE 'PROVIDER_RECOVERED';
ALTER TYPE event_type ADD VALUE 'WEBHOOK_ENDPOINT_DISABLED';

-- An event of a message goes to the endpoint only if the message has one of these tags; with no
-- tags, every event does.
ALTER TABLE webhook_endpoints
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}';

-- What an event without a message says. NULL for an event of a message, whose payload is read
-- from its event. An event without a message is stored only here, and its own id stands in
-- `message_id`, so that the delivery goes with its month.
ALTER TABLE webhook_deliveries
    ADD COLUMN content jsonb;

-- A new UUIDv7 of a moment in whole milliseconds.
CREATE FUNCTION waypost_uuid_new(at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE
AS $$
    SELECT (left(waypost_uuid_floor(at)::text, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid
$$;

-- Notifies the workers of endpoints with new deliveries, where they need it. Transactions that
-- notify commit one after the other. A worker polls an endpoint under load anyway, and a paused
-- endpoint is not called.
CREATE FUNCTION waypost_notify_endpoints(owed uuid[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_notify('waypost_webhooks', 'due ' || id)
    FROM webhook_endpoints
    WHERE id = ANY(owed) AND (polled_until IS NULL OR polled_until < clock_timestamp())
      AND (paused_until IS NULL OR paused_until < clock_timestamp());
END
$$;

-- As before, but for the tags of endpoints.
CREATE OR REPLACE FUNCTION waypost_insert_webhook_deliveries() RETURNS trigger
LANGUAGE plpgsql
-- Endpoints are found by index, whatever the planner believes of tables that have just grown.
SET enable_seqscan = off
AS $$
DECLARE
    owed uuid[];
BEGIN
    -- Most organizations have no endpoint for these types. That must cost next to nothing.
    IF NOT EXISTS (SELECT
                   FROM webhook_endpoints
                   WHERE is_active AND organization_id = ANY(ARRAY(SELECT organization_id FROM added))
                     AND events && ARRAY(SELECT event_type FROM added)) THEN
        RETURN NULL;
    END IF;
    WITH delivery AS (
        INSERT INTO webhook_deliveries (message_id, id, organization_id, webhook_endpoint_id, event_id,
                                        event_type, position, status, next_attempt_at, created_at)
        SELECT a.message_id,
               -- A UUIDv7 of the event's time, so that lists by id are in order.
               (t.beginning || substr(gen_random_uuid()::text, 19))::uuid,
               a.organization_id, e.id, a.id, a.event_type, p.position, 'PENDING',
               -- Due at once, also where the clock of the recording process is ahead.
               least(t.recorded_at, now()), t.recorded_at
        FROM added a
        JOIN webhook_endpoints e
          ON e.organization_id = a.organization_id AND e.is_active AND a.event_type = ANY(e.events)
         AND (e.tags = '{}' OR EXISTS (SELECT FROM messages m WHERE m.id = a.message_id AND m.tags && e.tags))
        -- OFFSET 0 computes it once for each event, and not for each of its recipients.
        CROSS JOIN LATERAL (SELECT left(a.id::text, 18) AS beginning, waypost_uuid_time(a.id) AS recorded_at OFFSET 0) t
        -- An event without a position is about every recipient.
        CROSS JOIN LATERAL (
            SELECT a.position
            WHERE a.position IS NOT NULL
            UNION ALL
            SELECT r.position
            FROM recipients r
            WHERE r.message_id = a.message_id AND a.position IS NULL
        ) p
        RETURNING webhook_endpoint_id
    )
    SELECT array_agg(DISTINCT webhook_endpoint_id) INTO owed FROM delivery;
    PERFORM waypost_notify_endpoints(owed);
    RETURN NULL;
END
$$;

-- Inserts the deliveries of one event without a message: one for each subscribed endpoint. The
-- event may have PostgreSQL's time, so the deliveries are due a minute before it: at once, also
-- where the worker's clock is behind.
CREATE FUNCTION waypost_add_organization_event(kind text, organization uuid, moment timestamptz, said jsonb) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
    occurred_at timestamptz := date_trunc('milliseconds', moment);
    event uuid := waypost_uuid_new(occurred_at);
    owed uuid[];
BEGIN
    WITH delivery AS (
        INSERT INTO webhook_deliveries (message_id, id, organization_id, webhook_endpoint_id, event_id, event_type,
                                        position, status, next_attempt_at, created_at, content)
        SELECT event, waypost_uuid_new(occurred_at), organization, e.id, event, kind::event_type,
               0, 'PENDING', least(occurred_at, now()) - interval '1 min', occurred_at, said
        FROM webhook_endpoints e
        WHERE e.organization_id = organization AND e.is_active AND kind::event_type = ANY(e.events)
        RETURNING webhook_endpoint_id
    )
    SELECT array_agg(webhook_endpoint_id) INTO owed FROM delivery;
    IF owed IS NOT NULL THEN
        PERFORM waypost_notify_endpoints(owed);
    END IF;
END
$$;

-- Inserts the deliveries of suppressions that a statement created or removed, however many: one
-- statement for all of them. The argument is the type of the event.
CREATE FUNCTION waypost_suppressions_changed() RETURNS trigger
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
    kind text := TG_ARGV[0];
    owed uuid[];
BEGIN
    IF NOT EXISTS (SELECT
                   FROM webhook_endpoints
                   WHERE is_active AND organization_id = ANY(ARRAY(SELECT DISTINCT organization_id FROM changed))
                     AND kind::event_type = ANY(events)) THEN
        RETURN NULL;
    END IF;
    WITH event AS MATERIALIZED (
        SELECT waypost_uuid_new(t.occurred_at) AS id, t.occurred_at, s.organization_id,
               jsonb_build_object('suppressionId', s.id, 'emailHash', encode(s.email_hash, 'hex'),
                                  'unsubscribeGroupId', s.unsubscribe_group_id, 'source', s.source) AS content
        FROM changed s
        CROSS JOIN LATERAL (
            SELECT date_trunc('milliseconds',
                              CASE kind WHEN 'SUPPRESSION_CREATED' THEN s.created_at ELSE now() END) AS occurred_at
        ) t
    ), delivery AS (
        INSERT INTO webhook_deliveries (message_id, id, organization_id, webhook_endpoint_id, event_id, event_type,
                                        position, status, next_attempt_at, created_at, content)
        SELECT v.id, waypost_uuid_new(v.occurred_at), v.organization_id, e.id, v.id, kind::event_type,
               0, 'PENDING', least(v.occurred_at, now()) - interval '1 min', v.occurred_at, v.content
        FROM event v
        JOIN webhook_endpoints e
          ON e.organization_id = v.organization_id AND e.is_active AND kind::event_type = ANY(e.events)
        RETURNING webhook_endpoint_id
    )
    SELECT array_agg(DISTINCT webhook_endpoint_id) INTO owed FROM delivery;
    PERFORM waypost_notify_endpoints(owed);
    RETURN NULL;
END
$$;

CREATE TRIGGER insert_created_events AFTER INSERT ON suppressions
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_suppressions_changed('SUPPRESSION_CREATED');
CREATE TRIGGER insert_removed_events AFTER DELETE ON suppressions
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION waypost_suppressions_changed('SUPPRESSION_REMOVED');

CREATE FUNCTION waypost_domain_state_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM waypost_add_organization_event(
        CASE NEW.state WHEN 'verified' THEN 'DOMAIN_VERIFIED' ELSE 'DOMAIN_BROKEN' END,
        NEW.organization_id,
        CASE WHEN NEW.checked_at IS DISTINCT FROM OLD.checked_at THEN NEW.checked_at ELSE now() END,
        jsonb_build_object('domainId', NEW.id, 'domain', NEW.domain,
                           'providerAccountId', NEW.provider_account_id, 'state', NEW.state));
    RETURN NULL;
END
$$;

CREATE TRIGGER insert_state_events AFTER UPDATE OF state ON provider_domains
    FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state AND 'verified' IN (OLD.state, NEW.state))
    EXECUTE FUNCTION waypost_domain_state_changed();

-- Inserts the deliveries of one event of a provider account. `kind` is PROVIDER_FAILING or
-- PROVIDER_RECOVERED.
CREATE FUNCTION waypost_add_account_event(kind text, account uuid, moment timestamptz, said jsonb, since timestamptz)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM waypost_add_organization_event(
        kind, organization_id, moment,
        said || jsonb_build_object(
            'providerAccountId', id, 'providerType', provider_type, 'displayName', display_name,
            'failingSince', to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
    FROM provider_accounts
    WHERE id = account;
END
$$;

CREATE FUNCTION waypost_sending_pause_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF NEW.sending_paused_since IS NULL THEN
        PERFORM waypost_add_account_event(
            'PROVIDER_RECOVERED', NEW.id, now(),
            jsonb_build_object('cause', 'ACCOUNT_UNUSABLE'), OLD.sending_paused_since);
    ELSE
        PERFORM waypost_add_account_event(
            'PROVIDER_FAILING', NEW.id, NEW.sending_paused_since,
            jsonb_build_object('cause', 'ACCOUNT_UNUSABLE', 'reason', NEW.sending_paused_reason),
            NEW.sending_paused_since);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER insert_pause_events AFTER UPDATE OF sending_paused_since ON provider_accounts
    FOR EACH ROW
    WHEN ((OLD.sending_paused_since IS NULL) <> (NEW.sending_paused_since IS NULL))
    EXECUTE FUNCTION waypost_sending_pause_changed();

-- Failures of accounts that no other table shows, so that several reports of one failure make
-- one event: circuit breakers that opened because too many calls failed, which Redis holds and
-- each worker reports, and credentials that a validation refused.
CREATE TABLE provider_account_failures (
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    cause text NOT NULL CHECK (cause IN ('CALLS_FAILED', 'INVALID_CREDENTIALS')),
    is_failing boolean NOT NULL,
    -- When the last failure began, by the clock of the reporting process.
    failing_since timestamptz NOT NULL,
    -- When it was last reported, or ended. Older reports are ignored.
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (provider_account_id, cause)
);

CREATE FUNCTION waypost_account_failure_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM waypost_add_account_event(
        CASE WHEN NEW.is_failing THEN 'PROVIDER_FAILING' ELSE 'PROVIDER_RECOVERED' END,
        NEW.provider_account_id, NEW.changed_at, jsonb_build_object('cause', NEW.cause), NEW.failing_since);
    RETURN NULL;
END
$$;

CREATE TRIGGER insert_first_events AFTER INSERT ON provider_account_failures
    FOR EACH ROW EXECUTE FUNCTION waypost_account_failure_changed();
CREATE TRIGGER insert_further_events AFTER UPDATE ON provider_account_failures
    FOR EACH ROW
    WHEN (OLD.is_failing <> NEW.is_failing OR OLD.failing_since <> NEW.failing_since)
    EXECUTE FUNCTION waypost_account_failure_changed();

-- Records that an account fails. Further reports belong to the same failure until it ends; but
-- workers that die together, or a Redis that loses its data, may leave its end unreported. So a
-- breaker that was not reported for an hour counts as closed: an open one that is tried is
-- reported every few minutes.
CREATE FUNCTION waypost_record_failing(account uuid, why text, moment timestamptz) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO provider_account_failures AS f (provider_account_id, cause, is_failing, failing_since, changed_at)
    SELECT id, why, true, moment, moment
    FROM provider_accounts
    WHERE id = account
    ON CONFLICT (provider_account_id, cause)
    DO UPDATE SET is_failing = true,
                  changed_at = excluded.changed_at,
                  failing_since = CASE
                      WHEN NOT f.is_failing
                        OR (f.cause = 'CALLS_FAILED' AND f.changed_at < excluded.changed_at - interval '1 hour')
                      THEN excluded.failing_since
                      ELSE f.failing_since
                  END
        WHERE f.changed_at <= excluded.changed_at
$$;

-- Records that a failure of an account ended.
CREATE FUNCTION waypost_record_recovered(account uuid, why text, moment timestamptz) RETURNS void
LANGUAGE sql
AS $$
    UPDATE provider_account_failures
    SET is_failing = false, changed_at = moment
    WHERE provider_account_id = account AND cause = why AND is_failing AND changed_at <= moment
$$;
