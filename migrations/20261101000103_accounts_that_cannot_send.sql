-- Why an account cannot send, since when, and how often somebody mended it: what was
-- found out before the last time does not count.

ALTER TABLE provider_accounts
    ADD COLUMN revision integer NOT NULL DEFAULT 0,
    ADD COLUMN sending_paused_reason text,
    ADD COLUMN sending_paused_since timestamptz,
    ADD CONSTRAINT provider_accounts_sending_paused_check
        CHECK ((sending_paused_reason IS NULL) = (sending_paused_since IS NULL));
