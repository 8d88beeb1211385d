//! Sign-in at an OpenID Connect provider, which the operator configures.
//!
//! The browser goes to the provider with a state, a nonce and a PKCE challenge; what it must come
//! back with stands in a short-lived sealed cookie, so that a sign-in that somebody else began is
//! refused. The ID token is verified by the module `provider`.
//!
//! A user is known by issuer and subject. At the first sign-in the provider must say that the
//! address is verified. Then:
//!
//! - A user with this address is taken over: the provider signs the user in from now on, and the
//!   password is removed with all sessions. Otherwise somebody who had set a password for a
//!   foreign address would share the user. A user with a second factor, or with an identity at a
//!   provider, is not taken over.
//! - Without such a user one is made, if an organization is configured, with the role that the
//!   groups give.
//!
//! If groups give roles, each sign-in sets the role in the configured organization, so that the
//! provider decides. The last owner stays one.

mod provider;
pub mod store;

use std::error::Error as StdError;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::warn;
use url::Url;
use uuid::Uuid;

use super::{SessionRefusal, Sessions, StartedSession, by};
use crate::audit::{self, AuditChange, Origin};
use crate::auth::Role;
use crate::clock::Timestamp;
use crate::config::OidcSettings;
use crate::crypto::seal::{NO_ORGANIZATION, Sealed, Sealer};
use crate::db::{self, OrFault, PgTransaction};
use crate::fault::{Fault, error_chain};
use crate::ids::SessionId;
use crate::organization;
use crate::secret::Secret;
use crate::text::Name;
use crate::user::{self, AccountEmail, User};

use provider::Provider;

/// How long a user may take at the provider.
pub const SIGN_IN_MAX: TimeDelta = TimeDelta::minutes(10);
/// Characters of the state, the nonce and the PKCE verifier: 43 of 62 kinds are 256 bits.
const RANDOM_CHARS: usize = 43;

/// What a sign-in must come back with.
#[derive(Debug, Serialize, Deserialize)]
struct SignInState {
    state: String,
    nonce: String,
    verifier: String,
    expires_at: Timestamp,
}

/// Who signed in, as the provider says.
#[derive(Debug)]
struct ProviderIdentity {
    issuer: String,
    subject: String,
    email: Option<String>,
    email_verified: bool,
    name: Option<String>,
    /// `None`: the provider says nothing of groups.
    groups: Option<Vec<String>>,
}

/// Why nobody was signed in.
#[derive(Debug)]
pub enum OidcRefusal {
    /// The provider gave no usable answer.
    Unreachable,
    /// The provider refused, or the user did.
    Denied,
    /// The request does not belong to a sign-in of this browser, or what the provider says does
    /// not verify.
    Invalid,
    /// The provider does not say that the address is verified.
    EmailNotVerified,
    /// The user with the address may not be taken over.
    AccountExists,
    /// Nothing gives the user a role.
    NoRole,
    Session(SessionRefusal),
}

