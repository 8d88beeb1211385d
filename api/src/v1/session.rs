//! Sessions: signing in and out, and switching the organization.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::session::{SessionDetail, StartedSession};
use waypost_core::user::{AccountEmail, User};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::Id;
use crate::fields::people::{Code, GivenPassword};
use crate::middleware::auth::{Anyone, SignedIn};
use crate::middleware::session_cookie;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::query::Query;
use crate::response::{Data, Nullable, Success, Time};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct SessionApi {
    pub(crate) context: Arc<Context>,
}

/// The ways to sign in.
#[derive(Debug, Object)]
struct SignInMethods {
    /// Whether users can sign in with a password.
    password: bool,
    oidc: Nullable<OidcMethod>,
}

/// The OpenID Connect provider at which users can sign in; null if there is none.
#[derive(Debug, Object)]
struct OidcMethod {
    /// The name of the provider, for people.
    name: String,
    /// Where the sign-in begins, relative to the public URL.
    url: String,
}

/// Who is signed in, and where.
#[derive(Debug, Object)]
#[oai(rename = "Session", rename_all = "camelCase")]
pub(crate) struct SessionView {
    user: UserView,
    organization: SessionOrganization,
    /// The role of the user in the organization.
    role: String,
    /// The permissions of the role, and `OPERATOR` if the user is an operator.
    permissions: Vec<String>,
    /// The organizations of the user, by their names.
    organizations: Vec<OrganizationMembership>,
    created_at: Time,
    /// When the session ends at the latest. It ends earlier after 12 hours without a request.
    expires_at: Time,
}

/// The organization of a session.
#[derive(Debug, Object)]
struct SessionOrganization {
    id: Uuid,
    name: String,
}

/// An organization of a user.
#[derive(Debug, Object)]
struct OrganizationMembership {
    id: Uuid,
    name: String,
    /// The role of the user in this organization.
    role: String,
}

/// A user.
#[derive(Debug, Object)]
#[oai(rename = "User", rename_all = "camelCase")]
pub(crate) struct UserView {
    id: Uuid,
    email: String,
    name: String,
    /// Whether the user has a second factor.
    totp_enabled: bool,
    /// Whether the user can sign in with a password.
    has_password: bool,
    /// Whether the user may see and change what belongs to the installation.
    is_operator: bool,
    created_at: Time,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            id: user.id.0,
            email: user.email.as_str().to_owned(),
            name: user.name,
            totp_enabled: user.has_second_factor,
            has_password: user.has_password,
            is_operator: user.is_operator,
            created_at: Time(user.created_at),
        }
    }
}

impl From<SessionDetail> for SessionView {
    fn from(session: SessionDetail) -> Self {
        let (id, name) = session.organization;
        let organizations = session.organizations.into_iter();
        Self {
            user: session.user.into(),
            organization: SessionOrganization { id: id.0, name },
            role: session.role.as_str().to_owned(),
            permissions: session.permissions.names(),
            organizations: organizations
                .map(|one| OrganizationMembership {
                    id: one.id.0,
                    name: one.name,
                    role: one.role.as_str().to_owned(),
                })
                .collect(),
            created_at: Time(session.created_at),
            expires_at: Time(session.expires_at),
        }
    }
}

/// Who signs in.
#[derive(Debug, Object)]
struct CreateSessionRequest {
    /// The address of the user.
    email: Validated<AccountEmail>,
    /// The password of the user.
    password: Validated<GivenPassword>,
    /// The code of the second factor, or a recovery code. Required if the user has a second
    /// factor.
    code: Validated<Option<Code>>,
}

/// The change of a session.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateSessionRequest {
    /// The organization to switch to, one of the session's `organizations`.
    organization_id: Validated<Id>,
}

#[derive(ApiResponse)]
pub(crate) enum SessionCreated {
    /// The user is signed in.
    #[oai(status = 201)]
    Created(
        Json<Data<SessionView>>,
        /// The cookie of the session.
        #[oai(header = "Set-Cookie")]
        String,
    ),
}

#[derive(ApiResponse)]
enum SessionUpdated {
    /// The session is switched.
    #[oai(status = 200)]
    Updated(
        Json<Data<SessionView>>,
        /// The cookie of the session.
        #[oai(header = "Set-Cookie")]
        String,
    ),
}

#[derive(ApiResponse)]
enum SessionDeleted {
    /// The session is ended.
    #[oai(status = 200)]
    Deleted(
        Json<Success>,
        /// The removal of the session's cookie.
        #[oai(header = "Set-Cookie")]
        String,
    ),
}

