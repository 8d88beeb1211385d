//! Authentication. The API key of a request is looked up before the request is counted
//! against a rate limit and before its body is read. The first line of every handler names
//! the permission that the operation requires.

use std::net::IpAddr;
use std::sync::Arc;

use poem::Request;
use poem::web::headers::authorization::Bearer as BearerToken;
use poem::web::headers::{Authorization, HeaderMapExt as _};
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;
use waypost_core::audit::{Actor, Origin};
use waypost_core::auth::{ApiKey, OpenedKey, Permission};
use waypost_core::fault::Fault;
use waypost_core::ids::OrganizationId;
use waypost_core::network;
use waypost_core::secret::Secret;

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::request_id::RequestId;
use crate::middleware::unknown_fields::QueryIssues;

/// An API key, sent as `Authorization: Bearer wp_live_…`. Each key has one or more of the
/// permissions `SEND`, `TEMPLATES_READ`, `TEMPLATES_WRITE`, `PROVIDERS_READ`,
/// `PROVIDERS_WRITE`, `METRICS_READ` and `SETTINGS_WRITE`.
#[derive(SecurityScheme)]
#[oai(
    rename = "ApiKey",
    ty = "bearer",
    key_name = "Authorization",
    checker = "authenticate"
)]
pub(crate) struct Caller(AuthenticatedCaller);

/// The API key of a request, and where the request comes from.
pub(crate) struct AuthenticatedCaller {
    key: Arc<OpenedKey>,
    origin: Origin,
    query_issues: Option<QueryIssues>,
}

/// The result of looking up a request's API key.
#[derive(Debug, Clone)]
pub(crate) enum Identity {
    /// The key is valid.
    Key(Arc<OpenedKey>),
    /// There is no key, or it is not valid.
    Anonymous,
    /// The key could not be looked up.
    Unresolved(Fault),
}

/// The longest stored `User-Agent`, in characters.
pub(crate) const USER_AGENT_CHARS_MAX: usize = 255;

impl Caller {
    /// The organization of the API key.
    pub(crate) fn organization_id(&self) -> OrganizationId {
        self.0.key.record.organization_id
    }

    /// The API key.
    pub(crate) fn key(&self) -> &ApiKey {
        &self.0.key.record
    }

    /// Where the request comes from, for the audit log.
    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Requires a permission and a query without mistakes.
    ///
    /// # Errors
    /// `Forbidden` if the key lacks the permission. Otherwise `Invalid` with the mistakes in
    /// the query; if the request has a body, [`JsonBody`](crate::request::body::JsonBody)
    /// reports them together with its own.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), Failure> {
        if !self.0.key.record.permissions.contains(permission) {
            return Err(Failure::Forbidden(permission));
        }
        let issues = self.0.query_issues.as_ref().map(QueryIssues::take);
        match issues.unwrap_or_default() {
            issues if issues.is_empty() => Ok(()),
            issues => Err(Failure::Invalid(issues)),
        }
    }
}

/// Looks up the API key of a request. It accepts the header forms that [`Bearer`] accepts.
pub(crate) async fn identify(request: &Request) -> Identity {
    let Some(header) = request.headers().typed_get::<Authorization<BearerToken>>() else {
        return Identity::Anonymous;
    };
    let key = Secret::from(header.token());
    let authenticator = &context(request).authenticator;
    match authenticator.find(&key, client_address(request)).await {
        Ok(Some(key)) => Identity::Key(key),
        Ok(None) => Identity::Anonymous,
        Err(fault) => Identity::Unresolved(fault),
    }
}

async fn authenticate(request: &Request, _bearer: Bearer) -> poem::Result<AuthenticatedCaller> {
    let key = match request.data::<Identity>() {
        Some(Identity::Key(key)) => Arc::clone(key),
        Some(Identity::Anonymous) | None => return Err(Failure::Unauthenticated.into()),
        Some(Identity::Unresolved(fault)) => return Err(Failure::from(fault.clone()).into()),
    };
    let actor = Actor::ApiKey {
        id: key.record.id,
        name: key.record.name.clone(),
    };
    let origin = origin(request, actor);
    let query_issues = request.data().cloned();
    Ok(AuthenticatedCaller {
        key,
        origin,
        query_issues,
    })
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
