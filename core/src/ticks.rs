//! Ticks of loops that look whether there is something to do. They come at multiples of the loops'
//! periods since one moment of the process, so that one wake-up serves several loops:
//! without it a worker with nothing to do wakes 33 times a second instead of 17.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Ticks at once, and then at each multiple of `period`. A tick that is taken late shifts no other,
/// and ticks that were missed are left out.
///
/// # Panics
/// If `period` is zero.
#[must_use]
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval_at(last_tick(period), period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// When a loop with this period ticks next.
///
/// # Panics
/// If `period` is zero.
#[must_use]
pub fn next_tick(period: Duration) -> Instant {
    last_tick(period) + period
}

/// When a loop with this period ticked last, which may be now.
///
/// # Panics
/// If `period` is zero.
#[must_use]
pub fn last_tick(period: Duration) -> Instant {
    let now = Instant::now();
    let passed = now.saturating_duration_since(*ORIGIN).as_nanos() % period.as_nanos();
    now - Duration::from_nanos(u64::try_from(passed).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn loops_that_began_at_different_times_tick_at_the_same_time() {
        let millis = Duration::from_millis;
        LazyLock::force(&ORIGIN);
        sleep(millis(333)).await;
        let (began, mut short) = (Instant::now(), ticks(millis(250)));
        short.tick().await;
        assert_eq!(began.elapsed(), Duration::ZERO, "the first tick is at once");
        sleep(millis(70)).await;
        let mut long = ticks(millis(1_000));
        long.tick().await;
        let at = long.tick().await;
        short.tick().await;
        assert_eq!(at.elapsed(), Duration::ZERO, "ticks were missed meanwhile");
        assert_eq!(short.tick().await - at, millis(250));
        assert_eq!(last_tick(millis(1_000)), at);
        assert_eq!(next_tick(millis(1_000)) - at, millis(1_000));
    }
}
