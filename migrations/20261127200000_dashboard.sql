-- What a dashboard shows besides: the colour of an organization on the pages for its recipients,
-- and the message that a suppression came from.

SET LOCAL lock_timeout = '5s';

-- `#rrggbb` in lower case. NULL: the pages have a neutral colour.
ALTER TABLE organizations ADD COLUMN brand_color text CHECK (brand_color ~ '^#[0-9a-f]{6}$');

-- The message that bounced, that was reported, or whose link was used. The message may have been
-- deleted since. NULL: no message caused it, or the suppression is older than this column.
ALTER TABLE suppressions ADD COLUMN message_id uuid;
