-- Targets of routing rules: several accounts that share the messages of a rule by weight, with
-- caps by the hour and by the day. Further conditions of rules, and the class of messages.

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

CREATE TYPE message_class AS ENUM ('transactional', 'bulk');

-- NULL for a transactional message.
ALTER TABLE messages ADD COLUMN message_class message_class;

ALTER TABLE routing_rules
    -- [{"providerAccountId", "weight", "dailyCap", "hourlyCap"}]; empty for a rule with one
    -- account. provider_account_id is that of the first.
    ADD COLUMN targets jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(targets) = 'array'),
    ADD COLUMN sticky text NOT NULL DEFAULT 'none' CHECK (sticky IN ('none', 'recipientDomain', 'sender')),
    ADD COLUMN over_cap text NOT NULL DEFAULT 'next' CHECK (over_cap IN ('next', 'wait')),
    -- "example.com", "*.example.com". None means every recipient.
    ADD COLUMN recipient_domains text[] NOT NULL DEFAULT '{}',
    -- NULL means every class, every size, and both tests and live messages.
    ADD COLUMN message_class message_class,
    ADD COLUMN min_size_bytes integer,
    ADD COLUMN max_size_bytes integer,
    ADD COLUMN is_test boolean;

CREATE TYPE usage_window AS ENUM ('hour', 'day');

-- How many recipients of a rule's messages went to a target, in the newest hour and the newest
-- day. A worker reserves several places at once, so some of them may not be used yet.
CREATE TABLE routing_target_usage (
    rule_id uuid NOT NULL REFERENCES routing_rules (id) ON DELETE CASCADE,
    -- No foreign key: an account that is taken out of the rule leaves its last row.
    provider_account_id uuid NOT NULL,
    window_kind usage_window NOT NULL,
    -- When the hour or the day begins, in UTC.
    starts_at timestamptz NOT NULL,
    used integer NOT NULL,
    -- How many of these the last statement reserved.
    granted integer NOT NULL,
    PRIMARY KEY (rule_id, provider_account_id, window_kind)
) WITH (fillfactor = 50);
