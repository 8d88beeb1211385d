//! Sessions: what a browser holds after a sign-in. A session stands for the role of one
//! membership of its user: it has the role's permissions in that organization.
//!
//! Its token is random and stands in a cookie; Postgres stores its SHA-256. Every sign-in and
//! every change of the organization makes a new session with a new token, so a token that
//! somebody planted is never adopted, and no process serves a session in an organization that
//! its user has left. A session ends after [`IDLE_MAX`] without a request, after
//! [`LIFETIME_MAX`], by signing out, with its membership, and with a new password.
//!
//! Each process caches sessions as it caches API keys. A session that was ended by this process
//! is refused at once, whatever the cache says; in the others it ends within [`CACHE_TTL`].

pub mod oidc;
pub mod store;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta};
use moka::future::Cache;
use sha2::{Digest, Sha256};
use tracing::debug;

use crate::audit::{self, Actor, AuditChange, Origin};
use crate::auth::{CACHE_TTL, Permission, Permissions, Role};
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::cache::{self, RefreshAhead};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgPool, PgTransaction};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId, SessionId, UserId};
use crate::limit::OwnRates;
use crate::secret::{ExposeSecret, Secret};
use crate::user::{AccountEmail, User, UserRefusal, Users};

/// How long a session lasts without a request.
pub const IDLE_MAX: TimeDelta = TimeDelta::hours(12);
/// How long a session lasts at the most.
pub const LIFETIME_MAX: TimeDelta = TimeDelta::days(30);

const TOKEN_BYTES: usize = 32;
/// The least time between two recorded uses of a session.
const USE_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// Cached sessions, including tokens that are of none.
const CACHE_MAX: u64 = 100_000;
/// Ended sessions that are remembered. Each is remembered for much longer than sessions are
/// cached.
const ENDED_MAX: u64 = 100_000;
/// See the same of API keys.
const LOOKUPS: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 500,
    batch_min: 1,
    queue_max: 10_000,
    cooldown: Cooldown::NONE,
};

/// The SHA-256 of a session's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);

/// A session as a request uses it.
pub struct OpenedSession {
    pub id: SessionId,
    pub user_id: UserId,
    /// The name of the user, for the audit log.
    pub user_name: String,
    pub organization_id: OrganizationId,
    pub role: Role,
    /// Those of the role, and `OPERATOR` if the user is an operator.
    pub permissions: Permissions,
    pub expires_at: Timestamp,
    /// The rate limits that the organization set for itself.
    pub rates: OwnRates,
    /// In microseconds since 1970.
    last_used: AtomicI64,
}

impl fmt::Debug for OpenedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedSession({})", self.id)
    }
}

impl OpenedSession {
    fn is_valid(&self, now: Timestamp) -> bool {
        let last_used = DateTime::from_timestamp_micros(self.last_used.load(Ordering::Relaxed));
        now < self.expires_at && last_used.is_some_and(|last| now < last + IDLE_MAX)
    }

    /// Notes a use of the session. True if it must be recorded.
    fn note_use(&self, now: Timestamp) -> bool {
        let due = (now - USE_INTERVAL).timestamp_micros();
        let now = now.timestamp_micros();
        let noted = |last: i64| (last <= due).then_some(now);
        let ordering = Ordering::Relaxed;
        self.last_used
            .fetch_update(ordering, ordering, noted)
            .is_ok()
    }
}

/// A new session, whose token goes into a cookie.
#[derive(Debug)]
pub struct StartedSession {
    pub id: SessionId,
    pub user_id: UserId,
    pub token: Secret,
    pub expires_at: Timestamp,
}

/// A session as its user sees it.
#[derive(Debug)]
pub struct SessionDetail {
    pub user: User,
    pub organization: (OrganizationId, String),
    pub role: Role,
    pub permissions: Permissions,
    /// The organizations that the user may switch to, with the present one.
    pub organizations: Vec<OrganizationRole>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The role of a user in an organization.
#[derive(Debug)]
pub struct OrganizationRole {
    pub id: OrganizationId,
    pub name: String,
    pub role: Role,
}

/// Why no session was begun or changed.
#[derive(Debug)]
pub enum SessionRefusal {
    User(UserRefusal),
    /// The user belongs to no organization, or not to the wanted one.
    NotAMember,
    /// The session has ended meanwhile.
    Ended,
    Fault(Fault),
}

impl From<Fault> for SessionRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<UserRefusal> for SessionRefusal {
    fn from(refusal: UserRefusal) -> Self {
        Self::User(refusal)
    }
}

/// Who gets a new session.
struct Entry {
    user_id: UserId,
    /// The organization; `None`: the one that the user was last in.
    organization_id: Option<OrganizationId>,
    expires_at: Timestamp,
}

/// Begins, finds and ends sessions. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct Sessions {
    pool: PgPool,
    users: Users,
    lookups: Batcher<TokenHash, Option<Arc<OpenedSession>>>,
    cache: Cache<TokenHash, RefreshAhead<Option<Arc<OpenedSession>>>>,
    ended: Cache<SessionId, ()>,
    clock: Clock,
    ids: Ids,
}

