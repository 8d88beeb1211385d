-- Messages, and what is written while they are sent.
--
-- Tables that grow with every message are range-partitioned by the message's id. A UUIDv7
-- begins with its time, so a look-up by id reads one partition, and retention drops whole
-- months of all these tables. 20261101000011_operations.sql creates the partitions.
--
-- Each of these tables has a default partition: a message is accepted also where nobody
-- created its month in time. The default partition says how the others store their rows,
-- since PostgreSQL takes no storage parameters for a partitioned table.
--
-- Functions that visit all these tables visit the one created last first, and `messages`
-- last: the order of the files is an order of locks. A new table goes into a new file.

CREATE TYPE message_status AS ENUM
    ('QUEUED', 'SENDING', 'SENT', 'DELIVERED', 'BOUNCED', 'FAILED');
CREATE TYPE event_type AS ENUM
    ('QUEUED', 'SENT', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED',
     'COMPLAINED', 'UNSUBSCRIBED', 'DROPPED', 'DEFERRED');
CREATE TYPE attempt_outcome AS ENUM
    ('ACCEPTED', 'REJECTED', 'THROTTLED', 'UNAVAILABLE', 'UNKNOWN');

-- One accepted request. No foreign keys: accounts, rules, templates and groups may be
-- deleted while the history of their messages stays.
CREATE TABLE messages (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    -- The account resolved at acceptance, or another one that took the message instead.
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
    delivered_at timestamptz,
    -- The rule that chose the account; NULL where none matched.
    routing_rule_id uuid,
    template_id uuid,
    template_version_id uuid,
    -- The worker checks the suppressions of this group too, right before each provider call.
    unsubscribe_group_id uuid,
    -- Decided at acceptance: later changes of the organization's settings do not change its
    -- mail.
    track_opens boolean NOT NULL DEFAULT false,
    track_clicks boolean NOT NULL DEFAULT false,
    -- The account resolved at acceptance, where provider_account_id names another one. NULL
    -- otherwise: most messages stay with their account, and a NULL takes no room.
    resolved_account_id uuid,
    -- When the customer last had a failed message retried. The time for which sending is
    -- tried counts from here.
    retried_at timestamptz
) PARTITION BY RANGE (id);

-- The lists, newest first: all, and those of one status.
CREATE INDEX messages_organization_idx ON messages (organization_id, id DESC);
CREATE INDEX messages_status_idx ON messages (organization_id, status, id);

CREATE TABLE messages_default PARTITION OF messages DEFAULT;

-- The content of a message, apart from its row, so that lists never read it and retention
-- may delete it earlier.
CREATE TABLE message_bodies (
    message_id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    from_mailbox text NOT NULL,
    reply_to text,
    html text,
    text text
) PARTITION BY RANGE (message_id);

-- Values above 2 KB are compressed. lz4 takes a fraction of the CPU of PostgreSQL's default
-- method; a server built without lz4 keeps to the default. Partitions inherit the setting.
DO $$
BEGIN
    ALTER TABLE message_bodies
        ALTER COLUMN html SET COMPRESSION lz4,
        ALTER COLUMN text SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;

CREATE TABLE message_bodies_default PARTITION OF message_bodies DEFAULT;

-- One address of a message, with the state of sending to it. Each recipient gets a mail of
-- its own.
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
    -- Attempts that count as a try; one that was throttled does not.
    attempts integer NOT NULL DEFAULT 0,
    -- Attempts of unknown outcome.
    unknowns integer NOT NULL DEFAULT 0,
    last_error text,
    -- Not before this time. With status SENDING and no lease on the chunk, the worker waits
    -- until then for evidence about an attempt of unknown outcome.
    next_attempt_at timestamptz NOT NULL,
    sent_at timestamptz,
    delivered_at timestamptz,
    -- The times of the first open and click; those of the first bounce, complaint and
    -- unsubscribe follow below. Metrics count each recipient once for each of these types.
    opened_at timestamptz,
    clicked_at timestamptz,
    -- The DELIVERED event that a person's open or click implied. It becomes the provider's
    -- own when the provider reports the delivery.
    implied_event_id uuid,
    -- How many opens and clicks are in the history, by people and by machines. The number
    -- kept of each is bounded, however often a link is called. NULL is none: most
    -- recipients have none, and a NULL takes no room.
    opens smallint,
    clicks smallint,
    bot_opens smallint,
    bot_clicks smallint,
    -- The index in the candidates (core::routing::candidates) at which the next try begins.
    -- The list may have become shorter; an index past its end means the first.
    failover smallint NOT NULL DEFAULT 0,
    -- Rounds through all candidates without success. The back-off grows with them.
    rounds smallint NOT NULL DEFAULT 0,
    -- Whether a candidate of this round failed in a way that may pass. Where none did, the
    -- last account's refusal is final.
    recoverable boolean NOT NULL DEFAULT false,
    -- When it was sent before a retry by the customer: it has counted as sent.
    first_sent_at timestamptz,
    bounced_at timestamptz,
    complained_at timestamptz,
    unsubscribed_at timestamptz,
    PRIMARY KEY (message_id, position)
) PARTITION BY RANGE (message_id);

-- Finds the recipient of a provider's event that does not carry Waypost's ids.
CREATE INDEX recipients_provider_message_idx ON recipients USING hash (provider_message_id)
    WHERE provider_message_id IS NOT NULL;

-- Rows are updated soon after they are written. With room on its page, an update writes no
-- index (HOT): half a page holds one more version of every row.
CREATE TABLE recipients_default PARTITION OF recipients DEFAULT WITH (fillfactor = 50);

