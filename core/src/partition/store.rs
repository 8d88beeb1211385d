//! Partitions in Postgres. Actions with several statements under a lock are SQL functions in the
//! migrations, so that there is no round trip between lock and commit.

use std::time::Duration;

use sqlx::{PgConnection, query, query_scalar};

use super::{LockedStep, Month, Partition, StepOutcome};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;

/// How long counting a month may take, in milliseconds. Shorter than the time-out of a
/// scheduler task.
const COUNT_MS: &str = "100000";

/// Limits how long each statement of the transaction may take, including waits for locks.
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
        .or_fault("limit the time of a statement")?;
    Ok(())
}

/// Limits how long each statement of the transaction waits for a lock.
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
    .or_fault("limit the wait for a lock")?;
    Ok(())
}

/// Makes the transaction commit without waiting for the disk while it holds its locks. If
/// Postgres crashes, the transaction may be lost as a whole; then the next run repeats it.
pub(super) async fn disable_synchronous_commit(connection: &mut PgConnection) -> Result<(), Fault> {
    query!("SELECT set_config('synchronous_commit', 'off', true)")
        .fetch_one(connection)
        .await
        .or_fault("set synchronous_commit")?;
    Ok(())
}

/// Allows the statements of the transaction [`COUNT_MS`] each.
pub(super) async fn allow_long_statements(connection: &mut PgConnection) -> Result<(), Fault> {
    bound_statements(connection, COUNT_MS.to_owned()).await
}

/// All partitions, by month.
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

/// The missing partitions of the given months.
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
    .or_fault("list missing partitions")?;
    let missing = rows.into_iter();
    Ok(missing
        .map(|row| (row.parent, Month::of(row.month)))
        .collect())
}

/// Runs a step.
pub(super) async fn run_step(
    connection: &mut PgConnection,
    step: LockedStep<'_>,
    month: Month,
) -> Result<StepOutcome, Fault> {
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
) -> Result<StepOutcome, Fault> {
    let is_new = query_scalar!(
        r#"SELECT waypost_create_partition($1, $2) AS "is_new!""#,
        parent,
        month.begin(),
    )
    .fetch_one(connection)
    .await
    .or_fault("create a partition")?;
    Ok(if is_new {
        StepOutcome::Done
    } else {
        StepOutcome::NothingToDo
    })
}

async fn begin_drop(connection: &mut PgConnection, month: Month) -> Result<StepOutcome, Fault> {
    query!("SELECT waypost_begin_partition_drop($1)", month.begin())
        .fetch_one(connection)
        .await
        .or_fault("begin the drop of a month")?;
    Ok(StepOutcome::Done)
}

async fn detach(
    connection: &mut PgConnection,
    parent: &str,
    month: Month,
) -> Result<StepOutcome, Fault> {
    let end = query_scalar!(
        r#"SELECT waypost_detach_partition($1, $2) AS "end!""#,
        parent,
        month.begin(),
    )
    .fetch_one(connection)
    .await
    .or_fault("detach a partition")?;
    match end.as_str() {
        "DETACHED" => Ok(StepOutcome::Done),
        "ABSENT" => Ok(StepOutcome::NothingToDo),
        "HELD" => Ok(StepOutcome::Unfinished),
        _ => Err(Fault::internal("detach a partition", end)),
    }
}

/// Whether a month has messages in the outbox.
pub(super) async fn has_unfinished_messages(
    connection: &mut PgConnection,
    month: Month,
) -> Result<bool, Fault> {
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
    .or_fault("find unfinished messages of a month")
}

/// Counts the messages of a month, unless they are already counted.
pub(super) async fn count_drop(connection: &mut PgConnection, month: Month) -> Result<(), Fault> {
    query!("SELECT waypost_count_partition_drop($1)", month.begin())
        .fetch_one(connection)
        .await
        .or_fault("count a month that is to be dropped")?;
    Ok(())
}

/// Makes autovacuum leave a partition and keeps it away.
pub(super) async fn cancel_autovacuum(
    connection: &mut PgConnection,
    parent: &str,
    month: Month,
) -> Result<(), Fault> {
    query!(
        "SELECT waypost_disable_autovacuum($1, $2)",
        parent,
        month.begin()
    )
    .fetch_one(connection)
    .await
    .or_fault("keep autovacuum away from a partition")?;
    Ok(())
}

/// Drops a detached partition.
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

/// The months whose messages are detached and whose other tables may not be.
pub(super) async fn list_detached(connection: &mut PgConnection) -> Result<Vec<Month>, Fault> {
    let months = query_scalar!(
        "SELECT month FROM partition_drops WHERE detached_at IS NOT NULL ORDER BY month"
    )
    .fetch_all(connection)
    .await
    .or_fault("list drops of months")?;
    Ok(months.into_iter().map(Month::of).collect())
}

/// Makes the pending counts of a month without messages count in the totals only, not per
/// hour, and removes its messages from the queue of the subject index.
pub(super) async fn exclude_hours(
    connection: &mut PgConnection,
    month: Month,
) -> Result<(), Fault> {
    query!(
        "WITH gone AS (
             DELETE FROM new_messages
             WHERE message_id >= waypost_uuid_floor($1) AND message_id < waypost_uuid_floor($2)
             RETURNING organization_id, is_test, status
         ), deleted AS (
             UPDATE message_count_deltas SET hour = NULL WHERE hour >= $1 AND hour < $2
         ), moved AS (
             UPDATE message_transitions SET hour = NULL WHERE hour >= $1 AND hour < $2
         )
         INSERT INTO message_count_deltas (organization_id, is_test, status, change)
         SELECT organization_id, is_test, status, count(*)
         FROM gone
         WHERE status IS NOT NULL
         GROUP BY organization_id, is_test, status",
        month.begin(),
        month.end(),
    )
    .execute(connection)
    .await
    .or_fault("exclude a month from the hourly counts")?;
    Ok(())
}

/// Deletes up to `limit` hourly counts of a month without messages and returns their number.
pub(super) async fn delete_hours(
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
    .or_fault("delete the hourly counts of a month")?;
    Ok(done.rows_affected())
}

/// Deletes the record of a drop if no partition of the month is left.
pub(super) async fn end_drop(connection: &mut PgConnection, month: Month) -> Result<(), Fault> {
    query!(
        "DELETE FROM partition_drops d
         WHERE d.month = $1 AND d.detached_at IS NOT NULL
           AND NOT EXISTS (SELECT FROM waypost_partitions() p WHERE p.month = d.month)",
        month.begin(),
    )
    .execute(connection)
    .await
    .or_fault("finish the drop of a month")?;
    Ok(())
}
