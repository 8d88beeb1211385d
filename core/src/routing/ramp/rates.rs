//! The bounce and complaint rates of accounts that ramps mind: those of all mail of the account, as
//! metrics count it. Mailbox providers judge the sender, not a rule.

use chrono::TimeDelta;

use super::RampBounds;
use super::store;
use crate::clock::Timestamp;
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::metrics::{rate, start_of_quarter};

/// The mails of these hours are looked at, of whole quarters of an hour.
const WINDOW: TimeDelta = TimeDelta::hours(24);
/// Those of these days if there are too few.
const WIDE_WINDOW: TimeDelta = TimeDelta::days(7);
/// Of fewer sent mails rates are not known.
pub const SENT_MIN: i64 = 100;

/// What became of the mail of an account lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountCounts {
    pub sent: i64,
    pub delivered: i64,
    pub bounced: i64,
    pub complained: i64,
}

/// How the rates of an account are to the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Within both, or not known.
    Within,
    /// One is passed.
    Beyond,
    /// One is passed by more than twice.
    FarBeyond,
}

impl AccountCounts {
    /// Bounces divided by sent mails; `None` if they are too few.
    #[must_use]
    pub fn bounce_rate(self) -> Option<f64> {
        self.is_enough().then(|| rate(self.bounced, self.sent))
    }

    /// Complaints divided by delivered mails; `None` if too few were sent.
    #[must_use]
    pub fn complaint_rate(self) -> Option<f64> {
        self.is_enough()
            .then(|| rate(self.complained, self.delivered))
    }

    fn is_enough(self) -> bool {
        self.sent >= SENT_MIN
    }

    pub(super) fn verdict(self, bounds: RampBounds) -> Verdict {
        if !self.is_enough() {
            return Verdict::Within;
        }
        let bounces = verdict(self.bounced, self.sent, bounds.bounce_rate);
        bounces.max(verdict(
            self.complained,
            self.delivered,
            bounds.complaint_rate,
        ))
    }
}

/// Compares a count with what a bound allows. One is always allowed: a single complaint among 200
/// mails is five times a bound of 0.1 %, and says nothing.
fn verdict(count: i64, mails: i64, bound: f64) -> Verdict {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let (count, mails) = (count as f64, mails as f64);
    let allowed = (bound * mails).max(1.0);
    if count > 2.0 * allowed {
        Verdict::FarBeyond
    } else if count > allowed {
        Verdict::Beyond
    } else {
        Verdict::Within
    }
}

/// What became of the mail of accounts lately, in their order: over a day, or over a week if fewer
/// than [`SENT_MIN`] mails were sent in a day.
///
/// # Errors
/// A fault if Postgres is unavailable.
pub async fn read(
    connection: &mut PgConnection,
    accounts: &[(OrganizationId, ProviderAccountId)],
    now: Timestamp,
) -> Result<Vec<AccountCounts>, Fault> {
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let window = store::CountedWindow {
        first: start_of_quarter(now - WINDOW),
        first_wide: start_of_quarter(now - WIDE_WINDOW),
        end: start_of_quarter(now) + TimeDelta::minutes(15),
    };
    let counts = store::count(connection, accounts, window).await?;
    let counts = counts.into_iter();
    let chosen = counts.map(|(day, week)| if day.is_enough() { day } else { week });
    Ok(chosen.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: RampBounds = RampBounds {
        bounce_rate: 0.05,
        complaint_rate: 0.001,
    };

    #[test]
    fn rates_are_compared_with_the_bounds_if_they_are_of_enough_mails() {
        use Verdict::{Beyond, FarBeyond, Within};
        for (sent, bounced, complained, expected) in [
            (99, 99, 99, Within),
            (100, 5, 0, Within),
            (100, 6, 0, Beyond),
            (100, 10, 0, Beyond),
            (100, 11, 0, FarBeyond),
            (10_000, 500, 10, Within),
            (10_000, 501, 0, Beyond),
            (10_000, 0, 11, Beyond),
            (10_000, 0, 20, Beyond),
            (10_000, 0, 21, FarBeyond),
            (10_000, 501, 21, FarBeyond),
            // One says nothing.
            (100, 0, 1, Within),
            (100, 0, 2, Beyond),
            (100, 0, 3, FarBeyond),
        ] {
            let counts = AccountCounts {
                sent,
                delivered: sent,
                bounced,
                complained,
            };
            assert_eq!(counts.verdict(BOUNDS), expected, "{counts:?}");
        }
    }

    #[test]
    fn rates_of_few_mails_are_not_known() {
        let counts = |sent| AccountCounts {
            sent,
            delivered: 50,
            bounced: 7,
            complained: 1,
        };
        assert_eq!(counts(99).bounce_rate(), None);
        assert_eq!(counts(99).complaint_rate(), None);
        assert_eq!(counts(100).bounce_rate(), Some(0.07));
        assert_eq!(counts(100).complaint_rate(), Some(0.02));
    }
}
