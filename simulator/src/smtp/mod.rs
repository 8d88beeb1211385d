//! An SMTP submission server, as strict as current servers: it rejects what Postfix would
//! reject, with the same texts and codes.
//!
//! `session` is a client's session; `lines` reads commands and resets connections;
//! `credentials`' magic words decide about the login, `recipients` about a message;
//! `mime_message` parses a message. One listener offers STARTTLS, the other is encrypted
//! from the first byte. Both use a certificate that each process generates.
//!
//! In commands and messages it rejects every line that is invalid by RFC 5321: a CR or an
//! LF that stands alone, a NUL. Only CR LF, a dot, CR LF end a message. A message is also
//! kept as it arrived.
//!
//! It does not relay, sends no bounces, and does not demand a login.

pub(crate) mod control;
mod lines;
mod mime_message;
mod session;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_util::task::TaskTracker;

use crate::state::State;
use session::Session;

const NAMES: [&str; 4] = ["localhost", "smtp.example.com", "127.0.0.1", "::1"];

/// The largest accepted message, in bytes.
pub(crate) const MAIL_BYTES_MAX: usize = 26_214_400;
/// Pause before the next accept when the process is out of sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

static CERTIFIED: LazyLock<CertifiedKey<KeyPair>> = LazyLock::new(|| {
    let names = NAMES.map(str::to_owned);
    rcgen::generate_simple_self_signed(names).expect("constant names fit into a certificate")
});

static ACCEPTOR: LazyLock<TlsAcceptor> = LazyLock::new(|| {
    let certificate = CERTIFIED.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(CERTIFIED.signing_key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key belongs to the certificate");
    TlsAcceptor::from(Arc::new(config))
});

/// The certificate of this process's simulators, in PEM: for `localhost`,
/// `smtp.example.com`, 127.0.0.1 and ::1.
#[must_use]
pub fn smtp_certificate() -> String {
    CERTIFIED.cert.pem()
}

/// When a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// When the client asks for it.
    Offered,
    Implicit,
}

/// Listens until the simulator stops; returns the address.
pub(crate) fn listen(
    address: SocketAddr,
    encryption: Encryption,
    state: &Arc<State>,
    tasks: &TaskTracker,
) -> io::Result<SocketAddr> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    let accepting = accept(listener, encryption, Arc::clone(state), tasks.clone());
    tasks.spawn_on(accepting, &runtime);
    Ok(address)
}

async fn accept(
    listener: TcpListener,
    encryption: Encryption,
    state: Arc<State>,
    tasks: TaskTracker,
) {
    loop {
        tokio::select! {
            () = state.stopping.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // TCP_NODELAY: replies are small and clients wait for them. Without
                    // it they are just slower.
                    let _ = stream.set_nodelay(true);
                    state.smtp_connections.fetch_add(1, Ordering::Relaxed);
                    let stopping = state.stopping.clone();
                    let session = Session::run(stream, encryption, Arc::clone(&state));
                    tasks.spawn(async move {
                        tokio::select! {
                            () = stopping.cancelled() => {}
                            () = session => {}
                        }
                    });
                }
                // Out of file descriptors, or the client disconnected: neither ends the
                // server.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}
