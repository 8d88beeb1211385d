-- The unsubscribe group that a message was sent in: its suppressions count right
-- before each provider call too. No foreign key: a group may be deleted while the
-- history of its messages stays.

ALTER TABLE messages ADD COLUMN unsubscribe_group_id uuid;
