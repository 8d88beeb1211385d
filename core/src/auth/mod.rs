//! API keys and what they may do. A key is random, so one SHA-256 of it is what
//! is stored and looked up; the key itself is shown once, when it is made. Looked
//! up keys are remembered for a few seconds: a revocation reaches every process
//! within [`KEY_MEMORY`].

pub mod permission;
pub mod store;

use std::time::Duration;

use moka::future::Cache;
use sha2::{Digest, Sha256};

use crate::clock::{Clock, Timestamp};
use crate::db::{OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{ApiKeyId, Ids, OrganizationId};
use crate::secret::{ExposeSecret, Secret};

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

/// An API key's record.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// The organization whose data it opens.
    pub organization_id: OrganizationId,
    /// Its name, for people.
    pub name: String,
    /// The first characters of the key, to tell keys apart.
    pub prefix: String,
    /// What it may do.
    pub permissions: Permissions,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
}

impl ApiKey {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// The SHA-256 of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

/// Makes a fresh key: the secret, its hash and the part that may be shown.
#[must_use]
pub fn generate_key(ids: &Ids) -> (Secret, KeyHash, String) {
    let key = format!("{KEY_PREFIX}{}", ids.alphanumeric(KEY_RANDOM_CHARS));
    let shown = key[..SHOWN_CHARS].to_owned();
    let hash = hash_key(&key);
    (Secret::from(key), hash, shown)
}

fn hash_key(key: &str) -> KeyHash {
    KeyHash(Sha256::digest(key.as_bytes()).into())
}

/// Tells whose key a request carries.
#[derive(Clone)]
pub struct Authenticator {
    pool: PgPool,
    clock: Clock,
    remembered: Cache<KeyHash, Option<ApiKey>>,
}

impl Authenticator {
    /// Looks keys up in `pool`.
    #[must_use]
    pub fn new(pool: PgPool, clock: Clock) -> Self {
        let remembered = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(KEY_MEMORY)
            .build();
        Self {
            pool,
            clock,
            remembered,
        }
    }

    /// The record behind a key; nothing where it is unknown, expired or revoked.
    ///
    /// # Errors
    /// A fault when Postgres is away and the key is not remembered.
    pub async fn find(&self, key: &Secret) -> Result<Option<ApiKey>, Fault> {
        let key = key.expose_secret();
        if !key.starts_with(KEY_PREFIX) {
            return Ok(None);
        }
        let hash = hash_key(key);
        let found = self
            .remembered
            .try_get_with(hash, self.look_up(hash))
            .await
            .map_err(|fault| (*fault).clone())?;
        Ok(found.filter(|key| key.is_valid(self.clock.now())))
    }

    async fn look_up(&self, hash: KeyHash) -> Result<Option<ApiKey>, Fault> {
        let mut connection = self.pool.acquire().await.or_fault("look up an API key")?;
        store::find_by_hash(&mut connection, hash).await
    }
}
