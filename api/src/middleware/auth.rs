//! Authentication. The API key or the session of a request is looked up before the request is
//! counted against a rate limit and before its body is read. The signature of every handler
//! names who may call the operation: [`Requires`] a permission, [`SignedIn`] for a session
//! whatever its permissions, [`Anyone`] for an operation that signs somebody in. The handler
//! gets the caller from that only if the caller is the right one.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;

use poem::http::header;
use poem::web::headers::authorization::Bearer as BearerToken;
use poem::web::headers::{Authorization, HeaderMapExt as _};
use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaSecurityScheme, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::{Map, Value, json};
use waypost_core::audit::{Actor, Origin};
use waypost_core::auth::{Grantor, OpenedKey, Permission, Permissions};
use waypost_core::clock::Timestamp;
use waypost_core::fault::Fault;
use waypost_core::idempotency::fingerprint::BodyHash;
use waypost_core::idempotency::{IdempotencyKey, KeyClaim};
use waypost_core::ids::OrganizationId;
use waypost_core::member::MemberAct;
use waypost_core::network;
use waypost_core::secret::Secret;
use waypost_core::session::OpenedSession;
use waypost_core::user::UserAct;

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::permission::PermissionType;
use crate::middleware::request_id::RequestId;
use crate::middleware::session_cookie;
use crate::middleware::unknown_fields::QueryIssues;

/// The security schemes of the document.
const KEY_SCHEME: &str = "ApiKey";
const SESSION_SCHEME: &str = "Session";
/// What takes the place of a permission in [`SignedIn`] and [`Anyone`], until [`document`]
/// replaces it.
const NEEDS_SESSION: &str = "a session";
const NEEDS_NOTHING: &str = "nothing";

const KEY_MEANING: &str = "An API key, sent as `Authorization: Bearer wp_live_…`, or `wp_test_…` for a test key: \
    everything that it sends is a test, for which no provider is called. Each key has one or more of the \
    permissions `SEND`, `TEMPLATES_READ`, `TEMPLATES_WRITE`, `PROVIDERS_READ`, `PROVIDERS_WRITE`, \
    `METRICS_READ`, `SETTINGS_WRITE`, `CONTENT_READ` and `MEMBERS_WRITE`.";
const SESSION_MEANING: &str = "The session of a user, in the cookie that `create_session` sets. It has the permissions of \
    the user's role. Every request but GET and HEAD must have the header `X-Waypost-Csrf: 1` and an `Origin`: that of \
    `WAYPOST_PUBLIC_URL`, or that of the request's `Host`. The cookie of a request with `Authorization` is ignored.";

/// A caller whose permission and query are not checked yet.
struct UncheckedCaller {
    caller: Caller,
    query_issues: Option<QueryIssues>,
}

/// The caller of an operation that requires the permission `P`.
pub(crate) struct Requires<P>(UncheckedCaller, PhantomData<fn() -> P>);

/// The caller of an operation that requires a session, whatever its permissions.
pub(crate) struct SignedIn(UncheckedCaller);

/// The caller of an operation that signs somebody in. An API key or a session is ignored.
pub(crate) struct Anyone {
    origin: Origin,
    query_issues: Option<QueryIssues>,
}

/// The API key or the session of a request, and where the request comes from.
pub(crate) struct Caller {
    principal: Principal,
    origin: Origin,
}

enum Principal {
    Key(Arc<OpenedKey>),
    Session(Arc<OpenedSession>),
}

/// The session of a request, and where the request comes from.
pub(crate) struct SessionCaller {
    pub(crate) session: Arc<OpenedSession>,
    pub(crate) origin: Origin,
}

impl SessionCaller {
    /// Who changes a user.
    pub(crate) fn act(&self) -> UserAct<'_> {
        UserAct {
            user_id: self.session.user_id,
            organization_id: self.session.organization_id,
            session_id: self.session.id,
            origin: &self.origin,
        }
    }
}

