//! How provider accounts do at the moment, and how they did lately by recipient domain.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::account_limiter::circuits::{Circuit, OpenCause};
use waypost_core::ids::ProviderAccountId;
use waypost_core::provider_account::health::domains::{
    DomainFigures, HealthWindow, MailFigures, WindowTotals,
};
use waypost_core::provider_account::health::{
    AccountFailure, AccountHealth, FailedCall, HealthByDomain, RecentCalls,
};

use super::providers::ACCOUNT;
use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Time};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct ProviderHealthApi {
    pub(crate) context: Arc<Context>,
}

/// How a provider account does at the moment.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ProviderHealth {
    provider_account_id: Uuid,
    provider_type: String,
    display_name: String,
    /// Whether the account sends messages.
    is_active: bool,
    /// Whether calls to the account are made; null while Redis, which knows it, does not
    /// answer.
    circuit: Nullable<ProviderCircuit>,
    /// The calls per second, over all workers, to which Waypost holds back now because the
    /// provider throttles; null if it does not throttle, or while Redis does not answer.
    throttled_rate_per_second: Nullable<f64>,
    /// Why the account cannot send, as reported by the provider; null if it can.
    sending_paused_reason: Nullable<String>,
    /// What is wrong with the account now, as the event PROVIDER_FAILING reports it.
    failures: Vec<ProviderFailure>,
    calls: RecentProviderCalls,
    /// The most calls to the provider per second, over all workers; null means no limit.
    max_rate_per_second: Nullable<u32>,
    /// The most concurrent calls to the provider, over all workers; null means no limit.
    max_concurrency: Nullable<u32>,
}

/// How a provider account does at the moment, and what became of its mail.
#[derive(Debug, Object)]
struct ProviderHealthDetail {
    #[oai(flatten)]
    health: ProviderHealth,
    windows: ProviderHealthWindows,
}

/// What became of all mail of a provider account lately. The quarters of an hour that a window
/// touches count whole. Tests are not counted.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ProviderHealthWindows {
    last15_minutes: ProviderMailFigures,
    last_day: ProviderMailFigures,
    last_week: ProviderMailFigures,
}

/// What became of some mail of a provider account. `attempts`, `accepted`, `rejected` and
/// `acceptLatencyMs` are up to a minute late; the other numbers are exact. Rates have four
/// decimals, are never above 1, and are null if they are of fewer than 20.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ProviderMailFigures {
    /// The number of calls to the provider, for one recipient each, that ended.
    attempts: i64,
    /// The number of attempts that the provider accepted.
    accepted: i64,
    /// The number of attempts that the provider refused for good.
    rejected: i64,
    /// The number of attempts that the provider, or later the recipient's server, put off.
    deferred: i64,
    /// The number of recipients whose message the provider accepted.
    sent: i64,
    /// The number of recipients whose message was delivered.
    delivered: i64,
    /// The number of recipients whose message bounced.
    bounced: i64,
    /// The number of recipients who reported the message as spam.
    complained: i64,
    /// `deferred` divided by `attempts`.
    deferral_rate: Nullable<f64>,
    /// `bounced` divided by `sent`.
    bounce_rate: Nullable<f64>,
    /// `complained` divided by `delivered`.
    complaint_rate: Nullable<f64>,
    /// `delivered` divided by `sent`.
    delivery_rate: Nullable<f64>,
    /// How long accepted calls took; null if there are fewer than 20.
    accept_latency_ms: Nullable<AcceptLatency>,
}

/// How long half and 95 % of the accepted calls took at most, in milliseconds, accurate to 10 %.
#[derive(Debug, Object)]
struct AcceptLatency {
    p50: i64,
    p95: i64,
}

/// What became of a provider account's mail to one recipient domain.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ProviderDomainHealth {
    /// The recipient domain. `(other)` stands for all domains beyond the 50 with the most mail
    /// and the first 500 of a month, `(none)` for addresses that are not known any more.
    recipient_domain: String,
    #[oai(flatten)]
    figures: ProviderMailFigures,
}

/// The time that is counted.
#[derive(Debug, Object)]
struct ProviderHealthWindow {
    /// The start of the first quarter of an hour that is counted.
    from: Time,
    to: Time,
}

/// What became of a provider account's mail, by recipient domain.
#[derive(Debug, Object)]
struct ProviderHealthByDomain {
    /// The domains, those with the most mail first; `(other)` comes last.
    data: Vec<ProviderDomainHealth>,
    window: ProviderHealthWindow,
}

