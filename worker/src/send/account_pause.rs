//! Records that an account cannot send, and that it can again.

use tracing::{error, info, warn};
use waypost_core::fault::Fault;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::provider_account::Accounts;

use crate::send::sending_accounts::SendingAccount;

/// Records what the outcome of a call says about its account, if that is a change. It runs
/// in the background; if Postgres does not answer, the next call repeats it.
pub(crate) fn learn(accounts: &Accounts, account: &SendingAccount, outcome: &SendOutcome) {
    let failure = match outcome {
        SendOutcome::AccountUnusable { reason, .. } if !account.is_paused => Some(reason.clone()),
        SendOutcome::Accepted { .. } if account.is_paused => None,
        SendOutcome::Accepted { .. }
        | SendOutcome::AccountUnusable { .. }
        | SendOutcome::Rejected { .. }
        | SendOutcome::Deferred { .. }
        | SendOutcome::Throttled { .. }
        | SendOutcome::Unavailable { .. }
        | SendOutcome::Unknown { .. } => return,
    };
    let (accounts, account) = (accounts.clone(), account.clone());
    tokio::spawn(async move {
        if let Err(fault) = record(&accounts, &account, failure.as_deref()).await {
            warn!(provider.account = %account.id, cause = fault.chain(), "The state of an account could not be recorded");
        }
    });
}

async fn record(
    accounts: &Accounts,
    account: &SendingAccount,
    failure: Option<&str>,
) -> Result<(), Fault> {
    let (id, revision) = (account.id, account.revision);
    match failure {
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
