-- Failover: how far the tries of a recipient have got through the accounts that may
-- take it. Whoever does not know of these columns tries the first account alone.
ALTER TABLE recipients
    -- The place in the candidates (core::routing::candidates) at which the next try
    -- begins. They may have become fewer since; a place past their end is the first.
    ADD COLUMN failover smallint NOT NULL DEFAULT 0,
    -- Rounds through all candidates that came to nothing: what the waits grow with.
    ADD COLUMN rounds smallint NOT NULL DEFAULT 0,
    -- Whether a candidate of the present round failed in passing. Where none did, the
    -- last one's refusal of the account is final.
    ADD COLUMN recoverable boolean NOT NULL DEFAULT false;

-- The account that was resolved at acceptance, as soon as provider_account_id names
-- another one, which took the message instead. NULL is the same; most messages stay
-- with theirs, and a NULL takes no room.
ALTER TABLE messages ADD COLUMN resolved_account_id uuid;
