//! `waypost-api tasks`: what the scheduler's tasks did last, for people and for
//! monitors.

use std::time::Duration;

use serde_json::json;
use waypost_core::db::{OrFault, PgPool};
use waypost_core::task_log::{TaskState, store};

use super::CommandError;

/// Prints every task: its rhythm, when it last ran, how long that took, how much
/// later than its rhythm it is, and why it last failed.
///
/// # Errors
/// Which tasks are late, or that no scheduler ever ran.
pub(super) async fn show(pool: &PgPool, as_json: bool) -> Result<(), CommandError> {
    let mut connection = pool.acquire().await.or_fault("reach Postgres")?;
    let tasks = store::list(&mut connection).await?;
    if as_json {
        let tasks: Vec<_> = tasks.iter().map(to_json).collect();
        println!("{:#}", serde_json::Value::from(tasks));
    } else {
        print!("{}", table(&tasks));
    }
    if tasks.is_empty() {
        return Err("no scheduler has run yet".into());
    }
    let late: Vec<&str> = tasks
        .iter()
        .filter(|task| task.is_late())
        .map(|task| task.name.as_str())
        .collect();
    if late.is_empty() {
        Ok(())
    } else {
        Err(format!("late: {}", late.join(", ")).into())
    }
}

fn to_json(task: &TaskState) -> serde_json::Value {
    let milliseconds = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
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
    let heads = ["TASK", "EVERY", "LAST RUN", "TOOK", "LAG", "LAST ERROR"].map(str::to_owned);
    let rows = tasks.iter().map(|task| {
        let late = if task.is_late() { " LATE" } else { "" };
        [
            task.name.clone(),
            span(task.every),
            format!("{} ago", span(task.started_ago)),
            task.took.map_or_else(|| "-".to_owned(), span),
            format!("{}{late}", span(task.lag)),
            task.last_error.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let rows: Vec<_> = std::iter::once(heads).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(&row[5]);
        text.push('\n');
    }
    text
}

fn span(span: Duration) -> String {
    match span.as_secs() {
        0 => format!("{} ms", span.as_millis()),
        seconds @ 1..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
