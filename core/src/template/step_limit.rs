//! What a rendering may still do: steps and time. A step is about as much work as
//! one tag or one value of the variables; nested loops over a few hundred rows run
//! out of them in a moment instead of holding a thread for minutes.

use std::time::{Duration, Instant};

/// Steps of one rendering at the most.
const STEPS_MAX: u64 = 1_000_000;
/// Steps between two looks at the clock.
const LOOK_EVERY: u64 = 64;
/// How long one rendering may take.
const TIME_MAX: Duration = Duration::from_secs(1);

/// What ran out. `Display` completes "the template …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error("takes more than {STEPS_MAX} steps to render; are its loops nested too deeply?")]
    Steps,
    #[error("takes longer than {} s to render", TIME_MAX.as_secs())]
    Time,
    #[error("renders to more than {0} bytes")]
    Output(usize),
}

/// What is left.
pub(crate) struct StepLimit {
    steps: u64,
    until: Option<Instant>,
}

impl StepLimit {
    /// That of a rendering that begins now.
    pub(crate) fn new() -> Self {
        Self {
            steps: STEPS_MAX,
            until: Instant::now().checked_add(TIME_MAX),
        }
    }

    /// Takes steps for work that is about to be done.
    ///
    /// # Errors
    /// That the rendering must end.
    pub(crate) fn charge(&mut self, steps: u64) -> Result<(), Excess> {
        let after = self.steps.checked_sub(steps).ok_or(Excess::Steps)?;
        let looks = after / LOOK_EVERY != self.steps / LOOK_EVERY;
        self.steps = after;
        if looks && self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(Excess::Time);
        }
        Ok(())
    }
}
