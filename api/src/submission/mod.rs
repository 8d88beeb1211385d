//! SMTP submission: the program `waypost-smtp` takes mail over SMTP (RFC 6409) and accepts it as
//! `POST /v1/send` does: by the same checks, limits, suppressions and idempotency keys.
//!
//! `session` speaks with one client over a `connection`; `login` finds the API key. `request`
//! makes of a mail the request of `POST /v1/send`, `submit` has it accepted, and `reply` writes
//! the answer. `slots` bounds the sessions, `certificate` has the TLS certificate.
//!
//! What a 250 after a mail promises is what a 202 promises: the messages are committed. The
//! program keeps nothing itself, so any number of them may run.

mod certificate;
mod connection;
mod login;
pub mod program;
mod reply;
mod request;
mod session;
mod slots;
mod submit;
#[cfg(test)]
mod tests;
mod transaction;
mod waypost_headers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use waypost_core::clock::{Clock, Timestamp};
use waypost_core::config::{CertificateFiles, Settings, SubmissionSettings};
use waypost_core::fault::Fault;
use waypost_core::health_server;
use waypost_core::startup;
use waypost_core::telemetry::instruments;

use crate::accept_context::AcceptContext;
use certificate::TlsCertificate;
use session::{FirstBytes, SessionLimits, serve_client};
use slots::{SessionSlot, SessionSlots};

/// The wait after a connection could not be accepted, for example because the process is out of
/// file descriptors.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What all sessions share.
struct Submission {
    accept: AcceptContext,
    settings: SubmissionSettings,
    certificate: Option<TlsCertificate>,
    limits: SessionLimits,
    /// Cancelled when sessions end with their next reply.
    closing: CancellationToken,
}

/// Checks the files of a certificate; when it expires, if that can be read.
///
/// # Errors
/// What is wrong, with the setting and the path.
pub(crate) fn check_certificate(files: &CertificateFiles) -> Result<Option<Timestamp>, String> {
    certificate::read(files)?;
    Ok(certificate::expires_at(files))
}

/// The sockets of the program.
pub struct SubmissionListeners {
    /// For sessions that begin without TLS.
    pub starttls: TcpListener,
    /// For those that begin with it.
    pub tls: Option<TcpListener>,
}

impl SubmissionListeners {
    /// Binds the addresses of the settings.
    ///
    /// # Errors
    /// A fault that names the setting.
    pub async fn bind(settings: &SubmissionSettings) -> Result<Self, Fault> {
        const LISTEN: &str = "listen on WAYPOST_SUBMISSION_LISTEN";
        const TLS_LISTEN: &str = "listen on WAYPOST_SUBMISSION_TLS_LISTEN";
        let starttls = listen(settings.listen, LISTEN).await?;
        let tls = match settings.tls_listen {
            Some(address) => Some(listen(address, TLS_LISTEN).await?),
            None => None,
        };
        Ok(Self { starttls, tls })
    }
}

async fn listen(address: SocketAddr, doing: &'static str) -> Result<TcpListener, Fault> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Fault::internal(doing, format!("{address}: {error}")))
}

/// Serves SMTP clients until `shutdown`. Mails that are being received then have the configured
/// time to end.
///
/// # Errors
/// A fault if the configuration cannot be used.
pub async fn serve(
    settings: &Settings,
    clock: Clock,
    listeners: SubmissionListeners,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let own = &settings.submission;
    if own.requires_tls && own.certificate.is_none() {
        return Err(Fault::internal(
            "start",
            "WAYPOST_SUBMISSION_TLS_CERTIFICATE and WAYPOST_SUBMISSION_TLS_KEY are required in production: clients log in over TLS only",
        ));
    }
    let certificate = own.certificate.clone().map(TlsCertificate::load);
    let mut accept = AcceptContext::new(settings, &clock, 0)?;
    accept.readiness = accept.readiness.until(shutdown.clone());
    let submission = Submission {
        accept,
        settings: own.clone(),
        certificate: certificate.transpose()?,
        limits: session::LIMITS,
        closing: CancellationToken::new(),
    };
    health_server::serve(
        settings.monitoring.health_listen,
        submission.accept.readiness.clone(),
        None,
        shutdown.clone(),
    )
    .await?;
    startup::check(settings, &submission.accept.pool).await?;
    // Mails that are being accepted need these tasks, so the tasks end after the last session.
    let served = CancellationToken::new();
    let _cancel_on_return = served.clone().drop_guard();
    submission.accept.start(settings, &served).await;
    info!("Serving SMTP submission");
    let stop = async {
        shutdown.cancelled().await;
        tokio::time::sleep(settings.api.shutdown_delay).await;
    };
    run(Arc::new(submission), listeners, stop, settings.api.shutdown).await;
    Ok(())
}

async fn run(
    submission: Arc<Submission>,
    listeners: SubmissionListeners,
    stop: impl Future<Output = ()>,
    shutdown_max: Duration,
) {
    let slots = SessionSlots::new(&submission.settings);
    let sessions = TaskTracker::new();
    let mut stop = std::pin::pin!(stop);
    let SubmissionListeners { starttls, tls } = listeners;
    loop {
        let (accepted, first) = tokio::select! {
            () = &mut stop => break,
            accepted = starttls.accept() => (accepted, FirstBytes::Greeting),
            accepted = accept_tls(tls.as_ref()) => (accepted, FirstBytes::TlsHandshake),
        };
        match accepted {
            Ok((stream, peer)) => {
                let slot = slots.take(peer.ip());
                begin(&submission, &sessions, stream, (peer, first), slot);
            }
            Err(error) => {
                warn!("Could not accept a connection: {error}");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
    drop((starttls, tls));
    submission.closing.cancel();
    sessions.close();
    if tokio::time::timeout(shutdown_max, sessions.wait())
        .await
        .is_err()
    {
        info!(
            sessions = sessions.len(),
            "Closed the SMTP sessions whose mails did not end in time"
        );
    }
}

/// Accepts on the listener for TLS, if there is one.
async fn accept_tls(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Begins a session, or says that there are too many.
fn begin(
    submission: &Arc<Submission>,
    sessions: &TaskTracker,
    mut stream: TcpStream,
    (peer, first): (SocketAddr, FirstBytes),
    slot: Result<SessionSlot, slots::NoSlot>,
) {
    // Without Nagle's algorithm: replies are small, and the client waits for each.
    let _slower = stream.set_nodelay(true);
    match slot {
        Ok(slot) => {
            let submission = Arc::clone(submission);
            sessions.spawn(async move {
                serve_client(&submission, stream, peer.ip(), first).await;
                drop(slot);
            });
        }
        Err(no_slot) => {
            instruments::submission_refused("sessions");
            // Before a handshake the client could not read it.
            if first == FirstBytes::Greeting {
                let reply = reply::SubmissionReply::new(421, "4.7.0", &no_slot.to_string());
                sessions.spawn(async move {
                    let bytes = reply.into_bytes();
                    let written = stream.write_all(&bytes);
                    let _sent = tokio::time::timeout(ACCEPT_AGAIN_AFTER, written).await;
                });
            }
        }
    }
}
