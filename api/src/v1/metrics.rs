//! Metrics: a time series, a breakdown, a summary.

use std::sync::Arc;

use chrono::{Datelike as _, NaiveDateTime};
use chrono_tz::Tz;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use waypost_core::clock::Timestamp;
use waypost_core::db::OrFault;
use waypost_core::ids::{ProviderAccountId, TemplateId};
use waypost_core::issue::Issue;
use waypost_core::metrics::buckets::{self, BUCKETS_MAX};
use waypost_core::metrics::selection::{MetricFilter, Selection, TooManyFilters};
use waypost_core::metrics::{
    AccountTimes, BreakdownRow, EventCounts, Granularity, GroupBy, PERIOD_DEFAULT, Percentiles,
    Period, SeriesBucket, rate, store,
};
use waypost_core::text::Tag;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::Id;
use crate::fields::time::{TimeZoneName, ZonedTime};
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
#[oai(skip_serializing_if_is_none)]
struct MetricsBucket {
    /// When the bucket begins, in UTC or in `timeZone`: `YYYY-MM-DD HH:MM:SS`. Weeks begin on
    /// Monday.
    timestamp: String,
    /// When the bucket begins, in UTC; only if `timeZone` is given. Where clocks are put back,
    /// two hours have the same `timestamp`.
    start: Option<Time>,
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

impl MetricsBucket {
    fn of(bucket: SeriesBucket, has_zone: bool) -> Self {
        let counts = bucket.counts;
        Self {
            timestamp: bucket_name(bucket.start),
            start: has_zone.then_some(Time(bucket.at)),
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
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
struct SeriesQuery {
    from: Time,
    to: Time,
    granularity: String,
    time_zone: Option<String>,
}

/// A time series of counts.
#[derive(Debug, Object)]
struct MetricsSeries {
    /// The buckets, oldest first. Buckets without events are included.
    data: Vec<MetricsBucket>,
    query: SeriesQuery,
}

/// How long it took for half, 95 % and 99 % of the recipients at most, in milliseconds, to a
/// tenth.
#[derive(Debug, Object)]
struct MetricsPercentiles {
    p50: i64,
    p95: i64,
    p99: i64,
}

impl From<Percentiles> for MetricsPercentiles {
    fn from(times: Percentiles) -> Self {
        Self {
            p50: times.p50,
            p95: times.p95,
            p99: times.p99,
        }
    }
}

/// The counts of one provider type, domain, template, account, tag or recipient domain.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
struct MetricsGroup {
    /// The provider type, the sender's domain, the template, the provider account, the tag or
    /// the recipient's domain. Templates and accounts are shown by their names, by their ids if
    /// they were deleted, and by both if several have this name. `(none)` stands for messages
    /// without a template or tag, `(other)` for the tags and recipient domains beyond the
    /// first 500 of a month.
    name: String,
    /// The id of the provider account, if grouped by `account`.
    id: Option<String>,
    /// From acceptance, or from `scheduledAt`, to when the provider accepted the mail; if
    /// grouped by `account`, without the filters `tag` and `templateId`.
    accept_to_sent: Option<MetricsPercentiles>,
    /// From when the provider accepted the mail to its delivery.
    sent_to_delivered: Option<MetricsPercentiles>,
    sent: i64,
    delivered: i64,
    opened: i64,
    clicked: i64,
    bounced: i64,
    complained: i64,
}

impl MetricsGroup {
    fn of(group: BreakdownRow, group_by: GroupBy, times: &[AccountTimes]) -> Self {
        let counts = group.counts;
        let times = times.iter().find(|times| times.account == group.key);
        let accept_to_sent = times.and_then(|times| times.accept_to_sent);
        let sent_to_delivered = times.and_then(|times| times.sent_to_delivered);
        Self {
            name: group.name,
            id: (group_by == GroupBy::Account).then_some(group.key),
            accept_to_sent: accept_to_sent.map(MetricsPercentiles::from),
            sent_to_delivered: sent_to_delivered.map(MetricsPercentiles::from),
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

/// Counts by group.
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

type PeriodEdge = Query<Validated<Option<ZonedTime>>>;

/// The parameters that all operations have.
struct CommonQuery {
    from: PeriodEdge,
    to: PeriodEdge,
    tag: Query<Validated<Option<Tag>>>,
    provider_account_id: Query<Validated<Option<Id>>>,
    template_id: Query<Validated<Option<Id>>>,
    time_zone: Query<Validated<Option<TimeZoneName>>>,
}

/// What they say.
struct Asked {
    period: Period,
    filter: MetricFilter,
    zone: Option<Tz>,
}

#[OpenApi(tag = "Section::Metrics")]
impl MetricsApi {
    /// Get metrics over time
    ///
    /// Requires the permission `METRICS_READ`. Each hour that the period from `from` to
    /// `to` touches is counted whole, so the sums of the three metrics operations agree.
    /// The first and the last bucket contain only these hours. A response has at most
    /// 10,000 buckets. At most two of `tag`, `providerAccountId` and `templateId` can be
    /// given.
    #[oai(path = "/v1/metrics", method = "get", operation_id = "get_metrics")]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the operation")]
    async fn get_metrics(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The start of the period. The default is 30 days ago.
        from: PeriodEdge,
        /// The end of the period. The default is now. A date without a time includes that
        /// whole day.
        to: PeriodEdge,
        /// The length of a bucket. The default is `day`.
        granularity: Query<Validated<Option<Granularity>>>,
        /// Only messages with this tag.
        tag: Query<Validated<Option<Tag>>>,
        /// Only recipients whose mail went through this provider account.
        #[oai(name = "providerAccountId")]
        provider_account_id: Query<Validated<Option<Id>>>,
        /// Only messages with this template.
        #[oai(name = "templateId")]
        template_id: Query<Validated<Option<Id>>>,
        /// The time zone of hours, days, weeks and months, and of times without an offset: a
        /// name of the IANA database. The default is UTC.
        #[oai(name = "timeZone")]
        time_zone: Query<Validated<Option<TimeZoneName>>>,
    ) -> Result<Json<MetricsSeries>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let query = CommonQuery {
            from,
            to,
            tag,
            provider_account_id,
            template_id,
            time_zone,
        };
        let asked = self.read(query, &mut issues);
        let granularity = granularity.0.take("granularity", &mut issues);
        let (Some(asked), Some(granularity)) = (asked, granularity) else {
            return Err(Failure::Invalid(issues));
        };
        let (period, granularity) = (asked.period, granularity.unwrap_or(Granularity::Day));
        let starts = buckets::starts(period, granularity).map_err(|buckets| {
            let word = granularity.as_str();
            let message = format!(
                "must not give more than {BUCKETS_MAX} buckets; the period from `from` to `to` has {buckets} buckets of one {word}"
            );
            Failure::Invalid(vec![Issue::new("granularity", message)])
        })?;
        let selection = asked.select(None)?;
        let mut connection = self.context.pool.acquire().await.or_fault(READ)?;
        let organization_id = caller.organization_id();
        let connection = &mut connection;
        let buckets = (granularity, starts.as_slice());
        let found = store::series(connection, organization_id, &selection, period, buckets).await?;
        let buckets = found.into_iter();
        let has_zone = asked.zone.is_some();
        Ok(Json(MetricsSeries {
            data: buckets
                .map(|bucket| MetricsBucket::of(bucket, has_zone))
                .collect(),
            query: SeriesQuery {
                from: Time(period.from()),
                to: Time(period.to()),
                granularity: granularity.as_str().to_owned(),
                time_zone: asked.zone.map(|zone| zone.name().to_owned()),
            },
        }))
    }

    /// Get metrics by provider, domain, template, account, tag or recipient domain
    ///
    /// Requires the permission `METRICS_READ`. Counts the same hours as `GET
    /// /v1/metrics`. A message with two tags counts for both. One of `tag`,
    /// `providerAccountId` and `templateId` can be given beside `groupBy`, or a second one that
    /// is also the one to group by. `recipientDomain` goes with `providerAccountId` alone.
    #[oai(
        path = "/v1/metrics/breakdown",
        method = "get",
        operation_id = "get_metrics_breakdown"
    )]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the operation")]
    async fn get_metrics_breakdown(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The start of the period. The default is 30 days ago.
        from: PeriodEdge,
        /// The end of the period. The default is now. A date without a time includes that
        /// whole day.
        to: PeriodEdge,
        /// What to group by. The default is `provider`.
        #[oai(name = "groupBy")]
        group_by: Query<Validated<Option<GroupBy>>>,
        /// Only messages with this tag.
        tag: Query<Validated<Option<Tag>>>,
        /// Only recipients whose mail went through this provider account.
        #[oai(name = "providerAccountId")]
        provider_account_id: Query<Validated<Option<Id>>>,
        /// Only messages with this template.
        #[oai(name = "templateId")]
        template_id: Query<Validated<Option<Id>>>,
        /// The time zone of hours, days, weeks and months, and of times without an offset: a
        /// name of the IANA database. The default is UTC.
        #[oai(name = "timeZone")]
        time_zone: Query<Validated<Option<TimeZoneName>>>,
    ) -> Result<Json<MetricsBreakdown>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let query = CommonQuery {
            from,
            to,
            tag,
            provider_account_id,
            template_id,
            time_zone,
        };
        let asked = self.read(query, &mut issues);
        let group_by = group_by.0.take("groupBy", &mut issues);
        let (Some(asked), Some(group_by)) = (asked, group_by) else {
            return Err(Failure::Invalid(issues));
        };
        let (period, group_by) = (asked.period, group_by.unwrap_or(GroupBy::Provider));
        let selection = asked.select(Some(group_by))?;
        let organization_id = caller.organization_id();
        let mut connection = self.context.pool.acquire().await.or_fault(READ)?;
        let connection = &mut *connection;
        let found =
            store::breakdown(connection, organization_id, &selection, period, group_by).await?;
        let filter = &asked.filter;
        let has_times =
            group_by == GroupBy::Account && filter.tag.is_none() && filter.template_id.is_none();
        let accounts = found.iter().filter(|_| has_times);
        let accounts: Vec<String> = accounts
            .take(TIMED_ACCOUNTS_MAX)
            .map(|group| group.key.clone())
            .collect();
        let times = store::account_times(connection, organization_id, accounts, period).await?;
        let groups = found.into_iter();
        Ok(Json(MetricsBreakdown {
            data: groups
                .map(|group| MetricsGroup::of(group, group_by, &times))
                .collect(),
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
    /// /v1/metrics`. At most two of `tag`, `providerAccountId` and `templateId` can be given.
    #[oai(
        path = "/v1/metrics/summary",
        method = "get",
        operation_id = "get_metrics_summary"
    )]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the operation")]
    async fn get_metrics_summary(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The start of the period. The default is 30 days ago.
        from: PeriodEdge,
        /// The end of the period. The default is now. A date without a time includes that
        /// whole day.
        to: PeriodEdge,
        /// Only messages with this tag.
        tag: Query<Validated<Option<Tag>>>,
        /// Only recipients whose mail went through this provider account.
        #[oai(name = "providerAccountId")]
        provider_account_id: Query<Validated<Option<Id>>>,
        /// Only messages with this template.
        #[oai(name = "templateId")]
        template_id: Query<Validated<Option<Id>>>,
        /// The time zone of hours, days, weeks and months, and of times without an offset: a
        /// name of the IANA database. The default is UTC.
        #[oai(name = "timeZone")]
        time_zone: Query<Validated<Option<TimeZoneName>>>,
    ) -> Result<Json<MetricsSummary>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let query = CommonQuery {
            from,
            to,
            tag,
            provider_account_id,
            template_id,
            time_zone,
        };
        let Some(asked) = self.read(query, &mut issues) else {
            return Err(Failure::Invalid(issues));
        };
        let selection = asked.select(None)?;
        let (period, organization_id) = (asked.period, caller.organization_id());
        let mut connection = self.context.pool.acquire().await.or_fault(READ)?;
        let found = store::summary(&mut connection, organization_id, &selection, period).await?;
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
/// The accounts of a breakdown whose times are shown, those that sent most.
const TIMED_ACCOUNTS_MAX: usize = 100;

impl Asked {
    /// The roll-up that answers.
    fn select(&self, group_by: Option<GroupBy>) -> Result<Selection, Failure> {
        let selection = Selection::of(&self.filter, group_by);
        selection.map_err(|TooManyFilters| {
            let filter = &self.filter;
            let is_together = group_by == Some(GroupBy::RecipientDomain)
                && (filter.tag.is_some() || filter.template_id.is_some());
            let (path, message) = if is_together {
                (
                    "groupBy",
                    "`recipientDomain` can be combined with `providerAccountId` alone",
                )
            } else if group_by.is_some() {
                (
                    "groupBy",
                    "can be combined with one of `tag`, `providerAccountId` and `templateId`",
                )
            } else {
                (
                    "templateId",
                    "must not be given with both `tag` and `providerAccountId`",
                )
            };
            Failure::Invalid(vec![Issue::new(path, message)])
        })
    }
}

impl MetricsApi {
    fn read(&self, query: CommonQuery, issues: &mut Vec<Issue>) -> Option<Asked> {
        let tag = query.tag.0.take("tag", issues);
        let account = query
            .provider_account_id
            .0
            .take("providerAccountId", issues);
        let template = query.template_id.0.take("templateId", issues);
        let zone = query.time_zone.0.take("timeZone", issues);
        let zone = zone.map(|zone| zone.map(|zone| zone.0));
        let period = self.read_period(query.from, query.to, zone.flatten(), issues);
        Some(Asked {
            filter: MetricFilter {
                tag: tag?,
                account_id: account?.map(|id| ProviderAccountId(id.0)),
                template_id: template?.map(|id| TemplateId(id.0)),
            },
            zone: zone?,
            period: period?,
        })
    }

    fn read_period(
        &self,
        from: PeriodEdge,
        to: PeriodEdge,
        zone: Option<Tz>,
        issues: &mut Vec<Issue>,
    ) -> Option<Period> {
        let zone = zone.unwrap_or(Tz::UTC);
        let given = from.0.take("from", issues);
        let to = to.0.take("to", issues);
        let (given, to) = (given?, to?);
        let now: Timestamp = self.context.clock.now();
        let from = given.map_or(now - PERIOD_DEFAULT, |from| from.start(zone));
        let to = to.map_or(now, |to| to.end(zone));
        for (path, time) in [("from", from), ("to", to)] {
            if !(0..=9_999).contains(&time.year()) {
                issues.push(Issue::new(
                    path,
                    "must be between the years 0000 and 9999 in UTC",
                ));
                return None;
            }
        }
        let period = Period::new(from, to, zone);
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
