//! The retry policy: what an attempt's outcome means for its recipient. Pure functions: the
//! same outcome, context and moment give the same next state.
//!
//! A recipient goes through its *candidates* in *rounds*. If a candidate fails temporarily,
//! the next is tried at once. After the last there is a wait. It doubles with each round and
//! not with each call, so that fallback accounts do not make the waits longer.

use std::time::Duration;

use super::expiry::EXPIRED;
use crate::clock::{Timestamp, delta};
use crate::config::SendingSettings;
use crate::event::EventType;
use crate::message::MessageStatus;
use crate::provider::outcome::{Blame, SendOutcome};
use crate::routing::rule::OnUnknown;
use crate::suppression;

/// How far a recipient's retries have got through its candidates
/// ([`crate::routing::candidates`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryState {
    /// The index of the candidate with which the next try begins.
    pub candidate: i16,
    /// Rounds through all candidates that failed.
    pub rounds: i16,
    /// Whether a candidate of the current round failed temporarily, so that another round
    /// makes sense.
    pub recoverable: bool,
}

impl RetryState {
    /// The state in the columns of a recipient.
    #[must_use]
    pub fn stored(failover: i16, rounds: i16, recoverable: bool) -> Self {
        Self {
            candidate: failover,
            rounds,
            recoverable,
        }
    }

    /// The begin of the next round.
    fn next_round(self) -> Self {
        Self {
            candidate: 0,
            rounds: self.rounds.saturating_add(1),
            recoverable: false,
        }
    }
}

/// The state of a recipient before the attempt.
#[derive(Debug, Clone, Copy)]
pub struct RetryContext {
    /// How many attempts have an unknown outcome.
    pub unknowns: i32,
    /// The time from which the retry horizon counts:
    /// [`super::lease::LeasedMessage::tried_since`].
    pub tried_since: Timestamp,
    /// From then on there is no try.
    pub expires_at: Option<Timestamp>,
    pub on_unknown: OnUnknown,
    /// A candidate that may not be called now counts as failed temporarily.
    pub retry_state: RetryState,
    /// The index of the candidate that was tried.
    pub tried: usize,
    /// How many candidates there are.
    pub candidates: usize,
    /// The candidates that refused the sender and are skipped, as bits by their index.
    pub skipped: u32,
}

impl RetryContext {
    /// The state for a try with the next candidate of this round. `None` after the last.
    fn next_candidate(&self) -> Option<RetryState> {
        let next = (self.tried + 1..self.candidates).find(|index| !self.is_skipped(*index))?;
        Some(RetryState {
            candidate: i16::try_from(next).unwrap_or_default(),
            ..self.retry_state
        })
    }

    /// Whether a candidate is skipped.
    #[must_use]
    pub fn is_skipped(&self, index: usize) -> bool {
        index < 32 && self.skipped & (1 << index) != 0
    }

    /// The pause that the provider asked for, if there is only one candidate. With several,
    /// the account limiter keeps the pause, and the recipient need not wait for it.
    fn binding(&self, retry_after: Option<Duration>) -> Option<Duration> {
        let usable = (0..self.candidates).filter(|index| !self.is_skipped(*index));
        retry_after.filter(|_| usable.count() <= 1)
    }
}

/// The state of a recipient after the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextState {
    pub status: MessageStatus,
    /// When it is tried again, if it is.
    pub next_attempt_at: Timestamp,
    /// Whether this counts as an attempt.
    pub uses_attempt: bool,
    /// The event for the recipient's history.
    pub event: Option<EventType>,
    /// The recipient's last error.
    pub error: Option<String>,
    pub retry_state: RetryState,
}

/// The time of an outcome, the jitter, and whether there was a reply.
#[derive(Debug, Clone, Copy)]
pub struct RetryMoment {
    pub now: Timestamp,
    /// For the jitter: random, evenly distributed in `0.0..1.0`.
    pub fraction: f64,
    /// Whether the provider answered the call.
    pub answered: bool,
}

/// The recipient's next state after an outcome.
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
            let asked = ctx.binding(*retry_after);
            let next_try = NextTry {
                wait: wait(bound, asked, settings, moment.fraction),
                reason,
                uses_attempt: false,
                // The wait grows with the message's age instead.
                rounds: ctx.retry_state.rounds,
            };
            failed_temporarily(ctx, settings, moment, next_try)
        }
        // The recipient's server would answer another account the same, and greylist it again.
        SendOutcome::Deferred {
            retry_after,
            reason,
        } => {
            let bound = backoff(ctx.retry_state.rounds, settings);
            let next_try = NextTry {
                wait: wait(bound, *retry_after, settings, moment.fraction),
                reason,
                uses_attempt: true,
                rounds: ctx.retry_state.next_round().rounds,
            };
            round_over(ctx, settings, moment, next_try)
        }
        SendOutcome::Unavailable {
            retry_after,
            reason,
        } => {
            let bound = backoff(ctx.retry_state.rounds, settings);
            let asked = ctx.binding(*retry_after);
            let next_try = NextTry {
                wait: wait(bound, asked, settings, moment.fraction),
                reason,
                uses_attempt: true,
                rounds: ctx.retry_state.next_round().rounds,
            };
            failed_temporarily(ctx, settings, moment, next_try)
        }
        SendOutcome::Unknown { reason } => unknown(reason, ctx, settings, moment),
    }
}

/// The next state of a recipient that was found suppressed before the call.
#[must_use]
pub fn suppressed(now: Timestamp, retry_state: RetryState) -> NextState {
    NextState {
        uses_attempt: false,
        ..failed(now, suppression::REASON.to_owned(), retry_state)
    }
}

