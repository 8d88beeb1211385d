//! The next state of a recipient after each outcome.

use chrono::TimeDelta;

use super::*;
use crate::clock::Clock;
use crate::config::Settings;
use crate::provider::outcome::AccountTrouble;

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

/// The first try of a message of this age, with one candidate.
fn ctx(age: TimeDelta) -> (RetryContext, RetryMoment) {
    let now = Clock::system().now();
    let ctx = RetryContext {
        unknowns: 0,
        tried_since: now - age,
        expires_at: None,
        on_unknown: OnUnknown::Wait,
        retry_state: RetryState::default(),
        tried: 0,
        candidates: 1,
        skipped: 0,
    };
    let moment = RetryMoment {
        now,
        fraction: 0.5,
        answered: true,
    };
    (ctx, moment)
}

fn next_state_at_age(
    outcome: &SendOutcome,
    age: TimeDelta,
    change: impl FnOnce(&mut RetryContext),
) -> (NextState, Timestamp) {
    let (mut ctx, moment) = ctx(age);
    change(&mut ctx);
    (decide(outcome, ctx, &settings(), moment), moment.now)
}

fn next_state(
    outcome: &SendOutcome,
    change: impl FnOnce(&mut RetryContext),
) -> (NextState, Timestamp) {
    next_state_at_age(outcome, TimeDelta::zero(), change)
}

fn throttled(retry_after: Option<u64>) -> SendOutcome {
    SendOutcome::Throttled {
        retry_after: retry_after.map(Duration::from_secs),
        reason: "HTTP 429".to_owned(),
    }
}

fn unusable() -> SendOutcome {
    SendOutcome::AccountUnusable {
        trouble: AccountTrouble::Permanent,
        retry_after: None,
        reason: "HTTP 401".to_owned(),
    }
}

fn deferred(retry_after: Option<u64>) -> SendOutcome {
    SendOutcome::Deferred {
        retry_after: retry_after.map(Duration::from_secs),
        reason: "SMTP 451".to_owned(),
    }
}

fn unknown() -> SendOutcome {
    SendOutcome::Unknown {
        reason: "time-out".to_owned(),
    }
}

fn rejected(blame: Blame) -> SendOutcome {
    SendOutcome::Rejected {
        reason: "no".to_owned(),
        blame,
    }
}

fn unavailable(retry_after: Option<u64>) -> SendOutcome {
    SendOutcome::Unavailable {
        retry_after: retry_after.map(Duration::from_secs),
        reason: "HTTP 500".to_owned(),
    }
}

#[test]
fn waits_double_with_the_rounds_up_to_half_an_hour_and_last_at_least_as_long_as_the_provider_asks()
{
    for (rounds, retry_after, seconds) in [
        (0, None, 2.5),
        (1, None, 5.0),
        (5, None, 80.0),
        (20, None, 900.0),
        (i16::MAX, None, 900.0),
        (0, Some(60), 60.5),
    ] {
        let (next_state, now) = next_state(&unavailable(retry_after), |ctx| {
            ctx.retry_state.rounds = rounds;
        });
        let waited = next_state.next_attempt_at - now;
        assert_eq!(waited, TimeDelta::milliseconds((seconds * 1000.0) as i64));
        assert_eq!(next_state.status, MessageStatus::Queued);
        assert_eq!(next_state.event, Some(EventType::Deferred));
        assert_eq!(next_state.retry_state.rounds, rounds.saturating_add(1));
    }
}

#[test]
fn a_failure_of_the_account_does_not_count_as_an_attempt() {
    for (outcome, uses_attempt) in [
        (throttled(None), false),
        (unusable(), false),
        (unavailable(None), true),
        (deferred(None), true),
    ] {
        let (next_state, _) = next_state(&outcome, |_| ());
        assert_eq!(next_state.uses_attempt, uses_attempt, "{outcome:?}");
        assert_eq!(next_state.status, MessageStatus::Queued);
        assert_eq!(next_state.event, Some(EventType::Deferred));
    }
}

#[test]
fn a_deferral_by_the_recipients_server_is_not_tried_with_another_account() {
    for (rounds, retry_after, seconds) in [(0, None, 2.5), (3, None, 20.0), (0, Some(60), 60.5)] {
        for candidates in [1, 3] {
            let (next_state, now) = next_state(&deferred(retry_after), |ctx| {
                ctx.candidates = candidates;
                ctx.retry_state.rounds = rounds;
            });
            let waited = (next_state.next_attempt_at - now).as_seconds_f64();
            assert!((waited - seconds).abs() < 0.001, "{waited}");
            assert_eq!(
                (
                    next_state.retry_state.candidate,
                    next_state.retry_state.rounds
                ),
                (0, rounds + 1)
            );
        }
    }
}

