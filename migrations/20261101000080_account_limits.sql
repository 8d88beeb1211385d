-- What an account may be used for at the most, over all workers; no bound where
-- nothing is said.
ALTER TABLE provider_accounts
    ADD COLUMN max_rate_per_second integer CHECK (max_rate_per_second BETWEEN 1 AND 100000),
    ADD COLUMN max_concurrency integer CHECK (max_concurrency BETWEEN 1 AND 10000);
