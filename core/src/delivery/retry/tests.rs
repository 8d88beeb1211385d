//! What each outcome makes of a recipient, by its standing.

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

/// The only candidate, tried for the first time, of a message that is so old.
fn standing(age: TimeDelta) -> (RetryContext, RetryMoment) {
    let now = Clock::system().now();
    let standing = RetryContext {
        unknowns: 0,
        tried_since: now - age,
        on_unknown: OnUnknown::Wait,
        turn: RetryState::default(),
        tried: 0,
        candidates: 1,
        passed_over: 0,
    };
    let here = RetryMoment {
        now,
        fraction: 0.5,
        answered: true,
    };
    (standing, here)
}

fn verdict_after(
    outcome: &SendOutcome,
    age: TimeDelta,
    change: impl FnOnce(&mut RetryContext),
) -> (NextState, Timestamp) {
    let (mut standing, here) = standing(age);
    change(&mut standing);
    (decide(outcome, standing, &settings(), here), here.now)
}

fn verdict(
    outcome: &SendOutcome,
    change: impl FnOnce(&mut RetryContext),
) -> (NextState, Timestamp) {
    verdict_after(outcome, TimeDelta::zero(), change)
}

fn throttled(retry_after: Option<u64>) -> SendOutcome {
    SendOutcome::Throttled {
        retry_after: retry_after.map(Duration::from_secs),
        reason: "HTTP 429".to_owned(),
    }
}

