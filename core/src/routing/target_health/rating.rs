//! Rates accounts by what became of their latest mail.

use std::collections::HashMap;

use chrono::TimeDelta;
use tracing::info;

use super::{FULL_PERCENT, store};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};

/// Attempts below which an account is not called bad: a few failures say little.
const ATTEMPTS_MIN: i64 = 100;
/// Above this percent of failures an account is bad.
const BAD_ABOVE_PERCENT: i64 = 10;
/// Below this percent of failures it is good again.
const GOOD_BELOW_PERCENT: i64 = 5;
/// The percent of its weight that a bad account keeps: this mail shows whether it is good again.
const BAD_PERCENT: u8 = 5;
/// The percents on the way back.
const STEPS: [u8; 5] = [BAD_PERCENT, 10, 25, 50, FULL_PERCENT];
/// How long each of them lasts.
const STEP_LASTS: TimeDelta = TimeDelta::minutes(15);

/// What became of the latest mail of an account, to all domains or to one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentMail {
    /// Attempts of this quarter of an hour and the one before.
    pub(super) attempts: i64,
    /// Those of them that were rejected or put off, or the bounces, whatever is more.
    pub(super) failed: i64,
    /// Attempts of this quarter and the four before: those of an hour at least.
    pub(super) hour_attempts: i64,
}

/// How an account was rated.
#[derive(Debug, Clone, Copy)]
pub(super) struct HealthRating {
    pub(super) percent: u8,
    pub(super) bad_since: Timestamp,
    pub(super) changed_at: Timestamp,
}

/// An account and a domain, empty for all domains.
pub(super) type Rated = (ProviderAccountId, String);

/// A change of a rating; `None` if the account has all its weight again.
pub(super) struct RatingChange {
    pub(super) organization_id: OrganizationId,
    pub(super) rated: Rated,
    pub(super) rating: Option<HealthRating>,
}

impl HealthRating {
    /// The next rating after the one before; `None` for all of the weight. Between good and bad
    /// nothing changes.
    fn next(before: Option<Self>, mail: RecentMail, now: Timestamp) -> Option<Self> {
        let is_bad =
            mail.attempts >= ATTEMPTS_MIN && mail.failed * 100 > mail.attempts * BAD_ABOVE_PERCENT;
        if is_bad {
            return Some(match before {
                Some(before) if before.percent == BAD_PERCENT => before,
                Some(_) | None => Self {
                    percent: BAD_PERCENT,
                    bad_since: now,
                    changed_at: now,
                },
            });
        }
        let before = before?;
        let is_idle = mail.hour_attempts == 0;
        let is_good = mail.attempts > 0 && mail.failed * 100 < mail.attempts * GOOD_BELOW_PERCENT;
        if !(is_idle || is_good) || now - before.changed_at < STEP_LASTS {
            return Some(before);
        }
        let percent = STEPS.into_iter().find(|step| *step > before.percent);
        let percent = percent.filter(|percent| *percent < FULL_PERCENT)?;
        Some(Self {
            percent,
            changed_at: now,
            ..before
        })
    }
}

/// Rates the accounts that are targets of rules which prefer healthy ones.
///
/// # Errors
/// A fault.
pub async fn rate_accounts(pool: &PgPool, clock: &Clock) -> Result<(), Fault> {
    let doing = "rate the health of accounts";
    let mut transaction = db::begin(pool, doing).await?;
    let now = clock.now();
    store::delete_unwanted(&mut transaction).await?;
    let before = store::list_ratings(&mut transaction).await?;
    let mails = store::list_mails(&mut transaction, now, ATTEMPTS_MIN).await?;
    let changes = changes(&before, &mails, now);
    for change in &changes {
        store::record(&mut transaction, change).await?;
    }
    transaction.commit().await.or_fault(doing)?;
    for change in &changes {
        report(change);
    }
    Ok(())
}

fn changes(
    before: &HashMap<Rated, (OrganizationId, HealthRating)>,
    mails: &HashMap<Rated, (OrganizationId, RecentMail)>,
    now: Timestamp,
) -> Vec<RatingChange> {
    let known = before.iter().map(|(rated, (id, _))| (rated, *id));
    let new = mails.iter().map(|(rated, (id, _))| (rated, *id));
    let new = new.filter(|(rated, _)| !before.contains_key(*rated));
    let mut changes: Vec<RatingChange> = known
        .chain(new)
        .filter_map(|(rated, organization_id)| {
            let before = before.get(rated).map(|(_, rating)| *rating);
            let mail = mails.get(rated).map(|(_, mail)| *mail);
            let rating = HealthRating::next(before, mail.unwrap_or_default(), now);
            let percent = |rating: Option<HealthRating>| rating.map(|rating| rating.percent);
            (percent(rating) != percent(before)).then(|| RatingChange {
                organization_id,
                rated: rated.clone(),
                rating,
            })
        })
        .collect();
    // In one order, so that two schedulers do not wait for each other.
    changes.sort_by(|one, other| one.rated.cmp(&other.rated));
    changes
}

/// Logs a change for all mail of an account. Domains of recipients are not logged.
fn report(change: &RatingChange) {
    let (id, domain) = &change.rated;
    if domain.is_empty() {
        let percent = change.rating.map_or(FULL_PERCENT, |rating| rating.percent);
        info!(provider_account.id = %id, percent, "Account {id} now has {percent} percent of its weight in rules that prefer healthy targets");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(attempts: i64, failed: i64) -> RecentMail {
        RecentMail {
            attempts,
            failed,
            hour_attempts: attempts,
        }
    }

    #[test]
    fn a_bad_account_keeps_a_twentieth_and_comes_back_in_steps() {
        let start = Clock::system().now();
        let at = |minutes: i64| start + TimeDelta::minutes(minutes);
        let percent = |rating: Option<HealthRating>| rating.map(|rating| rating.percent);
        // Too few, then too little.
        assert!(HealthRating::next(None, mail(99, 99), start).is_none());
        assert!(HealthRating::next(None, mail(100, 10), start).is_none());
        let bad = HealthRating::next(None, mail(100, 11), start);
        assert_eq!(percent(bad), Some(5));
        // Between good and bad nothing changes, and neither while it is bad.
        assert_eq!(
            percent(HealthRating::next(bad, mail(100, 7), at(60))),
            Some(5)
        );
        assert_eq!(
            percent(HealthRating::next(bad, mail(100, 50), at(60))),
            Some(5)
        );
        assert_eq!(
            percent(HealthRating::next(bad, mail(20, 0), at(14))),
            Some(5)
        );
        let mut rating = bad;
        for (nth, expected) in (1..).zip([Some(10), Some(25), Some(50), None]) {
            rating = HealthRating::next(rating, mail(20, 0), at(15 * nth));
            assert_eq!(percent(rating), expected);
            let same = HealthRating::next(rating, mail(20, 0), at(15 * nth + 14));
            assert_eq!(percent(same), expected);
        }
    }

    #[test]
    fn an_account_without_mail_comes_back_and_falls_again() {
        let start = Clock::system().now();
        let bad = HealthRating::next(None, mail(1_000, 1_000), start);
        let waiting = RecentMail {
            hour_attempts: 5,
            ..RecentMail::default()
        };
        let later = start + TimeDelta::minutes(70);
        let same = HealthRating::next(bad, waiting, later).unwrap();
        assert_eq!(same.percent, 5);
        let better = HealthRating::next(bad, RecentMail::default(), later);
        assert_eq!(better.unwrap().percent, 10);
        let again = HealthRating::next(better, mail(100, 100), later).unwrap();
        assert_eq!((again.percent, again.bad_since), (5, later));
    }
}
