//! Records the results of calls in Postgres, many at once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tracing::{error, info};
use waypost_core::audit::{self, AuditChange, Origin};
use waypost_core::batcher::{Batcher, BatcherSettings, Cooldown};
use waypost_core::clock::Clock;
use waypost_core::db::{self, OrFault, PgConnection, PgPool};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::Ids;
use waypost_core::warn_seldom;
use waypost_core::webhook::engine::endpoint_health::EndpointHealth;
use waypost_core::webhook::engine::{CallRecord, store};

/// One at a time: an older health must not overwrite a newer one.
const TRANSACTIONS_MAX: usize = 1;
/// Calls in one transaction, at most.
const BATCH_CALLS_MAX: usize = 500;
/// Calls that may be queued.
const WAITING_MAX: usize = 8_192;
/// The waits between tries while Postgres is unavailable.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

const RECORD: &str = "record webhook attempts";

/// Records results in shared transactions. Cheap to clone.
#[derive(Clone)]
pub(super) struct ResultRecorder {
    batcher: Batcher<EndpointResults, ()>,
}

/// The results of one endpoint's calls. Calls are recorded in any order, so its health is
/// read when they are written.
#[derive(Clone)]
struct EndpointResults {
    calls: Arc<[CallRecord]>,
    health: watch::Receiver<EndpointHealth>,
}

impl EndpointResults {
    /// The calls that change the endpoint.
    fn health_changes(
        &self,
    ) -> impl Iterator<Item = (&CallRecord, &watch::Receiver<EndpointHealth>)> {
        let has_change = |call: &&CallRecord| call.health.is_some() || call.deactivated.is_some();
        let changes = self.calls.iter().filter(has_change);
        changes.map(|call| (call, &self.health))
    }

    /// Splits into single calls.
    fn split(&self) -> impl Iterator<Item = Self> {
        self.calls.iter().map(|call| Self {
            calls: Arc::from([call.clone()]),
            health: self.health.clone(),
        })
    }
}

impl ResultRecorder {
    pub(super) fn start(pool: PgPool, ids: Ids, clock: Clock) -> Self {
        let settings = BatcherSettings {
            flushes_max: TRANSACTIONS_MAX,
            batch_weight_max: BATCH_CALLS_MAX,
            batch_min: 1,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(ResultWriter { pool, ids, clock });
        let batcher = Batcher::start("webhook_attempts", settings, move |calls| {
            let writer = Arc::clone(&writer);
            async move { writer.write(calls).await }
        });
        Self { batcher }
    }

    /// Records calls to one endpoint, retrying while Postgres is unavailable. Returns
    /// whether all of them were recorded.
    pub(super) async fn record(
        &self,
        calls: Vec<CallRecord>,
        health: watch::Receiver<EndpointHealth>,
    ) -> bool {
        let (count, calls) = (calls.len(), Arc::from(calls));
        let entry = EndpointResults { calls, health };
        let mut wait = RETRY_FIRST;
        loop {
            match self.batcher.run(entry.clone(), count).await {
                Ok(()) => return true,
                Err(fault) if fault.kind() == FaultKind::Unavailable => {
                    warn_seldom!(
                        cause = fault.chain(),
                        "Webhook attempts could not be recorded yet"
                    );
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RETRY_MAX);
                }
                Err(fault) => {
                    error!(
                        cause = fault.chain(),
                        "Webhook attempts could not be recorded"
                    );
                    return false;
                }
            }
        }
    }
}

struct ResultWriter {
    pool: PgPool,
    ids: Ids,
    clock: Clock,
}

impl ResultWriter {
    async fn write(&self, entries: Vec<EndpointResults>) -> Vec<Result<(), Fault>> {
        match db::bounded(RECORD, self.try_write(&entries)).await {
            Ok(()) => entries.iter().map(|_| Ok(())).collect(),
            // Postgres refused one of the entries: write them one by one, so that the
            // others are recorded.
            Err(fault) if fault.kind() == FaultKind::Internal => {
                let mut results = Vec::with_capacity(entries.len());
                for entry in &entries {
                    results.push(self.write_each(entry).await);
                }
                results
            }
            Err(fault) => entries.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    /// Writes each call of an entry on its own, as many as Postgres accepts.
    async fn write_each(&self, entry: &EndpointResults) -> Result<(), Fault> {
        let mut result = Ok(());
        for one in entry.split() {
            let written = db::bounded(RECORD, self.try_write(std::slice::from_ref(&one))).await;
            result = result.and(written);
        }
        result
    }

    async fn try_write(&self, entries: &[EndpointResults]) -> Result<(), Fault> {
        let calls: Vec<&CallRecord> = entries.iter().flat_map(|one| one.calls.iter()).collect();
        let mut changes: Vec<_> = entries
            .iter()
            .flat_map(EndpointResults::health_changes)
            .collect();
        if changes.is_empty() {
            let mut connection = self.pool.acquire().await.or_fault(RECORD)?;
            return store::record(&mut connection, &calls).await;
        }
        // Endpoints are locked in the order of their ids.
        changes.sort_by_key(|(call, _)| call.endpoint_id);
        let mut transaction = db::begin(&self.pool, RECORD).await?;
        store::record(&mut transaction, &calls).await?;
        for (index, (call, health)) in changes.iter().enumerate() {
            let is_last = changes
                .get(index + 1)
                .is_none_or(|(next, _)| next.endpoint_id != call.endpoint_id);
            if is_last && call.health.is_some() {
                let health = *health.borrow();
                store::update_health(&mut transaction, call, health).await?;
            }
            self.deactivate(&mut transaction, call).await?;
        }
        transaction.commit().await.or_fault(RECORD)
    }

    async fn deactivate(
        &self,
        connection: &mut PgConnection,
        call: &CallRecord,
    ) -> Result<(), Fault> {
        let Some(reason) = call.deactivated else {
            return Ok(());
        };
        let (id, now) = (call.endpoint_id, self.clock.now());
        if !store::deactivate(connection, call, now).await? {
            return Ok(());
        }
        info!(webhook_endpoint.id = %id, reason = reason.as_str(), "Deactivated a webhook endpoint");
        store::insert_disabled_event(connection, call, reason, now).await?;
        let origin = Origin::system(call.attempt.id);
        let change = AuditChange::new("webhook_endpoint.deactivated", id).with(json!({
            "reason": reason.as_str(),
            "failingSince": call.health.and_then(|health| health.failing_since),
        }));
        let organization_id = call.organization_id;
        audit::store::insert(
            connection,
            organization_id,
            &origin,
            &change,
            &self.ids,
            now,
        )
        .await
    }
}
