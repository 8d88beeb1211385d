//! Reconciles attempts whose answer was lost: asks the provider for the message and
//! records what it finds as an event. A trigger inserts each attempt that becomes UNKNOWN
//! into `unknown_attempts`. While its recipient waits for evidence, the scheduler looks
//! the message up a few times, as scheduled by [`LookupSchedule`].
//!
//! A message that is found is recorded as if the provider had reported it (`record`): the
//! attempt becomes ACCEPTED and the recipient SENT as of the start of the call, once,
//! however many processes find it. A message that is not found proves nothing, since the
//! searches of providers lag behind the sends; the wait then ends as it would have
//! without lookups.
//!
//! Each lookup is leased before the provider is called. If the process dies, the next
//! scheduled lookup still runs; a lookup that runs twice has the same result.
//! [`LookupThrottle`] limits how often a provider is asked. It is local to the process,
//! which suffices because only the leading scheduler looks up.

mod schedule;
mod store;
mod throttle;

use std::time::Duration;

use chrono::TimeDelta;
use tracing::{debug, info};

pub use schedule::LookupSchedule;
pub use store::DueLookup;
use store::{LookupLease, MailedAttempts};
pub use throttle::LookupThrottle;

use super::record::{EventBatch, EventRecorder, EventSource, RecordRefusal};
use crate::address::{EmailAddress, Mailbox};
use crate::audit::Origin;
use crate::clock::{Timestamp, delta};
use crate::crypto::seal::Sealed;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::SendAttemptId;
use crate::provider::credentials::Credentials;
use crate::provider::event::{EventIds, ProviderEvent, ProviderEventKind};
use crate::provider::kind::ProviderType;
use crate::provider::lookup::{LookupResult, MessageQuery};
use crate::provider::{AccountAccess, adapter};
use crate::provider_account::{AccountRefusal, Accounts, ProviderAccount};

/// The limit for one lookup with all its calls.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(30);
/// When a last lookup is due again if its process died. Longer than [`LOOKUP_TIMEOUT`].
const LAST_LOOKUP_LEASE: TimeDelta = TimeDelta::minutes(2);
/// The age at which an attempt is given up, whatever the configuration says.
const ATTEMPT_AGE_MAX: TimeDelta = TimeDelta::days(1);
/// Finished attempts deleted by one statement.
const DELETE_BATCH_MAX: i64 = 1_000;

/// Looks up messages at providers. Cheap to clone.
#[derive(Clone)]
pub struct Reconciler {
    pub accounts: Accounts,
    pub recorder: EventRecorder,
    pub schedule: LookupSchedule,
    pub throttle: LookupThrottle,
}

impl Reconciler {
    /// Whether a lookup is due. Only of those attempts are there some to delete.
    pub async fn is_any_due(&self) -> Result<bool, Fault> {
        let pool = &self.accounts.pool;
        let doing = "find unknown attempts that are due";
        let mut connection = pool.acquire().await.or_fault(doing)?;
        store::is_any_due(&mut connection, self.accounts.clock.now()).await
    }

    /// Deletes attempts that need no lookup any more: the recipient has an outcome or is
    /// gone, the account has no search, or the attempt is too old. Returns their number.
    pub async fn delete_finished(&self) -> Result<u64, Fault> {
        let now = self.accounts.clock.now();
        let without_search = self.throttle.without_search();
        let pool = &self.accounts.pool;
        let mut connection = pool
            .acquire()
            .await
            .or_fault("delete finished unknown attempts")?;
        let oldest = now - ATTEMPT_AGE_MAX;
        store::delete_finished(
            &mut connection,
            &without_search,
            now,
            oldest,
            DELETE_BATCH_MAX,
        )
        .await
    }

