//! What follows from an attempt's outcome. Pure: the same outcome, standing and
//! chance give the same verdict.
//!
//! A recipient goes through its *candidates* in *rounds*. What one of them failed in
//! passing is tried with the next at once; after the last there is a wait, which
//! doubles with the rounds and not with the calls, so that fallbacks make nobody wait
//! longer.

use std::time::Duration;

use crate::clock::{Timestamp, delta};
use crate::config::SendingSettings;
use crate::event::EventType;
use crate::message::MessageStatus;
use crate::provider::outcome::{Blame, SendOutcome};
use crate::routing::rule::OnUnknown;
use crate::suppression;

/// How far the tries of a recipient have got through its candidates, the accounts
/// that may take it ([`crate::routing::candidates`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryState {
    /// The place in the candidates at which the next try begins.
    pub candidate: i16,
    /// Rounds through all of them that came to nothing.
    pub rounds: i16,
    /// Whether one of the present round failed in passing, so that another round is
    /// worth it.
    pub recoverable: bool,
}

impl RetryState {
    /// As the columns of a recipient have it.
    #[must_use]
    pub fn stored(failover: i16, rounds: i16, recoverable: bool) -> Self {
        Self {
            candidate: failover,
            rounds,
            recoverable,
        }
    }

    /// The next round, from the first candidate on.
    fn next_round(self) -> Self {
        Self {
            candidate: 0,
            rounds: self.rounds.saturating_add(1),
            recoverable: false,
        }
    }
}

/// Where a recipient stood before the attempt.
#[derive(Debug, Clone, Copy)]
pub struct RetryContext {
    /// Attempts whose outcome nobody knows.
    pub unknowns: i32,
    /// Since when its message is tried: [`super::lease::LeasedMessage::tried_since`].
    pub tried_since: Timestamp,
    /// What its rule says of lost answers.
    pub on_unknown: OnUnknown,
    /// How far it had got. A candidate that was passed over in this try because it may
    /// not be called now has failed in passing.
    pub retry_state: RetryState,
    /// The candidate that was tried.
    pub tried: usize,
    pub candidates: usize,
    /// Those that are passed over, because they do not know the sender: a bit for each
    /// place.
    pub passed_over: u32,
}

impl RetryContext {
    /// The turn of the next candidate of this round; nothing after the last.
    fn next_candidate(&self) -> Option<RetryState> {
        let next = (self.tried + 1..self.candidates).find(|place| !self.passes_over(*place))?;
        Some(RetryState {
            candidate: i16::try_from(next).unwrap_or_default(),
            ..self.retry_state
        })
    }

    /// Whether a candidate is passed over.
    #[must_use]
    pub fn passes_over(&self, place: usize) -> bool {
        place < 32 && self.passed_over & (1 << place) != 0
    }

    /// What the provider asks for, where there is no other to go to. Where there is,
    /// the account's gate keeps the pause, and the recipient need not.
    fn asked(&self, retry_after: Option<Duration>) -> Option<Duration> {
        let others = (0..self.candidates).filter(|place| !self.passes_over(*place));
        retry_after.filter(|_| others.count() <= 1)
    }
}

/// Where it stands after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextState {
    pub status: MessageStatus,
    /// When it is tried again, where it is.
    pub next_attempt_at: Timestamp,
    /// Whether the attempt used up a try.
    pub uses_attempt: bool,
    /// What goes into its history.
    pub event: Option<EventType>,
    /// What to show as its latest error.
    pub error: Option<String>,
    /// How far it has got.
    pub retry_state: RetryState,
}

