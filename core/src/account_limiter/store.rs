//! The SQL of the account limiter.

use sqlx::{PgConnection, query_scalar};

use crate::db::OrFault;
use crate::fault::Fault;

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
