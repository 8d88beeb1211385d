//! Partitions in Postgres. What takes more than one statement under a lock is a function
//! of the migrations, so that no round trip lies between lock and commit.

use std::time::Duration;

use sqlx::{PgConnection, query, query_scalar};

use super::{LockedStep, Month, Partition, StepEnd};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;

/// How long counting a month may take, in milliseconds: less than a run of a task.
const COUNT_MS: &str = "100000";

/// Bounds how long each statement of the transaction may take, its waits included.
pub(crate) async fn bound_work(
    connection: &mut PgConnection,
    work_max: Duration,
) -> Result<(), Fault> {
    bound_statements(connection, work_max.as_millis().to_string()).await
}

async fn bound_statements(connection: &mut PgConnection, millis: String) -> Result<(), Fault> {
    query!("SELECT set_config('statement_timeout', $1, true)", millis)
        .fetch_one(connection)
        .await
        .or_fault("bound the time of a statement")?;
    Ok(())
}

/// Bounds how long the transaction waits for a lock.
pub(crate) async fn bound_waits(
    connection: &mut PgConnection,
    wait_max: Duration,
) -> Result<(), Fault> {
    query!(
        "SELECT set_config('lock_timeout', $1, true)",
        wait_max.as_millis().to_string()
    )
    .fetch_one(connection)
    .await
    .or_fault("bound a wait for a lock")?;
    Ok(())
}

/// Lets the transaction end before the disk has it, so that the disk is not waited for
/// under its locks. A crash of Postgres may undo it whole; then it is done again.
pub(super) async fn commit_without_waiting(connection: &mut PgConnection) -> Result<(), Fault> {
    query!("SELECT set_config('synchronous_commit', 'off', true)")
        .fetch_one(connection)
        .await
        .or_fault("hurry a commit")?;
    Ok(())
}

/// Lets the transaction's statements take their time.
pub(super) async fn take_time(connection: &mut PgConnection) -> Result<(), Fault> {
    bound_statements(connection, COUNT_MS.to_owned()).await
}

/// The partitions there are, by month.
pub(super) async fn list(connection: &mut PgConnection) -> Result<Vec<Partition>, Fault> {
    let rows = query!(
        r#"SELECT parent AS "parent!", month AS "month!", is_attached AS "is_attached!"
           FROM waypost_partitions()
           ORDER BY month, parent"#
    )
    .fetch_all(connection)
    .await
    .or_fault("list partitions")?;
    let partitions = rows.into_iter().map(|row| Partition {
        parent: row.parent,
        month: Month::of(row.month),
        is_attached: row.is_attached,
    });
    Ok(partitions.collect())
}

/// Which tables lack partitions of some months.
pub(super) async fn list_missing(
    connection: &mut PgConnection,
    months: &[Month],
) -> Result<Vec<(String, Month)>, Fault> {
    let begins: Vec<Timestamp> = months.iter().map(|month| month.begin()).collect();
    let rows = query!(
        r#"SELECT t.parent AS "parent!", given.month AS "month!"
           FROM UNNEST($1::timestamptz[]) AS given (month)
           CROSS JOIN waypost_partitioned_tables() t
           WHERE to_regclass(waypost_partition_name(t.parent, given.month)) IS NULL
           ORDER BY given.month"#,
        &begins,
    )
    .fetch_all(connection)
    .await
    .or_fault("look for missing partitions")?;
    let missing = rows.into_iter();
    Ok(missing
        .map(|row| (row.parent, Month::of(row.month)))
        .collect())
}

/// Takes a step.
pub(super) async fn take(
    connection: &mut PgConnection,
    step: LockedStep<'_>,
    month: Month,
) -> Result<StepEnd, Fault> {
    match step {
        LockedStep::Create(parent) => create(connection, parent, month).await,
        LockedStep::BeginDrop => begin_drop(connection, month).await,
        LockedStep::Detach(parent) => detach(connection, parent, month).await,
    }
}

async fn create(
    connection: &mut PgConnection,
    parent: &str,
    month: Month,
) -> Result<StepEnd, Fault> {
    let is_new = query_scalar!(
        r#"SELECT waypost_create_partition($1, $2) AS "is_new!""#,
        parent,
        month.begin(),
    )
    .fetch_one(connection)
    .await
    .or_fault("create a partition")?;
    Ok(if is_new {
        StepEnd::Done
    } else {
        StepEnd::Nothing
    })
}

async fn begin_drop(connection: &mut PgConnection, month: Month) -> Result<StepEnd, Fault> {
    query!("SELECT waypost_begin_month_drop($1)", month.begin())
        .fetch_one(connection)
        .await
        .or_fault("watch a month that is to be dropped")?;
    Ok(StepEnd::Done)
}

