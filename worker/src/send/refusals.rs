//! Remembers which accounts refused a message for its sender. They are skipped for that
//! message for some minutes, or until their settings are corrected.

use std::time::Duration;

use moka::future::Cache;
use waypost_core::ids::{MessageId, ProviderAccountId};
use waypost_core::provider::outcome::SendOutcome;

use crate::send::sending_accounts::SendingAccount;

/// The most refusals in the cache.
const REFUSALS_MAX: u64 = 100_000;
/// How long an account is skipped. The sender's domain may be verified meanwhile.
const SKIPPED_FOR: Duration = Duration::from_mins(10);

/// A message and the account that refused its sender, with the account's revision then.
type SenderRefusal = (MessageId, ProviderAccountId, u32);

fn refusal(message: MessageId, account: &SendingAccount) -> SenderRefusal {
    (message, account.id, account.revision)
}

/// The refusals that this worker has seen.
pub(crate) struct Refusals {
    cache: Cache<SenderRefusal, ()>,
}

impl Refusals {
    pub(crate) fn new() -> Self {
        let cache = Cache::builder()
            .max_capacity(REFUSALS_MAX)
            .time_to_live(SKIPPED_FOR)
            .build();
        Self { cache }
    }

    /// Learns from the outcome of a call.
    pub(crate) async fn learn(
        &self,
        message: MessageId,
        account: &SendingAccount,
        outcome: &SendOutcome,
    ) {
        let is_refused = matches!(
            outcome,
            SendOutcome::Rejected { blame, .. } if blame.holds_for_all_recipients()
        );
        if is_refused {
            self.cache.insert(refusal(message, account), ()).await;
        }
    }

    /// The candidates that refused the message, as bits by their index. 0 if all of them
    /// did: then they are asked again, so that the message gets a final refusal.
    pub(crate) fn of(&self, message: MessageId, candidates: &[SendingAccount]) -> u32 {
        let (mut refused, mut count) = (0, 0);
        for (index, account) in candidates.iter().take(32).enumerate() {
            count += 1;
            if self.cache.contains_key(&refusal(message, account)) {
                refused |= 1_u32 << index;
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
    use waypost_core::provider::outcome::Blame;
    use waypost_core::secret::Secret;

    use super::*;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u8) -> T {
        format!("00000000-0000-7000-8000-0000000000{number:02}")
            .parse()
            .unwrap()
    }

    fn account(number: u8, revision: u32) -> SendingAccount {
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
            target: None,
            credentials: Arc::new(credentials),
        }
    }

    fn refused(blame: Blame) -> SendOutcome {
        let reason = "no".to_owned();
        SendOutcome::Rejected { reason, blame }
    }

    #[tokio::test]
    async fn an_account_that_refused_the_sender_is_skipped_for_that_message_only() {
        let refusals = Refusals::new();
        let [message, other] = [1, 2].map(id::<MessageId>);
        let accounts = [3, 4, 5].map(|number| account(number, 0));
        // A mail server forwards what the server of one recipient says about the sender.
        for blame in [Blame::Recipient, Blame::SenderForRecipient] {
            let refused = refused(blame);
            refusals.learn(message, &accounts[0], &refused).await;
        }
        let by_sender = refused(Blame::Sender);
        refusals.learn(message, &accounts[1], &by_sender).await;
        assert_eq!(refusals.of(message, &accounts), 0b010);
        assert_eq!(refusals.of(other, &accounts), 0);
        let corrected = [3, 4, 5].map(|number| account(number, 1));
        assert_eq!(refusals.of(message, &corrected), 0);
        for account in &accounts {
            refusals.learn(message, account, &by_sender).await;
        }
        let all = refusals.of(message, &accounts);
        assert_eq!(all, 0, "if all refused, all are asked again");
    }
}
