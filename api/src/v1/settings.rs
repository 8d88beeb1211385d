//! The settings of the organization.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{Object, OpenApi};
use serde_json::Value;
use waypost_core::config::RETENTION_DAYS_MAX;
use waypost_core::db::OrFault;
use waypost_core::issue::Issue;
use waypost_core::organization::brand_color::BrandColor;
use waypost_core::organization::settings::{
    OrganizationSettings, SOFT_BOUNCE_WINDOW_DAYS_MAX, SettingsChange,
};
use waypost_core::organization::{UnverifiedDomains, store};
use waypost_core::suppression::feedback::SOFT_BOUNCES_MAX;
use waypost_core::text::Name;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::{self, Whole};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::response::{Data, Nullable};
use crate::v1::Section;
use crate::validate::{Clearable, Field, Settable, Validated, problem};

pub(crate) struct SettingsApi {
    pub(crate) context: Arc<Context>,
}

/// The settings of the organization.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct Settings {
    /// The name of the organization. Recipients see it on the pages of unsubscribe links.
    name: String,
    /// The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour.
    brand_color: Nullable<String>,
    /// What happens to a message whose sender domain is not verified on the provider
    /// account: `reject` (the send gets 422) or `accept` (the send gets 202 with
    /// `domainVerified: false`).
    unverified_domains: String,
    /// Whether opens are tracked, unless a message sets `tracking`. A change applies to
    /// messages accepted after it.
    track_opens: bool,
    /// Whether clicks are tracked, unless a message sets `tracking`. A change applies to
    /// messages accepted after it.
    track_clicks: bool,
    /// How many days messages and their data are stored; null means the operator's
    /// retention period. If the operator's period is shorter, it applies. Metrics and the
    /// audit log are not affected.
    retention_days: Nullable<u32>,
    rate_limits: RateLimits,
    /// How many soft bounces of an address add a suppression for it, with the source
    /// BOUNCE; 0 means never.
    soft_bounce_limit: u32,
    /// The number of days within which soft bounces are counted together.
    soft_bounce_window_days: u32,
}

/// Rate limits, in requests per second; null means the operator's limit.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RateLimits {
    /// The limit of `POST /v1/send`.
    send_per_second: Nullable<u32>,
    /// The limit of all other operations together.
    other_per_second: Nullable<u32>,
}

impl From<OrganizationSettings> for Settings {
    fn from(settings: OrganizationSettings) -> Self {
        Self {
            name: settings.name,
            brand_color: Nullable(settings.brand_color.map(|color| color.to_string())),
            unverified_domains: settings.unverified_domains.as_str().to_owned(),
            track_opens: settings.track_opens,
            track_clicks: settings.track_clicks,
            retention_days: Nullable(settings.retention_days),
            rate_limits: RateLimits {
                send_per_second: Nullable(settings.send_per_second),
                other_per_second: Nullable(settings.other_per_second),
            },
            soft_bounce_limit: settings.soft_bounce_limit,
            soft_bounce_window_days: settings.soft_bounce_window_days,
        }
    }
}

/// The changes to the settings. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateSettingsRequest {
    /// The name of the organization. Recipients see it on the pages of unsubscribe links.
    name: Validated<Settable<Name>>,
    /// The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour.
    /// A button of this colour has an edge that is seen, and white or black text, whichever is
    /// read.
    brand_color: Validated<Clearable<BrandColor>>,
    /// What happens to a message whose sender domain is not verified: `reject` or
    /// `accept`.
    unverified_domains: Validated<Settable<UnverifiedDomains>>,
    /// Whether opens are tracked, unless a message sets `tracking`.
    track_opens: Validated<Settable<bool>>,
    /// Whether clicks are tracked, unless a message sets `tracking`.
    track_clicks: Validated<Settable<bool>>,
    /// How many days messages and their data are stored; null means the operator's
    /// retention period. Older messages are permanently deleted within minutes; messages
    /// that are still being sent are deleted when they are done.
    retention_days: Validated<Clearable<Whole<1, RETENTION_DAYS_MAX>>>,
    /// Rate limits, in requests per second, up to the operator's limits; null means the
    /// operator's limit.
    rate_limits: Validated<Settable<WantedRateLimits>>,
    /// How many soft bounces of an address add a suppression for it; 0 means never.
    soft_bounce_limit: Validated<Settable<Whole<0, SOFT_BOUNCES_MAX>>>,
    /// The number of days within which soft bounces are counted together.
    soft_bounce_window_days: Validated<Settable<Whole<1, SOFT_BOUNCE_WINDOW_DAYS_MAX>>>,
}

