-- Subjects that waited before go where new messages wait. The table stays, empty, for
-- processes of the version before.
WITH waiting AS (
    DELETE FROM message_subject_queue
    RETURNING organization_id, message_id, subject
)
INSERT INTO new_messages (organization_id, message_id, subject)
SELECT organization_id, message_id, subject
FROM waiting;
