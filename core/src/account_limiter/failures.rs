//! Reports to Postgres that too many calls of an account fail, and that they no longer do, for
//! the events PROVIDER_FAILING and PROVIDER_RECOVERED. Postgres makes one event of what
//! several workers report. Nothing waits for a report: while Postgres is unreachable, only
//! the last one of each account is kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::circuit_breaker::{BreakerState, Cause};
use super::{LimiterInner, store};
use crate::clock::Timestamp;
use crate::db::{OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::ProviderAccountId;
use crate::ticks::ticks;
use crate::warn_seldom;

/// How often reports are written.
const EVERY: Duration = Duration::from_secs(1);

/// That a breaker opened because too many calls failed, or closed after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailureReport {
    pub(super) is_failing: bool,
    pub(super) at: Timestamp,
}

impl FailureReport {
    /// The report of a change from `before` to `after`, if it needs one. A pause that the
    /// provider names is no failure, and an account that cannot send is recorded by itself.
    pub(super) fn of(before: &BreakerState, after: &BreakerState, at: Timestamp) -> Option<Self> {
        let waits_for_trial = |breaker: &BreakerState| match breaker.open_cause {
            Some(Cause::Failures | Cause::Unusable) => true,
            Some(Cause::Pause) | None => false,
        };
        if after.open_cause == Some(Cause::Failures) {
            return Some(Self {
                is_failing: true,
                at,
            });
        }
        let has_closed = waits_for_trial(before) && !waits_for_trial(after);
        has_closed.then_some(Self {
            is_failing: false,
            at,
        })
    }
}

/// Writes reports until `shutdown`.
pub(super) async fn run(inner: Arc<LimiterInner>, pool: PgPool, shutdown: CancellationToken) {
    let mut unwritten = HashMap::new();
    let mut ticks = ticks(EVERY);
    loop {
        let is_last = tokio::select! {
            () = shutdown.cancelled() => true,
            _ = ticks.tick() => false,
        };
        unwritten.extend(inner.states().take_reports());
        if !unwritten.is_empty() {
            match write(&pool, &unwritten).await {
                Ok(()) => unwritten.clear(),
                Err(fault) => {
                    warn_seldom!(
                        cause = fault.chain(),
                        "Failures of provider accounts could not be recorded yet"
                    );
                }
            }
        }
        if is_last {
            return;
        }
    }
}

async fn write(
    pool: &PgPool,
    reports: &HashMap<ProviderAccountId, FailureReport>,
) -> Result<(), Fault> {
    let connection = pool.acquire().await;
    let mut connection = connection.or_fault("record failures of provider accounts")?;
    for (account, report) in reports {
        store::record_failure(&mut connection, *account, *report).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::circuit_breaker::Sample;
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_failure_begins_with_failed_calls_and_ends_when_the_breaker_closes() {
        let now = Clock::system().now();
        let pause = Some(Duration::from_secs(30));
        let closed = BreakerState::default();
        let failing = closed.opened_by_failures(None, now, 0.5);
        let trial = |before: &BreakerState, sample| before.after_trial(sample, now, 0.5);
        let failure = Sample::Failure { retry_after: None };
        let throttled = Sample::Throttled { retry_after: pause };
        let unusable = trial(&failing, Sample::Unusable { retry_after: None });
        let paused = closed.after_call(throttled, false, now, 0.5).unwrap();
        for (before, after, reported) in [
            (closed, failing, Some(true)),
            (failing, trial(&failing, failure), Some(true)),
            (failing, unusable, None),
            (failing, trial(&failing, Sample::Success), Some(false)),
            (failing, trial(&failing, throttled), Some(false)),
            (unusable, trial(&unusable, Sample::Success), Some(false)),
            (closed, paused, None),
            (paused, failing, Some(true)),
            (paused, closed, None),
        ] {
            let report = FailureReport::of(&before, &after, now);
            assert_eq!(
                report.map(|report| report.is_failing),
                reported,
                "{before:?} to {after:?}"
            );
        }
    }
}
