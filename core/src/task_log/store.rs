//! The scheduler's tasks in Postgres.

use std::time::Duration;

use sqlx::{PgConnection, query};

use super::{STORED_EVERY, TaskReport, TaskState};
use crate::db::OrFault;
use crate::fault::Fault;

/// Stores the reports of `leader` with one statement. A time that the leader does not know,
/// because another process led before, stays as it is.
pub async fn record(
    connection: &mut PgConnection,
    leader: &str,
    reports: &[TaskReport],
) -> Result<(), Fault> {
    if reports.is_empty() {
        return Ok(());
    }
    let column = |pick: fn(&TaskReport) -> Option<Duration>| -> Vec<Option<i64>> {
        reports
            .iter()
            .map(|report| pick(report).map(whole_milliseconds))
            .collect()
    };
    query!(
        r#"INSERT INTO scheduler_tasks
               (name, interval_ms, leader, last_started_at, last_finished_at, last_succeeded_at, run_ms, last_error)
           SELECT name, interval_ms, $1, now() - started * ms, now() - finished * ms, now() - succeeded * ms, run_ms, error
           FROM UNNEST($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
             AS r (name, interval_ms, started, finished, succeeded, run_ms, error)
           CROSS JOIN (SELECT interval '1 millisecond' AS ms) unit
           ORDER BY name
           ON CONFLICT (name) DO UPDATE
           SET interval_ms = excluded.interval_ms,
               leader = excluded.leader,
               last_started_at = excluded.last_started_at,
               last_finished_at = coalesce(excluded.last_finished_at, scheduler_tasks.last_finished_at),
               last_succeeded_at = coalesce(excluded.last_succeeded_at, scheduler_tasks.last_succeeded_at),
               run_ms = coalesce(excluded.run_ms, scheduler_tasks.run_ms),
               last_error = CASE WHEN excluded.last_finished_at IS NULL THEN scheduler_tasks.last_error
                                 ELSE excluded.last_error END"#,
        leader,
        &reports.iter().map(|report| report.name).collect::<Vec<_>>() as &[&str],
        &column(|report| Some(report.every)) as &[Option<i64>],
        &column(|report| Some(report.started_ago)) as &[Option<i64>],
        &column(|report| report.finished_ago) as &[Option<i64>],
        &column(|report| report.succeeded_ago) as &[Option<i64>],
        &column(|report| report.took) as &[Option<i64>],
        &reports.iter().map(|report| report.error.as_deref()).collect::<Vec<_>>() as &[Option<&str>],
    )
    .execute(connection)
    .await
    .or_fault("record the runs of tasks")?;
    Ok(())
}

/// Deletes the tasks that are not in `names`: those of other versions.
pub async fn delete_others(connection: &mut PgConnection, names: &[&str]) -> Result<(), Fault> {
    query!(
        "DELETE FROM scheduler_tasks WHERE name <> ALL($1)",
        names as &[&str],
    )
    .execute(connection)
    .await
    .or_fault("delete obsolete tasks")?;
    Ok(())
}

/// All tasks, by name.
pub async fn list(connection: &mut PgConnection) -> Result<Vec<TaskState>, Fault> {
    let rows = query!(
        r#"SELECT name, interval_ms, leader, last_started_at, last_finished_at, last_succeeded_at, run_ms, last_error,
                  (extract(epoch FROM clock_timestamp() - last_started_at) * 1000)::bigint AS "started_ago_ms!",
                  (extract(epoch FROM clock_timestamp() - coalesce(last_succeeded_at, first_seen_at)) * 1000)::bigint
                      - interval_ms AS "lag_ms!"
           FROM scheduler_tasks
           ORDER BY name"#
    )
    .fetch_all(connection)
    .await
    .or_fault("list tasks")?;
    let states = rows.into_iter().map(|row| TaskState {
        name: row.name,
        every: milliseconds(row.interval_ms),
        leader: row.leader,
        last_started_at: row.last_started_at,
        last_finished_at: row.last_finished_at,
        last_succeeded_at: row.last_succeeded_at,
        took: row.run_ms.map(milliseconds),
        last_error: row.last_error,
        started_ago: milliseconds(row.started_ago_ms),
        lag: milliseconds(row.lag_ms).saturating_sub(STORED_EVERY),
    });
    Ok(states.collect())
}

fn whole_milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A negative number becomes zero: a run ended during the query.
fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or_default())
}
