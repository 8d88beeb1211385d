//! `waypost-api tasks`: the last runs of the scheduler's tasks, for operators and
//! monitoring.

use std::time::Duration;

use serde_json::json;
use waypost_core::db::OrFault;
use waypost_core::task_log::{TaskState, store};

use super::CommandError;
use super::output::{self, OutputFormat};
use super::tools::CommandTools;

/// Prints each task: its interval, its last run, the duration of that run, its lag and
/// its last error.
///
/// # Errors
/// The names of late tasks, or that no scheduler has run yet.
pub(super) async fn show(format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("tasks").await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let tasks = store::list(&mut connection).await?;
    format.print(|| table(&tasks), || tasks.iter().map(to_json).collect());
    if tasks.is_empty() {
        return Err("no scheduler has run yet: start waypost-scheduler".into());
    }
    let late: Vec<&str> = tasks
        .iter()
        .filter(|task| task.is_late())
        .map(|task| task.name.as_str())
        .collect();
    if late.is_empty() {
        Ok(())
    } else {
        Err(format!("late tasks: {}", late.join(", ")).into())
    }
}

fn to_json(task: &TaskState) -> serde_json::Value {
    let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    json!({
        "name": task.name,
        "everyMs": milliseconds(task.every),
        "leader": task.leader,
        "lastStartedAt": task.last_started_at,
        "lastFinishedAt": task.last_finished_at,
        "lastSucceededAt": task.last_succeeded_at,
        "tookMs": task.took.map(milliseconds),
        "lagMs": milliseconds(task.lag),
        "isLate": task.is_late(),
        "lastError": task.last_error,
    })
}

fn table(tasks: &[TaskState]) -> String {
    let head = [
        "TASK",
        "INTERVAL",
        "LAST RUN",
        "DURATION",
        "LAG",
        "LAST ERROR",
    ];
    let rows = tasks.iter().map(|task| {
        let late = if task.is_late() { " LATE" } else { "" };
        [
            task.name.clone(),
            short(task.every),
            format!("{} ago", short(task.started_ago)),
            task.took.map_or_else(|| "-".to_owned(), short),
            format!("{}{late}", short(task.lag)),
            task.last_error.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    output::table(head, rows)
}

/// A duration in its largest fitting unit.
pub(super) fn short(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
