-- Finds the copy that an event without our ids is about. It is written once a copy,
-- when the provider has taken it. In a migration of its own: while it is built, nobody
-- writes recipients, but everybody reads them.

CREATE INDEX recipients_provider_message_idx ON recipients USING hash (provider_message_id)
    WHERE provider_message_id IS NOT NULL;
