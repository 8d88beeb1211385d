//! What accounts refused a message for its sender's sake. Those are passed over for some
//! minutes, or until somebody mends them; then they are asked once more.

use std::time::Duration;

use moka::future::Cache;
use waypost_core::ids::{MessageId, ProviderAccountId};
use waypost_core::provider::outcome::{Blame, SendOutcome};

use crate::send::sending_accounts::SendingAccount;

/// Refusals remembered at the most.
const REMEMBERED_MAX: u64 = 100_000;
/// How long: a sender's domain may be verified meanwhile.
const REMEMBERED_FOR: Duration = Duration::from_mins(10);

/// An account as it was when it refused the sender of a message.
type SenderRefusal = (MessageId, ProviderAccountId, u32);

fn refusal(message: MessageId, sender: &SendingAccount) -> SenderRefusal {
    (message, sender.id, sender.revision)
}

/// The accounts that do not know the senders of messages.
pub(crate) struct Refusals {
    known: Cache<SenderRefusal, ()>,
}

impl Refusals {
    pub(crate) fn new() -> Self {
        let known = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(REMEMBERED_FOR)
            .build();
        Self { known }
    }

    /// Remembers what came of a call.
    pub(crate) async fn learn(
        &self,
        message: MessageId,
        sender: &SendingAccount,
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
            Blame::Sender => self.known.insert(refusal(message, sender), ()).await,
            Blame::Message | Blame::Recipient | Blame::Mailbox | Blame::SenderForRecipient => {}
        }
    }

    /// Which of these refused the message, a bit for each place; none where all did.
    pub(crate) fn of(&self, message: MessageId, senders: &[SendingAccount]) -> u32 {
        let (mut refused, mut count) = (0, 0);
        for (place, sender) in senders.iter().take(32).enumerate() {
            count += 1;
            if self.known.contains_key(&refusal(message, sender)) {
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
    use std::sync::Arc;

    use waypost_core::account_limiter::AccountLimits;
    use waypost_core::provider::credentials::Credentials;
    use waypost_core::provider::kind::ProviderType;
    use waypost_core::secret::Secret;

    use super::*;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u8) -> T {
        format!("00000000-0000-7000-8000-0000000000{number:02}")
            .parse()
            .unwrap()
    }

    fn sender(number: u8, revision: u32) -> SendingAccount {
        let credentials = Credentials::Postmark {
            server_token: Secret::from("token"),
            account_token: None,
            message_stream: None,
        };
        SendingAccount {
            id: id(number),
            provider_type: ProviderType::Postmark,
            limits: AccountLimits::default(),
            revision,
            is_paused: false,
            credentials: Arc::new(credentials),
        }
    }

    fn refused(blame: Blame) -> SendOutcome {
        let reason = "no".to_owned();
        SendOutcome::Rejected { reason, blame }
    }

    #[tokio::test]
    async fn an_account_that_refused_the_sender_is_passed_over_for_that_message_alone() {
        let refusals = Refusals::new();
        let [message, other] = [1, 2].map(id::<MessageId>);
        let senders = [3, 4, 5].map(|number| sender(number, 0));
        // A mail server hands on what one recipient's server says of the sender.
        for blame in [Blame::Recipient, Blame::SenderForRecipient] {
            let refused = refused(blame);
            refusals.learn(message, &senders[0], &refused).await;
        }
        let by_sender = refused(Blame::Sender);
        refusals.learn(message, &senders[1], &by_sender).await;
        assert_eq!(refusals.of(message, &senders), 0b010);
        assert_eq!(refusals.of(other, &senders), 0);
        let mended = [3, 4, 5].map(|number| sender(number, 1));
        assert_eq!(refusals.of(message, &mended), 0);
        for sender in &senders {
            refusals.learn(message, sender, &by_sender).await;
        }
        let all = refusals.of(message, &senders);
        assert_eq!(all, 0, "somebody is to say no");
    }
}
