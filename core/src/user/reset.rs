//! Links by which the operator lets a user set a new password. A link works once, for a day. A
//! new password ends all sessions of the user. The second factor stays.

use chrono::TimeDelta;
use sha2::{Digest, Sha256};

use super::password::{NewPassword, Passwords};
use super::{AccountEmail, store};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, SessionId, UserId};
use crate::secret::{ExposeSecret, Secret};

/// How long a link works.
const LIFETIME: TimeDelta = TimeDelta::days(1);

/// Characters of the token of a link: 43 of 62 kinds are 256 bits.
pub(crate) const TOKEN_CHARS: usize = 43;

/// The token of a link and the hash that is stored.
#[must_use]
pub fn generate_token(ids: &Ids) -> (Secret, [u8; 32]) {
    let token = Secret::from(ids.alphanumeric(TOKEN_CHARS));
    let hash = hash_token(&token);
    (token, hash)
}

/// The stored hash of a token.
#[must_use]
pub fn hash_token(token: &Secret) -> [u8; 32] {
    Sha256::digest(token.expose_secret().as_bytes()).into()
}

/// Makes a link for a user and returns its token.
///
/// # Errors
/// A fault if Postgres is away.
pub async fn create(
    connection: &mut PgConnection,
    user_id: UserId,
    clock: &Clock,
    ids: &Ids,
) -> Result<Secret, Fault> {
    let (token, hash) = generate_token(ids);
    let now = clock.now();
    store::insert_reset(connection, hash, user_id, now, now + LIFETIME).await?;
    Ok(token)
}

/// Sets passwords by links. Cheap to clone.
#[derive(Clone)]
pub struct PasswordResets {
    pub pool: PgPool,
    pub passwords: Passwords,
    pub clock: Clock,
}

impl PasswordResets {
    /// The address of the user of a link; `None` if the link is unknown, used or expired.
    ///
    /// # Errors
    /// A fault if Postgres is away.
    pub async fn find(&self, token: &Secret) -> Result<Option<AccountEmail>, Fault> {
        let doing = "find a link to set a password";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        store::find_reset(&mut connection, hash_token(token), self.clock.now()).await
    }

    /// Sets the password and returns the sessions that it ended; `None` if the link is unknown,
    /// used or expired.
    ///
    /// # Errors
    /// A fault if Postgres is away or too many passwords are being hashed.
    pub async fn accept(
        &self,
        token: &Secret,
        password: NewPassword,
    ) -> Result<Option<Vec<SessionId>>, Fault> {
        // First, so that a made-up token costs no hash.
        if self.find(token).await?.is_none() {
            return Ok(None);
        }
        let hash = self.passwords.hash(password).await?;
        let doing = "set a password";
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, doing).await?;
        let used = store::use_reset(&mut transaction, hash_token(token), now).await?;
        let Some(user_id) = used else {
            return Ok(None);
        };
        store::set_password(&mut transaction, user_id, &hash).await?;
        let ended = store::end_sessions(&mut transaction, user_id).await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(Some(ended))
    }
}
