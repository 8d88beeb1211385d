WITH new AS (
    DELETE FROM new_messages
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM new_messages WHERE (uuid_hash(organization_id) & $2) = $3
                           LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING organization_id, is_test, message_id, status, subject, recipient_count, labels
), taken AS (
    -- Not locked first, as in metrics/roll_up.sql. New messages are: they would wait for erasures.
    DELETE FROM message_count_deltas
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_count_deltas WHERE (uuid_hash(organization_id) & $2) = $3
                           LIMIT $1))
    RETURNING organization_id, is_test, status, hour, change
), moved AS (
    DELETE FROM message_transitions
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_transitions WHERE (uuid_hash(organization_id) & $2) = $3
                           LIMIT $1))
    RETURNING organization_id, is_test, was, status, hour, count
), indexed AS (
    INSERT INTO message_subjects (organization_id, is_test, message_id, subject, labels)
    SELECT organization_id, is_test, message_id, subject,
           labels || CASE WHEN recipient_count > 1 THEN ARRAY(
               SELECT waypost_label(waypost_label_seed(new.organization_id, waypost_message_day(message_id),
                                                       new.is_test),
                                    'to', encode(address_hash, 'hex'))
               FROM recipients
               WHERE message_id = new.message_id) END
    FROM new
    WHERE subject IS NOT NULL
    ORDER BY message_id
    ON CONFLICT DO NOTHING
), changes AS (
    SELECT organization_id, is_test, status, hour, sum(change) AS change
    FROM (SELECT organization_id, is_test, status, waypost_message_hour(message_id) AS hour, 1 AS change
          FROM new
          WHERE status IS NOT NULL
          UNION ALL
          SELECT organization_id, is_test, status, hour, change FROM taken
          UNION ALL
          SELECT organization_id, is_test, status, hour, count FROM moved
          UNION ALL
          SELECT organization_id, is_test, was, hour, -count FROM moved) each
    GROUP BY organization_id, is_test, status, hour
    -- Most new messages are sent already, so that the changes of their first
    -- status add up to zero.
    HAVING sum(change) <> 0
), counted AS (
    INSERT INTO message_counts (organization_id, is_test, status, count)
    SELECT organization_id, is_test, status, sum(change)
    FROM changes
    GROUP BY organization_id, is_test, status
    ORDER BY organization_id, is_test, status
    ON CONFLICT (organization_id, is_test, status) DO UPDATE
    SET count = message_counts.count + excluded.count
), counted_by_hour AS (
    INSERT INTO message_hours (organization_id, is_test, status, hour, count)
    SELECT organization_id, is_test, status, hour, change
    FROM changes
    WHERE hour IS NOT NULL
    ORDER BY organization_id, is_test, status, hour
    ON CONFLICT (organization_id, is_test, status, hour) DO UPDATE
    SET count = message_hours.count + excluded.count
)
SELECT greatest((SELECT count(*) FROM new), (SELECT count(*) FROM taken), (SELECT count(*) FROM moved))
       AS "taken!"
