-- A message whose sending failed may be tried again by its owner. How long it is
-- tried then counts from that moment.
ALTER TABLE messages ADD COLUMN retried_at timestamptz;