#[test]
fn a_candidate_that_refused_the_sender_is_skipped() {
    for (skipped, outcome, candidate) in [
        (0b010, unavailable(None), 2),
        (0b000, unavailable(None), 1),
        (0b110, unavailable(None), 0),
        (0b010, rejected(Blame::Sender), 2),
        (0b001, unusable(), 1),
    ] {
        let (next_state, _) = next_state(&outcome, |ctx| {
            ctx.candidates = 3;
            ctx.skipped = skipped;
        });
        assert_eq!(next_state.status, MessageStatus::Queued);
        assert_eq!(
            next_state.retry_state.candidate, candidate,
            "{skipped:b} {outcome:?}"
        );
    }
    // No other candidate is left.
    let (next_state, _) = next_state(&rejected(Blame::Sender), |ctx| {
        ctx.candidates = 3;
        ctx.tried = 1;
        ctx.skipped = 0b101;
    });
    assert_eq!(next_state.status, MessageStatus::Failed);
}

#[test]
fn being_throttled_for_long_makes_the_waits_longer() {
    for (age_seconds, wait_seconds) in [(0, 2.5), (60, 30.0), (20_000, 900.0)] {
        let age = TimeDelta::seconds(age_seconds);
        let (next_state, now) = next_state_at_age(&throttled(None), age, |_| ());
        let waited = (next_state.next_attempt_at - now).as_seconds_f64();
        assert!(
            (waited - wait_seconds).abs() < 0.001,
            "{age_seconds}: {waited}"
        );
    }
}

#[test]
fn after_a_day_retries_are_used_up() {
    for outcome in [
        unavailable(None),
        throttled(None),
        unusable(),
        deferred(None),
    ] {
        for candidates in [1, 2] {
            let (next_state, _) = next_state_at_age(&outcome, TimeDelta::hours(25), |ctx| {
                ctx.candidates = candidates;
            });
            assert_eq!(next_state.status, MessageStatus::Failed);
            assert_eq!(next_state.event, Some(EventType::Dropped));
        }
    }
}

#[test]
fn the_last_try_is_at_the_horizon() {
    let settings = settings();
    let horizon = delta(settings.retry_horizon);
    for outcome in [
        unavailable(None),
        throttled(Some(900)),
        unusable(),
        deferred(Some(900)),
    ] {
        for seconds_left in [1, 60, 500] {
            let age = horizon - TimeDelta::seconds(seconds_left);
            let (next_state, now) = next_state_at_age(&outcome, age, |ctx| {
                ctx.retry_state.rounds = 12;
            });
            assert_eq!(next_state.status, MessageStatus::Queued, "{outcome:?}");
            let end = now + TimeDelta::seconds(seconds_left);
            assert!(next_state.next_attempt_at <= end, "{outcome:?}");
            assert!(next_state.next_attempt_at > now, "{outcome:?}");
        }
        let (next_state, _) = next_state_at_age(&outcome, horizon, |_| {});
        assert_eq!(next_state.status, MessageStatus::Failed, "{outcome:?}");
    }
}

#[test]
fn after_a_temporary_failure_the_next_candidate_is_tried_at_once() {
    let outcomes = [
        (unavailable(Some(60)), true, true),
        (throttled(Some(60)), false, true),
        (unusable(), false, true),
        (rejected(Blame::Sender), true, false),
    ];
    for (outcome, uses_attempt, recoverable) in outcomes {
        let (next_state, now) = next_state(&outcome, |ctx| {
            ctx.candidates = 3;
            ctx.tried = 1;
            ctx.retry_state.rounds = 4;
        });
        assert_eq!(next_state.status, MessageStatus::Queued);
        assert_eq!(next_state.next_attempt_at, now);
        assert_eq!(next_state.uses_attempt, uses_attempt);
        assert_eq!(next_state.event, Some(EventType::Deferred));
        let retry_state = RetryState {
            candidate: 2,
            rounds: 4,
            recoverable,
        };
        assert_eq!(next_state.retry_state, retry_state);
    }
}

#[test]
fn with_several_candidates_a_round_ends_without_the_pause_that_one_asked_for() {
    for (outcome, rounds) in [(unavailable(Some(3_600)), 1), (throttled(Some(3_600)), 0)] {
        let (next_state, now) = next_state(&outcome, |ctx| {
            ctx.candidates = 2;
            ctx.tried = 1;
            ctx.retry_state.candidate = 1;
        });
        assert_eq!(
            next_state.next_attempt_at - now,
            TimeDelta::milliseconds(2_500)
        );
        let retry_state = RetryState {
            candidate: 0,
            rounds,
            recoverable: false,
        };
        assert_eq!(next_state.retry_state, retry_state);
    }
}

