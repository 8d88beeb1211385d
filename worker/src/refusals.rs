//! What accounts refused a message for its sender's sake. Those are passed over as long
//! as this worker remembers; where it does not, they are asked once more.

use std::time::Duration;

use moka::future::Cache;
use waypost_core::ids::{MessageId, ProviderAccountId};
use waypost_core::provider::outcome::{Blame, SendOutcome};

/// Refusals remembered at the most.
const REMEMBERED_MAX: u64 = 100_000;

/// The accounts that do not know the senders of messages.
pub(crate) struct Refusals {
    known: Cache<(MessageId, ProviderAccountId), ()>,
}

impl Refusals {
    /// `kept_for`: how long a message is tried.
    pub(crate) fn new(kept_for: Duration) -> Self {
        let known = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(kept_for)
            .build();
        Self { known }
    }

    /// Remembers what came of a call.
    pub(crate) async fn learn(
        &self,
        message: MessageId,
        account: ProviderAccountId,
        outcome: &SendOutcome,
    ) {
        let blame = match outcome {
            SendOutcome::Rejected { blame, .. } => *blame,
            SendOutcome::Accepted { .. }
            | SendOutcome::Deferred { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::AccountUnusable { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. } => return,
        };
        match blame {
            Blame::Sender => self.known.insert((message, account), ()).await,
            Blame::Message | Blame::Recipient | Blame::Mailbox => {}
        }
    }

    /// Which of these refused the message, a bit for each place; none where all did.
    pub(crate) fn of(
        &self,
        message: MessageId,
        accounts: impl Iterator<Item = ProviderAccountId>,
    ) -> u32 {
        let (mut refused, mut count) = (0, 0);
        for (place, account) in accounts.take(32).enumerate() {
            count += 1;
            if self.known.contains_key(&(message, account)) {
                refused |= 1_u32 << place;
            }
        }
        if refused.count_ones() == count {
            0
        } else {
            refused
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u8) -> T {
        format!("00000000-0000-7000-8000-0000000000{number:02}")
            .parse()
            .unwrap()
    }

    #[tokio::test]
    async fn an_account_that_refused_the_sender_is_passed_over_for_that_message_alone() {
        let refusals = Refusals::new(Duration::from_hours(1));
        let [message, other] = [1, 2].map(id::<MessageId>);
        let accounts = [3, 4, 5].map(id::<ProviderAccountId>);
        let refused = |blame| SendOutcome::Rejected {
            reason: "no".to_owned(),
            blame,
        };
        let by_recipient = refused(Blame::Recipient);
        refusals.learn(message, accounts[0], &by_recipient).await;
        let by_sender = refused(Blame::Sender);
        refusals.learn(message, accounts[1], &by_sender).await;
        assert_eq!(refusals.of(message, accounts.into_iter()), 0b010);
        assert_eq!(refusals.of(other, accounts.into_iter()), 0);
        for account in accounts {
            refusals.learn(message, account, &by_sender).await;
        }
        let all = refusals.of(message, accounts.into_iter());
        assert_eq!(all, 0, "somebody is to say no");
    }
}
