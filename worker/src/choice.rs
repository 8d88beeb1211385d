//! The choice of an account: which of those that may take a copy is called now. They
//! are asked in their order; one whose circuit is open, or whose provider asked for a
//! pause, is passed over. An account that only has its own pace to keep is not: its
//! mail waits for it.

use std::time::Duration;

use waypost_core::fault::Fault;
use waypost_core::provider::account::Accounts;
use waypost_core::provider::gate::{Closed, ClosedBy, Entry, Gates, Pass};
use waypost_core::queue::lease::{LeasedMessage, LeasedRecipient};
use waypost_core::queue::retry::Standing;

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
            ClosedBy::Rate | ClosedBy::Concurrency => true,
            ClosedBy::Circuit | ClosedBy::Asked => false,
        }
    }

    /// Why, for people.
    pub(crate) fn why(&self) -> &'static str {
        match self.closed.by {
            ClosedBy::Circuit => "the circuit of its account is open",
            ClosedBy::Asked => "the provider of its account asked for a pause",
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
    message: &LeasedMessage,
    recipient: &LeasedRecipient,
) -> Result<Choice, Fault> {
    let candidates = senders::candidates(accounts, message).await?;
    let mut standing = standing(message, recipient, &candidates);
    let mut refused: Option<Closed> = None;
    let places = candidates.senders.iter().enumerate();
    for (place, sender) in places.skip(standing.tried) {
        standing.tried = place;
        match sender.enter(gates).await {
            Entry::Go(pass) => {
                return Ok(Choice::Account(Chosen {
                    sender: sender.clone(),
                    pass,
                    standing,
                }));
            }
            Entry::Closed(closed) => match closed.by {
                ClosedBy::Circuit | ClosedBy::Asked => {
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
) -> Standing {
    let mut turn = recipient.turn;
    let begins_at = usize::try_from(turn.candidate).unwrap_or_default();
    let tried = if begins_at < candidates.senders.len() {
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
        candidates: candidates.senders.len(),
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
