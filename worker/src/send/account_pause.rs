//! What becomes known of the accounts that cannot send themselves: it is recorded when
//! it begins and when it is over, whoever notices first.

use tracing::{error, info, warn};
use waypost_core::fault::Fault;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::provider_account::Accounts;

use crate::send::sending_accounts::SendingAccount;

/// Records what a call says of its account, where that is news. Nobody waits for it; where
/// Postgres is away the next call says so again.
pub(crate) fn learn(accounts: &Accounts, sender: &SendingAccount, outcome: &SendOutcome) {
    let reason = match outcome {
        SendOutcome::AccountUnusable { reason, .. } if !sender.is_paused => Some(reason.clone()),
        SendOutcome::Accepted { .. } if sender.is_paused => None,
        SendOutcome::Accepted { .. }
        | SendOutcome::AccountUnusable { .. }
        | SendOutcome::Rejected { .. }
        | SendOutcome::Deferred { .. }
        | SendOutcome::Throttled { .. }
        | SendOutcome::Unavailable { .. }
        | SendOutcome::Unknown { .. } => return,
    };
    let (accounts, sender) = (accounts.clone(), sender.clone());
    tokio::spawn(async move {
        if let Err(fault) = record(&accounts, &sender, reason.as_deref()).await {
            warn!(provider.account = %sender.id, cause = fault.chain(), "The state of an account could not be recorded");
        }
    });
}

async fn record(
    accounts: &Accounts,
    sender: &SendingAccount,
    reason: Option<&str>,
) -> Result<(), Fault> {
    let (id, revision) = (sender.id, sender.revision);
    match reason {
        Some(reason) => {
            if accounts.record_failing(id, revision, reason).await? {
                error!(provider.account = %id, reason, "A provider account cannot send; its mail waits");
            }
        }
        None => {
            if accounts.record_recovered(id).await? {
                info!(provider.account = %id, "A provider account sends again");
            }
        }
    }
    Ok(())
}