impl Sessions {
    /// Starts the task that looks up sessions over `lookups`.
    #[must_use]
    pub fn start(users: Users, lookups: PgPool) -> Self {
        let cache = Cache::builder().max_capacity(CACHE_MAX);
        let ended = Cache::builder().max_capacity(ENDED_MAX);
        Self {
            pool: users.pool.clone(),
            clock: users.clock.clone(),
            ids: users.ids.clone(),
            users,
            lookups: Batcher::start("sessions", LOOKUPS, move |hashes| {
                find_all(lookups.clone(), hashes)
            }),
            cache: cache.time_to_live(CACHE_TTL).build(),
            ended: ended.time_to_live(CACHE_TTL * 15).build(),
        }
    }

    /// The session with this token, if it has not ended.
    ///
    /// # Errors
    /// A fault if Postgres is away and the session is not cached.
    pub async fn find(&self, token: &str) -> Result<Option<Arc<OpenedSession>>, Fault> {
        let Some(hash) = hash_token(token) else {
            return Ok(None);
        };
        let find = || cache::find_in_batch(self.lookups.clone(), hash, CACHE_TTL);
        let found = cache::get_or_refresh(&self.cache, hash, find, find).await?;
        let now = self.clock.now();
        let Some(session) = found.filter(|session| session.is_valid(now)) else {
            return Ok(None);
        };
        if self.ended.contains_key(&session.id) {
            return Ok(None);
        }
        if session.note_use(now) {
            tokio::spawn(record_use(self.pool.clone(), session.id, now));
        }
        Ok(Some(session))
    }

    /// Signs a user in by password, and by a code if there is a second factor.
    ///
    /// # Errors
    /// The refusal.
    pub async fn sign_in(
        &self,
        email: &AccountEmail,
        password: Secret,
        code: Option<&str>,
        origin: &Origin,
    ) -> Result<StartedSession, SessionRefusal> {
        let user = self.users.verify(email, password, code).await?;
        let doing = "begin a session";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let started = self.begin(&mut transaction, &user, None, origin).await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(started)
    }

    /// Begins a session in the transaction: in the given organization, or in the one that the
    /// user was last in.
    pub(crate) async fn begin(
        &self,
        transaction: &mut PgTransaction<'_>,
        user: &User,
        organization_id: Option<OrganizationId>,
        origin: &Origin,
    ) -> Result<StartedSession, SessionRefusal> {
        let entry = Entry {
            user_id: user.id,
            organization_id,
            expires_at: self.clock.now() + LIFETIME_MAX,
        };
        let origin = by(origin, user.id, &user.name);
        self.enter(transaction, entry, &origin).await
    }

    async fn enter(
        &self,
        transaction: &mut PgTransaction<'_>,
        entry: Entry,
        origin: &Origin,
    ) -> Result<StartedSession, SessionRefusal> {
        let now = self.clock.now();
        let found = store::enter(transaction, entry.user_id, entry.organization_id, now).await?;
        let of = found.ok_or(SessionRefusal::NotAMember)?;
        let started = StartedSession {
            id: self.ids.next_at(now),
            user_id: entry.user_id,
            token: self.generate_token(),
            expires_at: entry.expires_at,
        };
        store::insert(transaction, &started, of, now).await?;
        let change = AuditChange::new("session.created", started.id);
        audit::store::insert(transaction, of, origin, &change, &self.ids, now).await?;
        Ok(started)
    }

    /// A session as its user sees it; `None` if it has ended.
    ///
    /// # Errors
    /// A fault if Postgres is away.
    pub async fn detail(&self, id: SessionId) -> Result<Option<SessionDetail>, Fault> {
        let mut connection = self.pool.acquire().await.or_fault("show a session")?;
        store::find_detail(&mut connection, id).await
    }

    /// Moves a session to another organization of its user: it gets a new token there, and the
    /// old one ends. Its end stays the same.
    ///
    /// # Errors
    /// The refusal.
    pub async fn switch(
        &self,
        session: &OpenedSession,
        organization_id: OrganizationId,
        origin: &Origin,
    ) -> Result<StartedSession, SessionRefusal> {
        let doing = "switch the organization";
        let mut transaction = db::begin(&self.pool, doing).await?;
        if !store::delete(&mut transaction, session.id).await? {
            return Err(SessionRefusal::Ended);
        }
        let entry = Entry {
            user_id: session.user_id,
            organization_id: Some(organization_id),
            expires_at: session.expires_at,
        };
        let started = self.enter(&mut transaction, entry, origin).await?;
        transaction.commit().await.or_fault(doing)?;
        self.forget(&[session.id]).await;
        Ok(started)
    }

