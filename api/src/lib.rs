//! Waypost's HTTP API and the operator's commands.
//!
//! A request passes through `middleware` (request id, API key, rate limit, unknown fields,
//! availability of Postgres) and reaches a handler in `v1` or `public`. A handler checks the
//! permission, parses the request into domain types, calls `waypost-core` and writes the
//! response. `compat` does the same for requests in the forms of other vendors. `error` is the only module that turns refusals and faults into HTTP statuses.

mod accept_context;
mod compat;
mod context;
mod dashboard;
mod error;
mod fields;
mod middleware;
mod openapi;
pub mod operator;
mod public;
mod request;
mod response;
mod routes;
mod served;
mod server;
pub mod submission;
mod v1;
mod validate;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::fault::Fault;
use waypost_core::health_server;
use waypost_core::ids::Ids;
use waypost_core::provider::kind::ProviderType;
use waypost_core::startup;
use waypost_core::telemetry::instruments;

use context::Context;

/// Serves the API on `listener` until `shutdown`. Requests in flight then have the
/// configured time to end.
///
/// # Errors
/// A fault if the configuration cannot be used.
pub async fn serve(
    settings: &Settings,
    clock: Clock,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let mut context = Context::new(settings, &clock)?;
    context.accept.readiness = context.accept.readiness.until(shutdown.clone());
    let readiness = context.accept.readiness.clone();
    instruments::begin_posts(ProviderType::ALL.map(ProviderType::as_str));
    health_server::serve(
        settings.monitoring.health_listen,
        readiness,
        None,
        shutdown.clone(),
    )
    .await?;
    startup::check(settings, &context.pool).await?;
    let context = Arc::new(context);
    // Requests in flight need these tasks, so the tasks end after the last request and not
    // at `shutdown`.
    let served = CancellationToken::new();
    let _cancel_on_return = served.clone().drop_guard();
    context.accept.start(settings, &served).await;
    info!("Serving the API");
    let limits = server::ServerLimits {
        connections_max: settings.api.connections_max,
        shutdown_delay: settings.api.shutdown_delay,
        shutdown: settings.api.shutdown,
    };
    let routes = routes::routes(&context, Ids::new(clock));
    server::run(listener, routes, limits, shutdown).await;
    Ok(())
}

/// The OpenAPI document as JSON. It is the same for every configuration, so this function
/// uses example settings and connects to nothing.
///
/// # Errors
/// A fault if the parts of an API process cannot be created.
pub fn document() -> Result<serde_json::Value, Fault> {
    let examples = [
        ("DATABASE_URL", "postgres://localhost/waypost"),
        ("WAYPOST_ENV", "development"),
    ];
    let examples = examples.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = Settings::from_map(&examples.into())
        .map_err(|error| Fault::internal("read the example settings", error))?;
    let context = Arc::new(Context::new(&settings, &Clock::system())?);
    Ok(openapi::document(&openapi::service(&context)))
}

/// The tables of docs/compatibility.md, by their names: what Waypost does with each field of
/// other vendors' requests.
#[must_use]
pub fn compatibility_tables() -> Vec<(&'static str, String)> {
    compat::tables()
}

/// The same as text with line breaks.
///
/// # Errors
/// As [`document`].
pub fn document_text() -> Result<String, Fault> {
    document().map(|document| openapi::text::write(&document))
}
