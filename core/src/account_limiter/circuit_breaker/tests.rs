//! When the breaker opens, and what closes it.

use super::*;

const FAILED: Sample = Sample::Failure { retry_after: None };
const EVEN: f64 = 0.5;

fn at(seconds: i64) -> Timestamp {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn throttled(seconds: Option<u64>) -> Sample {
    let retry_after = seconds.map(Duration::from_secs);
    Sample::Throttled { retry_after }
}

const UNUSABLE: Sample = Sample::Unusable { retry_after: None };

fn open_phase(cause: Cause, seconds: u64) -> BreakerPhase {
    BreakerPhase::Open(cause, Duration::from_secs(seconds))
}

#[test]
fn five_failures_that_are_half_of_the_calls_open_a_circuit() {
    for (failures, successes, trips) in [
        (4, 0, false),
        (5, 0, true),
        (5, 5, true),
        (5, 6, false),
        (100, 101, false),
        (100, 100, true),
    ] {
        let counts = SampleCounts {
            failures,
            successes,
        };
        assert_eq!(counts.should_trip(), trips, "{counts:?}");
    }
}

#[test]
fn calls_older_than_the_window_do_not_count() {
    let mut window = SampleWindow::default();
    for second in 0..5 {
        window.add(FAILED, at(second));
    }
    window.add(throttled(None), at(5));
    assert_eq!(window.counts(at(6)).failures, 5);
    window.add(Sample::Success, at(15));
    let counts = window.counts(at(19));
    assert_eq!((counts.failures, counts.successes), (5, 1));
    let counts = window.counts(at(26));
    assert_eq!((counts.failures, counts.successes), (0, 1));
}

#[test]
fn the_breaker_stays_open_twice_as_long_each_time_until_a_trial_succeeds() {
    let closed = BreakerState::default();
    assert_eq!(closed.after_call(FAILED, false, at(0), EVEN), None);
    for (sample, cause) in [(FAILED, Cause::Failures), (UNUSABLE, Cause::Unusable)] {
        let mut state = closed.after_call(sample, true, at(0), EVEN).unwrap();
        let mut now = 0;
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            let phase = state.phase(at(now));
            assert_eq!(phase, open_phase(cause, seconds));
            now += i64::try_from(seconds).unwrap();
            assert_eq!(state.phase(at(now)), BreakerPhase::HalfOpen(cause));
            state = state.after_trial(sample, at(now), EVEN);
        }
        for works in [Sample::Success, throttled(None)] {
            let closed = state.after_trial(works, at(now), EVEN);
            assert_eq!(closed.phase(at(now)), BreakerPhase::Closed);
            let again = closed.after_call(sample, true, at(now), EVEN).unwrap();
            assert_eq!(again.phase(at(now)), open_phase(cause, 5));
        }
        let paused = state.after_trial(throttled(Some(3)), at(now), EVEN);
        assert_eq!(paused.phase(at(now)), open_phase(Cause::Pause, 3));
        assert_eq!(paused.phase(at(now + 3)), BreakerPhase::Closed);
    }
}

#[test]
fn one_call_that_reports_an_unusable_account_opens_the_breaker() {
    let state = BreakerState::default().after_call(UNUSABLE, false, at(0), EVEN);
    assert_eq!(state.unwrap().phase(at(0)), open_phase(Cause::Unusable, 5));
    let retry_after = Some(Duration::from_mins(10));
    let sample = Sample::Unusable { retry_after };
    let state = BreakerState::default().after_call(sample, false, at(0), EVEN);
    let phase = state.unwrap().phase(at(0));
    assert_eq!(phase, open_phase(Cause::Unusable, 600));
}

#[test]
fn a_change_of_the_account_closes_its_breaker() {
    for sample in [UNUSABLE, FAILED, throttled(Some(60))] {
        let open = BreakerState::default().after_call(sample, true, at(0), EVEN);
        let open = open.unwrap().with_revision(3);
        assert_eq!(open.reset_by_revision(3, at(1)), None);
        let closed = open.reset_by_revision(4, at(1)).unwrap();
        assert_eq!(closed.phase(at(1)), BreakerPhase::Closed);
        assert_eq!((closed.openings, closed.revision), (0, 4));
        assert_eq!(closed.reset_by_revision(5, at(1)), None, "it is closed");
    }
}

