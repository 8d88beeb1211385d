//! Passwords: their rule, their hash and their check.
//!
//! The hash is Argon2id with the parameters that the OWASP Password Storage Cheat Sheet
//! recommends (19 MiB, two iterations, one lane). It takes tens of milliseconds of CPU, so it
//! runs on a thread for blocking work and few run at once: a flood of sign-ins waits for its
//! turn and does not take the CPU from sends.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::fault::Fault;
use crate::ids::Ids;
use crate::secret::{ExposeSecret, Secret};

/// Memory of one hash, in KiB: 19 MiB, as the OWASP Password Storage Cheat Sheet recommends with
/// two iterations and one lane
/// (<https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id>).
const MEMORY_KIB: u32 = 19 * 1_024;
const ITERATIONS: u32 = 2;
const PARALLELISM: u32 = 1;
/// Hashes that one process computes at once.
const HASHES_MAX: usize = 2;
/// How long a sign-in waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);
const SALT_BYTES: usize = 16;

/// A password that satisfies the rule. Its length is all that counts: NIST SP 800-63B advises
/// against rules about kinds of characters.
#[derive(Debug)]
pub struct NewPassword(Secret);

/// Why a text cannot be a password. `Display` completes "the value …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error("must have at least {min} characters", min = NewPassword::CHARS_MIN)]
    TooShort,
    #[error("must not be longer than {max} characters", max = NewPassword::CHARS_MAX)]
    TooLong,
}

impl NewPassword {
    /// The shortest password, in characters.
    pub const CHARS_MIN: usize = 12;
    /// The longest password, in characters.
    pub const CHARS_MAX: usize = 128;

    /// Checks the length of a password.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(text: String) -> Result<Self, PasswordError> {
        let secret = Secret::from(text);
        match secret.expose_secret().chars().count() {
            ..Self::CHARS_MIN => Err(PasswordError::TooShort),
            Self::CHARS_MIN..=Self::CHARS_MAX => Ok(Self(secret)),
            _ => Err(PasswordError::TooLong),
        }
    }

    /// The password, to check it against a stored one.
    #[must_use]
    pub fn into_secret(self) -> Secret {
        self.0
    }
}

/// Hashes and checks passwords. Cheap to clone; clones share the limit.
#[derive(Clone)]
pub struct Passwords {
    turns: Arc<Semaphore>,
    ids: Ids,
}

impl Passwords {
    /// With a limit on hashes at once.
    #[must_use]
    pub fn new(ids: Ids) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(HASHES_MAX)),
            ids,
        }
    }

    /// The hash of a password, in the PHC form.
    ///
    /// # Errors
    /// A fault if too many hashes are being computed.
    pub async fn hash(&self, password: NewPassword) -> Result<Secret, Fault> {
        let salt: [u8; SALT_BYTES] = self.ids.random_bytes();
        self.compute("hash a password", move || {
            hash(&password.0, &salt).map(Secret::from)
        })
        .await?
        .map_err(|error| Fault::internal("hash a password", error.to_string()))
    }

    /// Whether the password is the one with this hash. Without a hash the same work is done,
    /// and it is not.
    ///
    /// # Errors
    /// A fault if too many hashes are being computed.
    pub async fn verify(&self, password: Secret, hash_of: Option<Secret>) -> Result<bool, Fault> {
        let salt: [u8; SALT_BYTES] = self.ids.random_bytes();
        self.compute("check a password", move || match hash_of {
            Some(stored) => verify(&password, &stored),
            None => {
                // The result is not needed; the time that it takes is.
                let _same_time = std::hint::black_box(hash(&password, &salt));
                false
            }
        })
        .await
    }

    async fn compute<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let turn = timeout(TURN_TIMEOUT, Arc::clone(&self.turns).acquire_owned());
        let turn = turn
            .await
            .map_err(|_| Fault::unavailable(doing, "too many passwords are being checked"))?
            .map_err(|closed| Fault::internal(doing, closed))?;
        let done = tokio::task::spawn_blocking(move || {
            // Held by the work and not by the request, which may be dropped meanwhile.
            let _turn = turn;
            work()
        });
        done.await.map_err(|error| Fault::internal(doing, error))
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, ITERATIONS, PARALLELISM, None);
    let params = params.expect("the parameters are within the limits of Argon2");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash(password: &Secret, salt: &[u8]) -> argon2::password_hash::Result<String> {
    let password = password.expose_secret().as_bytes();
    let hash: PasswordHash = argon2().hash_password_with_salt(password, salt)?;
    Ok(hash.to_string())
}

fn verify(password: &Secret, stored: &Secret) -> bool {
    let Ok(stored) = PasswordHash::new(stored.expose_secret()) else {
        return false;
    };
    let password = password.expose_secret().as_bytes();
    argon2().verify_password(password, &stored).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn a_password_is_checked_against_its_hash() {
        let passwords = Passwords::new(Ids::new(Clock::system()));
        let text = "correct horse battery staple";
        let new = NewPassword::parse(text.to_owned()).unwrap();
        let hash = passwords.hash(new).await.unwrap();
        let begin = "$argon2id$v=19$m=19456,t=2,p=1$";
        assert!(hash.expose_secret().starts_with(begin));
        for (given, stored, is_right) in [
            (text, Some(hash.clone()), true),
            ("correct horse battery stable", Some(hash.clone()), false),
            (text, None, false),
            (text, Some(Secret::from("nonsense")), false),
        ] {
            let found = passwords.verify(Secret::from(given), stored).await;
            assert_eq!(found.unwrap(), is_right, "{given}");
        }
    }

    #[test]
    fn only_the_length_of_a_password_counts() {
        let parse = |text: &str| NewPassword::parse(text.to_owned()).err();
        assert_eq!(parse("elevenchars"), Some(PasswordError::TooShort));
        assert_eq!(parse("twelve chars"), None);
        assert_eq!(parse(&"ä".repeat(128)), None);
        assert_eq!(parse(&"a".repeat(129)), Some(PasswordError::TooLong));
    }
}
