//! Rate limits: every request is counted before it is served, and every response shows in
//! its headers what is left.
//!
//! | request | counted against |
//! |---|---|
//! | `POST /v1/send`, or a vendor's operation that sends one message, with a valid key | the organization's sends |
//! | any other request with a valid key, also to a path that does not exist | the organization's other requests |
//! | without a valid key | the *anonymous* limit of the client's address |
//! | to a *public* path | the *public* limit of the client's address: wide, and per process |
//! | with a key that could not be looked up because Postgres is away | the same |
//! | to sign in, whatever its key or session | the anonymous limit of the client's address |
//!
//! A session counts like a valid key, and one that has ended like none.
//!
//! The key is looked up first. So anonymous requests from an address do not affect requests
//! with a valid key from the same address.
//!
//! Public paths take no API key. If such a request carries a token or a signature that is
//! not valid, the handler calls [`count_anonymous`]; requests with a valid one are not
//! limited. A request to a public path without a handler counts as anonymous as well.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poem::http::{HeaderValue, Method, StatusCode};
use poem::{Endpoint, IntoResponse, Request, Response};
use waypost_core::limit::{LimitDecision, LimitedOperation};

use crate::compat;
use crate::dashboard;
use crate::error::{self, Failure};
use crate::middleware::auth::{self, Identity};
use crate::middleware::availability;

/// Public paths.
const PUBLIC: [&str; 6] = [
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/docs/",
    "/v1/session/methods",
];
/// Prefixes of the public paths with a token or a signature instead of an API key.
const PUBLIC_PREFIXES: [&str; 3] = ["/v1/unsubscribe/", "/v1/t/", "/v1/provider-events/"];

/// Paths of operations that sign somebody in: by a password, or by the token of a link.
const SIGN_IN: [&str; 5] = [
    "/v1/session",
    "/v1/invitations/look-up",
    "/v1/invitations/accept",
    "/v1/password-resets/look-up",
    "/v1/password-resets/accept",
];
/// Prefix of the paths of a sign-in at an OpenID Connect provider.
const OIDC: &str = "/v1/session/oidc";

/// The decision that the response headers show: the last one about the request.
#[derive(Debug, Clone, Default)]
struct LastDecision(Arc<Mutex<Option<LimitDecision>>>);

/// Serves a request through `next` if it is within its limit.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
) -> poem::Result<Response> {
    let last = LastDecision::default();
    request.set_data(last.clone());
    let served = match admit(&mut request).await {
        Ok(()) => serve(next, request, &last).await,
        Err(wait) => Err(wait),
    };
    let mut response = served.unwrap_or_else(|wait| Failure::RateLimited(wait).into_response());
    if let Some(decision) = last.get() {
        let headers = response.headers_mut();
        headers.insert("x-ratelimit-limit", HeaderValue::from(decision.limit));
        headers.insert(
            "x-ratelimit-remaining",
            HeaderValue::from(decision.remaining),
        );
        let reset = whole_seconds(decision.full_after);
        headers.insert("x-ratelimit-reset", HeaderValue::from(reset));
    }
    Ok(response)
}

/// Counts a request whose token or signature is not valid.
///
/// # Errors
/// How long to wait, if the client's address has made too many such requests.
pub(crate) async fn count_anonymous(request: &Request) -> Result<(), Duration> {
    let limiter = &auth::context(request).accept.limiter;
    apply(request.data(), limiter.anonymous(address(request)).await)
}

/// A duration in seconds, rounded up.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Serves a request that was admitted.
///
/// # Errors
/// How long to wait, if the path has a public prefix but no handler, and the client's
/// address has made too many such requests.
async fn serve<E: Endpoint>(
    next: Arc<E>,
    request: Request,
    last: &LastDecision,
) -> Result<Response, Duration> {
    let is_public = has_public_prefix(request.uri().path());
    let anonymous = is_public.then(|| (Arc::clone(auth::context(&request)), address(&request)));
    let failure = match next.call(request).await {
        Ok(output) => return Ok(output.into_response()),
        Err(failure) => failure,
    };
    if let Some((context, address)) = anonymous
        && is_unhandled(&failure)
    {
        apply(Some(last), context.accept.limiter.anonymous(address).await)?;
    }
    Ok(error::respond(failure))
}

async fn admit(request: &mut Request) -> Result<(), Duration> {
    let context = Arc::clone(auth::context(request));
    let limiter = &context.accept.limiter;
    if is_public(request.uri().path()) || dashboard::asks_for_dashboard(request) {
        return apply(request.data(), limiter.public(address(request)).await);
    }
    if signs_in(request) {
        // Not set as an identity: a session must not raise the limit on guesses.
        return count_anonymous(request).await;
    }
    let identity = availability::identify(request).await;
    request.set_data(identity.clone());
    let (id, rates) = match &identity {
        Identity::Key(key) => (key.record.organization_id, key.rates),
        Identity::Session(session) => (session.organization_id, session.rates),
        Identity::Anonymous => return count_anonymous(request).await,
        // The organization is unknown until Postgres is back. Until then the request counts
        // against the public limit: neither an organization's nor the anonymous one.
        Identity::Unresolved(_) => {
            return apply(request.data(), limiter.public(address(request)).await);
        }
    };
    let decision = limiter.organization(id, operation(request), rates).await;
    apply(request.data(), decision)
}

fn signs_in(request: &Request) -> bool {
    let path = request.uri().path();
    let is_post = request.method() == Method::POST;
    (is_post && SIGN_IN.contains(&path)) || path.starts_with(OIDC)
}

fn is_public(path: &str) -> bool {
    PUBLIC.contains(&path) || has_public_prefix(path)
}

fn has_public_prefix(path: &str) -> bool {
    PUBLIC_PREFIXES
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

/// Whether the path, or the method on this path, has no handler.
fn is_unhandled(failure: &poem::Error) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&failure.status())
}

fn operation(request: &Request) -> LimitedOperation {
    let (method, path) = (request.method(), request.uri().path());
    if (method == Method::POST && path == "/v1/send") || compat::is_send(method, path) {
        LimitedOperation::Send
    } else {
        LimitedOperation::Other
    }
}

fn apply(last: Option<&LastDecision>, decision: LimitDecision) -> Result<(), Duration> {
    if let Some(last) = last {
        last.set(decision);
    }
    match decision.retry_after {
        None => Ok(()),
        Some(wait) => Err(wait),
    }
}

/// The client's address. All clients without a known address share one limit.
fn address(request: &Request) -> IpAddr {
    auth::client_address(request).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

impl LastDecision {
    fn get(&self) -> Option<LimitDecision> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, decision: LimitDecision) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(decision);
    }
}
