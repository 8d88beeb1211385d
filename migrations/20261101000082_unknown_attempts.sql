-- Attempts of unknown outcome, as long as their mail is looked for at the provider.
-- A trigger writes them, so that nobody who gives an attempt up can forget to. It
-- fires for nothing else: other outcomes cost the look at its condition.

CREATE TABLE unknown_attempts (
    message_id uuid NOT NULL,
    attempt_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    position integer NOT NULL,
    provider_account_id uuid NOT NULL,
    -- When the call began.
    started_at timestamptz NOT NULL,
    -- When it was given up: the looks are counted from here.
    unknown_at timestamptz NOT NULL,
    -- Not before this time. The first look is some time after it: how long depends on
    -- the configuration, which a trigger does not know.
    next_look_at timestamptz NOT NULL,
    looks integer NOT NULL DEFAULT 0,
    PRIMARY KEY (message_id, attempt_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX unknown_attempts_next_look_idx ON unknown_attempts (next_look_at);

CREATE FUNCTION waypost_look_for_attempt() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO unknown_attempts (message_id, attempt_id, organization_id, position, provider_account_id,
                                  started_at, unknown_at, next_look_at)
    SELECT NEW.message_id, NEW.id, NEW.organization_id, NEW.position, NEW.provider_account_id,
           NEW.started_at, t.unknown_at, t.unknown_at
    FROM (SELECT coalesce(NEW.finished_at, now()) AS unknown_at) t
    ON CONFLICT (message_id, attempt_id) DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER look_for_unknown AFTER UPDATE ON send_attempts
    FOR EACH ROW
    WHEN (NEW.outcome = 'UNKNOWN' AND OLD.outcome IS DISTINCT FROM NEW.outcome)
    EXECUTE FUNCTION waypost_look_for_attempt();