async fn detach(
    connection: &mut PgConnection,
    parent: &str,
    month: Month,
) -> Result<StepEnd, Fault> {
    let end = query_scalar!(
        r#"SELECT waypost_detach_partition($1, $2) AS "end!""#,
        parent,
        month.begin(),
    )
    .fetch_one(connection)
    .await
    .or_fault("detach a partition")?;
    match end.as_str() {
        "DETACHED" => Ok(StepEnd::Done),
        "ABSENT" => Ok(StepEnd::Nothing),
        "HELD" => Ok(StepEnd::Held),
        _ => Err(Fault::internal("detach a partition", end)),
    }
}

/// Whether a month's messages still have work to do.
pub(super) async fn is_held(connection: &mut PgConnection, month: Month) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (SELECT
                          FROM outbox
                          WHERE message_id >= waypost_uuid_floor($1)
                            AND message_id < waypost_uuid_floor($2)) AS "is_held!""#,
        month.begin(),
        month.end(),
    )
    .fetch_one(connection)
    .await
    .or_fault("look for work of a month")
}

/// Counts a month's messages, unless they are counted.
pub(super) async fn count_drop(connection: &mut PgConnection, month: Month) -> Result<(), Fault> {
    query!("SELECT waypost_count_month_drop($1)", month.begin())
        .fetch_one(connection)
        .await
        .or_fault("count a month that is to be dropped")?;
    Ok(())
}

/// Sends autovacuum away from a partition.
pub(super) async fn quiet(
    connection: &mut PgConnection,
    parent: &str,
    month: Month,
) -> Result<(), Fault> {
    query!(
        "SELECT waypost_quiet_partition($1, $2)",
        parent,
        month.begin()
    )
    .fetch_one(connection)
    .await
    .or_fault("keep autovacuum away from a partition")?;
    Ok(())
}

/// Drops a partition that was detached.
pub(super) async fn drop_detached(
    connection: &mut PgConnection,
    parent: &str,
    month: Month,
) -> Result<(), Fault> {
    query!(
        "SELECT waypost_drop_detached($1, $2)",
        parent,
        month.begin()
    )
    .fetch_one(connection)
    .await
    .or_fault("drop a partition")?;
    Ok(())
}

/// The months whose messages are detached and of which something may be left.
pub(super) async fn list_detached(connection: &mut PgConnection) -> Result<Vec<Month>, Fault> {
    let months =
        query_scalar!("SELECT month FROM month_drops WHERE detached_at IS NOT NULL ORDER BY month")
            .fetch_all(connection)
            .await
            .or_fault("list drops of months")?;
    Ok(months.into_iter().map(Month::of).collect())
}

/// Sees to it that what waits to be counted of a month whose messages are gone counts in
/// its totals alone, and that none of them is indexed.
pub(super) async fn leave_hours_out(
    connection: &mut PgConnection,
    month: Month,
) -> Result<(), Fault> {
    query!(
        "WITH gone AS (
             DELETE FROM new_messages
             WHERE message_id >= waypost_uuid_floor($1) AND message_id < waypost_uuid_floor($2)
             RETURNING organization_id, status
         ), deleted AS (
             UPDATE message_count_deltas SET hour = NULL WHERE hour >= $1 AND hour < $2
         ), moved AS (
             UPDATE message_moves SET hour = NULL WHERE hour >= $1 AND hour < $2
         )
         INSERT INTO message_count_deltas (organization_id, status, change)
         SELECT organization_id, status, count(*)
         FROM gone
         WHERE status IS NOT NULL
         GROUP BY organization_id, status",
        month.begin(),
        month.end(),
    )
    .execute(connection)
    .await
    .or_fault("forget the hours of a month")?;
    Ok(())
}

/// Forgets what the hours of a month held whose messages are gone, up to `limit` rows, and
/// says how many they were.
pub(super) async fn forget_hours(
    connection: &mut PgConnection,
    month: Month,
    limit: i64,
) -> Result<u64, Fault> {
    let done = query!(
        "DELETE FROM message_hours
         WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_hours WHERE hour >= $1 AND hour < $2 LIMIT $3))",
        month.begin(),
        month.end(),
        limit,
    )
    .execute(connection)
    .await
    .or_fault("forget the hours of a month")?;
    Ok(done.rows_affected())
}

/// Forgets that a month was dropped of which nothing is left.
pub(super) async fn end_drop(connection: &mut PgConnection, month: Month) -> Result<(), Fault> {
    query!(
        "DELETE FROM month_drops d
         WHERE d.month = $1 AND d.detached_at IS NOT NULL
           AND NOT EXISTS (SELECT FROM waypost_partitions() p WHERE p.month = d.month)",
        month.begin(),
    )
    .execute(connection)
    .await
    .or_fault("end the drop of a month")?;
    Ok(())
}