/// The moment of an outcome and what chance says.
#[derive(Debug, Clone, Copy)]
pub struct RetryMoment {
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
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
) -> NextState {
    match outcome {
        SendOutcome::Accepted { .. } => NextState {
            status: MessageStatus::Sent,
            next_attempt_at: moment.now,
            uses_attempt: true,
            event: Some(EventType::Sent),
            error: None,
            retry_state: ctx.retry_state,
        },
        SendOutcome::Rejected { reason, blame } => rejected(reason, *blame, ctx, settings, moment),
        SendOutcome::Throttled {
            retry_after,
            reason,
        }
        | SendOutcome::AccountUnusable {
            retry_after,
            reason,
            ..
        } => {
            let bound = by_age(ctx, settings, moment);
            let asked = ctx.asked(*retry_after);
            let again = Again {
                wait: wait(bound, asked, settings, moment.fraction),
                reason,
                uses_attempt: false,
                // The age stands in for them.
                rounds: ctx.retry_state.rounds,
            };
            failed_in_passing(ctx, settings, moment, again)
        }
        // Another account would be told the same, and greylisted anew.
        SendOutcome::Deferred {
            retry_after,
            reason,
        } => {
            let bound = backoff(ctx.retry_state.rounds, settings);
            let again = Again {
                wait: wait(bound, *retry_after, settings, moment.fraction),
                reason,
                uses_attempt: true,
                rounds: ctx.retry_state.next_round().rounds,
            };
            round_over(ctx, settings, moment, again)
        }
        SendOutcome::Unavailable {
            retry_after,
            reason,
        } => {
            let bound = backoff(ctx.retry_state.rounds, settings);
            let asked = ctx.asked(*retry_after);
            let again = Again {
                wait: wait(bound, asked, settings, moment.fraction),
                reason,
                uses_attempt: true,
                rounds: ctx.retry_state.next_round().rounds,
            };
            failed_in_passing(ctx, settings, moment, again)
        }
        SendOutcome::Unknown { reason } => unknown(reason, ctx, settings, moment),
    }
}

/// What follows where a recipient turns out to be suppressed before the call.
#[must_use]
pub fn suppressed(now: Timestamp, retry_state: RetryState) -> NextState {
    NextState {
        uses_attempt: false,
        ..failed(now, suppression::REASON.to_owned(), retry_state)
    }
}

/// What follows where none of the candidates may be called now: nothing has happened,
/// so there is no event, and no attempt is used up. `worth_asking_after` is when the
/// first of them may be.
#[must_use]
pub fn put_off(
    why: &str,
    worth_asking_after: Duration,
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
) -> NextState {
    // Where the round began with a call that failed, it ends as if the last had too:
    // the first candidate is tried again when its backoff is over.
    let (least, bound, rounds) = if ctx.retry_state.candidate > 0 {
        let bound = backoff(ctx.retry_state.rounds, settings);
        (Duration::ZERO, bound, ctx.retry_state.next_round().rounds)
    } else {
        let bound = by_age(ctx, settings, moment);
        (worth_asking_after, bound, ctx.retry_state.rounds)
    };
    let again = Again {
        wait: least.saturating_add(bound.mul_f64(moment.fraction)),
        reason: why,
        uses_attempt: false,
        rounds,
    };
    let mut next_state = round_over(ctx, settings, moment, again);
    if next_state.status == MessageStatus::Queued {
        next_state.event = None;
        next_state.error = Some(format!("waiting: {why}"));
    }
    next_state
}

struct Again<'a> {
    /// How long to wait before the next round.
    wait: Duration,
    reason: &'a str,
    uses_attempt: bool,
    /// The rounds after this one.
    rounds: i16,
}

/// Another candidate may know a sender that this one does not. Where
/// this was the last, the refusal is final, unless one before it may recover.
fn rejected(
    reason: &str,
    blame: Blame,
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
) -> NextState {
    match blame {
        Blame::Sender | Blame::SenderForRecipient => {}
        Blame::Message | Blame::Recipient | Blame::Mailbox => {
            return failed(moment.now, reason.to_owned(), ctx.retry_state);
        }
    }
    let bound = backoff(ctx.retry_state.rounds, settings);
    let again = Again {
        wait: wait(bound, None, settings, moment.fraction),
        reason,
        uses_attempt: true,
        rounds: ctx.retry_state.next_round().rounds,
    };
    match ctx.next_candidate() {
        Some(retry_state) => retry(ctx, settings, moment, (Duration::ZERO, retry_state), &again),
        None if ctx.retry_state.recoverable => round_over(ctx, settings, moment, again),
        None => failed(moment.now, reason.to_owned(), ctx.retry_state),
    }
}