    /// Leases attempts of one provider type whose lookup is due, at most as many per
    /// account as its rate limit allows.
    pub async fn lease_due(
        &self,
        provider_type: ProviderType,
        limit: usize,
    ) -> Result<Vec<DueLookup>, Fault> {
        let now = self.accounts.clock.now();
        let lease = LookupLease {
            provider_type,
            paused_accounts: self.throttle.paused(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            limit_per_account: throttle::batch_max(provider_type),
            now,
            offsets: self.schedule.offsets(),
            retry_last_at: now + LAST_LOOKUP_LEASE,
        };
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("lease unknown attempts")?;
        let due = store::lease(&mut connection, &lease).await?;
        for lookup in &due {
            self.throttle
                .record_lookup(lookup.provider_account_id, provider_type);
        }
        Ok(due)
    }

    /// Looks up the message of an attempt and records it if it is found.
    ///
    /// # Errors
    /// A fault if Postgres is unavailable. The lookup is then lost, unless it was the
    /// last.
    pub async fn look_up(&self, due: &DueLookup) -> Result<(), Fault> {
        let (organization_id, account_id) = (due.organization_id, due.provider_account_id);
        let (account, credentials) = match self.accounts.open(organization_id, account_id).await {
            Ok(opened) => opened,
            Err(AccountRefusal::Fault(fault)) => return Err(fault),
            // The account is gone; no other account knows the message.
            Err(_) => return self.delete(due, &[due.attempt_id]).await,
        };
        let Some((mailed, recipient)) = self.find_mailed(due).await? else {
            return self.delete(due, &[due.attempt_id]).await;
        };
        let query = MessageQuery {
            attempt_id: mailed.ids.first().copied().unwrap_or(due.attempt_id),
            started_at: due.started_at,
            recipient,
        };
        let result = self.query_provider(&credentials, &query).await;
        let is_finished = match &result {
            LookupResult::Taken {
                provider_message_id,
            } => {
                self.record(due, &mailed, &account, provider_message_id.as_deref())
                    .await?;
                return self.delete(due, &mailed.ids).await;
            }
            LookupResult::NotFound => due.is_last,
            LookupResult::Throttled {
                retry_after,
                reason,
            } => {
                debug!(account.id = %account_id, reason, "Account {account_id} throttled a lookup, will retry later");
                self.throttle.record_throttled(account_id, *retry_after);
                due.is_last
            }
            LookupResult::Undecided { reason } => {
                debug!(account.id = %account_id, reason, "A lookup at account {account_id} had no answer");
                self.throttle.record_no_answer(account_id);
                due.is_last
            }
            LookupResult::NoSearch { reason } => {
                debug!(account.id = %account_id, reason, "Account {account_id} has no message search");
                self.throttle.record_no_search(account_id);
                true
            }
        };
        match (is_finished, result) {
            (true, _) => self.delete(due, &[due.attempt_id]).await,
            (false, LookupResult::Throttled { retry_after, .. }) => {
                self.postpone(due, throttle::throttled_pause(retry_after))
                    .await
            }
            (false, _) => Ok(()),
        }
    }

    async fn query_provider(
        &self,
        credentials: &Credentials,
        query: &MessageQuery,
    ) -> LookupResult {
        let access = AccountAccess {
            credentials,
            endpoints: &self.accounts.endpoints,
            now: self.accounts.clock.now(),
        };
        let call = adapter(credentials.provider_type()).look_up(&access, query);
        let lookup = tokio::time::timeout(LOOKUP_TIMEOUT, self.accounts.transport.run(call));
        let undecided = |reason: String| LookupResult::Undecided { reason };
        match lookup.await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => undecided(error.to_string()),
            Err(elapsed) => undecided(elapsed.to_string()),
        }
    }

    /// The attempts of the mail, and the address of its first recipient; `None` if that
    /// recipient is gone.
    async fn find_mailed(
        &self,
        due: &DueLookup,
    ) -> Result<Option<(MailedAttempts, EmailAddress)>, Fault> {
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("find a recipient")?;
        let Some(mailed) = store::find_mailed(&mut connection, due).await? else {
            return Ok(None);
        };
        drop(connection);
        let (kind, row) = (Sealed::Recipient, due.message_id.0);
        let opened =
            self.accounts
                .sealer
                .open(due.organization_id, kind, row, &mailed.address_sealed)?;
        let doing = "read a recipient's address";
        let text = String::from_utf8(opened)
            .map_err(|error| Fault::internal(doing, error.utf8_error()))?;
        let mailbox = Mailbox::parse(&text).map_err(|error| Fault::internal(doing, error))?;
        Ok(Some((mailed, mailbox.address().clone())))
    }

    /// Records the attempts as if the provider had reported that it accepted the message.
    async fn record(
        &self,
        due: &DueLookup,
        mailed: &MailedAttempts,
        account: &ProviderAccount,
        provider_message_id: Option<&str>,
    ) -> Result<(), Fault> {
        let source = EventSource {
            organization_id: due.organization_id,
            account_id: due.provider_account_id,
            provider_type: account.provider_type,
            is_test: false,
            first_verified_with: None,
        };
        let now = self.accounts.clock.now();
        let attempts = mailed.ids.iter().zip(&mailed.positions);
        let events = attempts.map(|(attempt_id, position)| {
            let ids = EventIds {
                message_id: due.message_id,
                position: Some(*position),
                attempt_id: *attempt_id,
            };
            event(ids, provider_message_id, now)
        });
        let batch = EventBatch {
            events: events.collect(),
            unreadable: 0,
            guard: None,
        };
        let origin = Origin::system(due.attempt_id);
        match self.recorder.record(source, origin, batch).await {
            Ok(_) => {
                let (message_id, account_id) = (due.message_id, due.provider_account_id);
                info!(
                    message.id = %message_id,
                    account.id = %account_id,
                    "Found message {message_id} at account {account_id}"
                );
                Ok(())
            }
            Err(RecordRefusal::Fault(fault)) => Err(fault),
            Err(RecordRefusal::Replayed) => Err(Fault::internal(
                "record the result of a lookup",
                "a lookup has no signature",
            )),
        }
    }

    async fn delete(&self, due: &DueLookup, attempts: &[SendAttemptId]) -> Result<(), Fault> {
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("delete an unknown attempt")?;
        store::delete(&mut connection, due, attempts).await
    }

    async fn postpone(&self, due: &DueLookup, wait: Duration) -> Result<(), Fault> {
        let pool = &self.accounts.pool;
        let mut connection = pool.acquire().await.or_fault("postpone a lookup")?;
        let next = self.accounts.clock.now() + delta(wait);
        store::postpone(&mut connection, due, next).await
    }
}

/// The event of a successful lookup. Its id is the same for every lookup of the attempt.
fn event(ids: EventIds, provider_message_id: Option<&str>, now: Timestamp) -> ProviderEvent {
    let raw = serde_json::json!({ "lookUp": { "providerMessageId": provider_message_id } });
    ProviderEvent {
        id: format!("look-up:{}", ids.attempt_id),
        kind: ProviderEventKind::Sent,
        occurred_at: now,
        ids: Some(ids),
        provider_message_id: provider_message_id.map(str::to_owned),
        recipient: None,
        details: serde_json::Map::new(),
        raw: raw.to_string().into_bytes(),
    }
}
