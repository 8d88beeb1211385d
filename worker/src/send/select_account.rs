//! Selects the account for a recipient.
//!
//! The candidates are asked in their order. One is skipped if its circuit is open, if it
//! cannot send, if its provider throttles or asked for a pause, or if it refused the
//! message for its sender. An account that has only reached its own limits is not skipped:
//! its mail waits for it. A test is sent through the first candidate of its try: it calls
//! nobody, so nothing holds it back.

use std::time::Duration;

use waypost_core::account_limiter::{AccountLimiter, Acquired, Permit, Rejected, RejectedBy};
use waypost_core::delivery::lease::{LeasedMessage, LeasedRecipient};
use waypost_core::delivery::retry::RetryContext;
use waypost_core::fault::Fault;
use waypost_core::message::compose;
use waypost_core::provider_account::Accounts;

use crate::send::refusals::Refusals;
use crate::send::sending_accounts::{self, Candidates, SendingAccount};

/// The result of a selection.
pub(crate) enum AccountSelection {
    Selected(SelectedAccount),
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
    pub(crate) ctx: RetryContext,
}

/// Why no account may be called.
pub(crate) struct Unavailable {
    /// Of the candidate that may be called the soonest.
    pub(crate) rejected: Rejected,
    pub(crate) ctx: RetryContext,
}

impl Unavailable {
    /// Whether the reason is a limit on calls, so that a short wait may be enough.
    pub(crate) fn is_rate(&self) -> bool {
        match self.rejected.by {
            RejectedBy::Throttled | RejectedBy::Rate | RejectedBy::Concurrency => true,
            RejectedBy::Circuit | RejectedBy::Pause | RejectedBy::Unusable => false,
        }
    }

    /// The reason as a text.
    pub(crate) fn reason(&self) -> &'static str {
        match self.rejected.by {
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
    accounts: &Accounts,
    account_limiter: &AccountLimiter,
    refusals: &Refusals,
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
) -> Result<AccountSelection, Fault> {
    let candidates = sending_accounts::candidates(accounts, message).await?;
    let skipped = refusals.of(message.content.id, &candidates.accounts);
    let mut ctx = retry_context(message, recipient, &candidates, skipped);
    if message.test_outcome.is_some() {
        let account = candidates.accounts.get(ctx.tried).cloned();
        return Ok(match account {
            Some(account) => AccountSelection::Selected(SelectedAccount {
                account,
                permit: None,
                ctx,
            }),
            None => AccountSelection::NoAccount(candidates.no_account()),
        });
    }
    let mut soonest: Option<Rejected> = None;
    let indexed = candidates.accounts.iter().enumerate();
    for (index, account) in indexed.skip(ctx.tried) {
        if ctx.is_skipped(index) {
            continue;
        }
        ctx.tried = index;
        let domain = match account.provider_type.throttles_by_domain() {
            true => Some(compose::domain(
                &message.content,
                &recipient.address_sealed,
                &accounts.sealer,
            )?),
            false => None,
        };
        match account.acquire(account_limiter, domain.as_deref()).await {
            Acquired::Granted(permit) => {
                return Ok(AccountSelection::Selected(SelectedAccount {
                    account: account.clone(),
                    permit: Some(permit),
                    ctx,
                }));
            }
            Acquired::Rejected(rejected) => match rejected.by {
                RejectedBy::Circuit
                | RejectedBy::Pause
                | RejectedBy::Unusable
                | RejectedBy::Throttled => {
                    ctx.retry_state.recoverable = true;
                    soonest = Some(sooner(soonest, rejected));
                }
                RejectedBy::Rate | RejectedBy::Concurrency => {
                    return Ok(AccountSelection::Unavailable(Unavailable { rejected, ctx }));
                }
            },
        }
    }
    Ok(match soonest {
        Some(rejected) => AccountSelection::Unavailable(Unavailable { rejected, ctx }),
        None => AccountSelection::NoAccount(candidates.no_account()),
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

fn sooner(one: Option<Rejected>, other: Rejected) -> Rejected {
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