impl Field for BrandColor {
    fn schema() -> MetaSchemaRef {
        fields::schema("string", |schema| {
            schema.pattern = Some("^#[0-9a-fA-F]{6}$".to_owned());
            schema.example = Some(Value::from("#1a73e8"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = fields::string(value)?;
        text.parse()
            .or_else(|error: &str| problem(error.to_owned()))
    }
}

type PerSecond = Clearable<Whole<1, 1_000_000>>;

/// The rate limits of an update.
#[derive(Debug, Default)]
struct WantedRateLimits {
    send: PerSecond,
    other: PerSecond,
}

const SEND_PER_SECOND: &str = "sendPerSecond";
const OTHER_PER_SECOND: &str = "otherPerSecond";

impl Field for WantedRateLimits {
    fn schema() -> MetaSchemaRef {
        fields::schema("object", |object| {
            object.title = Some("UpdateRateLimits".to_owned());
            object.properties = vec![
                (SEND_PER_SECOND, PerSecond::schema()),
                (OTHER_PER_SECOND, PerSecond::schema()),
            ];
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(mut given) = value else {
            let kind = fields::kind_of(&value);
            return problem(format!("must be an object, not {kind}"));
        };
        let mut issues = Vec::new();
        let mut read = |name| {
            let field = match given.remove(name) {
                None => PerSecond::absent(),
                Some(Value::Null) => PerSecond::null(),
                Some(value) => PerSecond::read(value),
            };
            field.unwrap_or_else(|found| {
                issues.extend(found.into_iter().map(|issue| issue.under(name)));
                PerSecond::default()
            })
        };
        let limits = Self {
            send: read(SEND_PER_SECOND),
            other: read(OTHER_PER_SECOND),
        };
        if issues.is_empty() {
            Ok(limits)
        } else {
            Err(issues)
        }
    }
}

const ORGANIZATION: &str = "organization";

#[OpenApi(tag = "Section::Settings")]
impl SettingsApi {
    /// Get the settings
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    #[oai(path = "/v1/settings", method = "get", operation_id = "get_settings")]
    async fn get_settings(
        &self,
        caller: Requires<permission::SettingsWrite>,
    ) -> Result<Json<Data<Settings>>, Failure> {
        let caller = caller.authorize()?;
        let doing = "show the settings";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let settings = store::find_settings(&mut connection, caller.organization_id())
            .await?
            .ok_or(Failure::NotFound(ORGANIZATION))?;
        Ok(Json(Data {
            data: settings.into(),
        }))
    }

    /// Change the settings
    ///
    /// Requires the permission `SETTINGS_WRITE`. `unverifiedDomains`, `trackOpens` and
    /// `trackClicks` take effect at once, `rateLimits` within a few seconds, and
    /// `retentionDays` within minutes. Deleted messages cannot be restored.
    #[oai(
        path = "/v1/settings",
        method = "patch",
        operation_id = "update_settings"
    )]
    async fn update_settings(
        &self,
        caller: Requires<permission::SettingsWrite>,
        body: JsonBody<UpdateSettingsRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<Settings>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let wanted = self.check(request, issues).map_err(Failure::Invalid)?;
        let settings = self
            .context
            .organization_settings
            .change(caller.organization_id(), caller.origin(), &wanted)
            .await?
            .ok_or(Failure::NotFound(ORGANIZATION))?;
        let snapshots = &self.context.accounts.snapshots;
        snapshots.forget(caller.organization_id()).await;
        Ok(Json(Data {
            data: settings.into(),
        }))
    }
}

impl SettingsApi {
    fn check(
        &self,
        request: UpdateSettingsRequest,
        mut issues: Vec<Issue>,
    ) -> Result<SettingsChange, Vec<Issue>> {
        let name = request.name.change("name", &mut issues);
        let brand_color = request.brand_color.change("brandColor", &mut issues);
        let unverified = request
            .unverified_domains
            .change("unverifiedDomains", &mut issues);
        let track_opens = request.track_opens.change("trackOpens", &mut issues);
        let track_clicks = request.track_clicks.change("trackClicks", &mut issues);
        let retention = request.retention_days.change("retentionDays", &mut issues);
        let limits = request.rate_limits.change("rateLimits", &mut issues);
        let limits = limits.unwrap_or_default();
        let soft_limit = request
            .soft_bounce_limit
            .change("softBounceLimit", &mut issues);
        let soft_window = request
            .soft_bounce_window_days
            .change("softBounceWindowDays", &mut issues);
        let bounds = &self.context.settings;
        let mut within = |limit: PerSecond, max: u32, name: &str| {
            let wanted = number(limit);
            if wanted.flatten().is_some_and(|wanted| wanted > max) {
                let path = format!("rateLimits.{name}");
                let message = format!("must not be larger than {max}, the operator's limit");
                issues.push(Issue::new(path, message));
            }
            wanted
        };
        let change = SettingsChange {
            name,
            brand_color,
            unverified_domains: unverified,
            track_opens,
            track_clicks,
            retention_days: retention.map(|days| days.map(|days| days.0)),
            send_per_second: within(limits.send, bounds.rate_limit_send_max, SEND_PER_SECOND),
            other_per_second: within(limits.other, bounds.rate_limit_other_max, OTHER_PER_SECOND),
            soft_bounce_limit: soft_limit.map(|limit| limit.0),
            soft_bounce_window_days: soft_window.map(|days| days.0),
        };
        if issues.is_empty() {
            Ok(change)
        } else {
            Err(issues)
        }
    }
}

fn number<const MAX: u32>(field: Clearable<Whole<1, MAX>>) -> Option<Option<u32>> {
    field.0.map(|given| given.map(|number| number.0))
}
