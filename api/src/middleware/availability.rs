//! Fails fast while Postgres is away, or its schema older than this program: a request that
//! needs Postgres gets 503 at once. A request that is being served when Postgres goes away gets 503 as soon as the process
//! notices, whatever it waits for.
//!
//! The request behind such a 503 may have been done: the COMMIT may have arrived, and only
//! its answer was lost. So 503 means that the client may repeat the request; with an
//! `Idempotency-Key` it then gets the first response if the first request was done. To cut
//! a request off means to drop its future, as happens when a client disconnects; handlers
//! are written for that.
//!
//! Not affected: requests without a valid key (rejected without Postgres), health checks,
//! the OpenAPI document, tracked links and pixels. Unsubscribe links and provider events
//! have a short time in which to fail their signature check, which needs no Postgres.

use std::sync::Arc;
use std::time::Duration;

use poem::http::Method;
use poem::{Endpoint, IntoResponse, Request, Response};
use waypost_core::fault::Fault;

use crate::compat;
use crate::error::Failure;
use crate::middleware::auth::{self, Identity};
use crate::public::page::Pages;

/// Prefixes of the paths that need Postgres. The others are health checks and the document.
const OPERATIONS: [&str; 2] = ["/v1/", compat::BASE];
/// Prefix of tracked links and pixels.
const TRACKING: &str = "/v1/t/";
/// Prefix of the recipients' pages.
const PAGES: &str = "/v1/unsubscribe/";
/// Prefix of the URLs that providers post events to.
const PROVIDER_EVENTS: &str = "/v1/provider-events/";
/// How long the check of a token or a signature may take while Postgres is away.
const SIGNATURE_CHECK_MAX: Duration = Duration::from_millis(300);

/// Serves a request through `next`, unless it needs Postgres and Postgres is or goes away.
pub(crate) async fn wrap<E: Endpoint>(next: Arc<E>, request: Request) -> poem::Result<Response> {
    if !needs_postgres(&request) {
        return next.call(request).await.map(IntoResponse::into_response);
    }
    let liveness = auth::context(&request).accept.liveness.clone();
    let path = request.uri().path();
    let pages = path.starts_with(PAGES).then(|| Pages::of(&request));
    let is_signed = pages.is_some() || path.starts_with(PROVIDER_EVENTS);
    if liveness.is_away() && !is_signed {
        return Ok(unavailable(pages));
    }
    let cut_off = async {
        liveness.gone().await;
        if is_signed {
            tokio::time::sleep(SIGNATURE_CHECK_MAX).await;
        }
    };
    tokio::select! {
        biased;
        served = next.call(request) => served.map(IntoResponse::into_response),
        () = cut_off => Ok(unavailable(pages)),
    }
}

/// Looks up the API key of a request. While Postgres is away, only cached keys are found.
pub(crate) async fn identify(request: &Request) -> Identity {
    let liveness = &auth::context(request).accept.liveness;
    tokio::select! {
        biased;
        identity = auth::identify(request) => identity,
        () = liveness.gone() => Identity::Unresolved(postgres_is_away()),
    }
}

fn needs_postgres(request: &Request) -> bool {
    let path = request.uri().path();
    OPERATIONS.iter().any(|prefix| path.starts_with(prefix))
        && !path.starts_with(TRACKING)
        && request.method() != Method::HEAD
        && !matches!(request.data::<Identity>(), Some(Identity::Anonymous))
}

/// The answer while Postgres is away: a page for a recipient, or an error of the API.
fn unavailable(pages: Option<Pages>) -> Response {
    match pages {
        Some(pages) => pages.fault(postgres_is_away()).into_response(),
        None => Failure::Fault(postgres_is_away()).into_response(),
    }
}

fn postgres_is_away() -> Fault {
    Fault::unavailable("reach Postgres", "it does not answer")
}
