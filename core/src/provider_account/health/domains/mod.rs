//! How provider accounts did by recipient domain, over 15 minutes, a day and a week: what became
//! of their mail, and how long they took to accept it.
//!
//! What was sent, delivered, bounced and complained about comes from the roll-ups of `metrics`,
//! which have this pair of dimensions and are exact at any moment. The attempts, and how long
//! accepted ones took, are read by the scheduler: each account has a cursor that moves over its
//! attempts in the order of their ids, in the statement that counts them, so each counts once.
//! Sending writes nothing for this. What was put off comes from DEFERRED events, of which the
//! function that counts events writes deltas.

pub mod store;

use std::collections::BTreeMap;

use chrono::{NaiveTime, TimeDelta};

use crate::clock::{Clock, Timestamp};
use crate::db::organization_shard::OrganizationShard;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::metrics::{EventCounts, OTHER, Percentiles, TimeStep, rate, start_of_quarter};

/// Recipient domains that are reported on their own: those with the most mail.
pub const DOMAINS_MAX: usize = 50;
/// A rate of fewer mails, and times of fewer, are not reported: one bounce among five says nothing.
pub const MAILS_MIN: i64 = 20;
/// Attempts are read this long after they began: the one with the smaller id may be committed
/// later. Statements that write attempts end sooner.
pub const READ_AFTER: TimeDelta = TimeDelta::seconds(30);
/// An attempt that has not ended holds up those after it for this long at most. Calls end
/// sooner, and so do the leases of dead workers.
const OPEN_MAX: TimeDelta = TimeDelta::minutes(5);
/// How long the counts of quarters and days are kept: the longest window, and a day.
const KEPT: TimeDelta = TimeDelta::days(8);

/// How far back is looked. The quarters of an hour that a window touches count whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthWindow {
    QuarterHour,
    Day,
    Week,
}

impl HealthWindow {
    /// All of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::QuarterHour, Self::Day, Self::Week];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QuarterHour => "15m",
            Self::Day => "day",
            Self::Week => "week",
        }
    }

    /// What it is at a moment.
    #[must_use]
    pub fn at(self, now: Timestamp) -> HealthSpan {
        let length = match self {
            Self::QuarterHour => TimeDelta::minutes(15),
            Self::Day => TimeDelta::days(1),
            Self::Week => TimeDelta::days(7),
        };
        HealthSpan {
            from: start_of_quarter(now - length),
            to: now,
        }
    }
}

/// A window at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthSpan {
    /// The beginning of its first quarter of an hour.
    pub from: Timestamp,
    /// The moment.
    pub to: Timestamp,
}

impl HealthSpan {
    /// The end of its last quarter of an hour.
    fn end(self) -> Timestamp {
        start_of_quarter(self.to) + TimeDelta::minutes(15)
    }

    /// Beginning and end of the whole UTC days in it, which are read by the day. If there are
    /// none, both are its end.
    fn whole_days(self) -> (Timestamp, Timestamp) {
        let midnight = |at: Timestamp| at.date_naive().and_time(NaiveTime::MIN).and_utc();
        let end = midnight(self.end());
        let mut first = midnight(self.from);
        if first < self.from {
            first += TimeDelta::days(1);
        }
        if first < end {
            (first, end)
        } else {
            (self.end(), self.end())
        }
    }
}

/// What became of some mail of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailFigures {
    /// Calls to the provider for one recipient each, ended.
    pub attempts: i64,
    /// Attempts that the provider accepted.
    pub accepted: i64,
    /// Attempts that it refused for good.
    pub rejected: i64,
    /// Attempts that it, or later the recipient's server, put off.
    pub deferred: i64,
    /// Recipients, as metrics count them.
    pub counts: EventCounts,
    /// Accepted attempts by how long they took.
    accepted_in: BTreeMap<TimeStep, i64>,
}

impl MailFigures {
    /// The share of the attempts that were put off; `None` if they are few, as for all rates.
    #[must_use]
    pub fn deferral_rate(&self) -> Option<f64> {
        share(self.deferred, self.attempts)
    }

    /// The share of what was sent that bounced.
    #[must_use]
    pub fn bounce_rate(&self) -> Option<f64> {
        share(self.counts.bounced, self.counts.sent)
    }