/// The result of looking up a request's API key or session.
#[derive(Debug, Clone)]
pub(crate) enum Identity {
    /// The key is valid.
    Key(Arc<OpenedKey>),
    /// The session has not ended.
    Session(Arc<OpenedSession>),
    /// There is neither a valid key nor a session.
    Anonymous,
    /// The key or the session could not be looked up.
    Unresolved(Fault),
}

/// The member of an operation in the document that names the required permission.
pub(crate) const PERMISSION: &str = "x-required-permission";
/// The longest stored `User-Agent`, in characters.
pub(crate) const USER_AGENT_CHARS_MAX: usize = 255;

impl<P: PermissionType> Requires<P> {
    /// The caller, if it has the permission and the query has no mistakes.
    ///
    /// # Errors
    /// `Forbidden` if the caller lacks the permission. Otherwise `Invalid` with the mistakes in
    /// the query; if the request has a body, [`JsonBody`](crate::request::body::JsonBody)
    /// reports them together with its own.
    pub(crate) fn authorize(self) -> Result<Caller, Failure> {
        let UncheckedCaller {
            caller,
            query_issues,
        } = self.0;
        caller.require(P::PERMISSION)?;
        check_query(query_issues.as_ref())?;
        Ok(caller)
    }
}

impl SignedIn {
    /// The session, if there is one and the query has no mistakes.
    ///
    /// # Errors
    /// `Denied` if the caller is an API key, `Invalid` with the mistakes in the query.
    pub(crate) fn authorize(self) -> Result<SessionCaller, Failure> {
        let UncheckedCaller {
            caller,
            query_issues,
        } = self.0;
        let Principal::Session(session) = caller.principal else {
            return Err(Failure::session_required());
        };
        check_query(query_issues.as_ref())?;
        let origin = caller.origin;
        Ok(SessionCaller { session, origin })
    }
}

impl Anyone {
    /// Where the request comes from, if its query has no mistakes.
    ///
    /// # Errors
    /// `Invalid` with the mistakes in the query.
    pub(crate) fn authorize(self) -> Result<Origin, Failure> {
        check_query(self.query_issues.as_ref())?;
        Ok(self.origin)
    }
}

fn check_query(issues: Option<&QueryIssues>) -> Result<(), Failure> {
    match issues.map(QueryIssues::take).unwrap_or_default() {
        issues if issues.is_empty() => Ok(()),
        issues => Err(Failure::Invalid(issues)),
    }
}

impl Caller {
    /// The caller of a mail over SMTP.
    pub(crate) fn of_key(key: Arc<OpenedKey>, origin: Origin) -> Self {
        Self {
            principal: Principal::Key(key),
            origin,
        }
    }

