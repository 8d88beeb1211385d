//! API keys and their permissions.
//!
//! A key is random, so Postgres stores its plain SHA-256. The API shows the key once, when
//! it is created. Each process caches the keys that it looked up: a revocation, and a change
//! of the organization's rate limits, which are read with the key, reach every process within
//! [`CACHE_TTL`]. A key that is used in the second half of that time is refreshed in the
//! background. A rotated key has several secrets for a while: the new one, and each old one
//! until its grace period ends.
//!
//! Keys that are not cached are looked up in batches over few connections, so a client that
//! guesses keys costs Postgres little and takes no connection from other work.

pub mod keys;
pub mod store;
mod usage;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::cache::{self, RefreshAhead};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{ApiKeyId, Ids, OrganizationId};
use crate::limit::OwnRates;
use crate::network::Networks;
use crate::secret::{ExposeSecret, Secret};
use crate::text::Name;

use usage::Usage;

pub use crate::permission::{Permission, Permissions, Role};
pub use keys::{ApiKeys, Grantor};

/// How long a process caches a key.
pub const CACHE_TTL: Duration = Duration::from_secs(4);

const LIVE_PREFIX: &str = "wp_live_";
const TEST_PREFIX: &str = "wp_test_";
/// Random characters of a key: 32 of 62 kinds are 190 bits.
const KEY_RANDOM_CHARS: usize = 32;
/// Characters of a key that its record shows.
const PREFIX_CHARS: usize = LIVE_PREFIX.len() + 6;
/// Cached keys, including texts that are not keys.
const CACHE_MAX: u64 = 100_000;
/// Two connections, so that one dead connection does not block all look-ups. Few enough
/// hashes per query for Postgres to use the index.
const LOOKUPS: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 500,
    batch_min: 1,
    queue_max: 10_000,
    cooldown: Cooldown::NONE,
};

/// An API key's record.
#[derive(Debug, Clone)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub organization_id: OrganizationId,
    pub name: String,
    /// The first characters of the key, to tell keys apart.
    pub prefix: String,
    /// Whether everything that it sends is a test.
    pub is_test: bool,
    pub permissions: Permissions,
    /// Networks from which the key may be used. Empty: from anywhere.
    pub allowed_ips: Networks,
    pub expires_at: Option<Timestamp>,
    /// Precise to the minute.
    pub last_used_at: Option<Timestamp>,
    /// End of the longest grace period of the secrets that rotations replaced.
    pub old_secret_valid_until: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The key or the user that created this one. `None`: the operator did.
    pub created_by: Option<Uuid>,
}

impl ApiKey {
    /// Whether the key is neither revoked nor expired.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether the key may be used from `address`. If the address is unknown, only a key
    /// without networks may be used.
    fn allows(&self, address: Option<IpAddr>) -> bool {
        let networks = &self.allowed_ips;
        networks.0.is_empty() || address.is_some_and(|address| networks.contain(address))
    }
}

/// The parameters of a new key.
#[derive(Debug)]
pub struct KeyDraft {
    pub name: Name,
    /// Whether everything that it sends is a test.
    pub is_test: bool,
    pub permissions: Permissions,
    /// Networks from which the key may be used. Empty: from anywhere.
    pub allowed_ips: Networks,
    pub expires_at: Option<Timestamp>,
}

/// A new key with its secret, which is shown once.
#[derive(Debug)]
pub struct MintedKey {
    pub record: ApiKey,
    pub secret: Secret,
    /// The hash to store.
    pub hash: ApiKeyHash,
}

/// Makes a key from its draft. Does not store it.
#[must_use]
pub fn mint(
    organization_id: OrganizationId,
    draft: KeyDraft,
    created_by: Option<Uuid>,
    ids: &Ids,
    now: Timestamp,
) -> MintedKey {
    let (secret, hash, prefix) = generate_key(ids, beginning(draft.is_test));
    let record = ApiKey {
        id: ids.next_at(now),
        organization_id,
        name: draft.name.into_string(),
        prefix,
        is_test: draft.is_test,
        permissions: draft.permissions,
        allowed_ips: draft.allowed_ips,
        expires_at: draft.expires_at,
        last_used_at: None,
        old_secret_valid_until: None,
        revoked_at: None,
        created_at: now,
        created_by,
    };
    MintedKey {
        record,
        secret,
        hash,
    }
}

