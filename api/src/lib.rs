//! Waypost's HTTP API: the operations of the contract, their document, health.
//!
//! A request goes through the *envelope* (its id, its log span, the error form),
//! the *limits* (whose key it carries, and whether it is one too many), the *caller*
//! (there must be one), and a *handler*, which authorizes, parses into domain types,
//! calls the core and shapes the answer. HTTP ends here: refusals of the domain
//! become answers in `error`, and nowhere else.

mod auth;
mod body;
mod context;
mod error;
mod fields;
mod health;
mod idempotency;
mod ids;
mod middleware;
mod openapi;
pub mod operator;
mod path;
mod provider_events;
mod public;
mod query;
mod response;
mod server;
mod unknown_fields;
mod v1;
mod validate;

use std::any::Any;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use poem::endpoint::make_sync;
use poem::http::Method;
use poem::middleware::CatchPanic;
use poem::web::Redirect;
use poem::{Endpoint, EndpointExt, IntoResponse, Request, Response, Route, get};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db;
use waypost_core::fault::Fault;
use waypost_core::ids::Ids;
use waypost_core::startup;

use context::Context;
use error::Failure;
use middleware::{availability, rate_limits, request_id};
use openapi::methods::{self, Methods};
use unknown_fields::KnownFields;

/// Serves the API on `listener` until `shutdown`, then lets requests in flight end
/// within the configured bound.
///
/// # Errors
/// A fault when the configuration cannot be used.
pub async fn serve(
    settings: &Settings,
    clock: Clock,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let mut context = Context::new(settings, &clock)?;
    context.readiness = context.readiness.until(shutdown.clone());
    startup::check(settings, &context.pool).await?;
    let context = Arc::new(context);
    // What requests rely on goes on as long as any are served.
    let served = CancellationToken::new();
    let _ends = served.clone().drop_guard();
    let snapshots = context.accounts.snapshots.clone();
    tokio::spawn(snapshots.listen(served.clone()));
    let pulse = context.pulse.clone();
    // Where Postgres is away the pulse corrects the clock before anything is accepted.
    if clock.is_machines()
        && let Err(fault) = db::time::correct(&clock, &context.pool).await
    {
        warn!(cause = fault.chain(), "The time is not known yet");
    }
    let (url, time) = (settings.database_url.clone(), clock.clone());
    tokio::spawn(pulse.keep(url, time, served));
    info!("Serving the API");
    let bounds = server::Bounds {
        connections_max: settings.api.connections_max,
        shutdown_delay: settings.api.shutdown_delay,
        shutdown: settings.api.shutdown,
    };
    let routes = routes(&context, Ids::new(clock));
    server::run(listener, routes, bounds, shutdown).await;
    Ok(())
}

/// The document of the API as JSON, for generated files. It does not depend on the
/// configuration, so none is asked for.
///
/// # Errors
/// A fault when the parts of an API process cannot be put together.
pub fn document() -> Result<serde_json::Value, Fault> {
    let nowhere = [
        ("DATABASE_URL", "postgres://localhost/waypost"),
        ("WAYPOST_ENV", "development"),
    ];
    let nowhere = nowhere.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = Settings::from_map(&nowhere.into())
        .map_err(|error| Fault::internal("read the example settings", error))?;
    let context = Arc::new(Context::new(&settings, &Clock::system())?);
    Ok(openapi::document(&openapi::service(&context)))
}

fn routes(context: &Arc<Context>, ids: Ids) -> impl Endpoint<Output = Response> + use<> {
    let service = openapi::service(context);
    let document = openapi::document(&service);
    let methods = Arc::new(Methods::of(&document));
    let known = Arc::new(KnownFields::of(&document));
    // Shared by all answers: a copy for each of thousands of slow readers would be much.
    let document = Bytes::from(document.to_string());
    let shown = document.clone();
    // Made when it is asked for first: with the viewer it is 2 MB, which a process that
    // nobody asks for it need not hold.
    let page = LazyLock::new(move || Bytes::from(openapi::page(&String::from_utf8_lossy(&shown))));
    Route::new()
        .at("/healthz", get(health::healthz))
        .at("/readyz", get(health::readyz))
        .at(
            "/openapi.json",
            get(make_sync(move |_| {
                document
                    .clone()
                    .with_content_type("application/json")
                    .into_response()
            })),
        )
        .at(
            "/docs",
            get(make_sync(move |_| {
                page.clone()
                    .with_content_type("text/html; charset=utf-8")
                    .into_response()
            })),
        )
        // Relative: whatever stands in front of the API may serve it under another path.
        .at("/docs/", get(make_sync(|_| Redirect::see_other("../docs"))))
        .nest("/", service.around(lead_to_docs))
        .with(CatchPanic::new().with_handler(panicked))
        .around(availability::wrap)
        .around(move |next, request| unknown_fields::wrap(next, request, Arc::clone(&known)))
        .around(rate_limits::wrap)
        .data(Arc::clone(context))
        .around(move |next, request| request_id::wrap(next, request, ids.clone()))
        .around(move |next, request| methods::wrap(next, request, Arc::clone(&methods)))
}

/// Leads whoever opens the address alone to the documentation.
async fn lead_to_docs<E: Endpoint>(next: Arc<E>, request: Request) -> poem::Result<Response> {
    if request.uri().path() == "/" && request.method() == Method::GET {
        return Ok(Redirect::see_other("docs").into_response());
    }
    next.call(request).await.map(IntoResponse::into_response)
}

/// The answer where a handler panicked; the panic itself is in the log.
fn panicked(_payload: Box<dyn Any + Send>) -> Response {
    Failure::Fault(Fault::internal("serve a request", "it panicked")).into_response()
}