/// Whether calls to a provider account are made.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ProviderCircuit {
    /// CLOSED: calls are made. OPEN: no calls are made until `until`. HALF_OPEN: each worker
    /// makes one call, whose result decides.
    state: String,
    /// Why the circuit is not closed; null if it is.
    cause: Nullable<String>,
    /// When the next call may be made; null unless the circuit is open.
    until: Nullable<Time>,
}

/// One cause for which an account fails.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ProviderFailure {
    cause: String,
    since: Time,
}

/// The newest calls of the last 15 minutes, at most 1,000. Tests are not counted.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RecentProviderCalls {
    /// All calls since this time are counted: 15 minutes ago, or later if there were more than
    /// 1,000.
    since: Time,
    /// The number of calls that the provider accepted.
    accepted: u32,
    /// The number of calls that the provider rejected.
    rejected: u32,
    /// The number of calls that the provider throttled.
    throttled: u32,
    /// The number of calls that failed without a delivery.
    unavailable: u32,
    /// The number of calls whose answer was lost.
    unknown: u32,
    /// The number of calls that have not ended.
    pending: u32,
    /// The median of the durations of the calls, in milliseconds; null if no call ended.
    median_duration_ms: Nullable<u32>,
    /// The 95th percentile of the durations of the calls, in milliseconds; null if no call
    /// ended.
    p95_duration_ms: Nullable<u32>,
    /// The newest call that the provider did not accept; null if there is none.
    last_failure: Nullable<FailedProviderCall>,
}

/// A call that the provider did not accept.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct FailedProviderCall {
    /// When the call started.
    at: Time,
    /// The outcome: REJECTED, THROTTLED, UNAVAILABLE or UNKNOWN.
    outcome: String,
    /// The status code of the provider's response; null without a response.
    status_code: Nullable<i32>,
    /// The provider's error message, or the error of the call.
    reason: Nullable<String>,
}

impl From<AccountHealth> for ProviderHealth {
    fn from(health: AccountHealth) -> Self {
        let account = health.account;
        Self {
            provider_account_id: account.id.0,
            provider_type: account.provider_type.to_string(),
            display_name: account.display_name,
            is_active: account.is_active,
            circuit: Nullable(health.shared.map(|shared| shared.circuit.into())),
            throttled_rate_per_second: Nullable(
                health.shared.and_then(|shared| shared.throttled_rate),
            ),
            sending_paused_reason: Nullable(account.paused.map(|paused| paused.reason)),
            failures: health
                .failures
                .into_iter()
                .map(ProviderFailure::from)
                .collect(),
            calls: health.calls.into(),
            max_rate_per_second: Nullable(account.limits.max_rate_per_second),
            max_concurrency: Nullable(account.limits.max_concurrency),
        }
    }
}

impl From<AccountHealth> for ProviderHealthDetail {
    fn from(mut health: AccountHealth) -> Self {
        let windows = health.windows.take().unwrap_or_default();
        Self {
            health: health.into(),
            windows: windows.into(),
        }
    }
}

impl From<WindowTotals> for ProviderHealthWindows {
    fn from([last15_minutes, last_day, last_week]: WindowTotals) -> Self {
        Self {
            last15_minutes: last15_minutes.into(),
            last_day: last_day.into(),
            last_week: last_week.into(),
        }
    }
}

impl From<MailFigures> for ProviderMailFigures {
    fn from(figures: MailFigures) -> Self {
        let latency = figures.accept_latency().map(|times| AcceptLatency {
            p50: times.p50,
            p95: times.p95,
        });
        Self {
            attempts: figures.attempts,
            accepted: figures.accepted,
            rejected: figures.rejected,
            deferred: figures.deferred,
            sent: figures.counts.sent,
            delivered: figures.counts.delivered,
            bounced: figures.counts.bounced,
            complained: figures.counts.complained,
            deferral_rate: Nullable(figures.deferral_rate()),
            bounce_rate: Nullable(figures.bounce_rate()),
            complaint_rate: Nullable(figures.complaint_rate()),
            delivery_rate: Nullable(figures.delivery_rate()),
            accept_latency_ms: Nullable(latency),
        }
    }
}

impl From<DomainFigures> for ProviderDomainHealth {
    fn from(domain: DomainFigures) -> Self {
        let recipient_domain = if domain.recipient_domain.is_empty() {
            "(none)".to_owned()
        } else {
            domain.recipient_domain
        };
        Self {
            recipient_domain,
            figures: domain.figures.into(),
        }
    }
}

