//! While Postgres is away: requests that need it are answered 503 at once, and those
//! that are being served the moment that it is noticed, whatever they wait for. So
//! nobody waits longer than it takes to notice.
//!
//! A request that is cut off may have been carried out: its COMMIT may have arrived,
//! and the answer to it is what was lost. A 503 says that nobody knows, and that the
//! request may be repeated; whoever sends an `Idempotency-Key` with it gets the answer
//! of the first where that was carried out. To cut off is to drop what serves it, as
//! happens when a client goes away: all that is done is made for that.
//!
//! What is let through: requests without a valid key, which are refused without
//! Postgres; health; the document; tracked links and pixels, which work without it.
//! Unsubscribe links and provider events have a moment in which to turn out invalid.

use std::sync::Arc;
use std::time::Duration;

use poem::http::Method;
use poem::{Endpoint, IntoResponse, Request, Response};
use waypost_core::fault::Fault;

use crate::auth::{self, Identity};
use crate::error::Failure;
use crate::public::page::HtmlPage;

/// What paths begin with that need Postgres. The rest are health and the document.
const OPERATIONS: &str = "/v1/";
/// Tracked links and pixels.
const TRACKING: &str = "/v1/t/";
/// Pages for people.
const PAGES: &str = "/v1/unsubscribe/";
/// What providers tell.
const PROVIDERS: &str = "/v1/provider-events/";
/// How long it may take to find that a token or a signature is not valid, which is
/// said without Postgres.
const SIGNATURE_PATIENCE: Duration = Duration::from_millis(300);

/// Serves one request through `next`, unless Postgres is away or goes away.
pub(crate) async fn wrap<E: Endpoint>(next: Arc<E>, request: Request) -> poem::Result<Response> {
    if !needs_postgres(&request) {
        return next.call(request).await.map(IntoResponse::into_response);
    }
    let pulse = auth::context(&request).pulse.clone();
    let path = request.uri().path();
    let is_page = path.starts_with(PAGES);
    let is_signed = is_page || path.starts_with(PROVIDERS);
    if pulse.is_away() && !is_signed {
        return Ok(refuse(is_page));
    }
    let cut_off = async {
        pulse.gone().await;
        if is_signed {
            tokio::time::sleep(SIGNATURE_PATIENCE).await;
        }
    };
    tokio::select! {
        biased;
        served = next.call(request) => served.map(IntoResponse::into_response),
        () = cut_off => Ok(refuse(is_page)),
    }
}

/// Looks up the key of a request, unless it is not remembered and Postgres is away.
pub(crate) async fn identify(request: &Request) -> Identity {
    let pulse = &auth::context(request).pulse;
    tokio::select! {
        biased;
        identity = auth::identify(request) => identity,
        () = pulse.gone() => Identity::Undecided(away()),
    }
}

fn needs_postgres(request: &Request) -> bool {
    let path = request.uri().path();
    path.starts_with(OPERATIONS)
        && !path.starts_with(TRACKING)
        && request.method() != Method::HEAD
        && !matches!(request.data::<Identity>(), Some(Identity::Stranger))
}

fn refuse(is_page: bool) -> Response {
    if is_page {
        HtmlPage::from(away()).into_response()
    } else {
        Failure::Fault(away()).into_response()
    }
}

fn away() -> Fault {
    Fault::unavailable("reach Postgres", "nothing answers there")
}
