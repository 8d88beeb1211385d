-- Routing rules whose messages stay with accounts of one region.

SET LOCAL lock_timeout = '5s';

-- NULL for any region.
ALTER TABLE routing_rules ADD COLUMN region text CHECK (region IN ('eu', 'us'));
