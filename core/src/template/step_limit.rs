//! The limits of a rendering: steps and time. A step is about the work for one tag or one
//! value of the variables. Without a limit, nested loops over a few hundred items would
//! occupy a thread for minutes.

use std::time::{Duration, Instant};

/// Steps of one rendering.
const STEPS_MAX: u64 = 1_000_000;
/// Steps between two checks of the time.
const TIME_CHECK_STEPS: u64 = 64;
/// How long one rendering may take.
const TIME_MAX: Duration = Duration::from_secs(1);

/// The exceeded limit. `Display` completes "the template …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitExceeded {
    #[error("takes more than {STEPS_MAX} steps to render; are its loops nested too deeply?")]
    Steps,
    #[error("takes longer than {} s to render", TIME_MAX.as_secs())]
    Time,
    #[error("renders to more than {0} bytes")]
    Output(usize),
}

/// The remaining steps and the deadline of a rendering.
pub(crate) struct StepLimit {
    steps: u64,
    until: Option<Instant>,
}

impl StepLimit {
    /// The limit of a rendering that starts now.
    pub(crate) fn new() -> Self {
        Self {
            steps: STEPS_MAX,
            until: Instant::now().checked_add(TIME_MAX),
        }
    }

    /// Charges steps before their work is done.
    ///
    /// # Errors
    /// The rendering has exceeded a limit and must end.
    pub(crate) fn charge(&mut self, steps: u64) -> Result<(), LimitExceeded> {
        let left = self.steps.checked_sub(steps).ok_or(LimitExceeded::Steps)?;
        let checks_time = left / TIME_CHECK_STEPS != self.steps / TIME_CHECK_STEPS;
        self.steps = left;
        if checks_time && self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(LimitExceeded::Time);
        }
        Ok(())
    }
}
