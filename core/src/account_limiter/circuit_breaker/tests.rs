//! When an account is closed, and what opens it.

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

fn shut(cause: Cause, seconds: u64) -> BreakerPhase {
    BreakerPhase::Shut(cause, Duration::from_secs(seconds))
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
        assert_eq!(counts.trip(), trips, "{counts:?}");
    }
}

#[test]
fn what_lies_back_longer_than_the_window_does_not_count() {
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
fn what_does_not_work_is_left_alone_twice_as_long_each_time_until_a_probe_succeeds() {
    let closed = BreakerState::default();
    assert_eq!(closed.after_call(FAILED, false, at(0), EVEN), None);
    for (verdict, cause) in [(FAILED, Cause::Circuit), (UNUSABLE, Cause::Unusable)] {
        let mut standing = closed.after_call(verdict, true, at(0), EVEN).unwrap();
        let mut now = 0;
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            let position = standing.position(at(now));
            assert_eq!(position, shut(cause, seconds));
            now += i64::try_from(seconds).unwrap();
            assert_eq!(standing.position(at(now)), BreakerPhase::Probing(cause));
            standing = standing.after_probe(verdict, at(now), EVEN);
        }
        for works in [Sample::Success, throttled(None)] {
            let closed = standing.after_probe(works, at(now), EVEN);
            assert_eq!(closed.position(at(now)), BreakerPhase::Passing);
            assert_eq!(closed.version, standing.version + 1);
            let again = closed.after_call(verdict, true, at(now), EVEN).unwrap();
            assert_eq!(again.position(at(now)), shut(cause, 5));
        }
        let paused = standing.after_probe(throttled(Some(3)), at(now), EVEN);
        assert!(paused.version > standing.version);
        assert_eq!(paused.position(at(now)), shut(Cause::Asked, 3));
        assert_eq!(paused.position(at(now + 3)), BreakerPhase::Passing);
    }
}

#[test]
fn one_call_that_says_that_the_account_cannot_send_closes_it() {
    let standing = BreakerState::default().after_call(UNUSABLE, false, at(0), EVEN);
    assert_eq!(standing.unwrap().position(at(0)), shut(Cause::Unusable, 5));
    let retry_after = Some(Duration::from_mins(10));
    let verdict = Sample::Unusable { retry_after };
    let standing = BreakerState::default().after_call(verdict, false, at(0), EVEN);
    let position = standing.unwrap().position(at(0));
    assert_eq!(position, shut(Cause::Unusable, 600));
}

#[test]
fn what_somebody_mended_since_it_closed_is_open() {
    for verdict in [UNUSABLE, FAILED, throttled(Some(60))] {
        let closed = BreakerState::default().after_call(verdict, true, at(0), EVEN);
        let closed = closed.unwrap().under(3);
        assert_eq!(closed.mended(3, at(1)), None);
        let open = closed.mended(4, at(1)).unwrap();
        assert_eq!(open.position(at(1)), BreakerPhase::Passing);
        assert_eq!((open.version, open.openings), (closed.version + 1, 0));
        assert_eq!(open.mended(5, at(1)), None, "it is open");
    }
}

#[test]
fn nothing_that_is_read_closes_an_account_for_longer_than_the_longest_pause() {
    let by_a_wrong_clock = BreakerState::default().opened(None, at(3_600), EVEN);
    assert!(by_a_wrong_clock.is_beyond(at(0)));
    let read = by_a_wrong_clock.clamped(at(0));
    assert_eq!(read.position(at(0)), shut(Cause::Circuit, 900));
    let by_a_right_one = BreakerState::default().paused(ASKED_MAX, at(0));
    assert!(!by_a_right_one.is_beyond(at(0)));
    assert_eq!(by_a_right_one.clamped(at(0)), by_a_right_one);
}

#[test]
fn the_time_strays_by_a_fifth() {
    let first = |fraction| BreakerState::default().opened(None, at(0), fraction);
    let lengths = [0.0, 1.0].map(|fraction| match first(fraction).position(at(0)) {
        BreakerPhase::Shut(_, wait) => wait,
        BreakerPhase::Passing | BreakerPhase::Probing(_) => panic!("not shut"),
    });
    assert_eq!(lengths, [Duration::from_secs(4), Duration::from_secs(6)]);
}

#[test]
fn a_provider_gets_the_pause_that_it_asks_for_up_to_a_quarter_of_an_hour() {
    for (verdict, seconds) in [(throttled(Some(7)), 7), (throttled(Some(86_400)), 900)] {
        let standing = BreakerState::default().after_call(verdict, false, at(0), EVEN);
        let position = standing.unwrap().position(at(0));
        assert_eq!(position, shut(Cause::Asked, seconds));
    }
    let retry_after = Some(Duration::from_secs(3));
    let failed = Sample::Failure { retry_after };
    let standing = BreakerState::default().after_call(failed, false, at(0), EVEN);
    assert_eq!(standing.unwrap().position(at(0)), shut(Cause::Asked, 3));
}

#[test]
fn being_throttled_without_a_wait_closes_nothing() {
    let verdict = throttled(None);
    assert_eq!(
        BreakerState::default().after_call(verdict, true, at(0), EVEN),
        None
    );
}

#[test]
fn calls_that_end_while_it_is_shut_only_make_the_wait_longer() {
    let paused = BreakerState::default()
        .after_call(throttled(Some(10)), false, at(0), EVEN)
        .unwrap();
    for verdict in [throttled(None), throttled(Some(8)), FAILED, Sample::Success] {
        assert_eq!(paused.after_call(verdict, true, at(1), EVEN), None);
    }
    let longer = paused.after_call(throttled(Some(30)), false, at(1), EVEN);
    assert_eq!(longer.unwrap().position(at(1)), shut(Cause::Asked, 30));
}

#[test]
fn a_standing_is_read_back_as_it_was_written() {
    let opened = BreakerState::default().opened(None, at(3), EVEN);
    let closed = opened.after_probe(Sample::Success, at(9), EVEN);
    let paused = closed.paused(OPEN_FIRST, at(12));
    let unusable = closed.unusable(None, at(12), EVEN).under(7);
    for standing in [BreakerState::default(), opened, closed, paused, unusable] {
        assert_eq!(BreakerState::parse(&standing.to_text()), Some(standing));
    }
    for text in ["", "1", "1 - 2 3", "x - 2 3 4", "1 - 2 3 4 5"] {
        assert_eq!(BreakerState::parse(text), None, "{text}");
    }
    let of_another_release = BreakerState::parse("1 frozen 2 3 4").unwrap();
    assert_eq!(of_another_release.closed_by, Some(Cause::Circuit));
}

#[test]
fn a_wait_that_is_over_names_no_pause() {
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
        let verdict = Sample::from(&outcome);
        let next = BreakerState::default().after_call(verdict, false, at(0), EVEN);
        assert_eq!(next, None, "{outcome:?}");
    }
}
