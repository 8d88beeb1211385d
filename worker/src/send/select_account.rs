//! The choice of an account: which of those that may take a copy is called now. They
//! are asked in their order; one that fails, cannot send, or whose provider wants fewer
//! calls is passed over, and so is one that refused the message for its sender. An
//! account that only has its own limits to keep is not: its mail waits for it.

use std::time::Duration;

use waypost_core::account_limiter::{AccountLimiter, Acquired, Permit, Rejected, RejectedBy};
use waypost_core::delivery::lease::{LeasedMessage, LeasedRecipient};
use waypost_core::delivery::retry::RetryContext;
use waypost_core::fault::Fault;
use waypost_core::message::compose;
use waypost_core::provider_account::Accounts;

use crate::send::refusals::Refusals;
use crate::send::sending_accounts::{self, Candidates, SendingAccount};

/// What came of asking for a recipient.
pub(crate) enum SelectedAccount {
    /// It goes through this account.
    Account(Chosen),
    /// None may be called now.
    NoAccount(NoAccount),
    Nobody,
}

/// Leave to call.
pub(crate) struct Chosen {
    pub(crate) sender: SendingAccount,
    pub(crate) pass: Permit,
    /// Where the recipient stands in this try.
    pub(crate) standing: RetryContext,
}

/// Why no account may be called.
pub(crate) struct NoAccount {
    /// The account that is worth asking again the soonest.
    pub(crate) closed: Rejected,
    pub(crate) standing: RetryContext,
}

impl NoAccount {
    /// Whether it is only the account's own pace, which moments of patience may meet.
    pub(crate) fn is_pace(&self) -> bool {
        match self.closed.by {
            RejectedBy::Throttled | RejectedBy::Rate | RejectedBy::Concurrency => true,
            RejectedBy::Circuit | RejectedBy::Pause | RejectedBy::Unusable => false,
        }
    }

    /// Why, for people.
    pub(crate) fn why(&self) -> &'static str {
        match self.closed.by {
            RejectedBy::Circuit => "the circuit of its account is open",
            RejectedBy::Pause => "the provider of its account asked for a pause",
            RejectedBy::Unusable => "its account cannot send, see sendingPausedReason",
            RejectedBy::Throttled => "the provider of its account throttles",
            RejectedBy::Rate => "its account makes as many calls per second as it may",
            RejectedBy::Concurrency => "its account has as many calls under way as it may",
        }
    }
}

/// Asks the candidates from where the recipient's turn stands, and from the first
/// where they have become fewer.
pub(crate) async fn choose(
    accounts: &Accounts,
    gates: &AccountLimiter,
    refusals: &Refusals,
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
) -> Result<SelectedAccount, Fault> {
    let candidates = sending_accounts::candidates(accounts, message).await?;
    let passed_over = refusals.of(message.content.id, &candidates.senders);
    let mut standing = standing(message, recipient, &candidates, passed_over);
    let mut refused: Option<Rejected> = None;
    let places = candidates.senders.iter().enumerate();
    for (place, sender) in places.skip(standing.tried) {
        if standing.passes_over(place) {
            continue;
        }
        standing.tried = place;
        let domain = match sender.provider_type.throttles_by_domain() {
            true => Some(compose::domain(
                &message.content,
                &recipient.address_sealed,
                &accounts.sealer,
            )?),
            false => None,
        };
        match sender.enter(gates, domain.as_deref()).await {
            Acquired::Granted(pass) => {
                return Ok(SelectedAccount::Account(Chosen {
                    sender: sender.clone(),
                    pass,
                    standing,
                }));
            }
            Acquired::Rejected(closed) => match closed.by {
                RejectedBy::Circuit
                | RejectedBy::Pause
                | RejectedBy::Unusable
                | RejectedBy::Throttled => {
                    standing.retry_state.recoverable = true;
                    refused = Some(sooner(refused, closed));
                }
                RejectedBy::Rate | RejectedBy::Concurrency => {
                    return Ok(SelectedAccount::NoAccount(NoAccount { closed, standing }));
                }
            },
        }
    }
    Ok(match refused {
        Some(closed) => SelectedAccount::NoAccount(NoAccount { closed, standing }),
        None => SelectedAccount::Nobody,
    })
}

/// Where a recipient stands before a try.
fn standing(
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
    candidates: &Candidates,
    passed_over: u32,
) -> RetryContext {
    let mut retry_state = recipient.retry_state;
    let begins_at = usize::try_from(retry_state.candidate).unwrap_or_default();
    let count = candidates.senders.len();
    let is_passed_over = |place: usize| place < 32 && passed_over & (1 << place) != 0;
    // Those that are left may all have been found not to know the sender.
    let tried = if (begins_at..count).any(|place| !is_passed_over(place)) {
        begins_at
    } else {
        retry_state.candidate = 0;
        0
    };
    RetryContext {
        unknowns: recipient.unknowns,
        tried_since: message.tried_since(),
        on_unknown: candidates.on_unknown,
        retry_state,
        tried,
        candidates: count,
        passed_over,
    }
}

fn sooner(one: Option<Rejected>, other: Rejected) -> Rejected {
    one.filter(|one| one.wait <= other.wait).unwrap_or(other)
}

/// How long a copy waits in a worker for the pace of its account.
#[derive(Debug)]
pub(crate) struct RateWait(Duration);

/// The longest that a copy waits in place; a call slot of the worker is not held
/// meanwhile, but its job is.
const PATIENCE: Duration = Duration::from_secs(2);
/// The shortest wait, so that nobody asks without a pause.
const PAUSE_MIN: Duration = Duration::from_millis(5);

impl RateWait {
    pub(crate) fn fresh() -> Self {
        Self(PATIENCE)
    }

    /// Takes a wait out of what is left; nothing where it is longer.
    pub(crate) fn take(&mut self, wait: Duration) -> Option<Duration> {
        let wait = wait.max(PAUSE_MIN);
        self.0 = self.0.checked_sub(wait)?;
        Some(wait)
    }
}
