//! The listener: connections, and how long a client may take.
//!
//! Poem's own server waits for ever: for a request's head, for its body, for a
//! client that reads nothing of its answer; and when the process is out of files
//! its accept loop spins. So the loop is ours, around poem's endpoint. HTTP/1.1 is
//! all that it speaks: whoever puts TLS in front speaks HTTP/2 there, and what can
//! be done to a server with streams and resets cannot be done to this one.
//!
//! | what | bound |
//! |---|---|
//! | a request's head, from the connection's begin or from its first byte | 10 s |
//! | its size; its fields | 64 KiB; 100 |
//! | a body | 30 s, and a second more for every 32 KiB that came |
//! | a client that takes nothing of its answer | 30 s |
//! | a connection between requests | 75 s |
//! | what still comes of a body that was answered unread | 30 s, 5 s without a byte, 64 MiB |
//! | connections | a setting; further ones wait to be accepted |
//!
//! A process that is to stop accepts nobody new. On the connections that there are it
//! answers what arrives within a second more, each with `Connection: close` as its last
//! answer: a client that sends at that moment cannot know, and must not be cut off.

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

use body::{BodyPatience, timed};
use stream::{ConnectionProgress, PatientStream};

/// How long clients are waited for.
#[derive(Debug, Clone, Copy)]
struct ClientTimeouts {
    /// For the head of a request.
    head: Duration,
    /// For its body.
    body: BodyPatience,
    /// For something to be taken of an answer.
    stalled: Duration,
    /// For the next request on a connection.
    idle: Duration,
    /// For the rest of a body that was answered before it was read.
    unread: Duration,
    /// For the next byte of it.
    unread_idle: Duration,
}

const PATIENCE: ClientTimeouts = ClientTimeouts {
    head: Duration::from_secs(10),
    body: BodyPatience {
        while_max: Duration::from_secs(30),
        bytes_per_second_min: 32 << 10,
    },
    stalled: Duration::from_secs(30),
    idle: Duration::from_secs(75),
    // nginx' lingering_time and lingering_timeout.
    unread: Duration::from_secs(30),
    unread_idle: Duration::from_secs(5),
};
/// The longest head, in bytes: request line and header fields.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Header fields of a request at the most.
const HEAD_FIELDS_MAX: usize = 100;
/// How long a connection on which nothing arrives is kept once the process is to stop.
const LINGER: Duration = Duration::from_secs(1);
/// The most that is read of a body that was answered unread, in bytes: more than any may
/// have.
const UNREAD_BYTES_MAX: usize = 64 << 20;
/// How long to wait after a connection could not be accepted: out of files, say.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How to serve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections at the same time.
    pub(crate) connections_max: usize,
    /// How long everything goes on as before once it is to stop, so that a proxy that asks
    /// whether it is ready sends nobody any more.
    pub(crate) shutdown_delay: Duration,
    /// How long requests in flight may take to end once it is to stop.
    pub(crate) shutdown: Duration,
}

/// Serves `endpoint` on `listener` until `shutdown`, then lets requests in flight
/// end within their bound.
pub(crate) async fn run(
    listener: TcpListener,
    endpoint: impl Endpoint<Output = Response> + 'static,
    bounds: Bounds,
    shutdown: CancellationToken,
) {
    let server = Server {
        endpoint: Arc::new(endpoint),
        places: Arc::new(Semaphore::new(bounds.connections_max)),
        connections: TaskTracker::new(),
        closing: CancellationToken::new(),
        cut: CancellationToken::new(),
    };
    let mut stop = pin!(async {
        shutdown.cancelled().await;
        tokio::time::sleep(bounds.shutdown_delay).await;
    });
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &server.places) => {
                if let Some((stream, ends, place)) = accepted {
                    server.serve(stream, ends, place);
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
    if tokio::time::timeout(bounds.shutdown, connections.wait())
        .await
        .is_err()
    {
        info!(
            connections = connections.len(),
            "Cut the connections whose requests did not end in time"
        );
        cut.cancel();
        connections.wait().await;
    }
}

/// What all connections share.
struct Server<E> {
    endpoint: Arc<E>,
    places: Arc<Semaphore>,
    connections: TaskTracker,
    /// Each connection is to end with its next answer.
    closing: CancellationToken,
    /// Each connection ends now.
    cut: CancellationToken,
}

impl<E: Endpoint<Output = Response> + 'static> Server<E> {
    fn serve(&self, stream: TcpStream, ends: Ends, place: OwnedSemaphorePermit) {
        let endpoint = Arc::clone(&self.endpoint);
        let closing = self.closing.clone();
        let serving = serve_connection(stream, ends, endpoint, PATIENCE, closing);
        let cut = self.cut.clone();
        self.connections.spawn(async move {
            let _ended_or_cut = cut.run_until_cancelled(serving).await;
            drop(place);
        });
    }

    /// Takes those who are connected already and were not accepted yet, then nobody any
    /// more: closing the listener would cut them off.
    fn take_last(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else {
            return;
        };
        // It does not block: where nobody waits, that is an error.
        while let Ok(place) = Arc::clone(&self.places).try_acquire_owned()
            && let Ok((stream, peer)) = listener.accept()
        {
            let stream = stream.set_nonblocking(true).map(|()| stream);
            if let Ok(stream) = stream.and_then(TcpStream::from_std) {
                let ends = ends_of(&stream, peer);
                self.serve(stream, ends, place);
            }
        }
    }
}

