//! Logins (RFC 4954): AUTH PLAIN and AUTH LOGIN. The password is the API key; the user name may
//! be anything.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use waypost_core::auth::{OpenedKey, Permission};
use waypost_core::fault::Fault;
use waypost_core::secret::Secret;
use waypost_core::telemetry::instruments;

use super::Submission;
use super::reply::SubmissionReply;
use crate::error::Failure;

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a client logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthMechanism {
    Plain,
    Login,
}

impl AuthMechanism {
    /// The names in the reply to EHLO.
    pub(super) const OFFERED: &str = "AUTH PLAIN LOGIN";

    pub(super) fn parse(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("PLAIN") {
            Some(Self::Plain)
        } else if name.eq_ignore_ascii_case("LOGIN") {
            Some(Self::Login)
        } else {
            None
        }
    }
}

/// The password in the one response of PLAIN: authorization id, user name, password.
pub(super) fn plain_password(response: &str) -> Option<Secret> {
    let text = decoded(response)?;
    let mut parts = text.split('\0');
    let (_authorization, _user) = (parts.next()?, parts.next()?);
    let password = parts.next()?;
    parts.next().is_none().then(|| Secret::from(password))
}

/// The password in the second response of LOGIN.
pub(super) fn login_password(response: &str) -> Option<Secret> {
    decoded(response).map(Secret::from)
}

fn decoded(response: &str) -> Option<String> {
    String::from_utf8(BASE64.decode(response).ok()?).ok()
}

/// The result of a login.
pub(super) enum LoggedIn {
    Done,
    Refused(SubmissionReply),
    /// Too many logins from the address have failed: the session ends.
    TooMany(SubmissionReply),
}

impl Submission {
    /// Finds the key of a login. One that fails counts against the anonymous limit of the
    /// address.
    pub(super) async fn log_in(&self, password: &Secret, address: IpAddr) -> LoggedIn {
        let failure = match self.find_key(password, address).await {
            Ok(Some(key)) if key.record.permissions.contains(Permission::Send) => {
                return LoggedIn::Done;
            }
            Ok(Some(_)) => Failure::Forbidden(Permission::Send),
            Ok(None) => {
                let decision = self.accept.limiter.anonymous(address).await;
                if let Some(wait) = decision.retry_after {
                    instruments::submission_refused("logins");
                    let text = Failure::RateLimited(wait).message();
                    return LoggedIn::TooMany(SubmissionReply::new(421, "4.7.0", &text));
                }
                instruments::submission_refused("login");
                let text = "The password is not a valid API key";
                return LoggedIn::Refused(SubmissionReply::new(535, "5.7.8", text));
            }
            Err(fault) => {
                let failure = Failure::from(fault);
                failure.log();
                instruments::submission_refused("unavailable");
                let reply = SubmissionReply::new(454, "4.7.0", &failure.message());
                return LoggedIn::Refused(reply);
            }
        };
        instruments::submission_refused("login");
        LoggedIn::Refused(SubmissionReply::new(535, "5.7.8", &failure.message()))
    }

    /// The key, if it is valid. While Postgres is away, only cached keys are found.
    pub(super) async fn find_key(
        &self,
        password: &Secret,
        address: IpAddr,
    ) -> Result<Option<Arc<OpenedKey>>, Fault> {
        tokio::select! {
            biased;
            found = self.accept.authenticator.find(password, Some(address)) => found,
            () = self.accept.liveness.gone() => {
                Err(Fault::unavailable("reach Postgres", "it does not answer"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use waypost_core::secret::ExposeSecret as _;

    use super::*;

    fn plain(text: &str) -> Option<String> {
        let password = plain_password(&BASE64.encode(text))?;
        Some(password.expose_secret().to_owned())
    }

    #[test]
    fn the_password_is_read_whatever_the_user_name() {
        assert_eq!(plain("\0user\0key").as_deref(), Some("key"));
        assert_eq!(plain("who\0\0key").as_deref(), Some("key"));
        assert_eq!(plain("\0user"), None);
        assert_eq!(plain("\0user\0key\0more"), None);
        assert!(plain_password("not base64!").is_none());
        let unpadded = login_password("a2V5MQ").unwrap();
        assert_eq!(unpadded.expose_secret(), "key1");
    }
}
