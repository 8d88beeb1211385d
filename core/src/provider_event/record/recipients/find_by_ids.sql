SELECT t.nth AS "nth!", a.id AS "id!", a.position AS "position!",
       a.provider_account_id AS "provider_account_id!", a.started_at AS "started_at!",
       a.is_proven AS "is_proven!"
FROM UNNEST($1::uuid[], $2::uuid[], $3::int[], $4::uuid[], $7::bytea[]) WITH ORDINALITY
  AS t (organization_id, message_id, position, attempt_id, address_hash, nth)
CROSS JOIN LATERAL (
    SELECT id, position, provider_account_id, started_at, outcome
    FROM send_attempts
    WHERE message_id = t.message_id AND message_id BETWEEN $5 AND $6
      AND id = t.attempt_id AND (t.position IS NULL OR position = t.position)
      AND organization_id = t.organization_id
    LIMIT 1
) of_ids
CROSS JOIN LATERAL (
    (SELECT of_ids.id, of_ids.position, of_ids.provider_account_id, of_ids.started_at,
            of_ids.outcome IS NOT DISTINCT FROM 'ACCEPTED' AS is_proven
     WHERE t.address_hash IS NULL)
    UNION ALL
    (SELECT s.id, s.position, s.provider_account_id, s.started_at,
            s.outcome IS NOT DISTINCT FROM 'ACCEPTED'
     FROM recipients r
     JOIN send_attempts s ON s.message_id = r.message_id AND s.position = r.position
     WHERE t.address_hash IS NOT NULL
       AND r.message_id = t.message_id AND r.message_id BETWEEN $5 AND $6
       AND r.address_hash = t.address_hash
       AND s.message_id = t.message_id AND s.message_id BETWEEN $5 AND $6
       AND s.provider_account_id = of_ids.provider_account_id
       AND s.started_at = of_ids.started_at
     LIMIT 1)
) a
