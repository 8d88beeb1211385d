//! Selects the account for a recipient.
//!
//! The candidates are asked in their order. One is skipped if its circuit is open, if it
//! cannot send, if its provider throttles or asked for a pause, or if it refused the
//! message for its sender. An account that has only reached its own limits is not skipped:
//! its mail waits for it. A target that has reached a cap of the message's rule is skipped, or
//! its mail waits, as the rule says. A test is sent through the first candidate of its try: it calls
//! nobody, so nothing holds it back.

use std::time::Duration;

use waypost_core::account_limiter::{Acquired, Permit, Rejected, RejectedBy};
use waypost_core::delivery::lease::{LeasedMessage, LeasedRecipient};
use waypost_core::delivery::retry::RetryContext;
use waypost_core::fault::Fault;
use waypost_core::message::compose;
use waypost_core::routing::targets::OverCap;

use crate::send::job::Sending;
use crate::send::refusals::Refusals;
use crate::send::sending_accounts::{self, Candidates, SendingAccount};
use crate::send::target_caps::{Places, TakenPlaces};

/// The result of a selection.
pub(crate) enum AccountSelection {
    Selected(Box<SelectedAccount>),
    /// None of the candidates may be called now.
    Unavailable(Unavailable),
    /// No account takes the message, with the reason.
    NoAccount(String),
}

/// An account that may be called.
pub(crate) struct SelectedAccount {
    pub(crate) account: SendingAccount,
    /// `None` for a test, which calls nobody.
    pub(crate) permit: Option<Permit>,
    /// Places within the caps of the account's target, if it has any.
    pub(crate) places: Option<Places>,
    pub(crate) ctx: RetryContext,
}

impl SelectedAccount {
    /// Counts the recipients of a call that begins.
    pub(crate) fn spend(&mut self, recipients: usize) {
        if let Some(places) = &mut self.places {
            places.spend(recipients);
        }
    }
}

/// Why a candidate may not be called now, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocked {
    pub(crate) by: BlockedBy,
    pub(crate) wait: Duration,
}

/// What keeps a candidate from being called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BlockedBy {
    Account(RejectedBy),
    /// The caps of its target. The mail waits, or the next candidate is asked.
    Cap(OverCap),
}

impl From<Rejected> for Blocked {
    fn from(rejected: Rejected) -> Self {
        Self {
            by: BlockedBy::Account(rejected.by),
            wait: rejected.wait,
        }
    }
}

impl Blocked {
    /// Whether its mail waits for the candidate, rather than the next being asked.
    fn binds(self) -> bool {
        match self.by {
            BlockedBy::Account(RejectedBy::Rate | RejectedBy::Concurrency)
            | BlockedBy::Cap(OverCap::Wait) => true,
            BlockedBy::Account(
                RejectedBy::Circuit
                | RejectedBy::Pause
                | RejectedBy::Unusable
                | RejectedBy::Throttled,
            )
            | BlockedBy::Cap(OverCap::Next) => false,
        }
    }
}

/// Why no account may be called.
pub(crate) struct Unavailable {
    /// Of the candidate that may be called the soonest.
    pub(crate) blocked: Blocked,
    pub(crate) ctx: RetryContext,
}

impl Unavailable {
    /// Whether the reason is a limit on calls, so that a short wait may be enough.
    pub(crate) fn is_rate(&self) -> bool {
        match self.blocked.by {
            BlockedBy::Account(
                RejectedBy::Throttled | RejectedBy::Rate | RejectedBy::Concurrency,
            ) => true,
            BlockedBy::Account(RejectedBy::Circuit | RejectedBy::Pause | RejectedBy::Unusable)
            | BlockedBy::Cap(_) => false,
        }
    }

    /// The reason as a text.
    pub(crate) fn reason(&self) -> &'static str {
        let by = match self.blocked.by {
            BlockedBy::Cap(_) => return "its target has reached its cap",
            BlockedBy::Account(by) => by,
        };
        match by {
            RejectedBy::Circuit => "the circuit of its account is open",
            RejectedBy::Pause => "the provider of its account asked for a pause",
            RejectedBy::Unusable => "its account cannot send, see sendingPausedReason",
            RejectedBy::Throttled => "the provider of its account throttles",
            RejectedBy::Rate => "its account makes as many calls per second as it may",
            RejectedBy::Concurrency => "its account has as many calls under way as it may",
        }
    }
}

