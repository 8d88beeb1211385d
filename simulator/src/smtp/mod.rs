//! A mail server for submission, as strict as the ones of today: what Postfix would refuse is
//! refused with its words and its codes.
//!
//! The characters: `session` is one client's conversation; `lines` reads what it says and cuts the
//! connection; `credentials`' magic words decide about its login, `recipients` about its mail;
//! `letter` takes a mail apart. One listener begins in the clear and offers STARTTLS, the other
//! is encrypted from the first byte. Both show a certificate that each process makes anew.
//!
//! What is no line of RFC 5321 is refused, in commands and in mails: a CR or a LF that stands
//! alone, a NUL; and only CR LF, a dot, CR LF end a mail. A mail is kept as it came, too.
//!
//! What it does not do: relay, send bounces, or ask for a login where none is given.

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

/// The largest mail that is taken, in bytes.
pub(crate) const MAIL_BYTES_MAX: usize = 26_214_400;
/// How long to wait before accepting again when the process is out of sockets.
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

/// The certificate of this process's simulators, in PEM: for `localhost`, `smtp.example.com`,
/// 127.0.0.1 and ::1.
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

/// Listens until the simulator stops; says where.
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
                    // Answers are small and waited for; without the option they only come later.
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
                // Out of file descriptors, or a client that went away: neither ends the server.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}
