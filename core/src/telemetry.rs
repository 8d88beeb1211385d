//! What processes share at their edges: the signal to stop, and log lines, where
//! they go and in what form. What those may hold is a rule for whoever writes
//! them: never an address, a subject, a body, a key or a token.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Starts logging to standard error. Called once, first thing in a process; a
/// second call does nothing.
pub fn init(filter: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that a subscriber is set already: tests share one.
    let _already_set = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Cancels `shutdown` when the process is asked to stop, by SIGTERM or Ctrl-C.
pub async fn cancel_on_signal(shutdown: CancellationToken) {
    let mut terminated = match signal(SignalKind::terminate()) {
        Ok(terminated) => terminated,
        Err(error) => {
            tracing::error!("Cannot listen for SIGTERM: {error}");
            return;
        }
    };
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tracing::info!("Stopping");
    shutdown.cancel();
}