fn unusable() -> SendOutcome {
    SendOutcome::AccountUnusable {
        trouble: AccountTrouble::UntilMended,
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
fn waits_double_with_the_rounds_up_to_half_an_hour_and_obey_the_provider() {
    for (rounds, retry_after, seconds) in [
        (0, None, 2.5),
        (1, None, 5.0),
        (5, None, 80.0),
        (20, None, 900.0),
        (i16::MAX, None, 900.0),
        (0, Some(60), 60.5),
    ] {
        let (verdict, now) = verdict(&unavailable(retry_after), |standing| {
            standing.turn.rounds = rounds;
        });
        let waited = verdict.next_attempt_at - now;
        assert_eq!(waited, TimeDelta::milliseconds((seconds * 1000.0) as i64));
        assert_eq!(verdict.status, MessageStatus::Queued);
        assert_eq!(verdict.event, Some(EventType::Deferred));
        assert_eq!(verdict.turn.rounds, rounds.saturating_add(1));
    }
}

#[test]
fn what_the_account_is_to_blame_for_uses_up_no_attempt() {
    for (outcome, uses_attempt) in [
        (throttled(None), false),
        (unusable(), false),
        (unavailable(None), true),
        (deferred(None), true),
    ] {
        let (verdict, _) = verdict(&outcome, |_| ());
        assert_eq!(verdict.uses_attempt, uses_attempt, "{outcome:?}");
        assert_eq!(verdict.status, MessageStatus::Queued);
        assert_eq!(verdict.event, Some(EventType::Deferred));
    }
}

#[test]
fn what_the_recipients_server_defers_waits_for_the_same_accounts_whoever_else_there_is() {
    for (rounds, retry_after, seconds) in [(0, None, 2.5), (3, None, 20.0), (0, Some(60), 60.5)] {
        for candidates in [1, 3] {
            let (verdict, now) = verdict(&deferred(retry_after), |standing| {
                standing.candidates = candidates;
                standing.turn.rounds = rounds;
            });
            let waited = (verdict.next_attempt_at - now).as_seconds_f64();
            assert!((waited - seconds).abs() < 0.001, "{waited}");
            assert_eq!(
                (verdict.turn.candidate, verdict.turn.rounds),
                (0, rounds + 1)
            );
        }
    }
}

#[test]
fn a_candidate_that_does_not_know_the_sender_is_passed_over() {
    for (passed_over, outcome, candidate) in [
        (0b010, unavailable(None), 2),
        (0b000, unavailable(None), 1),
        (0b110, unavailable(None), 0),
        (0b010, rejected(Blame::Sender), 2),
        (0b001, unusable(), 1),
    ] {
        let (verdict, _) = verdict(&outcome, |standing| {
            standing.candidates = 3;
            standing.passed_over = passed_over;
        });
        assert_eq!(verdict.status, MessageStatus::Queued);
        assert_eq!(
            verdict.turn.candidate, candidate,
            "{passed_over:b} {outcome:?}"
        );
    }
    // None of the others is left.
    let (verdict, _) = verdict(&rejected(Blame::Sender), |standing| {
        standing.candidates = 3;
        standing.tried = 1;
        standing.passed_over = 0b101;
    });
    assert_eq!(verdict.status, MessageStatus::Failed);
}

#[test]
fn being_throttled_for_long_makes_the_waits_longer() {
    for (age_seconds, wait_seconds) in [(0, 2.5), (60, 30.0), (20_000, 900.0)] {
        let age = TimeDelta::seconds(age_seconds);
        let (verdict, now) = verdict_after(&throttled(None), age, |_| ());
        let waited = (verdict.next_attempt_at - now).as_seconds_f64();
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
            let (verdict, _) = verdict_after(&outcome, TimeDelta::hours(25), |standing| {
                standing.candidates = candidates;
            });
            assert_eq!(verdict.status, MessageStatus::Failed);
            assert_eq!(verdict.event, Some(EventType::Dropped));
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
            let (verdict, now) = verdict_after(&outcome, age, |standing| {
                standing.turn.rounds = 12;
            });
            assert_eq!(verdict.status, MessageStatus::Queued, "{outcome:?}");
            let end = now + TimeDelta::seconds(seconds_left);
            assert!(verdict.next_attempt_at <= end, "{outcome:?}");
            assert!(verdict.next_attempt_at > now, "{outcome:?}");
        }
        let (verdict, _) = verdict_after(&outcome, horizon, |_| {});
        assert_eq!(verdict.status, MessageStatus::Failed, "{outcome:?}");
    }
}

#[test]
fn what_fails_in_passing_goes_to_the_next_candidate_at_once() {
    let outcomes = [
        (unavailable(Some(60)), true, true),
        (throttled(Some(60)), false, true),
        (unusable(), false, true),
        (rejected(Blame::Sender), true, false),
    ];
    for (outcome, uses_attempt, recoverable) in outcomes {
        let (verdict, now) = verdict(&outcome, |standing| {
            standing.candidates = 3;
            standing.tried = 1;
            standing.turn.rounds = 4;
        });
        assert_eq!(verdict.status, MessageStatus::Queued);
        assert_eq!(verdict.next_attempt_at, now);
        assert_eq!(verdict.uses_attempt, uses_attempt);
        assert_eq!(verdict.event, Some(EventType::Deferred));
        let turn = RetryState {
            candidate: 2,
            rounds: 4,
            recoverable,
        };
        assert_eq!(verdict.turn, turn);
    }
}

#[test]
fn a_round_ends_with_a_wait_that_no_other_account_asked_for() {
    for (outcome, rounds) in [(unavailable(Some(3_600)), 1), (throttled(Some(3_600)), 0)] {
        let (verdict, now) = verdict(&outcome, |standing| {
            standing.candidates = 2;
            standing.tried = 1;
            standing.turn.candidate = 1;
        });
        assert_eq!(
            verdict.next_attempt_at - now,
            TimeDelta::milliseconds(2_500)
        );
        let turn = RetryState {
            candidate: 0,
            rounds,
            recoverable: false,
        };
        assert_eq!(verdict.turn, turn);
    }
}

#[test]
fn a_senders_refusal_is_final_unless_another_account_may_recover() {
    let last = |recoverable| {
        let (verdict, _) = verdict(&rejected(Blame::Sender), |standing| {
            standing.candidates = 2;
            standing.tried = 1;
            standing.turn.recoverable = recoverable;
        });
        verdict.status
    };
    assert_eq!(last(false), MessageStatus::Failed);
    assert_eq!(last(true), MessageStatus::Queued);
}

#[test]
fn while_no_account_may_be_called_nothing_is_used_up_and_nothing_told() {
    let (mut standing, mut here) = standing(TimeDelta::seconds(60));
    here.answered = false;
    let asked = Duration::from_secs(7);
    let put_off = |standing| put_off("the circuit is open", asked, standing, &settings(), here);
    let verdict = put_off(standing);
    assert_eq!(verdict.status, MessageStatus::Queued);
    let waited = verdict.next_attempt_at - here.now;
    assert_eq!(waited.num_milliseconds(), 7_000 + 30_000);
    assert!(!verdict.uses_attempt);
    assert_eq!(verdict.event, None);
    assert_eq!(
        verdict.error.as_deref(),
        Some("waiting: the circuit is open")
    );
    assert_eq!(verdict.turn, RetryState::default());
    // The first candidate failed, and is tried again after its own backoff.
    standing.candidates = 2;
    standing.turn.candidate = 1;
    let verdict = put_off(standing);
    assert_eq!(
        (verdict.next_attempt_at - here.now).num_milliseconds(),
        2_500
    );
    assert_eq!((verdict.turn.candidate, verdict.turn.rounds), (0, 1));
    standing.tried_since = here.now - TimeDelta::hours(25);
    let verdict = put_off(standing);
    assert_eq!(verdict.status, MessageStatus::Failed);
    assert_eq!(verdict.event, Some(EventType::Dropped));
    assert_eq!(
        verdict.error.as_deref(),
        Some("retries are used up: the circuit is open")
    );
}

#[test]
fn a_lost_answer_is_waited_for_once_and_then_given_up() {
    let (first, now) = verdict(&unknown(), |_| ());
    assert_eq!(first.status, MessageStatus::Sending);
    assert_eq!(first.next_attempt_at - now, TimeDelta::minutes(15));
    assert_eq!(first.event, None);
    let (second, _) = verdict(&unknown(), |standing| standing.unknowns = 1);
    assert_eq!(second.status, MessageStatus::Failed);
}

#[test]
fn by_policy_a_lost_answer_is_repeated_at_once_and_then_with_patience() {
    let resent = |change: fn(&mut RetryContext)| {
        let (verdict, now) = verdict(&unknown(), |standing| {
            standing.on_unknown = OnUnknown::Resend;
            change(standing);
        });
        assert_eq!(verdict.status, MessageStatus::Queued);
        (verdict.next_attempt_at - now, verdict.turn.candidate)
    };
    let none = TimeDelta::zero();
    assert_eq!(resent(|_| ()), (none, 0));
    let again = TimeDelta::milliseconds(5_000);
    let patient = |standing: &mut RetryContext| {
        standing.unknowns = 1;
        standing.turn.rounds = 1;
    };
    assert_eq!(resent(patient), (again, 0));
    let elsewhere = |standing: &mut RetryContext| {
        standing.unknowns = 1;
        standing.candidates = 2;
    };
    assert_eq!(resent(elsewhere), (none, 1));
}

#[test]
fn by_policy_a_lost_answer_fails_and_says_that_the_mail_may_have_been_taken() {
    let (verdict, _) = verdict(&unknown(), |standing| standing.on_unknown = OnUnknown::Fail);
    assert_eq!(verdict.status, MessageStatus::Failed);
    assert_eq!(verdict.event, Some(EventType::Dropped));
    assert!(verdict.error.unwrap().contains("may have taken"));
}

#[test]
fn a_refusal_of_the_mail_fails_at_once_whoever_else_there_is() {
    for blame in [Blame::Message, Blame::Recipient, Blame::Mailbox] {
        let (verdict, _) = verdict(&rejected(blame), |standing| {
            standing.candidates = 2;
            standing.turn.recoverable = true;
        });
        assert_eq!(
            (verdict.status, verdict.event),
            (MessageStatus::Failed, Some(EventType::Dropped))
        );
    }
}