impl OidcRefusal {
    /// The word that the page of the sign-in gets.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable => "OIDC_UNREACHABLE",
            Self::Denied => "OIDC_DENIED",
            Self::Invalid => "OIDC_INVALID",
            Self::EmailNotVerified => "OIDC_EMAIL_NOT_VERIFIED",
            Self::AccountExists => "OIDC_ACCOUNT_EXISTS",
            Self::NoRole => "OIDC_NO_ROLE",
            Self::Session(SessionRefusal::NotAMember) => "NOT_A_MEMBER",
            Self::Session(_) => "UNAVAILABLE",
        }
    }

    /// Logs why the provider could not be asked.
    fn unreachable(error: &(dyn StdError + 'static)) -> Self {
        warn!(
            cause = error_chain(error),
            "Could not ask the OpenID Connect provider"
        );
        Self::Unreachable
    }

    /// Logs why a sign-in is not valid. The causes name claims and no values of users.
    fn invalid(error: &(dyn StdError + 'static)) -> Self {
        warn!(
            cause = error_chain(error),
            "Refused a sign-in of the OpenID Connect provider"
        );
        Self::Invalid
    }
}

impl From<Fault> for OidcRefusal {
    fn from(fault: Fault) -> Self {
        Self::Session(fault.into())
    }
}

impl From<SessionRefusal> for OidcRefusal {
    fn from(refusal: SessionRefusal) -> Self {
        Self::Session(refusal)
    }
}

/// What the provider's redirect to the callback says.
#[derive(Debug)]
pub struct Callback {
    pub code: Option<String>,
    pub state: Option<String>,
    /// The cookie that the beginning of the sign-in set.
    pub cookie: Option<String>,
}

/// Signs users in at a provider.
pub struct Oidc {
    settings: OidcSettings,
    provider: Provider,
    sessions: Sessions,
    sealer: Sealer,
}

impl Oidc {
    /// `callback` is the URL that the provider sends users back to.
    ///
    /// # Errors
    /// A fault if it is no URL, or TLS cannot be set up.
    pub fn new(
        settings: OidcSettings,
        callback: String,
        sessions: Sessions,
        sealer: Sealer,
    ) -> Result<Self, Fault> {
        let clock = sessions.clock.clone();
        Ok(Self {
            provider: Provider::new(settings.clone(), callback, clock)?,
            settings,
            sessions,
            sealer,
        })
    }

    /// The name of the provider, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Begins a sign-in: the URL at the provider, and the cookie.
    ///
    /// # Errors
    /// The refusal.
    pub fn begin(&self) -> BoxFuture<'_, Result<(Url, Secret), OidcRefusal>> {
        Box::pin(self.redirect())
    }

    async fn redirect(&self) -> Result<(Url, Secret), OidcRefusal> {
        let random = || self.sessions.ids.alphanumeric(RANDOM_CHARS);
        let state = SignInState {
            state: random(),
            nonce: random(),
            verifier: random(),
            expires_at: self.sessions.clock.now() + SIGN_IN_MAX,
        };
        let url = self.provider.authorize_url(&state).await?;
        let plain = serde_json::to_vec(&state);
        let plain = plain.map_err(|error| Fault::internal("begin a sign-in", error))?;
        let (kind, row) = (Sealed::OidcState, Uuid::nil());
        let sealed = self.sealer.seal(NO_ORGANIZATION, kind, row, &plain);
        Ok((url, Secret::from(URL_SAFE_NO_PAD.encode(sealed))))
    }

    /// Ends a sign-in: verifies what the provider says and begins a session.
    ///
    /// # Errors
    /// The refusal.
    pub fn finish<'a>(
        &'a self,
        callback: Callback,
        origin: &'a Origin,
    ) -> BoxFuture<'a, Result<StartedSession, OidcRefusal>> {
        Box::pin(self.sign_in(callback, origin))
    }

    async fn sign_in(
        &self,
        callback: Callback,
        origin: &Origin,
    ) -> Result<StartedSession, OidcRefusal> {
        let state = self.open(callback.cookie.as_deref())?;
        let given = callback.state.ok_or(OidcRefusal::Invalid)?;
        verify_slices_are_equal(given.as_bytes(), state.state.as_bytes())
            .map_err(|_| OidcRefusal::Invalid)?;
        if state.expires_at <= self.sessions.clock.now() {
            return Err(OidcRefusal::Invalid);
        }
        let code = callback.code.ok_or(OidcRefusal::Denied)?;
        let identity = self.provider.identify(code, state).await?;
        let doing = "sign in";
        let mut transaction = db::begin(&self.sessions.pool, doing).await?;
        let role = self.role(&identity);
        let (user, ended) = self.user(&mut transaction, &identity, role).await?;
        self.admit(&mut transaction, &user, role, origin).await?;
        let sessions = &self.sessions;
        let started = sessions
            .begin(&mut transaction, &user, None, origin)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        sessions.forget(&ended).await;
        sessions.refresh();
        Ok(started)
    }

    fn open(&self, cookie: Option<&str>) -> Result<SignInState, OidcRefusal> {
        let cookie = cookie.ok_or(OidcRefusal::Invalid)?;
        let sealed = URL_SAFE_NO_PAD
            .decode(cookie)
            .map_err(|_| OidcRefusal::Invalid)?;
        let (kind, row) = (Sealed::OidcState, Uuid::nil());
        let plain = self.sealer.open(NO_ORGANIZATION, kind, row, &sealed);
        let plain = plain.map_err(|_| OidcRefusal::Invalid)?;
        serde_json::from_slice(&plain).map_err(|_| OidcRefusal::Invalid)
    }

    /// The role that the provider's groups, or the default, give.
    fn role(&self, identity: &ProviderIdentity) -> Option<Role> {
        let groups = identity.groups.as_deref().unwrap_or_default();
        let given = |role: &Role| {
            let mut roles = self.settings.roles.iter();
            roles.any(|(group, of)| of == role && groups.contains(group))
        };
        let mut roles = Role::ALL.into_iter();
        roles.find(given).or(self.settings.default_role)
    }

    /// The user of the identity: known, taken over, or new.
    async fn user(
        &self,
        transaction: &mut PgTransaction<'_>,
        identity: &ProviderIdentity,
        role: Option<Role>,
    ) -> Result<(User, Vec<SessionId>), OidcRefusal> {
        let (issuer, subject) = (identity.issuer.as_str(), identity.subject.as_str());
        if let Some(id) = store::find_user(transaction, issuer, subject).await? {
            let user = user::store::find(transaction, id).await?;
            let user = user.ok_or(SessionRefusal::Ended)?;
            return Ok((user, Vec::new()));
        }
        let email = identity
            .email
            .as_deref()
            .filter(|_| identity.email_verified);
        let email = email.and_then(|email| AccountEmail::parse(email).ok());
        let email = email.ok_or(OidcRefusal::EmailNotVerified)?;
        let now = self.sessions.clock.now();
        let found = user::store::find_by_email(transaction, &email).await?;
        let (user, ended) = match found {
            Some(found) => self.take_over(transaction, found.user).await?,
            None => {
                if self.settings.organization.is_none() || role.is_none() {
                    return Err(OidcRefusal::NoRole);
                }
                let user = self.new_user(email, identity, now);
                if !user::store::insert(transaction, &user, None).await? {
                    return Err(OidcRefusal::AccountExists);
                }
                (user, Vec::new())
            }
        };
        store::insert(transaction, issuer, subject, (user.id, now)).await?;
        Ok((user, ended))
    }

    /// Lets the provider sign in a user who had a password, or was only invited.
    async fn take_over(
        &self,
        transaction: &mut PgTransaction<'_>,
        user: User,
    ) -> Result<(User, Vec<SessionId>), OidcRefusal> {
        if user.has_second_factor || store::has_identity(transaction, user.id).await? {
            return Err(OidcRefusal::AccountExists);
        }
        store::remove_password(transaction, user.id).await?;
        let ended = user::store::end_sessions(transaction, user.id).await?;
        let user = User {
            has_password: false,
            ..user
        };
        Ok((user, ended))
    }

    fn new_user(&self, email: AccountEmail, identity: &ProviderIdentity, now: Timestamp) -> User {
        let name = identity.name.clone();
        let name = name.and_then(|name| Name::parse(name).ok());
        User {
            id: self.sessions.ids.next_at(now),
            name: name.map_or_else(|| email.local_part().to_owned(), Name::into_string),
            email,
            has_second_factor: false,
            has_password: false,
            is_operator: false,
            created_at: now,
        }
    }

    /// Gives the user the role in the configured organization.
    async fn admit(
        &self,
        transaction: &mut PgTransaction<'_>,
        user: &User,
        role: Option<Role>,
        origin: &Origin,
    ) -> Result<(), OidcRefusal> {
        let Some(organization_id) = self.settings.organization else {
            return Ok(());
        };
        // Two sign-ins at once must not remove the last owner.
        organization::store::lock(transaction, organization_id).await?;
        let present = store::find_role(transaction, organization_id, user.id).await?;
        let provider_decides = !self.settings.roles.is_empty();
        let (action, role) = match (present, role) {
            (None, Some(role)) => ("member.created", role),
            (Some(present), Some(role)) if provider_decides && present != role => {
                let is_last = present == Role::Owner
                    && store::count_owners(transaction, organization_id).await? < 2;
                if is_last {
                    return Ok(());
                }
                ("member.updated", role)
            }
            (Some(_), None) if provider_decides => return Err(OidcRefusal::NoRole),
            (Some(_), _) => return Ok(()),
            (None, None) => return Ok(()),
        };
        let id = self.sessions.ids.next();
        let now = self.sessions.clock.now();
        let of = organization_id;
        let id = store::set_role(transaction, (of, user.id), id, role, now).await?;
        let origin = by(origin, user.id, &user.name);
        let change =
            AuditChange::new(action, id).with(json!({ "userId": user.id, "role": role.as_str() }));
        let ids = &self.sessions.ids;
        audit::store::insert(transaction, of, &origin, &change, ids, now).await?;
        Ok(())
    }
}
