//! Receives the event requests of providers. The token in the URL identifies the account.
//! The account's secrets verify the request, the provider's adapter reads it, and the
//! recorder commits the events. The request is answered only after the commit.
//!
//! Accounts are cached by token for `ACCOUNT_TTL`, so that a burst of requests does not
//! cost a query each. A replaced secret stays valid for at most that long.

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
use crate::telemetry::instruments;

/// How long a process may use a cached account.
const ACCOUNT_TTL: Duration = Duration::from_secs(1);
/// Tokens cached at most, unknown tokens included.
const ACCOUNTS_CACHED_MAX: u64 = 10_000;
/// Concurrent queries for tokens: requests with made-up tokens cannot use more
/// connections.
const LOOKUPS_MAX: usize = 2;
const TOKEN_CHARS: usize = 32;

const DOING: &str = "receive provider events";

/// Why a request was refused.
#[derive(Debug)]
pub enum ReceiveRefusal {
    UnknownToken,
    /// The request is not proven to come from the provider.
    Unverified,
    /// The request could not be processed. The provider should send it again.
    Fault(Fault),
}

impl From<Fault> for ReceiveRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Receives the event requests of providers. Cheap to clone.
#[derive(Clone)]
pub struct EventReceiver {
    pool: PgPool,
    sealer: Sealer,
    fetcher: SnsFetcher,
    recorder: EventRecorder,
    clock: Clock,
    accounts: Cache<String, Option<Arc<CachedAccount>>>,
    lookup_permits: Arc<Semaphore>,
}

/// The account that a token belongs to.
struct CachedAccount {
    account: ProviderAccount,
    /// The secrets that verify requests, opened and as stored; `None` until the secrets
    /// are set.
    secrets: Option<(EventSecrets, Vec<u8>)>,
}

/// The dependencies of an [`EventReceiver`].
pub struct EventReceiverParts {
    pub pool: PgPool,
    pub sealer: Sealer,
    /// Fetches the signing certificates of SNS.
    pub fetcher: SnsFetcher,
    pub recorder: EventRecorder,
    pub clock: Clock,
}

impl EventReceiver {
    /// Builds a receiver with an empty cache.
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
            accounts: Cache::builder()
                .max_capacity(ACCOUNTS_CACHED_MAX)
                .time_to_live(ACCOUNT_TTL)
                .build(),
            lookup_permits: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }

    /// Verifies a request and records its events.
    ///
    /// # Errors
    /// Why none, or only some, of the events were recorded.
    pub async fn receive(
        &self,
        token: &str,
        headers: &HeaderMap,
        body: &[u8],
        origin: Origin,
    ) -> Result<RecordCounts, ReceiveRefusal> {
        let cached = self
            .cached_account(token)
            .await?
            .ok_or(ReceiveRefusal::UnknownToken)?;
        let account_id = cached.account.id;
        let Some((secrets, sealed)) = &cached.secrets else {
            info!(account.id = %account_id, "Refused events of account {account_id}: its event secrets are not set");
            instruments::post_refused(cached.account.provider_type.as_str());
            return Err(ReceiveRefusal::Unverified);
        };
        let inbound = Inbound {
            headers,
            body,
            now: self.clock.now(),
        };
        let kind = cached.account.provider_type;
        let received = match inbound::receive(kind, secrets, &inbound, &self.fetcher).await {
            Ok(received) => received,
            Err(InboundRefusal::Unverified { why }) => {
                info!(account.id = %account_id, why, "Refused events of account {account_id}");
                instruments::post_refused(kind.as_str());
                return Err(ReceiveRefusal::Unverified);
            }
            // The provider would repeat the same unreadable request for hours.
            Err(InboundRefusal::Malformed { why }) => {
                warn!(account.id = %account_id, why, "Acknowledged a request for account {account_id} that cannot be read");
                Received {
                    unreadable: 1,
                    ..Received::default()
                }
            }
            Err(InboundRefusal::Unavailable { why }) => {
                return Err(Fault::unavailable(DOING, why).into());
            }
        };
        let is_first = cached.account.events_verified_at.is_none();
        let source = EventSource {
            organization_id: cached.account.organization_id,
            account_id,
            provider_type: kind,
            is_test: false,
            first_verified_with: is_first.then(|| sealed.clone()),
        };
        let batch = EventBatch {
            events: received.events,
            unreadable: received.unreadable,
            guard: received.replay_guard,
        };
        match self.recorder.record(source, origin, batch).await {
            Ok(counts) => Ok(counts),
            Err(RecordRefusal::Replayed) => {
                warn!(account.id = %account_id, "Refused events of account {account_id}: the signature was already used for other events");
                instruments::post_refused(kind.as_str());
                Err(ReceiveRefusal::Unverified)
            }
            Err(RecordRefusal::Fault(fault)) => Err(fault.into()),
        }
    }

    async fn cached_account(&self, token: &str) -> Result<Option<Arc<CachedAccount>>, Fault> {
        let is_token =
            token.len() == TOKEN_CHARS && token.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_token {
            return Ok(None);
        }
        cache::get_or_find(&self.accounts, token, || self.load_account(token)).await
    }

    async fn load_account(&self, token: &str) -> Result<Option<Arc<CachedAccount>>, Fault> {
        let found = db::bounded(DOING, async {
            // Never closed. Requests with unknown tokens wait for each other here.
            let _permit = self.lookup_permits.acquire().await;
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
