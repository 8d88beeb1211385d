//! Who calls. The key is looked up before anything else of a request is read; the
//! first line of every handler says which permission it takes.

use std::net::IpAddr;
use std::sync::Arc;

use poem::Request;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;
use waypost_core::audit::{Actor, Origin};
use waypost_core::auth::{ApiKey, Permission};
use waypost_core::ids::OrganizationId;
use waypost_core::network;
use waypost_core::secret::Secret;

use crate::context::Context;
use crate::envelope::RequestId;
use crate::error::Failure;

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
    key: ApiKey,
    origin: Origin,
}

/// The longest `User-Agent` that is kept, in characters.
const USER_AGENT_CHARS_MAX: usize = 255;

impl Caller {
    /// The organization whose data the caller may see.
    pub(crate) fn organization_id(&self) -> OrganizationId {
        self.0.key.organization_id
    }

    /// The caller's own key.
    pub(crate) fn key(&self) -> &ApiKey {
        &self.0.key
    }

    /// Where the request comes from, for the audit log.
    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Insists on a permission.
    ///
    /// # Errors
    /// The refusal that names it.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), Failure> {
        if self.0.key.permissions.contains(permission) {
            Ok(())
        } else {
            Err(Failure::Forbidden(permission))
        }
    }
}

async fn authenticate(request: &Request, bearer: Bearer) -> poem::Result<KnownCaller> {
    let key = Secret::from(bearer.token);
    let found = context(request)
        .authenticator
        .find(&key, client_address(request))
        .await
        .map_err(Failure::from)?;
    let key = found.ok_or(Failure::Unauthenticated)?;
    let actor = Actor::ApiKey {
        id: key.id,
        name: key.name.clone(),
    };
    let origin = origin(request, actor);
    Ok(KnownCaller { key, origin })
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
fn client_address(request: &Request) -> Option<IpAddr> {
    let peer = request.remote_addr().as_socket_addr()?.ip();
    let lines = request.headers().get_all("x-forwarded-for").iter();
    let hops = lines.flat_map(|line| line.to_str().unwrap_or_default().split(','));
    let proxies = &context(request).settings.trusted_proxies;
    Some(network::client_address(peer, hops, proxies))
}

fn context(request: &Request) -> &Arc<Context> {
    request
        .data()
        .expect("the context is data of every request")
}