/// Asks the candidates, beginning with the one at which the recipient's next try begins,
/// and returns the first that may be called.
pub(crate) async fn select_account(
    sending: &Sending,
    refusals: &Refusals,
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
) -> Result<AccountSelection, Fault> {
    let candidates = sending_accounts::candidates(&sending.accounts, message).await?;
    let skipped = refusals.of(message.content.id, &candidates.accounts);
    let mut ctx = retry_context(message, recipient, &candidates, skipped);
    if message.test_outcome.is_some() {
        let account = candidates.accounts.get(ctx.tried).cloned();
        return Ok(match account {
            Some(account) => AccountSelection::Selected(Box::new(SelectedAccount {
                account,
                permit: None,
                places: None,
                ctx,
            })),
            None => AccountSelection::NoAccount(candidates.no_account()),
        });
    }
    let mut soonest: Option<Blocked> = None;
    let indexed = candidates.accounts.iter().enumerate();
    for (index, account) in indexed.skip(ctx.tried) {
        if ctx.is_skipped(index) {
            continue;
        }
        ctx.tried = index;
        match ask(sending, account, message, recipient).await? {
            Ok((permit, places)) => {
                return Ok(AccountSelection::Selected(Box::new(SelectedAccount {
                    account: account.clone(),
                    permit: Some(permit),
                    places,
                    ctx,
                })));
            }
            Err(blocked) if blocked.binds() => {
                return Ok(AccountSelection::Unavailable(Unavailable { blocked, ctx }));
            }
            Err(blocked) => {
                ctx.retry_state.recoverable = true;
                soonest = Some(sooner(soonest, blocked));
            }
        }
    }
    Ok(match soonest {
        Some(blocked) => AccountSelection::Unavailable(Unavailable { blocked, ctx }),
        None => AccountSelection::NoAccount(candidates.no_account()),
    })
}

/// Asks whether an account may be called now: the caps of its target first, since a place that
/// is not used is given back.
async fn ask(
    sending: &Sending,
    account: &SendingAccount,
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
) -> Result<Result<(Permit, Option<Places>), Blocked>, Fault> {
    // A shared message is one call for all its recipients.
    let recipients = match message.content.is_shared {
        true => usize::try_from(message.recipient_count).unwrap_or(1),
        false => 1,
    };
    let places = match sending.target_caps.take(account.target, recipients).await? {
        TakenPlaces::Uncapped => None,
        TakenPlaces::Places(places) => Some(places),
        TakenPlaces::Reached(blocked) => return Ok(Err(blocked)),
    };
    let domain = match account.provider_type.throttles_by_domain() {
        true => Some(compose::domain(
            &message.content,
            &recipient.address_sealed,
            &sending.accounts.sealer,
        )?),
        false => None,
    };
    let limiter = &sending.account_limiter;
    Ok(match account.acquire(limiter, domain.as_deref()).await {
        Acquired::Granted(permit) => Ok((permit, places)),
        Acquired::Rejected(rejected) => Err(rejected.into()),
    })
}

/// The retry context of a recipient before any candidate is asked.
fn retry_context(
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
    candidates: &Candidates,
    skipped: u32,
) -> RetryContext {
    let mut ctx = RetryContext {
        unknowns: recipient.unknowns,
        tried_since: message.tried_since(),
        expires_at: message.expires_at,
        on_unknown: candidates.on_unknown,
        retry_state: recipient.retry_state,
        tried: usize::try_from(recipient.retry_state.candidate).unwrap_or_default(),
        candidates: candidates.accounts.len(),
        skipped,
    };
    // If no candidate is left from here on, because there are fewer than before or the
    // rest refused the sender, the round begins again.
    if (ctx.tried..ctx.candidates).all(|index| ctx.is_skipped(index)) {
        ctx.retry_state.candidate = 0;
        ctx.tried = 0;
    }
    ctx
}

fn sooner(one: Option<Blocked>, other: Blocked) -> Blocked {
    one.filter(|one| one.wait <= other.wait).unwrap_or(other)
}

/// What is left of the time that a recipient may wait for an account's rate limit while
/// its job runs.
#[derive(Debug)]
pub(crate) struct RateWait(Duration);

/// The longest wait while a job runs. The job keeps its slot meanwhile.
const RATE_WAIT_MAX: Duration = Duration::from_secs(2);
/// The shortest wait, so that a job does not ask in a tight loop.
const RATE_WAIT_MIN: Duration = Duration::from_millis(5);

impl RateWait {
    pub(crate) fn new() -> Self {
        Self(RATE_WAIT_MAX)
    }

    /// Takes a wait from what is left. `None` if less is left.
    pub(crate) fn take(&mut self, wait: Duration) -> Option<Duration> {
        let wait = wait.max(RATE_WAIT_MIN);
        self.0 = self.0.checked_sub(wait)?;
        Some(wait)
    }
}
