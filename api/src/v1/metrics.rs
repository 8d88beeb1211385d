//! Metrics: a time series, a breakdown, a summary.

use std::sync::Arc;

use chrono::NaiveDateTime;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use waypost_core::clock::Timestamp;
use waypost_core::db::OrFault;
use waypost_core::issue::Issue;
use waypost_core::metrics::{
    BUCKETS_MAX, BreakdownRow, EventCounts, Granularity, GroupBy, PERIOD_DEFAULT, Period,
    SeriesBucket, rate, store,
};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::time::{End, Moment};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::query::Query;
use crate::response::Time;
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct MetricsApi {
    pub(crate) context: Arc<Context>,
}

/// The counts of one hour, day, week or month.
#[derive(Debug, Object)]
struct MetricsBucket {
    /// When the bucket begins, in UTC: `YYYY-MM-DD HH:MM:SS`. Weeks begin on Monday.
    timestamp: String,
    /// The number of recipients whose message a provider accepted.
    sent: i64,
    /// The number of recipients whose message was delivered.
    delivered: i64,
    /// The number of recipients who opened the message. Repeated opens count once.
    opened: i64,
    /// The number of recipients who clicked a link. Repeated clicks count once.
    clicked: i64,
    /// The number of recipients whose message bounced.
    bounced: i64,
    /// The number of recipients who reported the message as spam.
    complained: i64,
    /// The number of recipients who unsubscribed with the link.
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

/// The query of a series, with its defaults filled in.
#[derive(Debug, Object)]
struct SeriesQuery {
    from: Time,
    to: Time,
    granularity: String,
}

/// A time series of counts.
#[derive(Debug, Object)]
struct MetricsSeries {
    /// The buckets, oldest first. Buckets without events are included.
    data: Vec<MetricsBucket>,
    query: SeriesQuery,
}

/// The counts of one provider type, domain or template.
#[derive(Debug, Object)]
struct MetricsGroup {
    /// The provider type, the sender's domain or the template. A template is shown by its
    /// name, by its id if it was deleted, and by both if several templates have this
    /// name; `(none)` stands for messages without a template.
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

/// The query of a breakdown, with its defaults filled in.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct BreakdownQuery {
    from: Time,
    to: Time,
    group_by: String,
}

/// Counts by provider type, domain or template.
#[derive(Debug, Object)]
struct MetricsBreakdown {
    /// The groups, by descending `sent`, then by name.
    data: Vec<MetricsGroup>,
    query: BreakdownQuery,
}

/// The total counts and rates. Each recipient of a message counts once for each type of
/// event. Rates have four decimals, are 0 if the divisor is 0, and are never above 1,
/// even if more messages were delivered than sent in the period.
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
    /// `totalDelivered` divided by `totalSent`.
    delivery_rate: f64,
    /// `totalOpened` divided by `totalDelivered`.
    open_rate: f64,
    /// `totalClicked` divided by `totalOpened`.
    click_rate: f64,
    /// `totalBounced` divided by `totalSent`.
    bounce_rate: f64,
    /// `totalComplained` divided by `totalDelivered`.
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

/// The period of a summary.
#[derive(Debug, Object)]
struct SummaryPeriod {
    from: Time,
    to: Time,
}

/// The total counts and rates of a period.
#[derive(Debug, Object)]
struct MetricsSummary {
    data: MetricsTotals,
    period: SummaryPeriod,
}

type OptionalStart = Query<Validated<Option<Moment>>>;
type OptionalEnd = Query<Validated<Option<End>>>;

#[OpenApi(tag = "Section::Metrics")]
impl MetricsApi {
    /// Get metrics over time
    ///
    /// Requires the permission `METRICS_READ`. Each hour that the period from `from` to
    /// `to` touches is counted whole, so the sums of the three metrics operations agree.
    /// The first and the last bucket contain only these hours. A response has at most
    /// 10,000 buckets.
    #[oai(path = "/v1/metrics", method = "get", operation_id = "get_metrics")]
    async fn get_metrics(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The start of the period. The default is 30 days ago.
        from: OptionalStart,
        /// The end of the period. The default is now. A date without a time includes that
        /// whole day.
        to: OptionalEnd,
        /// The length of a bucket. The default is `day`.
        granularity: Query<Validated<Option<Granularity>>>,
    ) -> Result<Json<MetricsSeries>, Failure> {
        let caller = caller.authorize()?;
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
                "must not give more than {BUCKETS_MAX} buckets; the period from `from` to `to` has {buckets} buckets of one {word}"
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

    /// Get metrics by provider, domain or template
    ///
    /// Requires the permission `METRICS_READ`. Counts the same hours as `GET
    /// /v1/metrics`.
    #[oai(
        path = "/v1/metrics/breakdown",
        method = "get",
        operation_id = "get_metrics_breakdown"
    )]
    async fn get_metrics_breakdown(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The start of the period. The default is 30 days ago.
        from: OptionalStart,
        /// The end of the period. The default is now. A date without a time includes that
        /// whole day.
        to: OptionalEnd,
        /// What to group by. The default is `provider`.
        #[oai(name = "groupBy")]
        group_by: Query<Validated<Option<GroupBy>>>,
    ) -> Result<Json<MetricsBreakdown>, Failure> {
        let caller = caller.authorize()?;
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

    /// Get total metrics
    ///
    /// Requires the permission `METRICS_READ`. Counts the same hours as `GET
    /// /v1/metrics`.
    #[oai(
        path = "/v1/metrics/summary",
        method = "get",
        operation_id = "get_metrics_summary"
    )]
    async fn get_metrics_summary(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The start of the period. The default is 30 days ago.
        from: OptionalStart,
        /// The end of the period. The default is now. A date without a time includes that
        /// whole day.
        to: OptionalEnd,
    ) -> Result<Json<MetricsSummary>, Failure> {
        let caller = caller.authorize()?;
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
        from: OptionalStart,
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
            // Names the parameter that was given, since that is the one to change.
            issues.push(match given {
                Some(_) => Issue::new("from", "must not be after `to`, whose default is now"),
                None => Issue::new(
                    "to",
                    "must not be before `from`, whose default is 30 days ago",
                ),
            });
        }
        period
    }
}
