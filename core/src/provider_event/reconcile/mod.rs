//! Looks for mails whose answer was lost: where a question to a provider becomes a
//! recorded event. A trigger writes down each attempt that became UNKNOWN
//! (`unknown_attempts`); as long as its copy waits for evidence the provider is asked
//! for it, a few times, at the moments that [`LookupSchedule`] names.
//!
//! What is found is recorded as if the provider had told of it (`record`): the attempt
//! becomes ACCEPTED and the copy SENT as of when the call began, once, however many
//! processes find it. What is not found proves nothing, since searches lag behind the
//! sends: then the wait ends as it would have without a look.
//!
//! A look is taken before it is made. Whoever dies over it leaves the next one to
//! others, and one that is made twice finds the same. [`LookupThrottle`] keeps providers from
//! being asked too often; it is a process's own, which is enough as long as one leads.

mod schedule;
mod store;
mod throttle;

use std::time::Duration;

use chrono::TimeDelta;
use tracing::{debug, info};

pub use schedule::LookupSchedule;
pub use store::DueLookup;
use store::Taking;
pub use throttle::LookupThrottle;

use super::record::{EventBatch, EventRecorder, EventSource, RecordRefusal};
use crate::address::{EmailAddress, Mailbox};
use crate::audit::Origin;
use crate::clock::{Timestamp, delta};
use crate::crypto::seal::Sealed;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::provider::credentials::Credentials;
use crate::provider::event::{EventIds, ProviderEvent, ProviderEventKind};
use crate::provider::kind::ProviderType;
use crate::provider::lookup::{LookupResult, MessageQuery};
use crate::provider::{AccountAccess, adapter};
use crate::provider_account::{AccountRefusal, Accounts, ProviderAccount};

/// How long a look may take, all its calls together.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// When a look that was the last one is due again, where whoever took it died: longer
/// than it takes at the most.
const TAKEN_FOR: TimeDelta = TimeDelta::minutes(2);
/// How long an attempt is looked for at the most, whatever the configuration says.
const LOOKED_FOR_MAX: TimeDelta = TimeDelta::days(1);
/// Attempts that nothing waits for any more, forgotten by one statement.
const FORGOTTEN_MAX: i64 = 1_000;

/// Looks for mails. Cheap to clone.
#[derive(Clone)]
pub struct Reconciler {
    /// Opens accounts and calls providers.
    pub accounts: Accounts,
    pub recorder: EventRecorder,
    /// When attempts are looked for.
    pub moments: LookupSchedule,
    /// How often providers are asked.
    pub paces: LookupThrottle,
}

impl Reconciler {
    /// Forgets attempts that nothing waits for any more: the copy is settled or gone,
    /// the account has no search, or it was long ago.
    pub async fn forget_settled(&self) -> Result<u64, Fault> {
        let now = self.accounts.clock.now();
        let without_search = self.paces.without_search();
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("forget unknown attempts")?;
        let oldest = now - LOOKED_FOR_MAX;
        store::delete_settled(&mut connection, &without_search, now, oldest, FORGOTTEN_MAX).await
    }

    /// Takes attempts through accounts of one provider whose look is due, of an account
    /// no more than its pace allows.
    pub async fn take_due(
        &self,
        provider_type: ProviderType,
        most: usize,
    ) -> Result<Vec<DueLookup>, Fault> {
        let now = self.accounts.clock.now();
        let taking = Taking {
            provider_type,
            passed_over: self.paces.resting(),
            most: i64::try_from(most).unwrap_or(i64::MAX),
            most_of_account: throttle::at_once(provider_type),
            now,
            moments: self.moments.offsets(),
            taken_until: now + TAKEN_FOR,
        };
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("take unknown attempts")?;
        let due = store::lease(&mut connection, &taking).await?;
        for look in &due {
            self.paces.looked(look.provider_account_id, provider_type);
        }
        Ok(due)
    }

