//! Who calls. The key is looked up before anything else of a request is read; the
//! first line of every handler says which permission it takes.

use std::sync::Arc;

use poem::Request;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;
use waypost_core::audit::{Actor, Origin};
use waypost_core::auth::{ApiKey, Permission};
use waypost_core::ids::OrganizationId;
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
    let context: &Arc<Context> = request
        .data()
        .expect("the context is data of every request");
    let key = Secret::from(bearer.token);
    let found = context
        .authenticator
        .find(&key)
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
        ip: request
            .remote_addr()
            .as_socket_addr()
            .map(|address| address.ip().to_string()),
        user_agent: user_agent.map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect()),
        request_id: request
            .data::<RequestId>()
            .map(|id| id.0.to_string())
            .unwrap_or_default(),
    }
}
