//! The settings of an organization, which it changes itself.

use serde_json::json;

use super::brand_color::BrandColor;
use super::{UnverifiedDomains, store};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};
use crate::text::Name;

/// Largest window of soft bounces, in days.
pub const SOFT_BOUNCE_WINDOW_DAYS_MAX: u32 = 365;

/// The settings of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganizationSettings {
    pub name: String,
    /// The colour of the pages for recipients; `None`: a neutral one.
    pub brand_color: Option<BrandColor>,
    pub unverified_domains: UnverifiedDomains,
    /// The default for messages that do not set it.
    pub track_opens: bool,
    /// The default for messages that do not set it.
    pub track_clicks: bool,
    /// Days for which messages are kept. `None`: as long as the operator keeps them.
    pub retention_days: Option<u32>,
    /// `None`: the operator's limit.
    pub send_per_second: Option<u32>,
    /// `None`: the operator's limit.
    pub other_per_second: Option<u32>,
    /// Number of soft bounces that suppress an address. 0: soft bounces never do.
    pub soft_bounce_limit: u32,
    /// Days within which soft bounces count.
    pub soft_bounce_window_days: u32,
}

/// A change of the settings. `None` leaves a field as it is.
#[derive(Debug, Default)]
pub struct SettingsChange {
    pub name: Option<Name>,
    pub brand_color: Option<Option<BrandColor>>,
    pub unverified_domains: Option<UnverifiedDomains>,
    pub track_opens: Option<bool>,
    pub track_clicks: Option<bool>,
    pub retention_days: Option<Option<u32>>,
    pub send_per_second: Option<Option<u32>>,
    pub other_per_second: Option<Option<u32>>,
    pub soft_bounce_limit: Option<u32>,
    pub soft_bounce_window_days: Option<u32>,
}

impl SettingsChange {
    /// The names of the changed fields, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.name.is_some().then_some("name"),
            self.brand_color.is_some().then_some("brandColor"),
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

/// Changes the settings of organizations. Cheap to clone.
#[derive(Clone)]
pub struct SettingsService {
    pub pool: PgPool,
    pub clock: Clock,
    pub ids: Ids,
}

impl SettingsService {
    /// Changes settings and returns them; `None` if there is no such organization. The caller
    /// must invalidate the organization in `routing::snapshot_cache`.
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