    /// Checks for one more permission than the operation's signature names.
    ///
    /// # Errors
    /// `Forbidden` if the caller lacks the permission.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), Failure> {
        if self.permissions().contains(permission) {
            Ok(())
        } else {
            Err(Failure::Forbidden(permission))
        }
    }

    /// What the caller may do.
    pub(crate) fn permissions(&self) -> &Permissions {
        match &self.principal {
            Principal::Key(key) => &key.record.permissions,
            Principal::Session(session) => &session.permissions,
        }
    }

    /// The organization of the API key or of the session.
    pub(crate) fn organization_id(&self) -> OrganizationId {
        match &self.principal {
            Principal::Key(key) => key.record.organization_id,
            Principal::Session(session) => session.organization_id,
        }
    }

    /// Whether everything that the caller sends is a test.
    pub(crate) fn is_test(&self) -> bool {
        match &self.principal {
            Principal::Key(key) => key.record.is_test,
            Principal::Session(_) => false,
        }
    }

    /// Who creates and changes API keys.
    pub(crate) fn grantor(&self) -> Grantor<'_> {
        Grantor {
            organization_id: self.organization_id(),
            id: match &self.principal {
                Principal::Key(key) => key.record.id.0,
                Principal::Session(session) => session.user_id.0,
            },
            permissions: self.permissions(),
            is_test: self.is_test(),
        }
    }

    /// Who manages members and invitations.
    pub(crate) fn member_act(&self) -> MemberAct<'_> {
        MemberAct {
            organization_id: self.organization_id(),
            permissions: self.permissions(),
            origin: &self.origin,
        }
    }

    /// The claim of an idempotency key. A test must not take the place of the live request,
    /// so the keys of both are apart. No path begins like that of a test.
    pub(crate) fn claim(
        &self,
        path: &str,
        key: &IdempotencyKey,
        body_hash: BodyHash,
        at: Timestamp,
    ) -> KeyClaim {
        let organization_id = self.organization_id();
        match self.is_test() {
            true => KeyClaim::new(organization_id, &format!("test {path}"), key, body_hash, at),
            false => KeyClaim::new(organization_id, path, key, body_hash, at),
        }
    }

    /// Where the request comes from, for the audit log.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl<'a, P: PermissionType> ApiExtractor<'a> for Requires<P> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        register_schemes(registry);
    }

    /// The permission, in the place of the scheme: poem-openapi passes on nothing else of an
    /// extractor. [`document`] puts both in their places.
    fn security_schemes() -> Vec<&'static str> {
        vec![P::PERMISSION.as_str()]
    }

    async fn from_request(
        request: &'a Request,
        _body: &mut RequestBody,
        _options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        Ok(Self(authenticate(request)?, PhantomData))
    }
}

impl<'a> ApiExtractor<'a> for SignedIn {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        register_schemes(registry);
    }

    fn security_schemes() -> Vec<&'static str> {
        vec![NEEDS_SESSION]
    }

    async fn from_request(
        request: &'a Request,
        _body: &mut RequestBody,
        _options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        Ok(Self(authenticate(request)?))
    }
}

impl<'a> ApiExtractor<'a> for Anyone {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        register_schemes(registry);
    }

    fn security_schemes() -> Vec<&'static str> {
        vec![NEEDS_NOTHING]
    }

    async fn from_request(
        request: &'a Request,
        _body: &mut RequestBody,
        _options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        session_cookie::check_origin_of_anonymous(request)?;
        Ok(Self {
            // Whoever is signed in becomes the actor of the change.
            origin: origin(request, Actor::System),
            query_issues: request.data().cloned(),
        })
    }
}

fn register_schemes(registry: &mut Registry) {
    let scheme = |ty, description| MetaSecurityScheme {
        ty,
        description: Some(description),
        name: None,
        key_in: None,
        scheme: None,
        bearer_format: None,
        flows: None,
        openid_connect_url: None,
    };
    let key = MetaSecurityScheme {
        scheme: Some("bearer"),
        ..scheme("http", KEY_MEANING)
    };
    registry.create_security_scheme(KEY_SCHEME, key);
    let session = MetaSecurityScheme {
        name: Some(session_cookie::NAME),
        key_in: Some("cookie"),
        ..scheme("apiKey", SESSION_MEANING)
    };
    registry.create_security_scheme(SESSION_SCHEME, session);
}

/// Writes the required permission into an operation of the document, as
/// `x-required-permission`, and the security schemes in its place. Operations without a caller
/// are not changed.
pub(crate) fn document(operation: &mut Map<String, Value>) {
    let Some(needed) = needed(operation) else {
        return;
    };
    let permission = Permission::EVERY
        .into_iter()
        .find(|permission| permission.as_str() == needed);
    operation["security"] = match permission {
        Some(Permission::Operator) => json!([{ SESSION_SCHEME: [] }]),
        Some(_) => json!([{ KEY_SCHEME: [] }, { SESSION_SCHEME: [] }]),
        None if needed == NEEDS_SESSION => json!([{ SESSION_SCHEME: [] }]),
        None => json!([]),
    };
    if let Some(permission) = permission {
        operation.insert(PERMISSION.to_owned(), json!(permission.as_str()));
    }
}

