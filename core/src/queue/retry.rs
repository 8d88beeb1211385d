//! What follows from an attempt's outcome. Pure: the same outcome, standing and
//! chance give the same verdict.

use std::time::Duration;

use crate::clock::{Timestamp, delta};
use crate::config::SendingSettings;
use crate::event::EventType;
use crate::message::MessageStatus;
use crate::provider::outcome::SendOutcome;
use crate::suppression;

/// Where a recipient stood before the attempt.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Attempts used up.
    pub attempts: i32,
    /// Attempts whose outcome nobody knows.
    pub unknowns: i32,
    /// When its message was accepted.
    pub accepted_at: Timestamp,
}

/// Where it stands after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its status.
    pub status: MessageStatus,
    /// When it is tried again, where it is.
    pub next_attempt_at: Timestamp,
    /// Whether the attempt used up a try.
    pub uses_attempt: bool,
    /// What goes into its history.
    pub event: Option<EventType>,
    /// What to show as its latest error.
    pub error: Option<String>,
}

/// The moment of an outcome and what chance says.
#[derive(Debug, Clone, Copy)]
pub struct Circumstance {
    /// Now.
    pub now: Timestamp,
    /// Evenly distributed in `0.0..1.0`.
    pub fraction: f64,
    /// Whether the provider answered at all.
    pub answered: bool,
}

/// Decides what follows from an outcome.
#[must_use]
pub fn decide(
    outcome: &SendOutcome,
    standing: Standing,
    settings: &SendingSettings,
    here: Circumstance,
) -> Verdict {
    match outcome {
        SendOutcome::Accepted { .. } => Verdict {
            status: MessageStatus::Sent,
            next_attempt_at: here.now,
            uses_attempt: true,
            event: Some(EventType::Sent),
            error: None,
        },
        SendOutcome::Rejected { reason, .. } => failed(here.now, reason.clone()),
        SendOutcome::Throttled {
            retry_after,
            reason,
        } => {
            // No attempt is counted, so the message's age stands in for them: a
            // bound that grows with it doubles in effect.
            let age = (here.now - standing.accepted_at)
                .to_std()
                .unwrap_or_default();
            let bound = age.clamp(settings.retry_first, settings.retry_longest);
            let wait = wait(bound, *retry_after, settings, here.fraction);
            retry(
                standing,
                settings,
                here,
                Again {
                    wait,
                    reason,
                    uses_attempt: false,
                },
            )
        }
        SendOutcome::Unavailable {
            retry_after,
            reason,
        } => {
            let bound = backoff(standing.attempts, settings);
            let wait = wait(bound, *retry_after, settings, here.fraction);
            retry(
                standing,
                settings,
                here,
                Again {
                    wait,
                    reason,
                    uses_attempt: true,
                },
            )
        }
        SendOutcome::Unknown { reason } if standing.unknowns == 0 => Verdict {
            status: MessageStatus::Sending,
            next_attempt_at: after(here.now, settings.unknown_wait),
            uses_attempt: true,
            event: None,
            error: Some(reason.clone()),
        },
        // It was sent once more after the wait, and that answer was lost too:
        // another try would be a third copy.
        SendOutcome::Unknown { reason } => failed(
            here.now,
            format!("the provider's answer was lost twice: {reason}"),
        ),
    }
}

/// What follows where a recipient turns out to be suppressed before the call.
#[must_use]
pub fn suppressed(now: Timestamp) -> Verdict {
    Verdict {
        uses_attempt: false,
        ..failed(now, suppression::REASON.to_owned())
    }
}

struct Again<'a> {
    wait: Duration,
    reason: &'a str,
    uses_attempt: bool,
}

fn retry(
    standing: Standing,
    settings: &SendingSettings,
    here: Circumstance,
    again: Again<'_>,
) -> Verdict {
    let next_attempt_at = after(here.now, again.wait);
    if next_attempt_at > after(standing.accepted_at, settings.retry_horizon) {
        return failed(here.now, format!("retries are used up: {}", again.reason));
    }
    Verdict {
        status: MessageStatus::Queued,
        next_attempt_at,
        uses_attempt: again.uses_attempt,
        event: here.answered.then_some(EventType::Deferred),
        error: Some(again.reason.to_owned()),
    }
}

fn failed(now: Timestamp, reason: String) -> Verdict {
    Verdict {
        status: MessageStatus::Failed,
        next_attempt_at: now,
        uses_attempt: true,
        event: Some(EventType::Dropped),
        error: Some(reason),
    }
}

/// The bound of the wait after so many attempts.
fn backoff(attempts: i32, settings: &SendingSettings) -> Duration {
    let doublings = u32::try_from(attempts).unwrap_or(0).min(30);
    settings
        .retry_first
        .saturating_mul(1 << doublings)
        .min(settings.retry_longest)
}

