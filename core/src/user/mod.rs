//! Users: the people who sign in. A user has an address, a name, a password or an identity at an
//! OpenID Connect provider, and perhaps a second factor. What a user may do is the role of the
//! membership (`member`) that a session (`session`) stands for.
//!
//! The address of a user is stored as it is, in lower case. Logs and the audit log contain
//! neither addresses nor passwords. Whoever guesses is slowed down by [`attempts`], which counts
//! wrong passwords and codes for each account, also for accounts that do not exist.

pub mod attempts;
pub mod password;
pub mod reset;
pub mod second_factor;
pub mod store;

use std::fmt;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::address::{AddressError, EmailAddress};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgPool, PgTransaction};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId, SessionId, UserId};
use crate::secret::Secret;
use crate::text::Name;

use attempts::Attempts;
use password::{NewPassword, Passwords};
use second_factor::{Enrolment, RecoveryCodes, SecondFactor};

/// The address by which a user is known, in lower case.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountEmail(String);

impl AccountEmail {
    /// Parses an address. Two addresses that differ in case only are the same.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let address = EmailAddress::parse(text)?;
        Ok(Self(address.as_str().to_ascii_lowercase()))
    }

    /// An address as it is stored.
    pub(crate) fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`, the name of a user who has no other.
    #[must_use]
    pub fn local_part(&self) -> &str {
        self.0.rsplit_once('@').map_or(&self.0, |(local, _)| local)
    }

    /// The key of the account in the count of wrong passwords.
    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

/// Logs must not contain addresses.
impl fmt::Debug for AccountEmail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountEmail({})", hex::encode(&self.hash()[..4]))
    }
}

/// A person who signs in.
#[derive(Debug, Clone)]
pub struct User {
    pub id: UserId,
    pub email: AccountEmail,
    pub name: String,
    pub has_second_factor: bool,
    pub has_password: bool,
    /// Whether the user may see and change what belongs to the installation.
    pub is_operator: bool,
    pub created_at: Timestamp,
}

/// A user with the hash of the password.
#[derive(Debug)]
pub struct UserWithPassword {
    pub user: User,
    /// `None`: the user signs in at the OpenID Connect provider only.
    pub password_hash: Option<Secret>,
}

/// Why a user was not signed in or changed.
#[derive(Debug)]
pub enum UserRefusal {
    /// The user was removed meanwhile.
    NotFound,
    /// The address or the password is wrong.
    WrongPassword,
    /// The user has a second factor, and no code was given.
    CodeRequired,
    /// The code is wrong, or was used before.
    CodeWrong,
    /// Too many wrong passwords and codes; the next is looked at after this time.
    TooManyAttempts(Duration),
    /// The user has no password: the OpenID Connect provider signs the user in.
    WithoutPassword,
    /// There is a second factor already.
    SecondFactorEnabled,
    /// There is no second factor, or none whose confirmation is awaited.
    NoSecondFactor,
    Fault(Fault),
}

impl From<Fault> for UserRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Who changes a user, and where the change is recorded.
#[derive(Debug, Clone, Copy)]
pub struct UserAct<'a> {
    pub user_id: UserId,
    /// The organization of the session, in whose audit log the change is recorded.
    pub organization_id: OrganizationId,
    /// The session by which the user makes the change.
    pub session_id: SessionId,
    pub origin: &'a Origin,
}

/// A change of a user by the user. `None` leaves a field as it is.
#[derive(Debug, Default)]
pub struct UserChange {
    pub name: Option<Name>,
    /// The new password, and the present one.
    pub password: Option<(NewPassword, Secret)>,
}

/// Changes users. Cheap to clone.
#[derive(Clone)]
pub struct Users {
    pub pool: PgPool,
    pub passwords: Passwords,
    pub sealer: Sealer,
    pub clock: Clock,
    pub ids: Ids,
}

impl Users {
    /// Changes a user. A new password ends the other sessions of the user, which are returned.
    ///
    /// # Errors
    /// The refusal.
    pub async fn change(
        &self,
        act: UserAct<'_>,
        wanted: UserChange,
    ) -> Result<(User, Vec<SessionId>), UserRefusal> {
        let doing = "change a user";
        let fields = [
            wanted.name.is_some().then_some("name"),
            wanted.password.is_some().then_some("password"),
        ];
        let fields: Vec<&str> = fields.into_iter().flatten().collect();
        let mut hash = None;
        if let Some((new, present)) = wanted.password {
            self.require_password(act.user_id, present).await?;
            hash = Some(self.passwords.hash(new).await?);
        }
        let mut transaction = db::begin(&self.pool, doing).await?;
        let mut ended = Vec::new();
        if let Some(hash) = &hash {
            store::set_password(&mut transaction, act.user_id, hash).await?;
            ended =
                store::end_other_sessions(&mut transaction, act.user_id, act.session_id).await?;
        }
        if let Some(name) = &wanted.name {
            store::set_name(&mut transaction, act.user_id, name).await?;
        }
        let user = store::find(&mut transaction, act.user_id).await?;
        let user = user.ok_or(UserRefusal::NotFound)?;
        let change = AuditChange::new("user.updated", act.user_id);
        self.record(
            &mut transaction,
            act,
            change.with(json!({ "fields": fields })),
        )
        .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok((user, ended))
    }

    /// Makes the secret of a second factor, which has no effect until it is confirmed.
    ///
    /// # Errors
    /// The refusal.
    pub async fn start_second_factor(
        &self,
        user_id: UserId,
        password: Secret,
    ) -> Result<Enrolment, UserRefusal> {
        let user = self.require_password(user_id, password).await?;
        if user.has_second_factor {
            return Err(UserRefusal::SecondFactorEnabled);
        }
        let doing = "start a second factor";
        let factor = SecondFactor::generate(&self.ids);
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let sealed = factor.seal(&self.sealer, user_id);
        if !store::set_pending_factor(&mut connection, user_id, &sealed).await? {
            return Err(UserRefusal::SecondFactorEnabled);
        }
        factor.enrolment(&user.email)
    }

    /// Confirms the second factor with a code, and returns the recovery codes.
    ///
    /// # Errors
    /// The refusal.
    pub async fn confirm_second_factor(
        &self,
        act: UserAct<'_>,
        code: &str,
    ) -> Result<RecoveryCodes, UserRefusal> {
        let doing = "confirm a second factor";
        let attempts = self.attempts();
        let email = self.find(act.user_id).await?.email;
        attempts.take(&email).await?;
        let now = self.clock.now();
        let codes = RecoveryCodes::generate(&self.ids);
        let mut transaction = db::begin(&self.pool, doing).await?;
        let stored = store::lock_factor(&mut transaction, act.user_id).await?;
        let stored = stored.ok_or(UserRefusal::NoSecondFactor)?;
        if stored.is_enabled {
            return Err(UserRefusal::SecondFactorEnabled);
        }
        let factor = SecondFactor::open(&self.sealer, act.user_id, &stored.sealed)?;
        let step = factor.step_of(code, now, stored.last_step);
        let step = step.ok_or(UserRefusal::CodeWrong)?;
        store::enable_factor(&mut transaction, act.user_id, step, now).await?;
        store::replace_recovery_codes(&mut transaction, act.user_id, &codes.hashes()).await?;
        let change = AuditChange::new("user.totp_enabled", act.user_id);
        self.record(&mut transaction, act, change).await?;
        transaction.commit().await.or_fault(doing)?;
        attempts.clear(&email).await?;
        Ok(codes)
    }

    /// Removes the second factor.
    ///
    /// # Errors
    /// The refusal.
    pub async fn disable_second_factor(
        &self,
        act: UserAct<'_>,
        password: Secret,
        code: &str,
    ) -> Result<User, UserRefusal> {
        let doing = "disable a second factor";
        let user = self.require_password(act.user_id, password).await?;
        if !user.has_second_factor {
            return Err(UserRefusal::NoSecondFactor);
        }
        let attempts = self.attempts();
        attempts.take(&user.email).await?;
        let mut transaction = db::begin(&self.pool, doing).await?;
        if !self
            .accept_code(&mut transaction, act.user_id, code)
            .await?
        {
            return Err(UserRefusal::CodeWrong);
        }
        store::remove_factor(&mut transaction, act.user_id).await?;
        let user = store::find(&mut transaction, act.user_id).await?;
        let user = user.ok_or(UserRefusal::NotFound)?;
        let change = AuditChange::new("user.totp_disabled", act.user_id);
        self.record(&mut transaction, act, change).await?;
        transaction.commit().await.or_fault(doing)?;
        attempts.clear(&user.email).await?;
        Ok(user)
    }

    /// Checks a password, and a code if the user has a second factor. Each wrong one counts.
    ///
    /// # Errors
    /// The refusal. It takes as long, and is the same, for an account that does not exist.
    pub async fn verify(
        &self,
        email: &AccountEmail,
        password: Secret,
        code: Option<&str>,
    ) -> Result<User, UserRefusal> {
        let attempts = self.attempts();
        attempts.take(email).await?;
        let doing = "sign in";
        let found = {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::find_by_email(&mut connection, email).await?
        };
        let (user, hash) = found
            .map(|found| (Some(found.user), found.password_hash))
            .unwrap_or_default();
        let is_right = self.passwords.verify(password, hash).await?;
        let Some(user) = user.filter(|_| is_right) else {
            return Err(UserRefusal::WrongPassword);
        };
        if user.has_second_factor {
            let Some(code) = code else {
                // The password was right. The codes that were wrong still count.
                attempts.give_back(email).await?;
                return Err(UserRefusal::CodeRequired);
            };
            let mut transaction = db::begin(&self.pool, doing).await?;
            if !self.accept_code(&mut transaction, user.id, code).await? {
                return Err(UserRefusal::CodeWrong);
            }
            transaction.commit().await.or_fault(doing)?;
        }
        attempts.clear(email).await?;
        Ok(user)
    }

    /// Whether a code of the second factor or a recovery code is right. It is used up by the
    /// commit.
    async fn accept_code(
        &self,
        transaction: &mut PgTransaction<'_>,
        user_id: UserId,
        code: &str,
    ) -> Result<bool, Fault> {
        // Locks the user, so that two requests cannot use one code.
        let Some(stored) = store::lock_factor(transaction, user_id).await? else {
            return Ok(false);
        };
        let factor = SecondFactor::open(&self.sealer, user_id, &stored.sealed)?;
        if let Some(step) = factor.step_of(code, self.clock.now(), stored.last_step) {
            store::set_last_step(transaction, user_id, step).await?;
            return Ok(true);
        }
        let hash = RecoveryCodes::hash(code);
        store::delete_recovery_code(transaction, user_id, hash).await
    }

    /// The user, if the password is right.
    async fn require_password(
        &self,
        user_id: UserId,
        password: Secret,
    ) -> Result<User, UserRefusal> {
        let user = self.find(user_id).await?;
        if !user.has_password {
            return Err(UserRefusal::WithoutPassword);
        }
        let attempts = self.attempts();
        attempts.take(&user.email).await?;
        let found = {
            let mut connection = self.pool.acquire().await.or_fault("check a password")?;
            store::find_by_email(&mut connection, &user.email).await?
        };
        let hash = found.and_then(|found| found.password_hash);
        if !self.passwords.verify(password, hash).await? {
            return Err(UserRefusal::WrongPassword);
        }
        attempts.give_back(&user.email).await?;
        Ok(user)
    }

    async fn find(&self, user_id: UserId) -> Result<User, UserRefusal> {
        let mut connection = self.pool.acquire().await.or_fault("find a user")?;
        let user = store::find(&mut connection, user_id).await?;
        user.ok_or(UserRefusal::NotFound)
    }

    fn attempts(&self) -> Attempts<'_> {
        Attempts {
            pool: &self.pool,
            clock: &self.clock,
        }
    }

    async fn record(
        &self,
        transaction: &mut PgTransaction<'_>,
        act: UserAct<'_>,
        change: AuditChange,
    ) -> Result<(), Fault> {
        let (of, origin, now) = (act.organization_id, act.origin, self.clock.now());
        audit::store::insert(transaction, of, origin, &change, &self.ids, now).await
    }
}
