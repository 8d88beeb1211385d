//! Metrics: a series over time, a breakdown, a summary.

use std::sync::Arc;

use chrono::NaiveDateTime;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{Object, OpenApi};
use serde_json::Value;
use waypost_core::auth::Permission;
use waypost_core::clock::Timestamp;
use waypost_core::db::OrFault;
use waypost_core::issue::Issue;
use waypost_core::metrics::{
    BUCKETS_MAX, BreakdownRow, EventCounts, Granularity, GroupBy, PERIOD_DEFAULT, Period,
    SeriesBucket, rate, store,
};

use crate::auth::Caller;
use crate::context::Context;
use crate::error::Failure;
use crate::fields::time::{End, Moment};
use crate::fields::{self, string};
use crate::query::Query;
use crate::response::Time;
use crate::v1::Section;
use crate::validate::{Field, Validated, problem};

pub(crate) struct MetricsApi {
    pub(crate) context: Arc<Context>,
}

impl Field for Granularity {
    fn schema() -> MetaSchemaRef {
        fields::words(&Granularity::ALL.map(Granularity::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        one_of(&string(value)?, Self::ALL, Self::as_str)
    }
}

impl Field for GroupBy {
    fn schema() -> MetaSchemaRef {
        fields::words(&GroupBy::ALL.map(GroupBy::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        one_of(&string(value)?, Self::ALL, Self::as_str)
    }
}

fn one_of<T: Copy, const N: usize>(
    word: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, Vec<Issue>> {
    match all.into_iter().find(|value| name(*value) == word) {
        Some(value) => Ok(value),
        None => problem(format!("must be one of {}", all.map(name).join(", "))),
    }
}

/// What happened in an hour, a day, a week or a month.
#[derive(Debug, Object)]
struct MetricsBucket {
    /// When the bucket begins, in UTC: `YYYY-MM-DD HH:MM:SS`. Weeks begin on
    /// Monday.
    timestamp: String,
    /// Copies that a provider took, one per recipient.
    sent: i64,
    /// Copies that a mailbox took.
    delivered: i64,
    /// Copies that were opened; each counts once.
    opened: i64,
    /// Copies of which a link was followed; each counts once.
    clicked: i64,
    /// Copies that came back.
    bounced: i64,
    /// Copies that were marked as spam.
    complained: i64,
    /// Unsubscribed by the link.
    unsubscribed: i64,
}

impl From<SeriesBucket> for MetricsBucket {
    fn from(bucket: SeriesBucket) -> Self {
        let counts = bucket.counts;
        Self {
            timestamp: bucket_name(bucket.start),
            sent: counts.sent,
            delivered: counts.delivered,
            opened: counts.opened,
            clicked: counts.clicked,
            bounced: counts.bounced,
            complained: counts.complained,
            unsubscribed: counts.unsubscribed,
        }
    }
}

fn bucket_name(start: NaiveDateTime) -> String {
    start.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// What a series answers to: as asked, with what was left out filled in.
#[derive(Debug, Object)]
struct SeriesQuery {
    from: Time,
    to: Time,
    granularity: String,
}

/// What happened over time.
#[derive(Debug, Object)]
struct MetricsSeries {
    /// Oldest first; buckets in which nothing happened are there too.
    data: Vec<MetricsBucket>,
    query: SeriesQuery,
}

/// What happened with one provider, domain or template.
#[derive(Debug, Object)]
struct MetricsGroup {
    /// The provider type; or the sender's domain; or the template's name, its id
    /// where it was deleted, both where several have that name, and `(none)` for
    /// messages without a template.
    name: String,
    sent: i64,
    delivered: i64,
    opened: i64,
    clicked: i64,
    bounced: i64,
    complained: i64,
}

impl From<BreakdownRow> for MetricsGroup {
    fn from(group: BreakdownRow) -> Self {
        let counts = group.counts;
        Self {
            name: group.name,
            sent: counts.sent,
            delivered: counts.delivered,
            opened: counts.opened,
            clicked: counts.clicked,
            bounced: counts.bounced,
            complained: counts.complained,
        }
    }
}

/// What a breakdown answers to.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct BreakdownQuery {
    from: Time,
    to: Time,
    group_by: String,
}

/// What happened, by provider, domain or template.
#[derive(Debug, Object)]
struct MetricsBreakdown {
    /// Most sent first, then by name.
    data: Vec<MetricsGroup>,
    query: BreakdownQuery,
}

/// What happened in all, each recipient of a message once for each type of event.
/// Rates have four decimals, and are 0 where there is nothing to divide by. They are
/// never above 1, also where more was delivered in the period than sent in it.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct MetricsTotals {
    total_sent: i64,
    total_delivered: i64,
    total_opened: i64,
    total_clicked: i64,
    total_bounced: i64,
    total_complained: i64,
    total_unsubscribed: i64,
    /// Delivered of sent.
    delivery_rate: f64,
    /// Opened of delivered.
    open_rate: f64,
    /// Clicked of opened.
    click_rate: f64,
    /// Bounced of sent.
    bounce_rate: f64,
    /// Complained of delivered.
    complaint_rate: f64,
}

impl From<EventCounts> for MetricsTotals {
    fn from(counts: EventCounts) -> Self {
        Self {
            total_sent: counts.sent,
            total_delivered: counts.delivered,
            total_opened: counts.opened,
            total_clicked: counts.clicked,
            total_bounced: counts.bounced,
            total_complained: counts.complained,
            total_unsubscribed: counts.unsubscribed,
            delivery_rate: rate(counts.delivered, counts.sent),
            open_rate: rate(counts.opened, counts.delivered),
            click_rate: rate(counts.clicked, counts.opened),
            bounce_rate: rate(counts.bounced, counts.sent),
            complaint_rate: rate(counts.complained, counts.delivered),
        }
    }
}

/// The period that a summary is about.
#[derive(Debug, Object)]
struct SummaryPeriod {
    from: Time,
    to: Time,
}

/// What happened in a period.
#[derive(Debug, Object)]
struct MetricsSummary {
    data: MetricsTotals,
    period: SummaryPeriod,
}

type OptionalMoment = Query<Validated<Option<Moment>>>;
type OptionalEnd = Query<Validated<Option<End>>>;

#[OpenApi(tag = "Section::Metrics")]
impl MetricsApi {
    /// Show what happened over time
    ///
    /// Takes the permission METRICS_READ. Every hour that the time from `from` to
    /// `to` touches counts whole, so the sums of the three operations agree; the
    /// first and the last bucket hold no more than these hours. At most 10,000
    /// buckets.
    #[oai(path = "/v1/metrics", method = "get", operation_id = "get_metrics")]
    async fn get_metrics(
        &self,
        caller: Caller,
        /// From when on; 30 days before now where it is absent.
        from: OptionalMoment,
        /// Until when; now where it is absent. A day without a time is the last one, whole.
        to: OptionalEnd,
        /// How long a bucket is; `day` where it is absent.
        granularity: Query<Validated<Option<Granularity>>>,
    ) -> Result<Json<MetricsSeries>, Failure> {
        caller.require(Permission::MetricsRead)?;
        let mut issues = Vec::new();
        let period = self.read_period(from, to, &mut issues);
        let granularity = granularity.0.take("granularity", &mut issues);
        let (Some(period), Some(granularity)) = (period, granularity) else {
            return Err(Failure::Invalid(issues));
        };
        let granularity = granularity.unwrap_or(Granularity::Day);
        let buckets = granularity.buckets(period);
        if buckets > BUCKETS_MAX {
            let word = granularity.as_str();
            let message = format!(
                "must not give more than {BUCKETS_MAX} buckets; from `from` to `to` it is {buckets} by the {word}"
            );
            return Err(Failure::Invalid(vec![Issue::new("granularity", message)]));
        }
        let mut connection = self.context.pool.acquire().await.or_fault(READ)?;
        let organization_id = caller.organization_id();
        let found = store::series(&mut connection, organization_id, period, granularity).await?;
        Ok(Json(MetricsSeries {
            data: found.into_iter().map(MetricsBucket::from).collect(),
            query: SeriesQuery {
                from: Time(period.from()),
                to: Time(period.to()),
                granularity: granularity.as_str().to_owned(),
            },
        }))
    }

    /// Show what happened by provider, domain or template
    ///
    /// Takes the permission METRICS_READ. Counts the same hours as the series.
    #[oai(
        path = "/v1/metrics/breakdown",
        method = "get",
        operation_id = "get_metrics_breakdown"
    )]
    async fn get_metrics_breakdown(
        &self,
        caller: Caller,
        /// From when on; 30 days before now where it is absent.
        from: OptionalMoment,
        /// Until when; now where it is absent. A day without a time is the last one, whole.
        to: OptionalEnd,
        /// What to group by; `provider` where it is absent.
        #[oai(name = "groupBy")]
        group_by: Query<Validated<Option<GroupBy>>>,
    ) -> Result<Json<MetricsBreakdown>, Failure> {
        caller.require(Permission::MetricsRead)?;
        let mut issues = Vec::new();
        let period = self.read_period(from, to, &mut issues);
        let group_by = group_by.0.take("groupBy", &mut issues);
        let (Some(period), Some(group_by)) = (period, group_by) else {
            return Err(Failure::Invalid(issues));
        };
        let group_by = group_by.unwrap_or(GroupBy::Provider);
        let organization_id = caller.organization_id();
        let mut connection = self.context.pool.acquire().await.or_fault(READ)?;
        let found = store::breakdown(&mut connection, organization_id, period, group_by).await?;
        Ok(Json(MetricsBreakdown {
            data: found.into_iter().map(MetricsGroup::from).collect(),
            query: BreakdownQuery {
                from: Time(period.from()),
                to: Time(period.to()),
                group_by: group_by.as_str().to_owned(),
            },
        }))
    }

    /// Show what happened in all
    ///
    /// Takes the permission METRICS_READ. Counts the same hours as the series.
    #[oai(
        path = "/v1/metrics/summary",
        method = "get",
        operation_id = "get_metrics_summary"
    )]
    async fn get_metrics_summary(
        &self,
        caller: Caller,
        /// From when on; 30 days before now where it is absent.
        from: OptionalMoment,
        /// Until when; now where it is absent. A day without a time is the last one, whole.
        to: OptionalEnd,
    ) -> Result<Json<MetricsSummary>, Failure> {
        caller.require(Permission::MetricsRead)?;
        let mut issues = Vec::new();
        let Some(period) = self.read_period(from, to, &mut issues) else {
            return Err(Failure::Invalid(issues));
        };
        let mut connection = self.context.pool.acquire().await.or_fault(READ)?;
        let found = store::summary(&mut connection, caller.organization_id(), period).await?;
        Ok(Json(MetricsSummary {
            data: found.into(),
            period: SummaryPeriod {
                from: Time(period.from()),
                to: Time(period.to()),
            },
        }))
    }
}

const READ: &str = "read metrics";

impl MetricsApi {
    fn read_period(
        &self,
        from: OptionalMoment,
        to: OptionalEnd,
        issues: &mut Vec<Issue>,
    ) -> Option<Period> {
        let given = from.0.take("from", issues);
        let to = to.0.take("to", issues);
        let (given, to) = (given?, to?);
        let now: Timestamp = self.context.clock.now();
        let from = given.map_or(now - PERIOD_DEFAULT, |from| from.0);
        let period = Period::new(from, to.map_or(now, |to| to.0));
        if period.is_none() {
            // Whichever of them was given is the one to change.
            issues.push(match given {
                Some(_) => Issue::new(
                    "from",
                    "must not be after `to`, which is now where it is absent",
                ),
                None => Issue::new(
                    "to",
                    "must not be before `from`, which is 30 days before now where it is absent",
                ),
            });
        }
        period
    }
}
