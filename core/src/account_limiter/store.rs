//! The SQL of the account limiter.

use sqlx::{PgConnection, query, query_scalar};

use super::failures::FailureReport;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::ProviderAccountId;

/// The number of live workers.
pub(super) async fn count_workers(connection: &mut PgConnection) -> Result<u32, Fault> {
    let count = query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM workers
           WHERE leased_until > now()"#,
    )
    .fetch_one(connection)
    .await
    .or_fault("count the workers")?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Records a report about an account, unless a later one is recorded. The change of the
/// account, if it is one, becomes an event.
pub(super) async fn record_failure(
    connection: &mut PgConnection,
    account: ProviderAccountId,
    report: FailureReport,
) -> Result<(), Fault> {
    query!(
        "SELECT CASE WHEN $3 THEN waypost_record_failing($1, 'CALLS_FAILED', $2)
                     ELSE waypost_record_recovered($1, 'CALLS_FAILED', $2) END",
        account.0,
        report.at,
        report.is_failing,
    )
    .fetch_one(connection)
    .await
    .or_fault("record a failure of a provider account")?;
    Ok(())
}
