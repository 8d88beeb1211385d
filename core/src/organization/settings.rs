//! The switches of an organization, which it sets itself.

use serde_json::json;

use super::{UnverifiedDomains, store};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};

/// The longest time within which soft bounces count, in days.
pub const SOFT_BOUNCE_WINDOW_DAYS_MAX: u32 = 365;

/// An organization's switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrganizationSettings {
    /// What a send from an unverified domain gets.
    pub unverified_domains: UnverifiedDomains,
    /// Whether opens are tracked where a message does not say.
    pub track_opens: bool,
    /// Whether clicks are tracked where a message does not say.
    pub track_clicks: bool,
    /// How many days messages are kept; as long as the operator keeps them where nothing
    /// is said.
    pub retention_days: Option<u32>,
    /// Sends per second; the operator's bound where nothing is said.
    pub send_per_second: Option<u32>,
    /// Other requests per second; the operator's bound where nothing is said.
    pub other_per_second: Option<u32>,
    /// Soft bounces that suppress an address; 0 means none ever do.
    pub soft_bounce_limit: u32,
    pub soft_bounce_window_days: u32,
}

/// What of the switches is to change; what is absent stays.
#[derive(Debug, Default)]
pub struct SettingsChange {
    /// What a send from an unverified domain gets.
    pub unverified_domains: Option<UnverifiedDomains>,
    pub track_opens: Option<bool>,
    pub track_clicks: Option<bool>,
    /// Another number of days, or none.
    pub retention_days: Option<Option<u32>>,
    pub send_per_second: Option<Option<u32>>,
    pub other_per_second: Option<Option<u32>>,
    /// Another number of soft bounces.
    pub soft_bounce_limit: Option<u32>,
    /// Another number of days.
    pub soft_bounce_window_days: Option<u32>,
}

impl SettingsChange {
    /// The names of the fields that are to change, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.unverified_domains
                .is_some()
                .then_some("unverifiedDomains"),
            self.track_opens.is_some().then_some("trackOpens"),
            self.track_clicks.is_some().then_some("trackClicks"),
            self.retention_days.is_some().then_some("retentionDays"),
            self.send_per_second
                .is_some()
                .then_some("rateLimits.sendPerSecond"),
            self.other_per_second
                .is_some()
                .then_some("rateLimits.otherPerSecond"),
            self.soft_bounce_limit
                .is_some()
                .then_some("softBounceLimit"),
            self.soft_bounce_window_days
                .is_some()
                .then_some("softBounceWindowDays"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Works on the switches of organizations. Cheap to clone.
#[derive(Clone)]
pub struct SettingsService {
    pub pool: PgPool,
    pub clock: Clock,
    pub ids: Ids,
}

impl SettingsService {
    /// Changes settings; nothing where there is no such organization. The caller has
    /// routing forget the organization (`routing::snapshot_cache`).
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        wanted: &SettingsChange,
    ) -> Result<Option<OrganizationSettings>, Fault> {
        let doing = "change the settings";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let changed = store::update_settings(&mut transaction, organization_id, wanted).await?;
        let change = AuditChange::new("settings.updated", organization_id)
            .with(json!({ "fields": wanted.fields() }));
        let now = self.clock.now();
        audit::store::insert(
            &mut transaction,
            organization_id,
            origin,
            &change,
            &self.ids,
            now,
        )
        .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(changed)
    }
}