impl From<HealthByDomain> for ProviderHealthByDomain {
    fn from(found: HealthByDomain) -> Self {
        let domains = found.domains.into_iter();
        Self {
            data: domains.map(ProviderDomainHealth::from).collect(),
            window: ProviderHealthWindow {
                from: Time(found.span.from),
                to: Time(found.span.to),
            },
        }
    }
}

impl From<Circuit> for ProviderCircuit {
    fn from(circuit: Circuit) -> Self {
        let cause = circuit.cause().map(OpenCause::as_str);
        Self {
            state: circuit.state().to_owned(),
            cause: Nullable(cause.map(str::to_owned)),
            until: Nullable(circuit.until().map(Time)),
        }
    }
}

impl From<AccountFailure> for ProviderFailure {
    fn from(failure: AccountFailure) -> Self {
        Self {
            cause: failure.cause,
            since: Time(failure.since),
        }
    }
}

impl From<RecentCalls> for RecentProviderCalls {
    fn from(calls: RecentCalls) -> Self {
        Self {
            since: Time(calls.since),
            accepted: calls.accepted,
            rejected: calls.rejected,
            throttled: calls.throttled,
            unavailable: calls.unavailable,
            unknown: calls.unknown,
            pending: calls.pending,
            median_duration_ms: Nullable(calls.median_ms),
            p95_duration_ms: Nullable(calls.p95_ms),
            last_failure: Nullable(calls.last_failure.map(FailedProviderCall::from)),
        }
    }
}

impl From<FailedCall> for FailedProviderCall {
    fn from(call: FailedCall) -> Self {
        Self {
            at: Time(call.at),
            outcome: call.outcome,
            status_code: Nullable(call.status_code),
            reason: Nullable(call.reason),
        }
    }
}

#[OpenApi(tag = "Section::Providers")]
impl ProviderHealthApi {
    /// List the health of provider accounts
    ///
    /// Requires the permission `PROVIDERS_READ`. The oldest account comes first.
    #[oai(
        path = "/v1/providers/health",
        method = "get",
        operation_id = "list_provider_health"
    )]
    async fn list_provider_health(
        &self,
        caller: Requires<permission::ProvidersRead>,
    ) -> Result<Json<Data<Vec<ProviderHealth>>>, Failure> {
        let caller = caller.authorize()?;
        let health = &self.context.provider_health;
        let found = health.list(caller.organization_id()).await?;
        let data = found.into_iter().map(ProviderHealth::from).collect();
        Ok(Json(Data { data }))
    }

    /// Get the health of a provider account
    ///
    /// Requires the permission `PROVIDERS_READ`. Whether calls are made, what is wrong, how the
    /// calls of the last 15 minutes ended, and what became of the account's mail in 15 minutes,
    /// a day and a week.
    #[oai(
        path = "/v1/providers/:id/health",
        method = "get",
        operation_id = "get_provider_health"
    )]
    async fn get_provider_health(
        &self,
        caller: Requires<permission::ProvidersRead>,

        /// The id of the provider account.
        id: Path<PathId>,
    ) -> Result<Json<Data<ProviderHealthDetail>>, Failure> {
        let caller = caller.authorize()?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let health = &self.context.provider_health;
        let found = health.find(caller.organization_id(), id).await?;
        let data = found.ok_or(Failure::NotFound(ACCOUNT))?.into();
        Ok(Json(Data { data }))
    }
    /// Get the health of a provider account by recipient domain
    ///
    /// Requires the permission `PROVIDERS_READ`. What became of the account's mail to each
    /// recipient domain. The quarters of an hour that the window touches count whole, so
    /// `sent`, `delivered`, `bounced` and `complained` agree with the metrics of the same time.
    /// Tests are not counted.
    #[oai(
        path = "/v1/providers/:id/health/domains",
        method = "get",
        operation_id = "get_provider_health_by_domain"
    )]
    async fn get_provider_health_by_domain(
        &self,
        caller: Requires<permission::ProvidersRead>,

        /// The id of the provider account.
        id: Path<PathId>,

        /// How far back to count: 15 minutes, a day or a week. The default is `day`.
        window: Query<Validated<Option<HealthWindow>>>,
    ) -> Result<Json<ProviderHealthByDomain>, Failure> {
        let caller = caller.authorize()?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let mut issues = Vec::new();
        let window = window.0.take("window", &mut issues);
        let Some(window) = window else {
            return Err(Failure::Invalid(issues));
        };
        let window = window.unwrap_or(HealthWindow::Day);
        let health = &self.context.provider_health;
        let found = health.by_domain(caller.organization_id(), id, window);
        let found = found.await?.ok_or(Failure::NotFound(ACCOUNT))?;
        Ok(Json(found.into()))
    }
}