/// What stands in the place of the security scheme.
fn needed(operation: &Map<String, Value>) -> Option<String> {
    let schemes = operation.get("security")?.get(0)?.as_object()?;
    schemes.keys().next().cloned()
}

/// Looks up the API key of a request, or its session if there is no `Authorization`. It accepts
/// the forms of that header that a bearer token has.
pub(crate) async fn identify(request: &Request) -> Identity {
    let headers = request.headers();
    if !headers.contains_key(header::AUTHORIZATION) {
        return identify_session(request).await;
    }
    let Some(header) = headers.typed_get::<Authorization<BearerToken>>() else {
        return Identity::Anonymous;
    };
    let key = Secret::from(header.token());
    let authenticator = &context(request).accept.authenticator;
    match authenticator.find(&key, client_address(request)).await {
        Ok(Some(key)) => Identity::Key(key),
        Ok(None) => Identity::Anonymous,
        Err(fault) => Identity::Unresolved(fault),
    }
}

async fn identify_session(request: &Request) -> Identity {
    let Some(token) = session_cookie::read(request, session_cookie::NAME) else {
        return Identity::Anonymous;
    };
    match context(request).sessions.find(&token).await {
        Ok(Some(session)) => Identity::Session(session),
        Ok(None) => Identity::Anonymous,
        Err(fault) => Identity::Unresolved(fault),
    }
}

fn authenticate(request: &Request) -> Result<UncheckedCaller, Failure> {
    let (principal, actor) = match request.data::<Identity>() {
        Some(Identity::Key(key)) => {
            let actor = Actor::ApiKey {
                id: key.record.id,
                name: key.record.name.clone(),
            };
            (Principal::Key(Arc::clone(key)), actor)
        }
        Some(Identity::Session(session)) => {
            session_cookie::check_origin(request)?;
            let actor = Actor::User {
                id: session.user_id,
                name: session.user_name.clone(),
            };
            (Principal::Session(Arc::clone(session)), actor)
        }
        Some(Identity::Anonymous) | None => return Err(Failure::Unauthenticated),
        Some(Identity::Unresolved(fault)) => return Err(Failure::from(fault.clone())),
    };
    let origin = origin(request, actor);
    Ok(UncheckedCaller {
        caller: Caller { principal, origin },
        query_issues: request.data().cloned(),
    })
}

/// The caller of an operation outside the document, if the request has an API key with the
/// permission. A session counts as no key.
///
/// # Errors
/// `Unauthenticated`, `Forbidden`, or a fault.
pub(crate) fn key_caller(request: &Request, permission: Permission) -> Result<Caller, Failure> {
    let UncheckedCaller { caller, .. } = authenticate(request)?;
    match caller.principal {
        Principal::Key(_) => caller.require(permission).map(|()| caller),
        Principal::Session(_) => Err(Failure::Unauthenticated),
    }
}

/// Where a request comes from, for the audit log.
pub(crate) fn origin(request: &Request, actor: Actor) -> Origin {
    let user_agent = request.header("user-agent");
    Origin {
        actor,
        ip: client_address(request).map(|address| address.to_string()),
        user_agent: user_agent.map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect()),
        request_id: request
            .data::<RequestId>()
            .map(|id| id.0.to_string())
            .unwrap_or_default(),
    }
}

/// The client's address. Behind trusted proxies it is taken from `X-Forwarded-For`.
pub(crate) fn client_address(request: &Request) -> Option<IpAddr> {
    let peer = request.remote_addr().as_socket_addr()?.ip();
    let lines = request.headers().get_all("x-forwarded-for").iter();
    let hops = lines.flat_map(|line| line.to_str().unwrap_or_default().split(','));
    let proxies = &context(request).settings.trusted_proxies;
    Some(network::client_address(peer, hops, proxies))
}

/// The parts of the process that serves a request.
pub(crate) fn context(request: &Request) -> &Arc<Context> {
    request
        .data()
        .expect("the context is data of every request")
}
