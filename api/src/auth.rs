//! Who calls. The key is looked up before anything else of a request is read; the
//! first line of every handler says which permission it takes.

use std::sync::Arc;

use poem::Request;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;
use waypost_core::auth::{ApiKey, Permission};
use waypost_core::ids::OrganizationId;
use waypost_core::secret::Secret;

use crate::context::Context;
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
pub(crate) struct Caller(ApiKey);

impl Caller {
    /// The organization whose data the caller may see.
    pub(crate) fn organization_id(&self) -> OrganizationId {
        self.0.organization_id
    }

    /// Insists on a permission.
    ///
    /// # Errors
    /// The refusal that names it.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), Failure> {
        if self.0.permissions.contains(permission) {
            Ok(())
        } else {
            Err(Failure::Forbidden(permission))
        }
    }
}

async fn authenticate(request: &Request, bearer: Bearer) -> poem::Result<ApiKey> {
    let context: &Arc<Context> = request
        .data()
        .expect("the context is data of every request");
    let key = Secret::from(bearer.token);
    let found = context
        .authenticator
        .find(&key)
        .await
        .map_err(Failure::from)?;
    Ok(found.ok_or(Failure::Unauthenticated)?)
}
