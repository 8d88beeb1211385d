//! Who calls. The key is looked up before anything else of a request is read, and
//! before it is counted against a limit (`limits`); the first line of every handler
//! says which permission it takes.

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
use crate::unknown_fields::Surplus;

/// An API key, as `Authorization: Bearer wp_live_…`. Each key carries some of the
/// permissions SEND, TEMPLATES_READ, TEMPLATES_WRITE, PROVIDERS_READ,
/// PROVIDERS_WRITE, METRICS_READ, SETTINGS_WRITE.
#[derive(SecurityScheme)]
#[oai(
    rename = "ApiKey",
    ty = "bearer",
    key_name = "Authorization",
    checker = "authenticate"
)]
pub(crate) struct Caller(KnownCaller);

/// The key behind a request and where the request comes from.
pub(crate) struct KnownCaller {
    key: Arc<OpenedKey>,
    origin: Origin,
    surplus: Option<Surplus>,
}

/// Who a request comes from, as its key tells.
#[derive(Debug, Clone)]
pub(crate) enum Identity {
    /// Whoever holds this key.
    Known(Arc<OpenedKey>),
    /// Someone without a valid key.
    Stranger,
    /// Someone with a key that could not be looked up.
    Undecided(Fault),
}

/// The longest `User-Agent` that is kept, in characters.
pub(crate) const USER_AGENT_CHARS_MAX: usize = 255;

impl Caller {
    /// The organization whose data the caller may see.
    pub(crate) fn organization_id(&self) -> OrganizationId {
        self.0.key.record.organization_id
    }

    /// The caller's own key.
    pub(crate) fn key(&self) -> &ApiKey {
        &self.0.key.record
    }

    /// Where the request comes from, for the audit log.
    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Insists on a permission, and on a query that says nothing unknown.
    ///
    /// # Errors
    /// The refusal that names the permission; of whoever has it, what is wrong with the
    /// query, unless the request has a body, which tells it together with its own.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), Failure> {
        if !self.0.key.record.permissions.contains(permission) {
            return Err(Failure::Forbidden(permission));
        }
        let issues = self.0.surplus.as_ref().map(Surplus::take);
        match issues.unwrap_or_default() {
            issues if issues.is_empty() => Ok(()),
            issues => Err(Failure::Invalid(issues)),
        }
    }
}

/// Looks up the key of a request. It is read as [`Bearer`] reads it.
pub(crate) async fn identify(request: &Request) -> Identity {
    let Some(header) = request.headers().typed_get::<Authorization<BearerToken>>() else {
        return Identity::Stranger;
    };
    let key = Secret::from(header.token());
    let authenticator = &context(request).authenticator;
    match authenticator.find(&key, client_address(request)).await {
        Ok(Some(key)) => Identity::Known(key),
        Ok(None) => Identity::Stranger,
        Err(fault) => Identity::Undecided(fault),
    }
}

async fn authenticate(request: &Request, _bearer: Bearer) -> poem::Result<KnownCaller> {
    let key = match request.data::<Identity>() {
        Some(Identity::Known(key)) => Arc::clone(key),
        Some(Identity::Stranger) | None => return Err(Failure::Unauthenticated.into()),
        Some(Identity::Undecided(fault)) => return Err(Failure::from(fault.clone()).into()),
    };
    let actor = Actor::ApiKey {
        id: key.record.id,
        name: key.record.name.clone(),
    };
    let origin = origin(request, actor);
    let surplus = request.data().cloned();
    Ok(KnownCaller {
        key,
        origin,
        surplus,
    })
}

/// Where a request comes from.
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

/// The client's address, behind proxies of ours too.
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