#[OpenApi(tag = "Section::Session")]
impl SessionApi {
    /// List the ways to sign in
    ///
    /// Requires no API key and no session.
    #[oai(
        path = "/v1/session/methods",
        method = "get",
        operation_id = "list_sign_in_methods"
    )]
    async fn list_sign_in_methods(
        &self,
        caller: Anyone,
    ) -> Result<Json<Data<SignInMethods>>, Failure> {
        caller.authorize()?;
        let oidc = self.context.oidc.as_ref().map(|oidc| OidcMethod {
            name: oidc.name().to_owned(),
            url: "/v1/session/oidc".to_owned(),
        });
        Ok(Json(Data {
            data: SignInMethods {
                password: true,
                oidc: Nullable(oidc),
            },
        }))
    }

    /// Sign in
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Sets the cookie of
    /// a new session, in the organization that the user was last in. Ten wrong passwords or codes
    /// within 15 minutes lock the account for the rest of that time.
    #[oai(path = "/v1/session", method = "post", operation_id = "create_session")]
    async fn create_session(
        &self,
        caller: Anyone,
        body: JsonBody<CreateSessionRequest, OTHER_BYTES_MAX>,
    ) -> Result<SessionCreated, Failure> {
        let origin = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let email = request.email.take("email", &mut issues);
        let password = request.password.take("password", &mut issues);
        let code = request.code.take("code", &mut issues);
        let (Some(email), Some(password), Some(code), true) =
            (email, password, code, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let code = code.as_ref().map(|code| code.0.as_str());
        let sessions = &self.context.sessions;
        let started = sessions.sign_in(&email, password.0, code, &origin).await?;
        let (session, cookie) = shown(&self.context, &started).await?;
        Ok(SessionCreated::Created(
            Json(Data { data: session }),
            cookie,
        ))
    }

    /// Get the session
    ///
    /// Requires a session.
    #[oai(path = "/v1/session", method = "get", operation_id = "get_session")]
    async fn get_session(&self, caller: SignedIn) -> Result<Json<Data<SessionView>>, Failure> {
        let caller = caller.authorize()?;
        let session = self.context.sessions.detail(caller.session.id).await?;
        let session = session.ok_or(Failure::Unauthenticated)?;
        Ok(Json(Data {
            data: session.into(),
        }))
    }

    /// Switch the organization
    ///
    /// Requires a session. Sets the cookie of a new session in the other organization; the old
    /// one ends.
    #[oai(
        path = "/v1/session",
        method = "patch",
        operation_id = "update_session"
    )]
    async fn update_session(
        &self,
        caller: SignedIn,
        body: JsonBody<UpdateSessionRequest, OTHER_BYTES_MAX>,
    ) -> Result<SessionUpdated, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let id = request.organization_id.take("organizationId", &mut issues);
        let (Some(id), true) = (id, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let sessions = &self.context.sessions;
        let started = sessions
            .switch(&caller.session, id.0.into(), &caller.origin)
            .await?;
        let (session, cookie) = shown(&self.context, &started).await?;
        Ok(SessionUpdated::Updated(
            Json(Data { data: session }),
            cookie,
        ))
    }

    /// Sign out
    ///
    /// Requires a session. Ends the session, and removes its cookie.
    #[oai(
        path = "/v1/session",
        method = "delete",
        operation_id = "delete_session"
    )]
    async fn delete_session(
        &self,
        caller: SignedIn,
        /// Whether to end all sessions of the user. The default is false.
        everywhere: Query<Validated<Option<bool>>>,
    ) -> Result<SessionDeleted, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let everywhere = everywhere.0.take("everywhere", &mut issues);
        let (Some(everywhere), true) = (everywhere, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let everywhere = everywhere.unwrap_or_default();
        let sessions = &self.context.sessions;
        sessions
            .end(&caller.session, everywhere, &caller.origin)
            .await?;
        Ok(SessionDeleted::Deleted(
            Json(Success { success: true }),
            session_cookie::clear(session_cookie::NAME),
        ))
    }
}

/// A session that was just begun, and its cookie.
pub(crate) async fn shown(
    context: &Context,
    started: &StartedSession,
) -> Result<(SessionView, String), Failure> {
    let session = context.sessions.detail(started.id).await?;
    let session = session.ok_or(Failure::Unauthenticated)?;
    let cookie = session_cookie::begin(started, context.clock.now());
    Ok((session.into(), cookie))
}
