//! Rate limits: every request is counted before it is served, and every answer
//! says in its headers what was left.
//!
//! | request | limit |
//! |---|---|
//! | `POST /v1/send` with a valid key | the organization's sends |
//! | anything else with a valid key, whether or not there is such a path | the organization's other requests |
//! | without a valid key | its address's, as a *stranger* |
//! | to an *open* path | its address's, wide and in this process alone |
//! | with a key that Postgres could not be asked about | the same |
//!
//! The key is looked up first. So a valid one is served however many strangers
//! call from the same address, and wrong keys count as none.
//!
//! Open paths take no key. Where their requests carry a token or a signature that
//! turns out not to be valid, the handler calls [`count_stranger`]; it must not
//! for those that are valid, which nothing holds back. Where nobody handles them they
//! carry none, and count as a stranger's too.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poem::http::{HeaderValue, Method, StatusCode};
use poem::{Endpoint, IntoResponse, Request, Response};
use waypost_core::limit::{LimitDecision, LimitedOperation};

use crate::auth::{self, Identity};
use crate::error::{self, Failure};
use crate::middleware::availability;

/// Paths that take no key.
const OPEN: [&str; 6] = [
    "/",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/docs/",
];
/// What paths begin with that take a token or a signature instead of a key.
const OPEN_BELOW: [&str; 3] = ["/v1/unsubscribe/", "/v1/t/", "/v1/provider-events/"];

/// The verdict that a request's answer shows: the last one.
#[derive(Debug, Clone, Default)]
struct LastDecision(Arc<Mutex<Option<LimitDecision>>>);

/// Serves one request through `next`, if it is within its limit.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
) -> poem::Result<Response> {
    let shown = LastDecision::default();
    request.set_data(shown.clone());
    let served = match admit(&mut request).await {
        Ok(()) => serve(next, request, &shown).await,
        Err(wait) => Err(wait),
    };
    let mut response = served.unwrap_or_else(|wait| Failure::RateLimited(wait).into_response());
    if let Some(verdict) = shown.get() {
        let headers = response.headers_mut();
        headers.insert("x-ratelimit-limit", HeaderValue::from(verdict.limit));
        headers.insert(
            "x-ratelimit-remaining",
            HeaderValue::from(verdict.remaining),
        );
        let reset = whole_seconds(verdict.full_after);
        headers.insert("x-ratelimit-reset", HeaderValue::from(reset));
    }
    Ok(response)
}

/// Counts a request whose token or signature is not valid.
///
/// # Errors
/// How long to wait, where its address has made too many of them.
pub(crate) async fn count_stranger(request: &Request) -> Result<(), Duration> {
    let limiter = &auth::context(request).limiter;
    judge(request.data(), limiter.stranger(address(request)).await)
}

/// A span in seconds, rounded up.
pub(crate) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

/// Serves a request that was admitted.
///
/// # Errors
/// How long to wait, where it is below an open path, nobody handles it and its address has
/// made too many of them.
async fn serve<E: Endpoint>(
    next: Arc<E>,
    request: Request,
    shown: &LastDecision,
) -> Result<Response, Duration> {
    let is_open = is_open_below(request.uri().path());
    let stranger = is_open.then(|| (Arc::clone(auth::context(&request)), address(&request)));
    let failure = match next.call(request).await {
        Ok(output) => return Ok(output.into_response()),
        Err(failure) => failure,
    };
    if let Some((context, address)) = stranger
        && is_unhandled(&failure)
    {
        judge(Some(shown), context.limiter.stranger(address).await)?;
    }
    Ok(error::respond(failure))
}

async fn admit(request: &mut Request) -> Result<(), Duration> {
    let context = Arc::clone(auth::context(request));
    let limiter = &context.limiter;
    if is_open(request.uri().path()) {
        return judge(request.data(), limiter.open(address(request)).await);
    }
    let identity = availability::identify(request).await;
    request.set_data(identity.clone());
    match &identity {
        Identity::Known(key) => {
            let (id, rates) = (key.record.organization_id, key.rates);
            let operation = operation(request);
            judge(
                request.data(),
                limiter.organization(id, operation, rates).await,
            )
        }
        Identity::Stranger => count_stranger(request).await,
        // Who it is will be known when Postgres is back: until then it is neither
        // held to an organization's limit nor taken for a stranger.
        Identity::Undecided(_) => judge(request.data(), limiter.open(address(request)).await),
    }
}

fn is_open(path: &str) -> bool {
    OPEN.contains(&path) || is_open_below(path)
}

fn is_open_below(path: &str) -> bool {
    OPEN_BELOW.iter().any(|start| path.starts_with(start))
}

/// Whether there is no such path, or no such method of it.
fn is_unhandled(failure: &poem::Error) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&failure.status())
}

fn operation(request: &Request) -> LimitedOperation {
    if request.method() == Method::POST && request.uri().path() == "/v1/send" {
        LimitedOperation::Send
    } else {
        LimitedOperation::Other
    }
}

fn judge(shown: Option<&LastDecision>, verdict: LimitDecision) -> Result<(), Duration> {
    if let Some(shown) = shown {
        shown.set(verdict);
    }
    match verdict.refused_for {
        None => Ok(()),
        Some(wait) => Err(wait),
    }
}

/// The client's address. Those whose address nobody knows share one limit.
fn address(request: &Request) -> IpAddr {
    auth::client_address(request).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

impl LastDecision {
    fn get(&self) -> Option<LimitDecision> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, verdict: LimitDecision) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
    }
}
