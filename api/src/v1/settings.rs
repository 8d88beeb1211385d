//! The organization's own switches.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{Object, OpenApi};
use serde_json::Value;
use waypost_core::auth::Permission;
use waypost_core::config::RETENTION_DAYS_MAX;
use waypost_core::db::OrFault;
use waypost_core::issue::Issue;
use waypost_core::organization::settings::{
    OrganizationSettings, SOFT_BOUNCE_WINDOW_DAYS_MAX, SettingsChange,
};
use waypost_core::organization::{UnverifiedDomains, store};
use waypost_core::suppression::feedback::SOFT_BOUNCES_MAX;

use crate::auth::Caller;
use crate::body::{JsonBody, OTHER_BYTES_MAX};
use crate::context::Context;
use crate::error::Failure;
use crate::fields::{self, Whole};
use crate::response::{Data, Nullable};
use crate::v1::Section;
use crate::validate::{Clearable, Field, Settable, Validated, problem};

pub(crate) struct SettingsApi {
    pub(crate) context: Arc<Context>,
}

/// The organization's switches.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct Settings {
    /// What a send from a domain gets that is not verified on the account it goes
    /// through: `reject` (422) or `accept` (202 with `domainVerified: false`).
    unverified_domains: String,
    /// Whether opens are tracked where a message does not say. Counts for messages
    /// that are accepted from then on.
    track_opens: bool,
    /// Whether clicks are tracked where a message does not say. Counts for messages
    /// that are accepted from then on.
    track_clicks: bool,
    /// How many days messages are kept, with all that is theirs; null means as long as
    /// the operator keeps them, and where the operator keeps them for a shorter time that
    /// one counts. Metrics and the audit log stay.
    retention_days: Nullable<u32>,
    rate_limits: RateLimits,
    /// How many soft bounces of an address suppress it, with the source BOUNCE; 0
    /// means that none ever do.
    soft_bounce_limit: u32,
    /// Within how many days soft bounces count together.
    soft_bounce_window_days: u32,
}

/// Requests per second; null means what the operator gives.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RateLimits {
    /// `POST /v1/send`.
    send_per_second: Nullable<u32>,
    /// All other operations.
    other_per_second: Nullable<u32>,
}

impl From<OrganizationSettings> for Settings {
    fn from(settings: OrganizationSettings) -> Self {
        Self {
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

/// Which switches are to change; what is absent stays.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateSettingsRequest {
    /// What a send from a domain gets that is not verified.
    unverified_domains: Validated<Settable<UnverifiedDomains>>,
    /// Whether opens are tracked where a message does not say.
    track_opens: Validated<Settable<bool>>,
    /// Whether clicks are tracked where a message does not say.
    track_clicks: Validated<Settable<bool>>,
    /// How many days messages are kept, with all that is theirs; null means as long as
    /// the operator keeps them. Older ones are deleted within minutes, for good; those
    /// still being sent when they are done.
    retention_days: Validated<Clearable<Whole<1, RETENTION_DAYS_MAX>>>,
    /// Requests per second, up to the operator's bounds; null means those.
    rate_limits: Validated<Settable<WantedRateLimits>>,
    /// How many soft bounces of an address suppress it; 0 means that none ever do.
    soft_bounce_limit: Validated<Settable<Whole<0, SOFT_BOUNCES_MAX>>>,
    /// Within how many days soft bounces count together.
    soft_bounce_window_days: Validated<Settable<Whole<1, SOFT_BOUNCE_WINDOW_DAYS_MAX>>>,
}

impl Field for UnverifiedDomains {
    fn schema() -> MetaSchemaRef {
        fields::words(&Self::ALL.map(Self::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match Self::parse(&fields::string(value)?) {
            Some(word) => Ok(word),
            None => problem("must be one of reject, accept"),
        }
    }
}

type PerSecond = Clearable<Whole<1, 1_000_000>>;

/// Rate limits to set.
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
    /// Show the settings
    ///
    /// Takes the permission SETTINGS_WRITE.
    #[oai(path = "/v1/settings", method = "get", operation_id = "get_settings")]
    async fn get_settings(&self, caller: Caller) -> Result<Json<Data<Settings>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
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
    /// Takes the permission SETTINGS_WRITE. `unverifiedDomains`, `trackOpens` and
    /// `trackClicks` count at once, `rateLimits` within a few seconds, `retentionDays`
    /// within minutes: what it deletes does not come back.
    #[oai(
        path = "/v1/settings",
        method = "patch",
        operation_id = "update_settings"
    )]
    async fn update_settings(
        &self,
        caller: Caller,
        body: JsonBody<UpdateSettingsRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<Settings>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
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
                let message = format!("must not be larger than {max}, the operator's bound");
                issues.push(Issue::new(path, message));
            }
            wanted
        };
        let change = SettingsChange {
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