    /// The share of what was delivered that was complained about.
    #[must_use]
    pub fn complaint_rate(&self) -> Option<f64> {
        share(self.counts.complained, self.counts.delivered)
    }

    /// The share of what was sent that was delivered.
    #[must_use]
    pub fn delivery_rate(&self) -> Option<f64> {
        share(self.counts.delivered, self.counts.sent)
    }

    /// How long accepted attempts took; `None` if they are few.
    #[must_use]
    pub fn accept_latency(&self) -> Option<Percentiles> {
        let steps = self.accepted_in.iter().map(|(step, count)| (*step, *count));
        let steps: Vec<(TimeStep, i64)> = steps.collect();
        let all: i64 = steps.iter().map(|(_, count)| count).sum();
        Percentiles::of(&steps).filter(|_| all >= MAILS_MIN)
    }

    fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.deferred += other.deferred;
        self.counts.sent += other.counts.sent;
        self.counts.delivered += other.counts.delivered;
        self.counts.opened += other.counts.opened;
        self.counts.clicked += other.counts.clicked;
        self.counts.bounced += other.counts.bounced;
        self.counts.complained += other.counts.complained;
        self.counts.unsubscribed += other.counts.unsubscribed;
        for (step, count) in &other.accepted_in {
            *self.accepted_in.entry(*step).or_default() += count;
        }
    }

    /// By what domains are ordered.
    fn volume(&self) -> i64 {
        self.counts.sent.max(self.attempts)
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// `part / whole`; `None` if that is of too few mails to say something.
fn share(part: i64, whole: i64) -> Option<f64> {
    (whole >= MAILS_MIN).then(|| rate(part, whole))
}

/// What became of all mail of an account, in the order of [`HealthWindow::ALL`].
pub type WindowTotals = [MailFigures; HealthWindow::ALL.len()];

/// What became of the mail of an account to one recipient domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainFigures {
    /// Empty if it is not known; [`OTHER`] for those that are counted together.
    pub recipient_domain: String,
    pub figures: MailFigures,
}

/// The domains with the most mail first, up to [`DOMAINS_MAX`]; then all others together.
fn busiest(mut domains: BTreeMap<String, MailFigures>) -> Vec<DomainFigures> {
    let mut others = domains.remove(OTHER).unwrap_or_default();
    let domains = domains
        .into_iter()
        .filter(|(_, figures)| !figures.is_nothing());
    let mut domains: Vec<DomainFigures> = domains
        .map(|(recipient_domain, figures)| DomainFigures {
            recipient_domain,
            figures,
        })
        .collect();
    // Stable: those with as much mail stay in the order of their names.
    domains.sort_by_key(|domain| std::cmp::Reverse(domain.figures.volume()));
    for rest in domains.drain(DOMAINS_MAX.min(domains.len())..) {
        others.add(&rest.figures);
    }
    if !others.is_nothing() {
        domains.push(DomainFigures {
            recipient_domain: OTHER.to_owned(),
            figures: others,
        });
    }
    domains
}

/// What became of the mail of an account in a window, by recipient domain.
///
/// # Errors
/// A fault if Postgres is unavailable.
pub async fn read(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    span: HealthSpan,
) -> Result<Vec<DomainFigures>, Fault> {
    let domains = store::read(connection, organization_id, account_id, span).await?;
    Ok(busiest(domains))
}

/// What became of all mail of an account in each window, the shortest first.
///
/// # Errors
/// A fault if Postgres is unavailable.
pub async fn read_totals(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    now: Timestamp,
) -> Result<WindowTotals, Fault> {
    let mut totals = WindowTotals::default();
    for (total, window) in totals.iter_mut().zip(HealthWindow::ALL) {
        let span = window.at(now);
        let domains = store::read(&mut *connection, organization_id, account_id, span).await?;
        for figures in domains.values() {
            total.add(figures);
        }
    }
    Ok(totals)
}