    /// Ends a session, or all sessions of its user.
    ///
    /// # Errors
    /// A fault if Postgres is away.
    pub async fn end(
        &self,
        session: &OpenedSession,
        everywhere: bool,
        origin: &Origin,
    ) -> Result<(), Fault> {
        let doing = "end a session";
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, doing).await?;
        let mut ended = vec![session.id];
        if everywhere {
            ended
                .extend(crate::user::store::end_sessions(&mut transaction, session.user_id).await?);
        } else {
            store::delete(&mut transaction, session.id).await?;
        }
        let change = AuditChange::new("session.deleted", session.id)
            .with(serde_json::json!({ "everywhere": everywhere }));
        let of = session.organization_id;
        audit::store::insert(&mut transaction, of, origin, &change, &self.ids, now).await?;
        transaction.commit().await.or_fault(doing)?;
        self.forget(&ended).await;
        Ok(())
    }

    /// Refuses sessions from now on, which were ended in Postgres.
    pub async fn forget(&self, ended: &[SessionId]) {
        for id in ended {
            self.ended.insert(*id, ()).await;
        }
    }

    /// Looks all sessions up again at their next use, since a role has changed.
    pub fn refresh(&self) {
        self.cache.invalidate_all();
    }

    fn generate_token(&self) -> Secret {
        let bytes: [u8; TOKEN_BYTES] = self.ids.random_bytes();
        Secret::from(URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// The origin of a change that its user makes while being signed in.
fn by(origin: &Origin, id: UserId, name: &str) -> Origin {
    Origin {
        actor: Actor::User {
            id,
            name: name.to_owned(),
        },
        ..origin.clone()
    }
}

/// The permissions of a role, and of an operator.
fn permissions_of(role: Role, is_operator: bool) -> Permissions {
    let permissions = role.permissions();
    if is_operator {
        permissions.with(Permission::Operator)
    } else {
        permissions
    }
}

/// The hash of a token; `None` if the text has not the form of one.
fn hash_token(token: &str) -> Option<TokenHash> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    (bytes.len() == TOKEN_BYTES).then(|| TokenHash(Sha256::digest(token.as_bytes()).into()))
}

/// The hash to store for a token that was just made.
fn hash_of(token: &Secret) -> TokenHash {
    TokenHash(Sha256::digest(token.expose_secret().as_bytes()).into())
}

/// Looks up sessions; one result for each, in their order.
async fn find_all(
    pool: PgPool,
    hashes: Vec<TokenHash>,
) -> Vec<Result<Option<Arc<OpenedSession>>, Fault>> {
    let found = db::bounded("look up sessions", async {
        let mut connection = pool.acquire().await.or_fault("look up sessions")?;
        store::list_by_hash(&mut connection, &hashes).await
    });
    match found.await {
        Ok(found) => hashes
            .iter()
            .map(|hash| Ok(found.get(hash).cloned()))
            .collect(),
        Err(fault) => hashes.iter().map(|_| Err(fault.clone())).collect(),
    }
}

/// Records a use. If that fails, a use in the next minute is recorded.
async fn record_use(pool: PgPool, id: SessionId, now: Timestamp) {
    let doing = "record the use of a session";
    let recorded = db::bounded(doing, async {
        let mut connection = pool.acquire().await.or_fault(doing)?;
        store::record_use(&mut connection, id, now).await
    });
    if let Err(fault) = recorded.await {
        debug!(
            cause = fault.chain(),
            "Could not record the use of a session"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(used: Timestamp) -> OpenedSession {
        OpenedSession {
            id: SessionId(uuid::Uuid::nil()),
            user_id: UserId(uuid::Uuid::nil()),
            user_name: "Ada".to_owned(),
            organization_id: OrganizationId(uuid::Uuid::nil()),
            role: Role::Viewer,
            permissions: Role::Viewer.permissions(),
            expires_at: used + LIFETIME_MAX,
            rates: OwnRates::default(),
            last_used: AtomicI64::new(used.timestamp_micros()),
        }
    }

    #[test]
    fn a_session_ends_when_it_is_idle_or_old() {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let session = session(start);
        assert!(session.is_valid(start + IDLE_MAX - TimeDelta::seconds(1)));
        assert!(!session.is_valid(start + IDLE_MAX));
        for hours in 1..=30 * 24 {
            let now = start + TimeDelta::hours(hours);
            assert_eq!(session.is_valid(now), hours < 30 * 24, "{hours}");
            session.note_use(now);
        }
    }

    #[test]
    fn a_use_is_recorded_once_a_minute() {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let session = session(start);
        assert!(!session.note_use(start + TimeDelta::seconds(59)));
        assert!(session.note_use(start + TimeDelta::seconds(60)));
        assert!(!session.note_use(start + TimeDelta::seconds(61)));
    }

    #[test]
    fn only_texts_of_the_form_of_a_token_are_looked_up() {
        assert!(hash_token(&URL_SAFE_NO_PAD.encode([7; TOKEN_BYTES])).is_some());
        for text in ["", "nonsense", "wp_live_x", &"A".repeat(5_000)] {
            assert!(hash_token(text).is_none(), "{text}");
        }
    }
}
