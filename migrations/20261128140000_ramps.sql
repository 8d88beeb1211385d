-- Ramps: the daily cap of a target begins small and grows by steps, as long as its account's rates of
-- bounces and complaints stay within the bounds of the rule. What a ramp is stands in
-- routing_rules.targets; how far it is stands here.

SET LOCAL lock_timeout = '5s';

ALTER TABLE routing_rules
    ADD COLUMN ramp_bounce_rate float8 NOT NULL DEFAULT 0.05
        CHECK (ramp_bounce_rate > 0 AND ramp_bounce_rate <= 1),
    ADD COLUMN ramp_complaint_rate float8 NOT NULL DEFAULT 0.001
        CHECK (ramp_complaint_rate > 0 AND ramp_complaint_rate <= 1);

CREATE TABLE routing_ramps (
    rule_id uuid NOT NULL REFERENCES routing_rules (id) ON DELETE CASCADE,
    provider_account_id uuid NOT NULL REFERENCES provider_accounts (id) ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    -- The cap is base times the factor of the ramp, once for each step. A halved cap is a new base.
    base integer NOT NULL,
    steps integer NOT NULL,
    -- The recipients of a day.
    cap integer NOT NULL,
    state text NOT NULL CHECK (state IN ('notBegun', 'growing', 'held', 'finished')),
    -- Since when it is in this state.
    since timestamptz NOT NULL,
    -- The day of UTC of the last step or halving; of a ramp that has not begun, that on which it begins.
    stepped_on date NOT NULL,
    halved_at timestamptz,
    -- Rises with every change, so that of two schedulers one makes it.
    revision integer NOT NULL DEFAULT 1,
    -- [{"at", "action", "capBefore", "capAfter", "bounceRate", "complaintRate"}], the newest first, 50 at most.
    history jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (rule_id, provider_account_id)
) WITH (fillfactor = 70);

CREATE INDEX routing_ramps_account_idx ON routing_ramps (provider_account_id);

CREATE TRIGGER routing_changed AFTER INSERT OR UPDATE OR DELETE ON routing_ramps
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('organization_id');
