//! What a rendering may still do: steps and time, counted on the thread that
//! renders. A step is about as much work as one tag or one value of the
//! variables; nested loops over a few hundred rows run out of them in a moment
//! instead of holding a thread for minutes.

use std::cell::Cell;
use std::time::{Duration, Instant};

use handlebars::{RenderError, RenderErrorReason};

/// Steps of one rendering at the most.
const STEPS_MAX: u64 = 1_000_000;
/// Steps between two looks at the clock.
const LOOK_EVERY: u64 = 64;
/// How long one rendering may take.
const TIME_MAX: Duration = Duration::from_secs(1);

/// What ran out. `Display` completes "the template …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    #[error("takes more than {STEPS_MAX} steps to render; are its loops nested too deeply?")]
    Steps,
    #[error("takes longer than {} s to render", TIME_MAX.as_secs())]
    Time,
    #[error("renders to more than {0} bytes")]
    Output(usize),
}

#[derive(Clone, Copy)]
struct Left {
    steps: u64,
    until: Option<Instant>,
    excess: Option<Excess>,
}

thread_local! {
    static LEFT: Cell<Left> = const { Cell::new(Left { steps: 0, until: None, excess: None }) };
}

/// Begins a rendering on this thread.
pub(super) fn begin() {
    LEFT.set(Left {
        steps: STEPS_MAX,
        until: Instant::now().checked_add(TIME_MAX),
        excess: None,
    });
}

/// Takes steps for work that is about to be done.
///
/// # Errors
/// That the rendering must end.
pub(super) fn charge(steps: u64) -> Result<(), RenderError> {
    let left = LEFT.get();
    if steps > left.steps {
        return Err(end(Excess::Steps));
    }
    let after = left.steps - steps;
    LEFT.set(Left {
        steps: after,
        ..left
    });
    let looks = after / LOOK_EVERY != left.steps / LOOK_EVERY;
    if looks && left.until.is_some_and(|until| Instant::now() >= until) {
        return Err(end(Excess::Time));
    }
    Ok(())
}

/// Ends the rendering for a reason that [`excess`] remembers.
pub(super) fn end(excess: Excess) -> RenderError {
    LEFT.set(Left {
        steps: 0,
        excess: Some(excess),
        ..LEFT.get()
    });
    RenderErrorReason::Other(excess.to_string()).into()
}

/// What ran out, where something did.
pub(super) fn excess() -> Option<Excess> {
    LEFT.get().excess
}
