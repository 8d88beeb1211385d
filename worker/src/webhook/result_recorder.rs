//! What came of calls, written to Postgres for many at once.

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

/// One at a time: how an endpoint fares must not be overwritten by what was known
/// earlier.
const LANES: usize = 1;
/// Calls in one transaction at the most.
const GROUP_MAX: usize = 500;
/// Calls that may wait for a transaction.
const WAITING_MAX: usize = 8_192;
/// The waits between tries while Postgres is away.
const AGAIN_FIRST: Duration = Duration::from_millis(100);
const AGAIN_LONGEST: Duration = Duration::from_secs(5);

const RECORD: &str = "record webhook attempts";

/// Shared writing. Cheap to clone.
#[derive(Clone)]
pub(super) struct ResultRecorder {
    group: Batcher<EndpointResults, ()>,
}

/// Calls to one endpoint to record, and how it fares by the time they are written:
/// calls are recorded in any order.
#[derive(Clone)]
struct EndpointResults {
    calls: Arc<[CallRecord]>,
    latest: watch::Receiver<EndpointHealth>,
}

impl EndpointResults {
    /// The calls that say something of the endpoint.
    fn news(&self) -> impl Iterator<Item = (&CallRecord, &watch::Receiver<EndpointHealth>)> {
        let is_news = |call: &&CallRecord| call.fare.is_some() || call.deactivated.is_some();
        let news = self.calls.iter().filter(is_news);
        news.map(|call| (call, &self.latest))
    }

    /// Each call alone.
    fn split(&self) -> impl Iterator<Item = Self> {
        self.calls.iter().map(|call| Self {
            calls: Arc::from([call.clone()]),
            latest: self.latest.clone(),
        })
    }
}

impl ResultRecorder {
    pub(super) fn start(pool: PgPool, ids: Ids, clock: Clock) -> Self {
        let settings = BatcherSettings {
            flushes_max: LANES,
            batch_weight_max: GROUP_MAX,
            batch_min: 1,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(ResultWriter { pool, ids, clock });
        let group = Batcher::start("webhook_attempts", settings, move |calls| {
            let writer = Arc::clone(&writer);
            async move { writer.write(calls).await }
        });
        Self { group }
    }

    /// Records calls to one endpoint, however long Postgres is away, and says whether
    /// it recorded all of them.
    pub(super) async fn add(
        &self,
        calls: Vec<CallRecord>,
        latest: watch::Receiver<EndpointHealth>,
    ) -> bool {
        let (count, calls) = (calls.len(), Arc::from(calls));
        let entry = EndpointResults { calls, latest };
        let mut wait = AGAIN_FIRST;
        loop {
            match self.group.run(entry.clone(), count).await {
                Ok(()) => return true,
                Err(fault) if fault.kind() == FaultKind::Unavailable => {
                    warn_seldom!(
                        cause = fault.chain(),
                        "Webhook attempts could not be recorded yet"
                    );
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(AGAIN_LONGEST);
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
            // Find the one that Postgres refuses, so that its neighbours do not
            // pay for it.
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

    /// Writes each call of an entry alone, all that can be written.
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
        let mut news: Vec<_> = entries.iter().flat_map(EndpointResults::news).collect();
        if news.is_empty() {
            let mut connection = self.pool.acquire().await.or_fault(RECORD)?;
            return store::record(&mut connection, &calls).await;
        }
        // Rows of several endpoints are locked in one order.
        news.sort_by_key(|(call, _)| call.endpoint_id);
        let mut transaction = db::begin(&self.pool, RECORD).await?;
        store::record(&mut transaction, &calls).await?;
        for (place, (call, latest)) in news.iter().enumerate() {
            let is_last = news
                .get(place + 1)
                .is_none_or(|(next, _)| next.endpoint_id != call.endpoint_id);
            if is_last && call.fare.is_some() {
                let fare = *latest.borrow();
                store::update_fare(&mut transaction, call, fare).await?;
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
        let origin = Origin::system(call.attempt.id);
        let change = AuditChange::new("webhook_endpoint.deactivated", id).with(json!({
            "reason": reason.as_str(),
            "failingSince": call.fare.and_then(|fare| fare.failing_since),
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
