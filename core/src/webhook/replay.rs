//! Replaying deliveries. A replayed delivery keeps its id, which receivers see as
//! `webhook-id`, and its earlier attempts. A delivery that waits for its next attempt
//! becomes due at once.

use std::time::Duration;

use chrono::SecondsFormat;
use serde_json::json;
use uuid::Uuid;

use super::deliveries::{Delivery, add_attempts, store};
use super::endpoint::{EndpointRefusal, WebhookEndpoint, WebhookEndpoints};
use super::status::DeliveryStatus;
use crate::audit::{AuditChange, Origin};
use crate::clock::Timestamp;
use crate::db::{self, OrFault};
use crate::ids::{self, OrganizationId, WebhookDeliveryId, WebhookEndpointId};

/// The longest period that one request may replay.
pub const PERIOD_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Deliveries that one request replays at most.
const REPLAYED_MAX: usize = 100_000;
/// Deliveries that one transaction replays at most.
const STEP_MAX: i64 = 1_000;

/// Which deliveries to replay.
#[derive(Debug, Clone, Copy)]
pub struct ReplayPeriod {
    /// Deliveries created from then on.
    pub since: Timestamp,
    pub until: Timestamp,
    /// Only deliveries with this status.
    pub status: Option<DeliveryStatus>,
}

/// The result of replaying a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// How many deliveries are due again.
    pub count: usize,
    /// The start of the rest; `None` if all deliveries were replayed.
    pub continue_from: Option<Timestamp>,
}

/// The next part of a period.
#[derive(Debug)]
pub(super) struct ReplayStep {
    pub(super) period: ReplayPeriod,
    /// Deliveries with greater ids. An id contains the time of its creation.
    pub(super) after: Uuid,
    pub(super) before: Uuid,
    pub(super) limit: i64,
}

impl WebhookEndpoints {
    /// Makes one delivery due again.
    ///
    /// # Errors
    /// Why it was not replayed.
    pub async fn replay_one(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        endpoint_id: WebhookEndpointId,
        id: WebhookDeliveryId,
    ) -> Result<Delivery, EndpointRefusal> {
        let doing = "replay a webhook delivery";
        self.find_active(organization_id, endpoint_id).await?;
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, doing).await?;
        if !store::replay(&mut transaction, organization_id, endpoint_id, id, now).await? {
            return Err(EndpointRefusal::DeliveryNotFound);
        }
        let change = AuditChange::new("webhook_delivery.replayed", id)
            .with(json!({ "endpointId": endpoint_id }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        store::notify_due(&mut transaction, endpoint_id).await?;
        let mut delivery = store::find(&mut transaction, organization_id, endpoint_id, id)
            .await?
            .ok_or(EndpointRefusal::DeliveryNotFound)?;
        add_attempts(
            &mut transaction,
            organization_id,
            std::slice::from_mut(&mut delivery),
        )
        .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(delivery)
    }

    /// Makes the deliveries of a period due again, oldest first, in several transactions.
    /// A request that is repeated after a failure replays the first ones again.
    ///
    /// # Errors
    /// Why they were not replayed.
    pub async fn replay(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        endpoint_id: WebhookEndpointId,
        period: ReplayPeriod,
    ) -> Result<Replayed, EndpointRefusal> {
        let doing = "replay webhook deliveries";
        self.find_active(organization_id, endpoint_id).await?;
        let mut step = ReplayStep {
            period,
            after: ids::first_of(period.since),
            // Ids have milliseconds; the rest of the last millisecond belongs to the
            // period.
            before: ids::first_of(period.until + chrono::TimeDelta::milliseconds(1)),
            limit: STEP_MAX,
        };
        let mut count = 0;
        loop {
            let now = self.clock.now();
            let mut transaction = db::begin(&self.pool, doing).await?;
            if count == 0 {
                let change = AuditChange::new("webhook_endpoint.replayed", endpoint_id)
                    .with(audit_metadata(&period));
                self.record(&mut transaction, organization_id, origin, &change)
                    .await?;
            }
            let replayed =
                store::replay_step(&mut transaction, organization_id, endpoint_id, &step, now)
                    .await?;
            if !replayed.is_empty() {
                store::notify_due(&mut transaction, endpoint_id).await?;
            }
            transaction.commit().await.or_fault(doing)?;
            count += replayed.len();
            let last = replayed.last().copied();
            let Some((id, created_at)) = last.filter(|_| replayed.len() as i64 == STEP_MAX) else {
                return Ok(Replayed {
                    count,
                    continue_from: None,
                });
            };
            if count >= REPLAYED_MAX {
                return Ok(Replayed {
                    count,
                    continue_from: Some(created_at),
                });
            }
            step.after = id.0;
        }
    }

    /// An endpoint that is active.
    async fn find_active(
        &self,
        organization_id: OrganizationId,
        id: WebhookEndpointId,
    ) -> Result<WebhookEndpoint, EndpointRefusal> {
        let endpoint = self.find(organization_id, id).await?;
        if endpoint.is_active {
            Ok(endpoint)
        } else {
            Err(EndpointRefusal::Inactive)
        }
    }
}

fn audit_metadata(period: &ReplayPeriod) -> serde_json::Value {
    let text = |moment: Timestamp| moment.to_rfc3339_opts(SecondsFormat::Millis, true);
    json!({
        "since": text(period.since),
        "until": text(period.until),
        "status": period.status.map(DeliveryStatus::as_str),
    })
}
