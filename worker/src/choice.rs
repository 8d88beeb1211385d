//! The choice of an account: which of those that may take a copy is called now. They
//! are asked in their order; one that fails, cannot send, or whose provider wants fewer
//! calls is passed over, and so is one that refused the message for its sender. An
//! account that only has its own limits to keep is not: its mail waits for it.

use std::time::Duration;

use waypost_core::fault::Fault;
use waypost_core::message::compose;
use waypost_core::provider::account::Accounts;
use waypost_core::provider::gate::{Closed, ClosedBy, Entry, Gates, Pass};
use waypost_core::queue::lease::{LeasedMessage, LeasedRecipient};
use waypost_core::queue::retry::Standing;

use crate::refusals::Refusals;
use crate::senders::{self, Candidates, Sender};

/// What came of asking for a recipient.
pub(crate) enum Choice {
    /// It goes through this account.
    Account(Chosen),
    /// None may be called now.
    Refused(Refused),
    /// There is none.
    Nobody,
}

/// Leave to call.
pub(crate) struct Chosen {
    pub(crate) sender: Sender,
    pub(crate) pass: Pass,
    /// Where the recipient stands in this try.
    pub(crate) standing: Standing,
}

/// Why no account may be called.
pub(crate) struct Refused {
    /// The account that is worth asking again the soonest.
    pub(crate) closed: Closed,
    /// Where the recipient stands.
    pub(crate) standing: Standing,
}

impl Refused {
    /// Whether it is only the account's own pace, which moments of patience may meet.
    pub(crate) fn is_pace(&self) -> bool {
        match self.closed.by {
            ClosedBy::Throttled | ClosedBy::Rate | ClosedBy::Concurrency => true,
            ClosedBy::Circuit | ClosedBy::Asked | ClosedBy::Unusable => false,
        }
    }

    /// Why, for people.
    pub(crate) fn why(&self) -> &'static str {
        match self.closed.by {
            ClosedBy::Circuit => "the circuit of its account is open",
            ClosedBy::Asked => "the provider of its account asked for a pause",
            ClosedBy::Unusable => "its account cannot send, see sendingPausedReason",
            ClosedBy::Throttled => "the provider of its account throttles",
            ClosedBy::Rate => "its account makes as many calls per second as it may",
            ClosedBy::Concurrency => "its account has as many calls under way as it may",
        }
    }
}

/// Asks the candidates from where the recipient's turn stands, and from the first
/// where they have become fewer.
pub(crate) async fn choose(
    accounts: &Accounts,
    gates: &Gates,
    refusals: &Refusals,
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
) -> Result<Choice, Fault> {
    let candidates = senders::candidates(accounts, message).await?;
    let passed_over = refusals.of(message.content.id, &candidates.senders);
    let mut standing = standing(message, recipient, &candidates, passed_over);
    let mut refused: Option<Closed> = None;
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
            Entry::Go(pass) => {
                return Ok(Choice::Account(Chosen {
                    sender: sender.clone(),
                    pass,
                    standing,
                }));
            }
            Entry::Closed(closed) => match closed.by {
                ClosedBy::Circuit | ClosedBy::Asked | ClosedBy::Unusable | ClosedBy::Throttled => {
                    standing.turn.recoverable = true;
                    refused = Some(sooner(refused, closed));
                }
                ClosedBy::Rate | ClosedBy::Concurrency => {
                    return Ok(Choice::Refused(Refused { closed, standing }));
                }
            },
        }
    }
    Ok(match refused {
        Some(closed) => Choice::Refused(Refused { closed, standing }),
        None => Choice::Nobody,
    })
}

/// Where a recipient stands before a try.
fn standing(
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
    candidates: &Candidates,
    passed_over: u32,
) -> Standing {
    let mut turn = recipient.turn;
    let begins_at = usize::try_from(turn.candidate).unwrap_or_default();
    let count = candidates.senders.len();
    let is_passed_over = |place: usize| place < 32 && passed_over & (1 << place) != 0;
    // Those that are left may all have been found not to know the sender.
    let tried = if (begins_at..count).any(|place| !is_passed_over(place)) {
        begins_at
    } else {
        turn.candidate = 0;
        0
    };
    Standing {
        unknowns: recipient.unknowns,
        tried_since: message.tried_since(),
        on_unknown: candidates.on_unknown,
        turn,
        tried,
        candidates: count,
        passed_over,
    }
}

fn sooner(one: Option<Closed>, other: Closed) -> Closed {
    one.filter(|one| one.wait <= other.wait).unwrap_or(other)
}

/// How long a copy waits in a worker for the pace of its account.
#[derive(Debug)]
pub(crate) struct Patience(Duration);

/// The longest that a copy waits in place; a call slot of the worker is not held
/// meanwhile, but its job is.
const PATIENCE: Duration = Duration::from_secs(2);
/// The shortest wait, so that nobody asks without a pause.
const PAUSE_MIN: Duration = Duration::from_millis(5);

impl Patience {
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