/// The two ends of a connection.
#[derive(Clone)]
struct Ends {
    local: LocalAddr,
    remote: RemoteAddr,
}

/// The next connection, once there is a place for it; nothing where the system
/// would not give one.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, Ends, OwnedSemaphorePermit)> {
    // Never closed, so never refused.
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            let ends = ends_of(&stream, peer);
            Some((stream, ends, place))
        }
        Err(error) => {
            warn!("A connection could not be accepted: {error}");
            tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            None
        }
    }
}

fn ends_of(stream: &TcpStream, peer: SocketAddr) -> Ends {
    // Answers are small and written at once: there is nothing to collect.
    // Where that cannot be set, they come a little later.
    let _as_it_is = stream.set_nodelay(true);
    let local = stream.local_addr().unwrap_or(peer);
    Ends {
        local: LocalAddr(Addr::SocketAddr(local)),
        remote: RemoteAddr(Addr::SocketAddr(peer)),
    }
}

/// Serves a connection until it ends. From `closing` on it ends with the answer after
/// which nothing has arrived, or after a while in which nothing arrives.
async fn serve_connection<S, E>(
    mut stream: S,
    ends: Ends,
    endpoint: Arc<E>,
    patience: ClientTimeouts,
    closing: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    E: Endpoint<Output = Response>,
{
    let is_unread = AtomicBool::new(false);
    serve_requests(&mut stream, ends, endpoint, patience, closing, &is_unread).await;
    if is_unread.into_inner() {
        discard(&mut stream, patience).await;
    }
}

/// Reads what still comes of a body that was answered unread. A connection that is closed
/// with bytes unread is reset, and the client may lose the answer over it.
async fn discard(stream: &mut (impl AsyncRead + Unpin), patience: ClientTimeouts) {
    let until_end = async {
        // Not in the future: each connection would hold it.
        let mut bytes = vec![0; 16 << 10];
        let mut count = 0;
        while count < UNREAD_BYTES_MAX {
            let read = stream.read(&mut bytes);
            match tokio::time::timeout(patience.unread_idle, read).await {
                Ok(Ok(read @ 1..)) => count += read,
                Ok(Ok(0) | Err(_)) | Err(_) => break,
            }
        }
    };
    let _ended_or_not = tokio::time::timeout(patience.unread, until_end).await;
}

async fn serve_requests<S, E>(
    stream: S,
    ends: Ends,
    endpoint: Arc<E>,
    patience: ClientTimeouts,
    closing: CancellationToken,
    is_unread: &AtomicBool,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    E: Endpoint<Output = Response>,
{
    let service = ConnectionProgress::default();
    let stream = PatientStream::new(stream, &patience, service.clone());
    let (state, is_closing) = (service.clone(), closing.clone());
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let begun = service.begin();
        let (state, is_closing) = (service.clone(), is_closing.clone());
        let endpoint = Arc::clone(&endpoint);
        let Ends { local, remote } = ends.clone();
        let request = Request::from((request, local, remote, Scheme::HTTP));
        async move {
            let (request, rest) = timed(request, patience.body);
            // In a box: with all its layers it is 12 KiB, and the server moves it about.
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
            .header_read_timeout(patience.idle)
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
        // The client's doing: gone, too slow, or not speaking HTTP.
        debug!(timed_out = error.is_timeout(), "A connection ended early");
    }
}

/// When a connection is to be closed that has not ended with an answer: nothing arrived for
/// a while, and no part of a head is there. A head that has begun is bounded by itself.
async fn closing_time(closing: &CancellationToken, state: &ConnectionProgress) {
    closing.cancelled().await;
    tokio::time::sleep(LINGER).await;
    while state.is_in_head() {
        tokio::time::sleep(LINGER / 20).await;
    }
}
