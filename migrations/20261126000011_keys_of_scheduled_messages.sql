-- The idempotency key of a scheduled message lives until a day after the message is due.

SET LOCAL lock_timeout = '5s';

-- Nothing has been released with the types of 20261126000001: no API of a version before runs.
ALTER TYPE new_key_claim ADD ATTRIBUTE kept_from timestamptz;
