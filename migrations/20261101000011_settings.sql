-- The switches of an organization, beside unverified_domains.

ALTER TABLE organizations
    ADD COLUMN track_opens boolean NOT NULL DEFAULT true,
    ADD COLUMN track_clicks boolean NOT NULL DEFAULT true,
    -- How long messages are kept; NULL means for ever.
    ADD COLUMN retention_days integer CHECK (retention_days > 0),
    -- Requests per second; NULL means what the operator gives everyone.
    ADD COLUMN send_per_second integer CHECK (send_per_second > 0),
    ADD COLUMN other_per_second integer CHECK (other_per_second > 0);
