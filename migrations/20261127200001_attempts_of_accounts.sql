-- The newest attempts of a provider account, for its health. The ids of attempts begin with their
-- time. Workers wait while the index is built, about a second for each million attempts; sends are
-- accepted meanwhile.

SET LOCAL lock_timeout = '5s';
SELECT pg_advisory_xact_lock(hashtext('waypost_create_partitions'));

CREATE INDEX send_attempts_account_idx ON send_attempts (provider_account_id, id DESC);