fn unknown(
    reason: &str,
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
) -> NextState {
    let is_first = ctx.unknowns == 0;
    match ctx.on_unknown {
        OnUnknown::Wait if is_first => NextState {
            status: MessageStatus::Sending,
            next_attempt_at: after(moment.now, settings.unknown_wait),
            uses_attempt: true,
            event: None,
            error: Some(reason.to_owned()),
            retry_state: ctx.retry_state,
        },
        // It was sent once more after the wait, and that answer was lost too:
        // another try would be a third copy.
        OnUnknown::Wait => failed(
            moment.now,
            format!("the provider's answer was lost twice: {reason}"),
            ctx.retry_state,
        ),
        OnUnknown::Resend => {
            let bound = if is_first {
                Duration::ZERO
            } else {
                backoff(ctx.retry_state.rounds, settings)
            };
            let again = Again {
                wait: wait(bound, None, settings, moment.fraction),
                reason,
                uses_attempt: true,
                rounds: ctx.retry_state.next_round().rounds,
            };
            failed_in_passing(ctx, settings, moment, again)
        }
        OnUnknown::Fail => failed(
            moment.now,
            format!("the provider's answer was lost, it may have taken the mail: {reason}"),
            ctx.retry_state,
        ),
    }
}

/// The next candidate at once, or the next round after the wait.
fn failed_in_passing(
    mut ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
    again: Again<'_>,
) -> NextState {
    ctx.retry_state.recoverable = true;
    match ctx.next_candidate() {
        Some(retry_state) => retry(ctx, settings, moment, (Duration::ZERO, retry_state), &again),
        None => round_over(ctx, settings, moment, again),
    }
}

fn round_over(
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
    again: Again<'_>,
) -> NextState {
    let retry_state = RetryState {
        rounds: again.rounds,
        ..ctx.retry_state.next_round()
    };
    retry(ctx, settings, moment, (again.wait, retry_state), &again)
}

fn retry(
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
    (wait, retry_state): (Duration, RetryState),
    again: &Again<'_>,
) -> NextState {
    let horizon = after(ctx.tried_since, settings.retry_horizon);
    let next_attempt_at = after(moment.now, wait);
    if next_attempt_at > horizon && moment.now >= horizon {
        let reason = format!("retries are used up: {}", again.reason);
        return NextState {
            uses_attempt: again.uses_attempt,
            ..failed(moment.now, reason, retry_state)
        };
    }
    NextState {
        status: MessageStatus::Queued,
        // The last try is at the horizon, not one wait before it.
        next_attempt_at: next_attempt_at.min(horizon),
        uses_attempt: again.uses_attempt,
        event: moment.answered.then_some(EventType::Deferred),
        error: Some(again.reason.to_owned()),
        retry_state,
    }
}

fn failed(now: Timestamp, reason: String, retry_state: RetryState) -> NextState {
    NextState {
        status: MessageStatus::Failed,
        next_attempt_at: now,
        uses_attempt: true,
        event: Some(EventType::Dropped),
        error: Some(reason),
        retry_state,
    }
}

/// The bound of a wait that uses up no attempt: the message's age stands in for the
/// attempts, since a bound that grows with it doubles in effect.
fn by_age(ctx: RetryContext, settings: &SendingSettings, moment: RetryMoment) -> Duration {
    let age = (moment.now - ctx.tried_since).to_std().unwrap_or_default();
    // Not `clamp`: the longest may be set below the first.
    age.max(settings.retry_first).min(settings.retry_longest)
}

/// The bound of the wait after so many rounds.
fn backoff(rounds: i16, settings: &SendingSettings) -> Duration {
    let doublings = u32::try_from(rounds).unwrap_or(0).min(30);
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
mod tests;
