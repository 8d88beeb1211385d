-- Messages and all that grows with them. These tables are range-partitioned by
-- the message id itself: a UUIDv7 begins with its time, so a look-up by id
-- prunes to one partition and retention drops whole months of all of them.

CREATE TYPE message_status AS ENUM
    ('QUEUED', 'SENDING', 'SENT', 'DELIVERED', 'BOUNCED', 'FAILED');
CREATE TYPE event_type AS ENUM
    ('QUEUED', 'SENT', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED',
     'COMPLAINED', 'UNSUBSCRIBED', 'DROPPED', 'DEFERRED');
CREATE TYPE attempt_outcome AS ENUM
    ('ACCEPTED', 'REJECTED', 'THROTTLED', 'UNAVAILABLE', 'UNKNOWN');

CREATE TABLE messages (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    -- The account resolved at acceptance. No foreign key: an account may be
    -- deleted while its history stays.
    provider_account_id uuid NOT NULL,
    from_address text NOT NULL,
    -- SHA-256 of the first recipient's normal form.
    to_hash bytea NOT NULL,
    subject text NOT NULL,
    -- The aggregate over the recipients, kept by core::message::status.
    status message_status NOT NULL,
    tags text[] NOT NULL,
    metadata jsonb,
    recipient_count integer NOT NULL,
    provider_message_id text,
    created_at timestamptz NOT NULL,
    sent_at timestamptz,
    delivered_at timestamptz
) PARTITION BY RANGE (id);

CREATE INDEX messages_organization_idx ON messages (organization_id, id DESC);

-- Apart from the message row, so that lists never read them.
CREATE TABLE message_bodies (
    message_id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    from_mailbox text NOT NULL,
    reply_to text,
    html text,
    text text
) PARTITION BY RANGE (message_id);

CREATE TABLE recipients (
    message_id uuid NOT NULL,
    -- From 0, in the order of the request's "to".
    position integer NOT NULL,
    organization_id uuid NOT NULL,
    -- AES-256-GCM of the mailbox, bound to the organization and the message.
    address_sealed bytea NOT NULL,
    address_hash bytea NOT NULL,
    status message_status NOT NULL,
    -- The account of the latest attempt.
    provider_account_id uuid,
    provider_message_id text,
    -- Attempts that used up a try (being throttled does not).
    attempts integer NOT NULL DEFAULT 0,
    -- Attempts whose outcome nobody knows.
    unknowns integer NOT NULL DEFAULT 0,
    last_error text,
    -- Not before this time. With status SENDING and no lease on the chunk: until
    -- then evidence is awaited for an attempt of unknown outcome.
    next_attempt_at timestamptz NOT NULL,
    sent_at timestamptz,
    delivered_at timestamptz,
    PRIMARY KEY (message_id, position)
) PARTITION BY RANGE (message_id);

CREATE TABLE events (
    message_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- The recipient it is about; NULL means every recipient of the message.
    position integer,
    event_type event_type NOT NULL,
    occurred_at timestamptz NOT NULL,
    data jsonb,
    PRIMARY KEY (message_id, id)
) PARTITION BY RANGE (message_id);

-- One call to one provider for one recipient, written before the call is made.
-- An attempt without an outcome may have reached the provider.
CREATE TABLE send_attempts (
    message_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    position integer NOT NULL,
    provider_account_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    outcome attempt_outcome,
    status_code integer,
    reason text,
    PRIMARY KEY (message_id, id)
) PARTITION BY RANGE (message_id);

-- The lowest UUIDv7 of a moment.
CREATE FUNCTION waypost_uuid_floor(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || repeat('0', 20))::uuid
$$;

-- Creates the partitions of every month from the one of `start` on, `months` of
-- them, where they are missing, and returns how many it made. Rows that went to
-- the default partition in the meantime are moved. Safe to run at any time, by
-- several at once.
CREATE FUNCTION waypost_create_partitions(start timestamptz, months integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    parent text;
    key_column text;
    partition text;
    month timestamp;
    low uuid;
    high uuid;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('waypost_create_partitions'));
    FOR step IN 0 .. months - 1 LOOP
        month := date_trunc('month', start AT TIME ZONE 'UTC') + make_interval(months => step);
        low := waypost_uuid_floor(month AT TIME ZONE 'UTC');
        high := waypost_uuid_floor((month + interval '1 month') AT TIME ZONE 'UTC');
        IF to_regclass('messages' || to_char(month, '"_y"YYYY"m"MM')) IS NULL THEN
            -- Whoever writes into the default partitions waits before it looks:
            -- a statement that had looked already would find its rows gone.
            PERFORM set_config('lock_timeout', '2s', true);
            LOCK TABLE send_attempts_default, recipients_default, events_default,
                message_bodies_default, messages_default IN ACCESS EXCLUSIVE MODE;
        END IF;
        FOREACH parent IN ARRAY ARRAY['messages', 'message_bodies', 'recipients', 'events', 'send_attempts'] LOOP
            partition := parent || to_char(month, '"_y"YYYY"m"MM');
            CONTINUE WHEN to_regclass(partition) IS NOT NULL;
            key_column := CASE parent WHEN 'messages' THEN 'id' ELSE 'message_id' END;
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', partition, parent);
            EXECUTE format(
                'WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
                parent || '_default', key_column, low, key_column, high, partition);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, partition, low, high);
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- A net for the case that no scheduler made the partitions in time: acceptance
-- never fails for want of one.
CREATE TABLE messages_default PARTITION OF messages DEFAULT;
CREATE TABLE message_bodies_default PARTITION OF message_bodies DEFAULT;
CREATE TABLE recipients_default PARTITION OF recipients DEFAULT;
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE TABLE send_attempts_default PARTITION OF send_attempts DEFAULT;

SELECT waypost_create_partitions(now(), 3);