/// The SHA-256 of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyHash(pub [u8; 32]);

/// How a test key or a live key begins.
fn beginning(is_test: bool) -> &'static str {
    match is_test {
        true => TEST_PREFIX,
        false => LIVE_PREFIX,
    }
}

/// Generates a key with this beginning: the secret, its hash and its prefix, which may be
/// shown.
fn generate_key(ids: &Ids, beginning: &str) -> (Secret, ApiKeyHash, String) {
    let key = format!("{beginning}{}", ids.alphanumeric(KEY_RANDOM_CHARS));
    let prefix = key[..PREFIX_CHARS].to_owned();
    let hash = hash_key(&key);
    (Secret::from(key), hash, prefix)
}

fn hash_key(key: &str) -> ApiKeyHash {
    ApiKeyHash(Sha256::digest(key.as_bytes()).into())
}

/// A key as found by one of its secrets.
#[derive(Debug, Clone)]
pub struct OpenedKey {
    pub record: ApiKey,
    /// When the grace period of this secret ends. `None`: it is the current secret.
    pub secret_valid_until: Option<Timestamp>,
    /// The rate limits that the organization set for itself.
    pub rates: OwnRates,
}

impl OpenedKey {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.record.is_valid(now) && self.secret_valid_until.is_none_or(|end| now < end)
    }
}

/// Finds the key of a request.
#[derive(Clone)]
pub struct Authenticator {
    lookups: Batcher<ApiKeyHash, Option<Arc<OpenedKey>>>,
    clock: Clock,
    usage: Usage,
    cache: Cache<ApiKeyHash, RefreshAhead<Option<Arc<OpenedKey>>>>,
}

impl Authenticator {
    /// Starts the tasks that look up keys in `pool` and record their use there.
    #[must_use]
    pub fn start(pool: PgPool, clock: Clock) -> Self {
        let cache = Cache::builder()
            .max_capacity(CACHE_MAX)
            .time_to_live(CACHE_TTL)
            .build();
        Self {
            usage: Usage::start(pool.clone()),
            lookups: Batcher::start("api_keys", LOOKUPS, move |hashes| {
                find_all(pool.clone(), hashes)
            }),
            clock,
            cache,
        }
    }

    /// The key, if it exists, is neither expired nor revoked, and may be used from
    /// `address`.
    ///
    /// # Errors
    /// A fault if Postgres is away and the key is not cached.
    pub async fn find(
        &self,
        key: &Secret,
        address: Option<IpAddr>,
    ) -> Result<Option<Arc<OpenedKey>>, Fault> {
        let key = key.expose_secret();
        if !key.starts_with(LIVE_PREFIX) && !key.starts_with(TEST_PREFIX) {
            return Ok(None);
        }
        let hash = hash_key(key);
        let find = || cache::find_in_batch(self.lookups.clone(), hash, CACHE_TTL);
        let found = cache::get_or_refresh(&self.cache, hash, find, find).await?;
        let now = self.clock.now();
        let valid = found.filter(|key| key.is_valid(now) && key.record.allows(address));
        Ok(valid.inspect(|key| self.usage.record(&key.record, now)))
    }
}

/// Looks up keys; one result for each, in their order.
async fn find_all(
    pool: PgPool,
    hashes: Vec<ApiKeyHash>,
) -> Vec<Result<Option<Arc<OpenedKey>>, Fault>> {
    let found = db::bounded("look up API keys", async {
        let mut connection = pool.acquire().await.or_fault("look up API keys")?;
        store::list_by_hash(&mut connection, &hashes).await
    });
    match found.await {
        Ok(found) => {
            let found = hashes.iter().map(|hash| found.get(hash).cloned());
            found.map(Option::transpose).collect()
        }
        Err(fault) => hashes.iter().map(|_| Err(fault.clone())).collect(),
    }
}
