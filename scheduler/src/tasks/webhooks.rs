//! Notifies the workers of endpoints with due deliveries: nothing else announces retries, and a
//! notification of an event may have been missed. Also deletes the deliveries of deleted
//! endpoints, a limited number per statement.

use tracing::debug;
use waypost_core::db::{OrFault, PgConnection};
use waypost_core::fault::Fault;
use waypost_core::webhook::engine::store;

use super::{Tasks, WorkFound};

/// Deliveries per statement.
const STEP: u64 = 1_000;
/// Statements per run; the next run continues.
const STEPS_MAX: usize = 20;

pub(super) async fn notify_due(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let now = tasks.clock.now();
    let notify = async |connection: &mut PgConnection| store::notify_due(connection, now).await;
    let endpoints = tasks.polls.run("relay webhooks", notify).await?;
    if endpoints > 0 {
        debug!(
            endpoints,
            "Notified workers of endpoints with due deliveries"
        );
    }
    Ok(match endpoints {
        0 => WorkFound::Nothing,
        _ => WorkFound::Work,
    })
}

pub(super) async fn delete_of_deleted(tasks: &Tasks) -> Result<(), Fault> {
    let mut deleted = 0;
    for _ in 0..STEPS_MAX {
        let doing = "delete the deliveries of deleted webhook endpoints";
        let mut connection = tasks.pool.acquire().await.or_fault(doing)?;
        let limit = i64::try_from(STEP).unwrap_or(i64::MAX);
        let step = store::delete_of_deleted(&mut connection, limit).await?;
        deleted += step;
        if step < STEP {
            break;
        }
    }
    if deleted > 0 {
        debug!(
            deleted,
            "Deleted the deliveries of deleted webhook endpoints"
        );
    }
    Ok(())
}