/// The next state of a recipient whose message expired before it was sent.
#[must_use]
pub fn expired(now: Timestamp, retry_state: RetryState) -> NextState {
    NextState {
        uses_attempt: false,
        ..failed(now, EXPIRED.to_owned(), retry_state)
    }
}

/// The next state of a recipient if none of its candidates may be called now. Without a
/// call there is no event, and it does not count as an attempt. `wait` is the time after
/// which the first candidate may be called.
#[must_use]
pub fn put_off(
    reason: &str,
    wait: Duration,
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
) -> NextState {
    // If a call of this round failed, the round ends as if the last candidate had failed too:
    // the first candidate is tried again after the backoff.
    let (least, bound, rounds) = if ctx.retry_state.candidate > 0 {
        let bound = backoff(ctx.retry_state.rounds, settings);
        (Duration::ZERO, bound, ctx.retry_state.next_round().rounds)
    } else {
        let bound = by_age(ctx, settings, moment);
        (wait, bound, ctx.retry_state.rounds)
    };
    let next_try = NextTry {
        wait: least.saturating_add(bound.mul_f64(moment.fraction)),
        reason,
        uses_attempt: false,
        rounds,
    };
    let mut next_state = round_over(ctx, settings, moment, next_try);
    if next_state.status == MessageStatus::Queued {
        next_state.event = None;
        next_state.error = Some(format!("waiting: {reason}"));
    }
    next_state
}

/// How a recipient is retried.
struct NextTry<'a> {
    /// The wait before the next round.
    wait: Duration,
    reason: &'a str,
    uses_attempt: bool,
    /// The count of rounds after this one.
    rounds: i16,
}

/// If the sender was refused, the next candidate may accept it. After the last candidate the
/// refusal is final, unless an earlier one failed temporarily.
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
    let next_try = NextTry {
        wait: wait(bound, None, settings, moment.fraction),
        reason,
        uses_attempt: true,
        rounds: ctx.retry_state.next_round().rounds,
    };
    match ctx.next_candidate() {
        Some(retry_state) => retry(
            ctx,
            settings,
            moment,
            (Duration::ZERO, retry_state),
            &next_try,
        ),
        None if ctx.retry_state.recoverable => round_over(ctx, settings, moment, next_try),
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
        // The reply was lost twice. Another try might be the third mail for the recipient.
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
            let next_try = NextTry {
                wait: wait(bound, None, settings, moment.fraction),
                reason,
                uses_attempt: true,
                rounds: ctx.retry_state.next_round().rounds,
            };
            failed_temporarily(ctx, settings, moment, next_try)
        }
        OnUnknown::Fail => failed(
            moment.now,
            format!("the provider's answer was lost, it may have taken the mail: {reason}"),
            ctx.retry_state,
        ),
    }
}

/// Tries the next candidate at once, or after the last the next round, after the wait.
fn failed_temporarily(
    mut ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
    next_try: NextTry<'_>,
) -> NextState {
    ctx.retry_state.recoverable = true;
    match ctx.next_candidate() {
        Some(retry_state) => retry(
            ctx,
            settings,
            moment,
            (Duration::ZERO, retry_state),
            &next_try,
        ),
        None => round_over(ctx, settings, moment, next_try),
    }
}

fn round_over(
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
    next_try: NextTry<'_>,
) -> NextState {
    let retry_state = RetryState {
        rounds: next_try.rounds,
        ..ctx.retry_state.next_round()
    };
    retry(
        ctx,
        settings,
        moment,
        (next_try.wait, retry_state),
        &next_try,
    )
}

fn retry(
    ctx: RetryContext,
    settings: &SendingSettings,
    moment: RetryMoment,
    (wait, retry_state): (Duration, RetryState),
    next_try: &NextTry<'_>,
) -> NextState {
    let horizon = after(ctx.tried_since, settings.retry_horizon);
    let next_attempt_at = after(moment.now, wait);
    let tried_at = next_attempt_at.min(horizon).max(moment.now);
    if ctx.expires_at.is_some_and(|at| at <= tried_at) {
        return NextState {
            uses_attempt: next_try.uses_attempt,
            ..expired(moment.now, retry_state)
        };
    }
    if next_attempt_at > horizon && moment.now >= horizon {
        let reason = format!("retries are used up: {}", next_try.reason);
        return NextState {
            uses_attempt: next_try.uses_attempt,
            ..failed(moment.now, reason, retry_state)
        };
    }
    NextState {
        status: MessageStatus::Queued,
        // The last try is made at the horizon and not up to one wait before it.
        next_attempt_at: next_attempt_at.min(horizon),
        uses_attempt: next_try.uses_attempt,
        event: moment.answered.then_some(EventType::Deferred),
        error: Some(next_try.reason.to_owned()),
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

/// The bound of a wait that does not count as an attempt. It is the message's age, so it
/// doubles from wait to wait, as the backoff does.
fn by_age(ctx: RetryContext, settings: &SendingSettings, moment: RetryMoment) -> Duration {
    let age = (moment.now - ctx.tried_since).to_std().unwrap_or_default();
    // Not `clamp`: the longest wait may be configured shorter than the first.
    age.max(settings.retry_first).min(settings.retry_longest)
}

/// The bound of the wait after this many rounds.
fn backoff(rounds: i16, settings: &SendingSettings) -> Duration {
    let doublings = u32::try_from(rounds).unwrap_or(0).min(30);
    settings
        .retry_first
        .saturating_mul(1 << doublings)
        .min(settings.retry_longest)
}

/// A wait with full jitter below a bound, but at least what the provider asked for.
fn wait(
    bound: Duration,
    retry_after: Option<Duration>,
    settings: &SendingSettings,
    fraction: f64,
) -> Duration {
    let jittered = bound.mul_f64(fraction);
    match retry_after {
        // With some jitter, so that not all recipients are retried at the same time.
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