/// Full jitter below a bound; what the provider asks for is the least.
fn wait(
    bound: Duration,
    retry_after: Option<Duration>,
    settings: &SendingSettings,
    fraction: f64,
) -> Duration {
    let jittered = bound.mul_f64(fraction);
    match retry_after {
        // A little chance on top, so that not all that waited come at once.
        Some(asked) => asked.max(jittered) + settings.retry_first.mul_f64(fraction / 5.0),
        None => jittered,
    }
}

fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    moment
        .checked_add_signed(delta(wait))
        .unwrap_or(Timestamp::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::clock::Clock;
    use crate::config::Settings;
    use crate::provider::outcome::Blame;

    fn settings() -> SendingSettings {
        let variables = [
            ("DATABASE_URL", "postgres://localhost/x"),
            ("WAYPOST_ENV", "development"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Settings::from_map(&variables.into_iter().collect())
            .unwrap()
            .sending
    }

    fn verdict(
        outcome: &SendOutcome,
        attempts: i32,
        unknowns: i32,
        age: TimeDelta,
    ) -> (Verdict, Timestamp) {
        let now = Clock::system().now();
        let standing = Standing {
            attempts,
            unknowns,
            accepted_at: now - age,
        };
        let here = Circumstance {
            now,
            fraction: 0.5,
            answered: true,
        };
        (decide(outcome, standing, &settings(), here), now)
    }

    fn unavailable(retry_after: Option<u64>) -> SendOutcome {
        SendOutcome::Unavailable {
            retry_after: retry_after.map(Duration::from_secs),
            reason: "HTTP 500".to_owned(),
        }
    }

    #[test]
    fn waits_double_up_to_half_an_hour_and_obey_the_provider() {
        for (attempts, retry_after, seconds) in [
            (0, None, 2.5),
            (1, None, 5.0),
            (5, None, 80.0),
            (20, None, 900.0),
            (0, Some(60), 60.5),
        ] {
            let (verdict, now) = verdict(&unavailable(retry_after), attempts, 0, TimeDelta::zero());
            let waited = verdict.next_attempt_at - now;
            assert_eq!(waited, TimeDelta::milliseconds((seconds * 1000.0) as i64));
            assert_eq!(verdict.status, MessageStatus::Queued);
            assert_eq!(verdict.event, Some(EventType::Deferred));
        }
    }

    #[test]
    fn being_throttled_uses_up_no_attempt_and_being_unavailable_does() {
        let throttled = SendOutcome::Throttled {
            retry_after: None,
            reason: String::new(),
        };
        assert!(!verdict(&throttled, 0, 0, TimeDelta::zero()).0.uses_attempt);
        assert!(
            verdict(&unavailable(None), 0, 0, TimeDelta::zero())
                .0
                .uses_attempt
        );
    }

    #[test]
    fn being_throttled_for_long_makes_the_waits_longer() {
        let throttled = SendOutcome::Throttled {
            retry_after: None,
            reason: String::new(),
        };
        for (age_seconds, wait_seconds) in [(0, 2.5), (60, 30.0), (20_000, 900.0)] {
            let (verdict, now) = verdict(&throttled, 0, 0, TimeDelta::seconds(age_seconds));
            let waited = (verdict.next_attempt_at - now).as_seconds_f64();
            assert!(
                (waited - wait_seconds).abs() < 0.001,
                "{age_seconds}: {waited}"
            );
        }
    }

    #[test]
    fn after_a_day_retries_are_used_up() {
        let (verdict, _) = verdict(&unavailable(None), 60, 0, TimeDelta::hours(24));
        assert_eq!(verdict.status, MessageStatus::Failed);
        assert_eq!(verdict.event, Some(EventType::Dropped));
    }

    #[test]
    fn a_lost_answer_is_waited_for_once_and_then_given_up() {
        let unknown = SendOutcome::Unknown {
            reason: "time-out".to_owned(),
        };
        let (first, now) = verdict(&unknown, 0, 0, TimeDelta::zero());
        assert_eq!(first.status, MessageStatus::Sending);
        assert_eq!(first.next_attempt_at - now, TimeDelta::minutes(15));
        assert_eq!(first.event, None);
        let (second, _) = verdict(&unknown, 1, 1, TimeDelta::zero());
        assert_eq!(second.status, MessageStatus::Failed);
    }

    #[test]
    fn a_refusal_fails_at_once() {
        let rejected = SendOutcome::Rejected {
            reason: "no".to_owned(),
            blame: Blame::Message,
        };
        let (verdict, _) = verdict(&rejected, 0, 0, TimeDelta::zero());
        assert_eq!(
            (verdict.status, verdict.event),
            (MessageStatus::Failed, Some(EventType::Dropped))
        );
    }
}
