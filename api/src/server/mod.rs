//! The HTTP server: connections, and time-outs for slow clients.
//!
//! Poem's own server waits without limit for the head of a request, for its body and for
//! a client that does not read its response, and its accept loop spins when the process
//! is out of file descriptors. So this module has its own accept loop around poem's
//! endpoint. It speaks only HTTP/1.1: a proxy that terminates TLS can speak HTTP/2 to
//! clients, and attacks on a server with HTTP/2 streams and resets are impossible here.
//!
//! | what | limit |
//! |---|---|
//! | the head of a request, from the start of the connection or from its first byte | 10 s |
//! | size of the head; header fields | 64 KiB; 100 |
//! | a body | 30 s, plus a second for each 32 KiB received |
//! | a client that reads nothing of its response | 30 s |
//! | a connection between requests | 75 s |
//! | the rest of a body whose request was answered before the body was read | 30 s, 5 s without a byte, 64 MiB |
//! | connections | a setting; further ones wait to be accepted |
//!
//! On shutdown the process accepts no new connections. Requests that arrive within one
//! more second on open connections are answered, the last one with `Connection: close`: a
//! client that sends at that moment cannot know of the shutdown and must not be cut off.

mod body;
mod stream;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use poem::http::header::{CONNECTION, HeaderValue};
use poem::http::uri::Scheme;
use poem::web::{LocalAddr, RemoteAddr};
use poem::{Addr, Endpoint, Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use body::{BodyTimeout, timed};
use stream::{ConnectionProgress, TimeoutStream};

/// How long the server waits for a client.
#[derive(Debug, Clone, Copy)]
struct ClientTimeouts {
    /// For the head of a request.
    head: Duration,
    /// For the body of a request.
    body: BodyTimeout,
    /// For a client to read some of a response.
    stalled: Duration,
    /// For the next request on a connection.
    idle: Duration,
    /// For the rest of a body whose request was answered before the body was read.
    unread: Duration,
    /// For the next byte of such a body.
    unread_idle: Duration,
}

const TIMEOUTS: ClientTimeouts = ClientTimeouts {
    head: Duration::from_secs(10),
    body: BodyTimeout {
        fixed: Duration::from_secs(30),
        bytes_per_second_min: 32 << 10,
    },
    stalled: Duration::from_secs(30),
    idle: Duration::from_secs(75),
    // As lingering_time and lingering_timeout of nginx.
    unread: Duration::from_secs(30),
    unread_idle: Duration::from_secs(5),
};
/// The longest head, in bytes: request line and header fields.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The most header fields of a request.
const HEAD_FIELDS_MAX: usize = 100;
/// How long a connection without traffic stays open after the shutdown began.
const LINGER: Duration = Duration::from_secs(1);
/// The most bytes read of a body whose request was answered before the body was read:
/// more than any allowed body has.
const UNREAD_BYTES_MAX: usize = 64 << 20;
/// The wait after a connection could not be accepted, for example because the process is
/// out of file descriptors.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The limits of the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerLimits {
    /// The most connections at the same time.
    pub(crate) connections_max: usize,
    /// How long the server continues as before after the shutdown signal, so that a proxy
    /// that polls the readiness stops sending requests.
    pub(crate) shutdown_delay: Duration,
    /// How long requests in flight may take after that.
    pub(crate) shutdown: Duration,
}

/// Serves `endpoint` on `listener` until `shutdown`. Requests in flight then have the
/// time in `limits` to end.
pub(crate) async fn run(
    listener: TcpListener,
    endpoint: impl Endpoint<Output = Response> + 'static,
    limits: ServerLimits,
    shutdown: CancellationToken,
) {
    let server = Server {
        endpoint: Arc::new(endpoint),
        slots: Arc::new(Semaphore::new(limits.connections_max)),
        connections: TaskTracker::new(),
        closing: CancellationToken::new(),
        cut: CancellationToken::new(),
    };
    let mut stop = pin!(async {
        shutdown.cancelled().await;
        tokio::time::sleep(limits.shutdown_delay).await;
    });
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &server.slots) => {
                if let Some((stream, addresses, slot)) = accepted {
                    server.serve(stream, addresses, slot);
                }
            }
        }
    }
    server.take_last(listener);
    server.closing.cancel();
    let Server {
        connections, cut, ..
    } = server;
    connections.close();
    if tokio::time::timeout(limits.shutdown, connections.wait())
        .await
        .is_err()
    {
        info!(
            connections = connections.len(),
            "Closed the connections whose requests did not end in time"
        );
        cut.cancel();
        connections.wait().await;
    }
}

/// The state that all connections share.
struct Server<E> {
    endpoint: Arc<E>,
    slots: Arc<Semaphore>,
    connections: TaskTracker,
    /// Cancelled when each connection must end with its next response.
    closing: CancellationToken,
    /// Cancelled when each connection must end at once.
    cut: CancellationToken,
}

