//! Authentication. The API key of a request is looked up before the request is counted
//! against a rate limit and before its body is read. The signature of every handler names
//! the permission that the operation requires: it gets a [`Requires`], and the caller from
//! that only if the key has the permission.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;

use poem::web::headers::authorization::Bearer as BearerToken;
use poem::web::headers::{Authorization, HeaderMapExt as _};
use poem::{Request, RequestBody};
use poem_openapi::auth::Bearer;
use poem_openapi::registry::Registry;
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions, SecurityScheme};
use serde_json::{Map, Value, json};
use waypost_core::audit::{Actor, Origin};
use waypost_core::auth::{ApiKey, OpenedKey, Permission};
use waypost_core::clock::Timestamp;
use waypost_core::fault::Fault;
use waypost_core::idempotency::fingerprint::BodyHash;
use waypost_core::idempotency::{IdempotencyKey, KeyClaim};
use waypost_core::ids::OrganizationId;
use waypost_core::network;
use waypost_core::secret::Secret;

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::permission::PermissionType;
use crate::middleware::request_id::RequestId;
use crate::middleware::unknown_fields::QueryIssues;

/// An API key, sent as `Authorization: Bearer wp_live_…`, or `wp_test_…` for a test key:
/// everything that it sends is a test, for which no provider is called. Each key has one or more of the
/// permissions `SEND`, `TEMPLATES_READ`, `TEMPLATES_WRITE`, `PROVIDERS_READ`,
/// `PROVIDERS_WRITE`, `METRICS_READ` and `SETTINGS_WRITE`.
#[derive(SecurityScheme)]
#[oai(
    rename = "ApiKey",
    ty = "bearer",
    key_name = "Authorization",
    checker = "authenticate"
)]
struct ApiKeyScheme(UncheckedCaller);

/// A caller with a valid key, whose permission and query are not checked yet.
struct UncheckedCaller {
    caller: Caller,
    query_issues: Option<QueryIssues>,
}

/// The caller of an operation that requires the permission `P`.
pub(crate) struct Requires<P>(UncheckedCaller, PhantomData<fn() -> P>);

/// The API key of a request, and where the request comes from.
pub(crate) struct Caller {
    key: Arc<OpenedKey>,
    origin: Origin,
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

/// The member of an operation in the document that names the required permission.
pub(crate) const PERMISSION: &str = "x-required-permission";
/// The longest stored `User-Agent`, in characters.
pub(crate) const USER_AGENT_CHARS_MAX: usize = 255;

impl<P: PermissionType> Requires<P> {
    /// The caller, if its key has the permission and the query has no mistakes.
    ///
    /// # Errors
    /// `Forbidden` if the key lacks the permission. Otherwise `Invalid` with the mistakes in
    /// the query; if the request has a body, [`JsonBody`](crate::request::body::JsonBody)
    /// reports them together with its own.
    pub(crate) fn authorize(self) -> Result<Caller, Failure> {
        let UncheckedCaller {
            caller,
            query_issues,
        } = self.0;
        if !caller.key().permissions.contains(P::PERMISSION) {
            return Err(Failure::Forbidden(P::PERMISSION));
        }
        let issues = query_issues.as_ref().map(QueryIssues::take);
        match issues.unwrap_or_default() {
            issues if issues.is_empty() => Ok(caller),
            issues => Err(Failure::Invalid(issues)),
        }
    }
}

impl Caller {
    /// Checks for one more permission than the operation's signature names.
    ///
    /// # Errors
    /// `Forbidden` if the key lacks the permission.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), Failure> {
        if self.key().permissions.contains(permission) {
            Ok(())
        } else {
            Err(Failure::Forbidden(permission))
        }
    }

    /// The organization of the API key.
    pub(crate) fn organization_id(&self) -> OrganizationId {
        self.key.record.organization_id
    }

    /// The API key.
    pub(crate) fn key(&self) -> &ApiKey {
        &self.key.record
    }

    /// Whether everything that the caller sends is a test.
    pub(crate) fn is_test(&self) -> bool {
        self.key().is_test
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
        ApiKeyScheme::register(registry);
    }

    /// The permission, in the place of the scheme: poem-openapi passes on nothing else of an
    /// extractor. [`document`] puts both in their places.
    fn security_schemes() -> Vec<&'static str> {
        vec![P::PERMISSION.as_str()]
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        let ApiKeyScheme(caller) = ApiKeyScheme::from_request(request, body, options).await?;
        Ok(Self(caller, PhantomData))
    }
}

/// Writes the required permission into an operation of the document, as
/// `x-required-permission`, and the security scheme in its place. Public operations are not
/// changed.
pub(crate) fn document(operation: &mut Map<String, Value>) {
    let Some(permission) = required_permission(operation) else {
        return;
    };
    let schemes = ApiKeyScheme::security_schemes();
    let schemes = schemes.into_iter().map(|scheme| json!({ scheme: [] }));
    operation["security"] = schemes.collect();
    operation.insert(PERMISSION.to_owned(), json!(permission.as_str()));
}

fn required_permission(operation: &Map<String, Value>) -> Option<Permission> {
    let schemes = operation.get("security")?.get(0)?.as_object()?;
    schemes.keys().next()?.parse().ok()
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

async fn authenticate(request: &Request, _bearer: Bearer) -> poem::Result<UncheckedCaller> {
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
    Ok(UncheckedCaller {
        caller: Caller { key, origin },
        query_issues: request.data().cloned(),
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
