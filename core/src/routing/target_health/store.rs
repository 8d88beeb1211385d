//! The health of targets in Postgres.

use std::collections::HashMap;

use sqlx::{PgConnection, query};

use super::HealthFactors;
use super::rating::{HealthRating, Rated, RatingChange, RecentMail};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::metrics::OTHER;

/// The factors of an organization's accounts.
pub(super) async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<HealthFactors, Fault> {
    let rows = query!(
        r#"SELECT provider_account_id AS "id: ProviderAccountId", recipient_domain, percent
           FROM account_health_factors
           WHERE organization_id = $1"#,
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("read the health of targets")?;
    let mut factors = HealthFactors::default();
    for row in rows {
        factors.insert(row.id, row.recipient_domain, percent(row.percent));
    }
    Ok(factors)
}

fn percent(column: i16) -> u8 {
    u8::try_from(column).unwrap_or(super::FULL_PERCENT)
}

/// Deletes the factors of accounts that no rule prefers for their health any more.
pub(super) async fn delete_unwanted(connection: &mut PgConnection) -> Result<(), Fault> {
    query!(
        "DELETE FROM account_health_factors f
         WHERE NOT EXISTS (
             SELECT FROM routing_rules r
             WHERE r.organization_id = f.organization_id AND r.is_active AND r.prefer = 'health'
               AND r.targets @> jsonb_build_array(jsonb_build_object('providerAccountId', f.provider_account_id)))",
    )
    .execute(connection)
    .await
    .or_fault("delete the health of accounts that are no targets")?;
    Ok(())
}

/// All ratings below the whole weight.
pub(super) async fn list_ratings(
    connection: &mut PgConnection,
) -> Result<HashMap<Rated, (OrganizationId, HealthRating)>, Fault> {
    let rows = query!(
        r#"SELECT provider_account_id AS "id: ProviderAccountId", organization_id AS "organization_id: OrganizationId",
                  recipient_domain, percent, bad_since, changed_at
           FROM account_health_factors"#,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the health of targets")?;
    let ratings = rows.into_iter().map(|row| {
        let rating = HealthRating {
            percent: percent(row.percent),
            bad_since: row.bad_since,
            changed_at: row.changed_at,
        };
        (
            (row.id, row.recipient_domain),
            (row.organization_id, rating),
        )
    });
    Ok(ratings.collect())
}

/// What became of the latest mail of the accounts to rate: of all of it, and by the domains that
/// have a rating or at least `attempts_min` attempts within 30 minutes.
pub(super) async fn list_mails(
    connection: &mut PgConnection,
    now: Timestamp,
    attempts_min: i64,
) -> Result<HashMap<Rated, (OrganizationId, RecentMail)>, Fault> {
    let rows = query!(
        r#"WITH rated AS MATERIALIZED (
               SELECT DISTINCT a.id, a.organization_id
               FROM routing_rules r
               CROSS JOIN LATERAL jsonb_array_elements(r.targets) t
               JOIN provider_accounts a ON a.id = (t ->> 'providerAccountId')::uuid
                                       AND a.organization_id = r.organization_id
               WHERE r.is_active AND r.prefer = 'health'
           ), mails AS (
               SELECT a.id, a.organization_id, q.recipient_domain AS domain,
                      q.attempts AS hour_attempts,
                      CASE WHEN q.quarter > $1::timestamptz - interval '30 min' THEN q.attempts ELSE 0 END AS attempts,
                      CASE WHEN q.quarter > $1::timestamptz - interval '30 min' THEN q.rejected + q.deferred ELSE 0 END AS failed,
                      0::bigint AS bounced
               FROM rated a
               JOIN attempt_quarters q ON q.provider_account_id = a.id AND q.quarter > $1::timestamptz - interval '75 min'
               UNION ALL
               SELECT a.id, a.organization_id, d.recipient_domain, 0, 0, d.deferred, 0
               FROM rated a
               JOIN deferral_deltas d ON d.provider_account_id = a.id AND d.quarter > $1::timestamptz - interval '30 min'
               UNION ALL
               SELECT a.id, a.organization_id, m.key, 0, 0, 0, m.bounced
               FROM rated a
               CROSS JOIN LATERAL waypost_metrics(a.organization_id, 'ACCOUNT', a.id::text, 'RECIPIENT_DOMAIN',
                                                  waypost_quarter($1) - interval '15 min',
                                                  waypost_quarter($1) + interval '15 min',
                                                  waypost_quarter($1) + interval '15 min',
                                                  waypost_quarter($1) + interval '15 min') m
           )
           SELECT id AS "id!: ProviderAccountId", organization_id AS "organization_id!: OrganizationId",
                  coalesce(domain, '') AS "domain!", grouping(domain) = 1 AS "is_of_all!",
                  sum(attempts)::bigint AS "attempts!", sum(hour_attempts)::bigint AS "hour_attempts!",
                  greatest(sum(failed), sum(bounced))::bigint AS "failed!"
           FROM mails
           GROUP BY GROUPING SETS ((id, organization_id, domain), (id, organization_id))
           HAVING grouping(domain) = 1 OR sum(attempts) >= $2::bigint
                  OR EXISTS (SELECT FROM account_health_factors f
                             WHERE f.provider_account_id = mails.id AND f.recipient_domain = mails.domain)"#,
        now,
        attempts_min,
    )
    .fetch_all(connection)
    .await
    .or_fault("read what became of the mail of targets")?;
    // Mail to domains that are not known, or not counted by themselves, counts only among all of it.
    let rows = rows.into_iter();
    let rows = rows.filter(|row| row.is_of_all || !["", OTHER].contains(&row.domain.as_str()));
    let mails = rows.map(|row| {
        let mail = RecentMail {
            attempts: row.attempts,
            failed: row.failed,
            hour_attempts: row.hour_attempts,
        };
        ((row.id, row.domain), (row.organization_id, mail))
    });
    Ok(mails.collect())
}

/// Records a change of a rating.
pub(super) async fn record(
    connection: &mut PgConnection,
    change: &RatingChange,
) -> Result<(), Fault> {
    let (account_id, domain) = &change.rated;
    let statement = match change.rating {
        Some(rating) => query!(
            "INSERT INTO account_health_factors
                 (provider_account_id, organization_id, recipient_domain, percent, bad_since, changed_at)
             SELECT id, organization_id, $3, $4, $5, $6
             FROM provider_accounts
             WHERE id = $1 AND organization_id = $2
             ON CONFLICT (provider_account_id, recipient_domain) DO UPDATE
             SET percent = excluded.percent, bad_since = excluded.bad_since, changed_at = excluded.changed_at",
            account_id.0,
            change.organization_id.0,
            domain,
            i16::from(rating.percent),
            rating.bad_since,
            rating.changed_at,
        ),
        None => query!(
            "DELETE FROM account_health_factors
             WHERE provider_account_id = $1 AND recipient_domain = $2",
            account_id.0,
            domain,
        ),
    };
    statement
        .execute(connection)
        .await
        .or_fault("record the health of a target")?;
    Ok(())
}