#[test]
fn a_senders_refusal_is_final_unless_another_account_may_recover() {
    let last = |recoverable| {
        let (next_state, _) = next_state(&rejected(Blame::Sender), |ctx| {
            ctx.candidates = 2;
            ctx.tried = 1;
            ctx.retry_state.recoverable = recoverable;
        });
        next_state.status
    };
    assert_eq!(last(false), MessageStatus::Failed);
    assert_eq!(last(true), MessageStatus::Queued);
}

#[test]
fn while_no_account_may_be_called_there_is_no_attempt_and_no_event() {
    let (mut ctx, mut moment) = ctx(TimeDelta::seconds(60));
    moment.answered = false;
    let asked = Duration::from_secs(7);
    let put_off = |ctx| put_off("the circuit is open", asked, ctx, &settings(), moment);
    let next_state = put_off(ctx);
    assert_eq!(next_state.status, MessageStatus::Queued);
    let waited = next_state.next_attempt_at - moment.now;
    assert_eq!(waited.num_milliseconds(), 7_000 + 30_000);
    assert!(!next_state.uses_attempt);
    assert_eq!(next_state.event, None);
    assert_eq!(
        next_state.error.as_deref(),
        Some("waiting: the circuit is open")
    );
    assert_eq!(next_state.retry_state, RetryState::default());
    // The first candidate failed. It is tried again after the backoff.
    ctx.candidates = 2;
    ctx.retry_state.candidate = 1;
    let next_state = put_off(ctx);
    assert_eq!(
        (next_state.next_attempt_at - moment.now).num_milliseconds(),
        2_500
    );
    assert_eq!(
        (
            next_state.retry_state.candidate,
            next_state.retry_state.rounds
        ),
        (0, 1)
    );
    ctx.tried_since = moment.now - TimeDelta::hours(25);
    let next_state = put_off(ctx);
    assert_eq!(next_state.status, MessageStatus::Failed);
    assert_eq!(next_state.event, Some(EventType::Dropped));
    assert_eq!(
        next_state.error.as_deref(),
        Some("retries are used up: the circuit is open")
    );
}

#[test]
fn after_a_lost_reply_there_is_one_wait_and_after_the_second_the_recipient_fails() {
    let (first, now) = next_state(&unknown(), |_| ());
    assert_eq!(first.status, MessageStatus::Sending);
    assert_eq!(first.next_attempt_at - now, TimeDelta::minutes(15));
    assert_eq!(first.event, None);
    let (second, _) = next_state(&unknown(), |ctx| ctx.unknowns = 1);
    assert_eq!(second.status, MessageStatus::Failed);
}

#[test]
fn with_resend_a_lost_reply_is_retried_at_once_and_later_after_the_backoff() {
    let resent = |change: fn(&mut RetryContext)| {
        let (next_state, now) = next_state(&unknown(), |ctx| {
            ctx.on_unknown = OnUnknown::Resend;
            change(ctx);
        });
        assert_eq!(next_state.status, MessageStatus::Queued);
        (
            next_state.next_attempt_at - now,
            next_state.retry_state.candidate,
        )
    };
    let none = TimeDelta::zero();
    assert_eq!(resent(|_| ()), (none, 0));
    let again = TimeDelta::milliseconds(5_000);
    let after_backoff = |ctx: &mut RetryContext| {
        ctx.unknowns = 1;
        ctx.retry_state.rounds = 1;
    };
    assert_eq!(resent(after_backoff), (again, 0));
    let elsewhere = |ctx: &mut RetryContext| {
        ctx.unknowns = 1;
        ctx.candidates = 2;
    };
    assert_eq!(resent(elsewhere), (none, 1));
}

#[test]
fn with_fail_a_lost_reply_fails_and_the_error_says_that_the_mail_may_have_been_taken() {
    let (next_state, _) = next_state(&unknown(), |ctx| ctx.on_unknown = OnUnknown::Fail);
    assert_eq!(next_state.status, MessageStatus::Failed);
    assert_eq!(next_state.event, Some(EventType::Dropped));
    assert!(next_state.error.unwrap().contains("may have taken"));
}

#[test]
fn a_refusal_of_the_mail_is_final_even_with_other_candidates() {
    for blame in [Blame::Message, Blame::Recipient, Blame::Mailbox] {
        let (next_state, _) = next_state(&rejected(blame), |ctx| {
            ctx.candidates = 2;
            ctx.retry_state.recoverable = true;
        });
        assert_eq!(
            (next_state.status, next_state.event),
            (MessageStatus::Failed, Some(EventType::Dropped))
        );
    }
}
