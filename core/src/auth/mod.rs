//! API keys and what they may do. A key is random, so one SHA-256 of it is what
//! is stored and looked up; the key itself is shown once, when it is made. Looked
//! up keys are remembered for a few seconds: a revocation reaches every process
//! within [`KEY_MEMORY`], and so does a change of the organization's rate limits,
//! which are read with the key. Of a key that is used in the second half of that time
//! the next request finds what was looked up meanwhile. A rotated key has several
//! secrets for a while: the new one, and each old one until its grace period ends.
//!
//! Keys that are not remembered are looked up many at once, over few connections:
//! whoever guesses keys costs Postgres little, and nobody else their connection.

pub mod keys;
pub mod permission;
pub mod store;
mod usage;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use sha2::{Digest, Sha256};

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

pub use keys::ApiKeys;
pub use permission::{Permission, Permissions};

/// How long a process may go on using what it knows of a key.
pub const KEY_MEMORY: Duration = Duration::from_secs(4);

/// What every key begins with.
const KEY_PREFIX: &str = "wp_live_";
/// Random characters of a key: 32 of 62 kinds are 190 bits.
const KEY_RANDOM_CHARS: usize = 32;
/// Characters of a key that its record shows.
const SHOWN_CHARS: usize = KEY_PREFIX.len() + 6;
/// Keys remembered at the most, and texts that are no keys.
const REMEMBERED_MAX: u64 = 100_000;
/// How keys are looked up: over two connections, so that one that died without a
/// word is not the only one, and few enough at once to be found by an index.
const LOOK_UPS: BatcherSettings = BatcherSettings {
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
    /// The organization whose data it opens.
    pub organization_id: OrganizationId,
    pub name: String,
    /// The first characters of the key, to tell keys apart.
    pub prefix: String,
    pub permissions: Permissions,
    /// Where it may be used from; anywhere where there are none.
    pub allowed_ips: Networks,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// Until when a secret opens it that a rotation replaced.
    pub old_secret_valid_until: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The key that made it; nothing where the operator did.
    pub created_by: Option<ApiKeyId>,
}

impl ApiKey {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether it may be used from there. Where the address is not known, only a
    /// key that may be used from anywhere.
    fn allows(&self, address: Option<IpAddr>) -> bool {
        let networks = &self.allowed_ips;
        networks.0.is_empty() || address.is_some_and(|address| networks.contain(address))
    }
}

/// What a key is to be.
#[derive(Debug)]
pub struct KeyDraft {
    pub name: Name,
    pub permissions: Permissions,
    /// Where it may be used from; anywhere where there are none.
    pub allowed_ips: Networks,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
}

/// A key just made, with its secret, which is shown once.
#[derive(Debug)]
pub struct MintedKey {
    pub record: ApiKey,
    pub secret: Secret,
    /// What is stored of it.
    pub hash: ApiKeyHash,
}

/// Makes a key from its draft; nothing is stored yet.
#[must_use]
pub fn mint(
    organization_id: OrganizationId,
    draft: KeyDraft,
    created_by: Option<ApiKeyId>,
    ids: &Ids,
    now: Timestamp,
) -> MintedKey {
    let (secret, hash, prefix) = generate_key(ids);
    let record = ApiKey {
        id: ids.next_at(now),
        organization_id,
        name: draft.name.into_string(),
        prefix,
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

/// Makes a fresh key: the secret, its hash and the part that may be shown.
#[must_use]
pub fn generate_key(ids: &Ids) -> (Secret, ApiKeyHash, String) {
    let key = format!("{KEY_PREFIX}{}", ids.alphanumeric(KEY_RANDOM_CHARS));
    let shown = key[..SHOWN_CHARS].to_owned();
    let hash = hash_key(&key);
    (Secret::from(key), hash, shown)
}

fn hash_key(key: &str) -> ApiKeyHash {
    ApiKeyHash(Sha256::digest(key.as_bytes()).into())
}

/// A key as one of its secrets opens it.
#[derive(Debug, Clone)]
pub struct OpenedKey {
    pub record: ApiKey,
    /// When this secret ends, where a rotation replaced it.
    pub secret_valid_until: Option<Timestamp>,
    /// The rate limits that its organization gave itself.
    pub rates: OwnRates,
}

impl OpenedKey {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.record.is_valid(now) && self.secret_valid_until.is_none_or(|end| now < end)
    }
}

/// Tells whose key a request carries.
#[derive(Clone)]
pub struct Authenticator {
    look_ups: Batcher<ApiKeyHash, Option<Arc<OpenedKey>>>,
    clock: Clock,
    usage: Usage,
    remembered: Cache<ApiKeyHash, RefreshAhead<Option<Arc<OpenedKey>>>>,
}

impl Authenticator {
    /// Looks keys up in `pool`, and records there when they were used.
    #[must_use]
    pub fn start(pool: PgPool, clock: Clock) -> Self {
        let remembered = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(KEY_MEMORY)
            .build();
        Self {
            usage: Usage::start(pool.clone()),
            look_ups: Batcher::start("api_keys", LOOK_UPS, move |hashes| {
                look_up(pool.clone(), hashes)
            }),
            clock,
            remembered,
        }
    }

    /// What is known of a key that is used from `address`; nothing where it is
    /// unknown, expired, revoked or not to be used from there.
    ///
    /// # Errors
    /// A fault when Postgres is away and the key is not remembered.
    pub async fn find(
        &self,
        key: &Secret,
        address: Option<IpAddr>,
    ) -> Result<Option<Arc<OpenedKey>>, Fault> {
        let key = key.expose_secret();
        if !key.starts_with(KEY_PREFIX) {
            return Ok(None);
        }
        let hash = hash_key(key);
        let look_up = || look_up_one(self.look_ups.clone(), hash);
        let found = cache::get_or_refresh(&self.remembered, hash, look_up, look_up).await?;
        let now = self.clock.now();
        let valid = found.filter(|key| key.is_valid(now) && key.record.allows(address));
        Ok(valid.inspect(|key| self.usage.note(&key.record, now)))
    }
}

/// What is known of one key, beside others that are asked for. A text that is none is not
/// worth a second look.
async fn look_up_one(
    look_ups: Batcher<ApiKeyHash, Option<Arc<OpenedKey>>>,
    hash: ApiKeyHash,
) -> Result<RefreshAhead<Option<Arc<OpenedKey>>>, Fault> {
    let found = look_ups.run(hash, 1).await?;
    Ok(match &found {
        Some(_) => RefreshAhead::for_memory(found, KEY_MEMORY),
        None => RefreshAhead::never(found),
    })
}

/// What is known of each of these keys, in their order.
async fn look_up(
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
