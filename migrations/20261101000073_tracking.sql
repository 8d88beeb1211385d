-- Tracking of opens and clicks.

-- What is tracked of a message, decided when it was accepted: a later change of the
-- organization's switches does not change its mail. Whoever does not know of these
-- columns accepts messages of which nothing is tracked.
ALTER TABLE messages
    ADD COLUMN track_opens boolean NOT NULL DEFAULT false,
    ADD COLUMN track_clicks boolean NOT NULL DEFAULT false;

-- How many opens and clicks of a recipient are in the history, by people and by
-- machines: what is kept of each is bounded, however often a link is called. NULL is
-- none; most recipients have none, and a NULL takes no room.
ALTER TABLE recipients
    ADD COLUMN opens smallint,
    ADD COLUMN clicks smallint,
    ADD COLUMN machine_opens smallint,
    ADD COLUMN machine_clicks smallint;

-- The switches are remembered with what routing needs (20261101000014).
CREATE TRIGGER tracking_changed AFTER UPDATE OF track_opens, track_clicks ON organizations
    FOR EACH ROW EXECUTE FUNCTION waypost_routing_changed('id');
