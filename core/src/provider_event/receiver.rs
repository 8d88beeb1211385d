//! The inbox: where a provider's request becomes recorded events. Its token finds
//! the account, the account's secrets verify it, the reader of its provider reads
//! it, and the recorder commits it. Only then is it answered.
//!
//! Which account a token belongs to is remembered for a moment, so that a storm of
//! requests costs no look-up each. Secrets that were replaced are believed no longer
//! than that.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use moka::future::Cache;
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::record::{EventBatch, EventRecorder, EventSource, RecordCounts, RecordRefusal};
use crate::audit::Origin;
use crate::cache;
use crate::clock::Clock;
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::provider::event_secrets::EventSecrets;
use crate::provider::inbound::{self, Inbound, InboundRefusal, Received, SnsFetcher};
use crate::provider_account::ProviderAccount;
use crate::provider_account::store;

/// How long a process goes by what it knows of an account.
const MEMORY: Duration = Duration::from_secs(1);
/// Tokens remembered at the most, also of accounts that are not there.
const REMEMBERED_MAX: u64 = 10_000;
/// Tokens looked for at once: made-up ones hold no more connections than these.
const LOOK_UPS: usize = 2;
/// The length of a token.
const TOKEN_CHARS: usize = 32;

const DOING: &str = "receive provider events";

/// Why a request was not taken.
#[derive(Debug)]
pub enum ReceiveRefusal {
    /// No account has this token.
    UnknownToken,
    /// Nothing shows that the provider sent it.
    Unverified,
    /// We failed, or cannot judge it now. It is to be sent again.
    Fault(Fault),
}

impl From<Fault> for ReceiveRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Receives requests of providers. Cheap to clone.
#[derive(Clone)]
pub struct EventReceiver {
    pool: PgPool,
    sealer: Sealer,
    fetcher: SnsFetcher,
    recorder: EventRecorder,
    clock: Clock,
    doors: Cache<String, Option<Arc<CachedAccount>>>,
    look_ups: Arc<Semaphore>,
}

/// What lies behind a token.
struct CachedAccount {
    account: ProviderAccount,
    /// What requests are verified with, open and as it is stored; nothing as long as
    /// it is not known.
    secrets: Option<(EventSecrets, Vec<u8>)>,
}

/// What an inbox works with.
pub struct EventReceiverParts {
    pub pool: PgPool,
    pub sealer: Sealer,
    /// What gets the certificates of SNS.
    pub fetcher: SnsFetcher,
    pub recorder: EventRecorder,
    pub clock: Clock,
}

impl EventReceiver {
    /// An inbox that remembers nothing yet.
    #[must_use]
    pub fn new(parts: EventReceiverParts) -> Self {
        let EventReceiverParts {
            pool,
            sealer,
            fetcher,
            recorder,
            clock,
        } = parts;
        Self {
            pool,
            sealer,
            fetcher,
            recorder,
            clock,
            doors: Cache::builder()
                .max_capacity(REMEMBERED_MAX)
                .time_to_live(MEMORY)
                .build(),
            look_ups: Arc::new(Semaphore::new(LOOK_UPS)),
        }
    }

    /// Takes a request: verifies it and records what it tells.
    ///
    /// # Errors
    /// Why nothing, or only a part, was recorded.
    pub async fn take(
        &self,
        token: &str,
        headers: &HeaderMap,
        body: &[u8],
        origin: Origin,
    ) -> Result<RecordCounts, ReceiveRefusal> {
        let door = self
            .door(token)
            .await?
            .ok_or(ReceiveRefusal::UnknownToken)?;
        let account_id = door.account.id;
        let Some((secrets, sealed)) = &door.secrets else {
            info!(account.id = %account_id, "Refused events of account {account_id}: its event secrets are not known");
            return Err(ReceiveRefusal::Unverified);
        };
        let inbound = Inbound {
            headers,
            body,
            now: self.clock.now(),
        };
        let kind = door.account.provider_type;
        let received = match inbound::receive(kind, secrets, &inbound, &self.fetcher).await {
            Ok(received) => received,
            Err(InboundRefusal::Unverified { why }) => {
                info!(account.id = %account_id, why, "Refused events of account {account_id}");
                return Err(ReceiveRefusal::Unverified);
            }
            // A provider would send it again for hours, and it would be the same.
            Err(InboundRefusal::Malformed { why }) => {
                warn!(account.id = %account_id, why, "Acknowledged events of account {account_id} that cannot be read");
                Received {
                    unreadable: 1,
                    ..Received::default()
                }
            }
            Err(InboundRefusal::Unavailable { why }) => {
                return Err(Fault::unavailable(DOING, why).into());
            }
        };
        let is_first = door.account.events_verified_at.is_none();
        let teller = EventSource {
            organization_id: door.account.organization_id,
            account_id,
            provider_type: kind,
            first_verified_with: is_first.then(|| sealed.clone()),
        };
        let news = EventBatch {
            events: received.events,
            unreadable: received.unreadable,
            guard: received.replay_guard,
        };
        match self.recorder.record(teller, origin, news).await {
            Ok(tally) => Ok(tally),
            Err(RecordRefusal::Replayed) => {
                warn!(account.id = %account_id, "Refused events of account {account_id}: the signature was used for others");
                Err(ReceiveRefusal::Unverified)
            }
            Err(RecordRefusal::Fault(fault)) => Err(fault.into()),
        }
    }

    async fn door(&self, token: &str) -> Result<Option<Arc<CachedAccount>>, Fault> {
        let is_one = token.len() == TOKEN_CHARS && token.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_one {
            return Ok(None);
        }
        cache::get_or_find(&self.doors, token, || self.find(token)).await
    }

    async fn find(&self, token: &str) -> Result<Option<Arc<CachedAccount>>, Fault> {
        let found = db::bounded(DOING, async {
            // Never closed. Whoever guesses tokens waits for others who do.
            let _place = self.look_ups.acquire().await;
            let mut connection = self.pool.acquire().await.or_fault(DOING)?;
            store::find_by_event_token(&mut connection, token).await
        });
        let Some((account, sealed)) = found.await? else {
            return Ok(None);
        };
        let secrets = match sealed {
            Some(sealed) => {
                let secrets = account.open_event_secrets(&self.sealer, &sealed)?;
                Some((secrets, sealed))
            }
            None => None,
        };
        Ok(Some(Arc::new(CachedAccount { account, secrets })))
    }
}