impl<E: Endpoint<Output = Response> + 'static> Server<E> {
    fn serve(&self, stream: TcpStream, addresses: PeerAddresses, slot: OwnedSemaphorePermit) {
        let endpoint = Arc::clone(&self.endpoint);
        let closing = self.closing.clone();
        let serving = serve_connection(stream, addresses, endpoint, TIMEOUTS, closing);
        let cut = self.cut.clone();
        self.connections.spawn(async move {
            let _ended_or_cut = cut.run_until_cancelled(serving).await;
            drop(slot);
        });
    }

    /// Accepts the connections that wait in the listener's queue, then closes the
    /// listener. Closing it first would cut them off.
    fn take_last(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else {
            return;
        };
        // The listener does not block: without a waiting connection it returns an error.
        while let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned()
            && let Ok((stream, peer)) = listener.accept()
        {
            let stream = stream.set_nonblocking(true).map(|()| stream);
            if let Ok(stream) = stream.and_then(TcpStream::from_std) {
                let addresses = addresses_of(&stream, peer);
                self.serve(stream, addresses, slot);
            }
        }
    }
}

/// The addresses of a connection.
#[derive(Clone)]
struct PeerAddresses {
    local: LocalAddr,
    remote: RemoteAddr,
}

/// Accepts the next connection as soon as the number of connections allows it; `None` if
/// the system call failed.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, PeerAddresses, OwnedSemaphorePermit)> {
    // The semaphore is never closed, so this cannot fail.
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            let addresses = addresses_of(&stream, peer);
            Some((stream, addresses, slot))
        }
        Err(error) => {
            warn!("Could not accept a connection: {error}");
            tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            None
        }
    }
}

fn addresses_of(stream: &TcpStream, peer: SocketAddr) -> PeerAddresses {
    // Without Nagle's algorithm: responses are small and written at once. If the option
    // cannot be set, they only arrive a little later.
    let _as_it_is = stream.set_nodelay(true);
    let local = stream.local_addr().unwrap_or(peer);
    PeerAddresses {
        local: LocalAddr(Addr::SocketAddr(local)),
        remote: RemoteAddr(Addr::SocketAddr(peer)),
    }
}

/// Serves a connection until it ends. Once `closing` is cancelled, the connection ends
/// after the response that no other request follows, or after some time without traffic.
async fn serve_connection<S, E>(
    mut stream: S,
    addresses: PeerAddresses,
    endpoint: Arc<E>,
    timeouts: ClientTimeouts,
    closing: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    E: Endpoint<Output = Response>,
{
    let is_unread = AtomicBool::new(false);
    serve_requests(
        &mut stream,
        addresses,
        endpoint,
        timeouts,
        closing,
        &is_unread,
    )
    .await;
    if is_unread.into_inner() {
        discard(&mut stream, timeouts).await;
    }
}

/// Reads and discards the rest of a body whose request was answered before the body was
/// read. A connection that is closed with unread bytes is reset, and the client may lose
/// the response.
async fn discard(stream: &mut (impl AsyncRead + Unpin), timeouts: ClientTimeouts) {
    let until_end = async {
        // On the heap: as a part of the future, each connection would hold it.
        let mut bytes = vec![0; 16 << 10];
        let mut count = 0;
        while count < UNREAD_BYTES_MAX {
            let read = stream.read(&mut bytes);
            match tokio::time::timeout(timeouts.unread_idle, read).await {
                Ok(Ok(read @ 1..)) => count += read,
                Ok(Ok(0) | Err(_)) | Err(_) => break,
            }
        }
    };
    let _ended_or_not = tokio::time::timeout(timeouts.unread, until_end).await;
}

async fn serve_requests<S, E>(
    stream: S,
    addresses: PeerAddresses,
    endpoint: Arc<E>,
    timeouts: ClientTimeouts,
    closing: CancellationToken,
    is_unread: &AtomicBool,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    E: Endpoint<Output = Response>,
{
    let service = ConnectionProgress::default();
    let stream = TimeoutStream::new(stream, &timeouts, service.clone());
    let (state, is_closing) = (service.clone(), closing.clone());
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let begun = service.begin();
        let (state, is_closing) = (service.clone(), is_closing.clone());
        let endpoint = Arc::clone(&endpoint);
        let PeerAddresses { local, remote } = addresses.clone();
        let request = Request::from((request, local, remote, Scheme::HTTP));
        async move {
            let (request, rest) = timed(request, timeouts.body);
            // Boxed: with all its layers the future has 12 KiB, and the server moves it.
            let response = Box::pin(endpoint.get_response(request)).await;
            let mut response = hyper::Response::from(response);
            is_unread.store(rest.ends_connection(), Ordering::Relaxed);
            if rest.ends_connection() || (is_closing.is_cancelled() && state.is_all_read()) {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, Infallible>(response.map(|body| begun.until_sent(body)))
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeouts.idle)
            .max_header_size(HEAD_BYTES_MAX)
            .max_headers(HEAD_FIELDS_MAX)
            .serve_connection(TokioIo::new(stream), answer)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing_time(&closing, &state) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // The client disconnected, was too slow, or did not speak HTTP.
        debug!(timed_out = error.is_timeout(), "A connection ended early");
    }
}

/// Completes when a connection without a request must be closed: `closing` is cancelled,
/// nothing arrived for a while, and no part of a head is there. A head that has begun has
/// its own time limit.
async fn closing_time(closing: &CancellationToken, state: &ConnectionProgress) {
    closing.cancelled().await;
    tokio::time::sleep(LINGER).await;
    while state.is_in_head() {
        tokio::time::sleep(LINGER / 20).await;
    }
}