    /// Looks for the mail of an attempt, and records it where it is found.
    ///
    /// # Errors
    /// A fault when Postgres is away. The look is lost then, unless it was the last.
    pub async fn look(&self, due: &DueLookup) -> Result<(), Fault> {
        let (organization_id, account_id) = (due.organization_id, due.provider_account_id);
        let (account, credentials) = match self.accounts.open(organization_id, account_id).await {
            Ok(opened) => opened,
            Err(AccountRefusal::Fault(fault)) => return Err(fault),
            // The account is gone, and nobody else can be asked.
            Err(_) => return self.forget(due).await,
        };
        let Some(recipient) = self.recipient(due).await? else {
            return self.forget(due).await;
        };
        let sought = MessageQuery {
            attempt_id: due.attempt_id,
            started_at: due.started_at,
            recipient,
        };
        let evidence = self.ask(&credentials, &sought).await;
        let is_over = match &evidence {
            LookupResult::Taken {
                provider_message_id,
            } => {
                self.record(due, &account, provider_message_id.clone())
                    .await?;
                true
            }
            LookupResult::NotFound => due.is_last,
            LookupResult::Throttled {
                retry_after,
                reason,
            } => {
                debug!(account.id = %account_id, reason, "Account {account_id} is looked at later");
                self.paces.throttled(account_id, *retry_after);
                due.is_last
            }
            LookupResult::Undecided { reason } => {
                debug!(account.id = %account_id, reason, "A look at account {account_id} had no answer");
                self.paces.unanswered(account_id);
                due.is_last
            }
            LookupResult::NoSearch { reason } => {
                debug!(account.id = %account_id, reason, "Account {account_id} cannot be searched");
                self.paces.cannot_be_searched(account_id);
                true
            }
        };
        match (is_over, evidence) {
            (true, _) => self.forget(due).await,
            (false, LookupResult::Throttled { retry_after, .. }) => {
                self.postpone(due, throttle::throttle_wait(retry_after))
                    .await
            }
            (false, _) => Ok(()),
        }
    }

    async fn ask(&self, credentials: &Credentials, sought: &MessageQuery) -> LookupResult {
        let access = AccountAccess {
            credentials,
            endpoints: &self.accounts.endpoints,
            now: self.accounts.clock.now(),
        };
        let step = adapter(credentials.provider_type()).look_up(&access, sought);
        let run = tokio::time::timeout(LOOK_MAX, self.accounts.transport.run(step));
        let undecided = |reason: String| LookupResult::Undecided { reason };
        match run.await {
            Ok(Ok(evidence)) => evidence,
            Ok(Err(error)) => undecided(error.to_string()),
            Err(elapsed) => undecided(elapsed.to_string()),
        }
    }

    /// Whom the copy goes to; nothing where it is gone.
    async fn recipient(&self, due: &DueLookup) -> Result<Option<EmailAddress>, Fault> {
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("find a recipient")?;
        let Some(sealed) = store::find_recipient(&mut connection, due).await? else {
            return Ok(None);
        };
        drop(connection);
        let (kind, row) = (Sealed::Recipient, due.message_id.0);
        let opened = self
            .accounts
            .sealer
            .open(due.organization_id, kind, row, &sealed)?;
        let doing = "read a recipient's address";
        let text = String::from_utf8(opened)
            .map_err(|error| Fault::internal(doing, error.utf8_error()))?;
        let mailbox = Mailbox::parse(&text).map_err(|error| Fault::internal(doing, error))?;
        Ok(Some(mailbox.address().clone()))
    }

    /// As if the provider had told that it took the mail.
    async fn record(
        &self,
        due: &DueLookup,
        account: &ProviderAccount,
        provider_message_id: Option<String>,
    ) -> Result<(), Fault> {
        let teller = EventSource {
            organization_id: due.organization_id,
            account_id: due.provider_account_id,
            provider_type: account.provider_type,
            first_verified_with: None,
        };
        let event = event(due, provider_message_id, self.accounts.clock.now());
        let news = EventBatch {
            events: vec![event],
            unreadable: 0,
            guard: None,
        };
        let origin = Origin::system(due.attempt_id);
        match self.recorder.record(teller, origin, news).await {
            Ok(_) => {
                let (message_id, account_id) = (due.message_id, due.provider_account_id);
                info!(
                    message.id = %message_id,
                    account.id = %account_id,
                    "Found a copy of message {message_id} at account {account_id}"
                );
                Ok(())
            }
            Err(RecordRefusal::Fault(fault)) => Err(fault),
            Err(RecordRefusal::Replayed) => Err(Fault::internal(
                "record what a look found",
                "a look has no signature that could be used twice",
            )),
        }
    }

    async fn forget(&self, due: &DueLookup) -> Result<(), Fault> {
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("forget an unknown attempt")?;
        store::delete(&mut connection, due).await
    }

    async fn postpone(&self, due: &DueLookup, wait: Duration) -> Result<(), Fault> {
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("postpone a look")?;
        let next = self.accounts.clock.now() + delta(wait);
        store::postpone(&mut connection, due, next).await
    }
}

/// What a look found, as an event. Its id is the same whenever the same is found.
fn event(due: &DueLookup, provider_message_id: Option<String>, now: Timestamp) -> ProviderEvent {
    let raw = serde_json::json!({ "lookUp": { "providerMessageId": provider_message_id } });
    ProviderEvent {
        id: format!("look-up:{}", due.attempt_id),
        kind: ProviderEventKind::Sent,
        occurred_at: now,
        ids: Some(EventIds {
            message_id: due.message_id,
            position: due.position,
            attempt_id: due.attempt_id,
        }),
        provider_message_id,
        recipient: None,
        details: serde_json::Map::new(),
        raw: raw.to_string().into_bytes(),
    }
}