/// Counts attempts and deferrals that are not counted yet, about `limit` of them, of the
/// accounts of a shard of the organizations, and returns their number. Several callers may run at
/// once.
///
/// # Errors
/// A fault if Postgres is unavailable.
pub async fn roll_up(
    pool: &PgPool,
    clock: &Clock,
    shard: OrganizationShard,
    limit: i64,
) -> Result<i64, Fault> {
    const DOING: &str = "count the attempts of accounts";
    let now = clock.now();
    let (until, open_since) = (now - READ_AFTER, now - OPEN_MAX);
    let mut connection = pool.acquire().await.or_fault(DOING)?;
    let due = store::list_due(&mut connection, shard, until).await?;
    drop(connection);
    let mut taken = 0;
    for account_id in due {
        if taken >= limit {
            break;
        }
        let mut transaction = db::begin(pool, DOING).await?;
        let rows = limit - taken;
        taken += store::roll_up(&mut transaction, account_id, (until, open_since), rows).await?;
        transaction.commit().await.or_fault(DOING)?;
    }
    Ok(taken)
}

/// Prepares accounts for [`roll_up`] that are new, and deletes up to `limit` rows of quarters, of
/// days and of deltas that no window shows any more.
///
/// # Errors
/// A fault if Postgres is unavailable.
pub async fn tidy(pool: &PgPool, clock: &Clock, limit: i64) -> Result<(), Fault> {
    let mut connection = pool
        .acquire()
        .await
        .or_fault("prepare the counts of accounts")?;
    store::insert_cursors(&mut connection).await?;
    store::delete_old(&mut connection, clock.now() - KEPT, limit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a constant time")
    }

    #[test]
    fn a_window_counts_the_quarters_that_it_touches() {
        let now = at("2026-03-04T10:07:30Z");
        let short = HealthWindow::QuarterHour.at(now);
        assert_eq!(short.from, at("2026-03-04T09:45:00Z"));
        assert_eq!(short.end(), at("2026-03-04T10:15:00Z"));
        assert_eq!(short.whole_days(), (short.end(), short.end()));
        let week = HealthWindow::Week.at(now);
        assert_eq!(week.from, at("2026-02-25T10:00:00Z"));
        let days = (at("2026-02-26T00:00:00Z"), at("2026-03-04T00:00:00Z"));
        assert_eq!(week.whole_days(), days);
        let midnight = HealthWindow::Day.at(at("2026-03-04T00:00:00Z"));
        let day = (at("2026-03-03T00:00:00Z"), at("2026-03-04T00:00:00Z"));
        assert_eq!(midnight.whole_days(), day);
    }

    #[test]
    fn rates_of_few_mails_are_not_reported() {
        let figures = |mails: i64| MailFigures {
            attempts: mails,
            accepted: mails,
            rejected: 0,
            deferred: 5,
            counts: EventCounts {
                sent: mails,
                delivered: mails,
                bounced: 4,
                complained: 1,
                ..EventCounts::default()
            },
            accepted_in: BTreeMap::from([(TimeStep(20), mails)]),
        };
        let few = figures(MAILS_MIN - 1);
        let rates = |of: &MailFigures| {
            [
                of.deferral_rate(),
                of.bounce_rate(),
                of.complaint_rate(),
                of.delivery_rate(),
            ]
        };
        assert_eq!(rates(&few), [None; 4]);
        assert_eq!(few.accept_latency(), None);
        let enough = figures(MAILS_MIN);
        assert_eq!(rates(&enough), [0.25, 0.2, 0.05, 1.0].map(Some));
        assert_eq!(enough.accept_latency().unwrap().p50, 35);
    }

    #[test]
    fn the_busiest_domains_come_first_and_the_others_together() {
        let sent = |sent| MailFigures {
            attempts: sent,
            ..MailFigures::default()
        };
        let mut domains = BTreeMap::from([(OTHER.to_owned(), sent(1_000))]);
        for number in 0..60 {
            domains.insert(format!("d{number:02}.example"), sent(number));
        }
        let busiest = busiest(domains);
        assert_eq!(busiest.len(), DOMAINS_MAX + 1);
        assert_eq!(busiest[0].recipient_domain, "d59.example");
        assert_eq!(busiest[49].recipient_domain, "d10.example");
        let others = &busiest[DOMAINS_MAX];
        assert_eq!(others.recipient_domain, OTHER);
        assert_eq!(others.figures.attempts, 1_000 + (0..10).sum::<i64>());
    }
}