-- The history of a message. Inserts fire `count_events` (20261101000010_metrics.sql) and
-- `insert_webhook_deliveries` (20261101000008_webhooks.sql).
CREATE TABLE events (
    message_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- The recipient it is about; NULL means every recipient of the message.
    position integer,
    event_type event_type NOT NULL,
    occurred_at timestamptz NOT NULL,
    data jsonb,
    -- Whether the statement that inserts the event also writes its metrics. The trigger
    -- counts all others.
    is_counted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (message_id, id)
) PARTITION BY RANGE (message_id);

CREATE TABLE events_default PARTITION OF events DEFAULT;

-- One call to one provider for one recipient, written before the call. An attempt without
-- an outcome may have reached the provider.
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

-- Room for updates, as for recipients. An update makes an attempt a fifth larger.
CREATE TABLE send_attempts_default PARTITION OF send_attempts DEFAULT WITH (fillfactor = 45);

-- Attempts of unknown outcome, as long as their mail is looked up at the provider.
CREATE TABLE unknown_attempts (
    message_id uuid NOT NULL,
    attempt_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    position integer NOT NULL,
    provider_account_id uuid NOT NULL,
    -- When the call began.
    started_at timestamptz NOT NULL,
    -- When the outcome became unknown. The schedule of look-ups counts from here.
    unknown_at timestamptz NOT NULL,
    -- Not before this time. The first look-up is later than unknown_at by a time that
    -- depends on the configuration, which a trigger does not know.
    next_lookup_at timestamptz NOT NULL,
    looks integer NOT NULL DEFAULT 0,
    PRIMARY KEY (message_id, attempt_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX unknown_attempts_next_lookup_idx ON unknown_attempts (next_lookup_at);

-- A trigger schedules the look-ups, so that no code path that gives up an attempt can leave
-- them out. For other outcomes only the trigger's condition is evaluated.
CREATE FUNCTION waypost_schedule_lookup() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO unknown_attempts (message_id, attempt_id, organization_id, position, provider_account_id,
                                  started_at, unknown_at, next_lookup_at)
    SELECT NEW.message_id, NEW.id, NEW.organization_id, NEW.position, NEW.provider_account_id,
           NEW.started_at, t.unknown_at, t.unknown_at
    FROM (SELECT coalesce(NEW.finished_at, now()) AS unknown_at) t
    ON CONFLICT (message_id, attempt_id) DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER schedule_lookup AFTER UPDATE ON send_attempts
    FOR EACH ROW
    WHEN (NEW.outcome = 'UNKNOWN' AND OLD.outcome IS DISTINCT FROM NEW.outcome)
    EXECUTE FUNCTION waypost_schedule_lookup();

-- The running workers.
CREATE TABLE workers (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    started_at timestamptz NOT NULL,
    -- All leases of this worker end here; its heartbeat extends them.
    leased_until timestamptz NOT NULL
);

-- The sends that are not finished: a row for each chunk of a message's recipients. It is
-- written in the transaction that accepts the message, and deleted in the transaction that
-- records the last final outcome. What Redis holds are hints at these rows.
CREATE TABLE outbox (
    message_id uuid NOT NULL,
    -- Which hundred of the message's recipients: position / 100.
    chunk integer NOT NULL,
    organization_id uuid NOT NULL,
    -- The worker that holds the lease. No foreign key, so that acceptance and leasing take
    -- no lock on the worker's row.
    leased_by uuid,
    -- When the relay queues the chunk again unless it is finished.
    wake_at timestamptz NOT NULL,
    -- How often a worker died while it held the chunk, or its handler panicked.
    losses smallint NOT NULL DEFAULT 0,
    -- Set for a chunk on probation: when work on it began. The chunk is blamed for a dead
    -- worker only from then on.
    begun_at timestamptz,
    -- Since when no worker may lease the chunk, and why: it took down workers again and
    -- again. The operator decides what becomes of it. Both are set or neither is.
    dead_at timestamptz,
    dead_reason text,
    PRIMARY KEY (message_id, chunk),
    CONSTRAINT outbox_dead_check CHECK ((dead_at IS NULL) = (dead_reason IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, fillfactor = 50);

-- The relay, and workers while Redis is away, read chunks organization by organization, so
-- that the long backlog of one delays no other.
CREATE INDEX outbox_organization_id_wake_at_idx ON outbox (organization_id, wake_at);
CREATE INDEX outbox_dead_idx ON outbox (dead_at) WHERE dead_at IS NOT NULL;

-- What the API passes to the INSERT of accepted messages (core/src/acceptance/insert.rs): an
-- array of each. A running API sends them as it was built, so a change makes a new type, and
-- the old one stays until no API of the version before runs.
CREATE TYPE new_message AS (
    id uuid,
    organization_id uuid,
    provider_account_id uuid,
    routing_rule_id uuid,
    template_id uuid,
    template_version_id uuid,
    unsubscribe_group_id uuid,
    from_address text,
    from_mailbox text,
    to_hash bytea,
    reply_to text,
    subject text,
    html text,
    text text,
    tags text[],
    metadata jsonb,
    track_opens boolean,
    track_clicks boolean,
    recipient_count integer,
    chunks integer[],
    queued_event_id uuid,
    created_at timestamptz
);

CREATE TYPE new_recipient AS (
    message_id uuid,
    position integer,
    organization_id uuid,
    address_sealed bytea,
    address_hash bytea,
    -- Set if the recipient is suppressed: its DROPPED event.
    dropped_event_id uuid,
    -- Whether the INSERT has to check the suppressions.
    is_unchecked boolean,
    unsubscribe_group_id uuid
);

CREATE TYPE new_key_claim AS (
    organization_id uuid,
    key_hash bytea,
    body_hash bytea,
    answer bytea,
    created_at timestamptz,
    message_id uuid
);