#[test]
fn a_state_read_from_redis_never_exceeds_the_longest_pause() {
    let by_a_wrong_clock = BreakerState::default().opened_by_failures(None, at(3_600), EVEN);
    let read = by_a_wrong_clock.clamped(at(0));
    assert_eq!(read.phase(at(0)), open_phase(Cause::Failures, 900));
    let by_a_right_one = BreakerState::default().paused(PAUSE_MAX, at(0));
    assert_eq!(by_a_right_one.clamped(at(0)), by_a_right_one);
}

#[test]
fn the_state_that_is_open_for_longer_outlasts_another_of_the_same_revision() {
    let short = BreakerState::default().opened_by_failures(None, at(0), EVEN);
    let long = BreakerState::default().paused(OPEN_MAX, at(0));
    assert!(long.outlasts(&short, at(1)) && !short.outlasts(&long, at(1)));
    assert!(!long.outlasts(&long, at(1)));
    assert!(!long.outlasts(&BreakerState::default(), at(1)), "closed");
    assert!(!long.outlasts(&short, at(5)), "half-open");
    assert!(!long.outlasts(&short.with_revision(1), at(1)), "changed");
}

#[test]
fn the_jitter_is_a_fifth_either_way() {
    let first = |fraction| BreakerState::default().opened_by_failures(None, at(0), fraction);
    let lengths = [0.0, 1.0].map(|fraction| match first(fraction).phase(at(0)) {
        BreakerPhase::Open(_, wait) => wait,
        BreakerPhase::Closed | BreakerPhase::HalfOpen(_) => panic!("not open"),
    });
    assert_eq!(lengths, [Duration::from_secs(4), Duration::from_secs(6)]);
}

#[test]
fn a_provider_gets_the_pause_that_it_names_up_to_fifteen_minutes() {
    for (sample, seconds) in [(throttled(Some(7)), 7), (throttled(Some(86_400)), 900)] {
        let state = BreakerState::default().after_call(sample, false, at(0), EVEN);
        let phase = state.unwrap().phase(at(0));
        assert_eq!(phase, open_phase(Cause::Pause, seconds));
    }
    let retry_after = Some(Duration::from_secs(3));
    let failed = Sample::Failure { retry_after };
    let state = BreakerState::default().after_call(failed, false, at(0), EVEN);
    assert_eq!(state.unwrap().phase(at(0)), open_phase(Cause::Pause, 3));
}

#[test]
fn throttling_without_a_wait_does_not_open_the_breaker() {
    let sample = throttled(None);
    assert_eq!(
        BreakerState::default().after_call(sample, true, at(0), EVEN),
        None
    );
}

#[test]
fn calls_that_end_while_the_breaker_is_open_only_extend_the_pause() {
    let paused = BreakerState::default()
        .after_call(throttled(Some(10)), false, at(0), EVEN)
        .unwrap();
    for sample in [throttled(None), throttled(Some(8)), FAILED, Sample::Success] {
        assert_eq!(paused.after_call(sample, true, at(1), EVEN), None);
    }
    let longer = paused.after_call(throttled(Some(30)), false, at(1), EVEN);
    assert_eq!(longer.unwrap().phase(at(1)), open_phase(Cause::Pause, 30));
}

#[test]
fn a_state_is_parsed_back_from_its_text() {
    let now = at(3) + chrono::TimeDelta::nanoseconds(1_234_567);
    let opened = BreakerState::default().opened_by_failures(None, now, EVEN);
    let closed = opened.after_trial(Sample::Success, at(9), EVEN);
    let paused = closed.paused(OPEN_FIRST, at(12));
    let unusable = closed.unusable(None, at(12), EVEN).with_revision(7);
    for state in [BreakerState::default(), opened, closed, paused, unusable] {
        assert_eq!(BreakerState::parse(&state.to_text()), Some(state));
    }
    for text in ["", "closed", "closed 2 3", "closed x 3 4", "1 pause 2 3 4"] {
        assert_eq!(BreakerState::parse(text), None, "{text}");
    }
    let of_another_release = BreakerState::parse("frozen 2 3 4").unwrap();
    assert_eq!(of_another_release.open_cause, Some(Cause::Failures));
}

#[test]
fn a_wait_of_zero_is_no_pause() {
    let retry_after = Some(Duration::ZERO);
    let reason = String::new();
    let throttled = SendOutcome::Throttled {
        retry_after,
        reason: reason.clone(),
    };
    let unavailable = SendOutcome::Unavailable {
        retry_after,
        reason,
    };
    for outcome in [throttled, unavailable] {
        let sample = Sample::from(&outcome);
        let next = BreakerState::default().after_call(sample, false, at(0), EVEN);
        assert_eq!(next, None, "{outcome:?}");
    }
}
