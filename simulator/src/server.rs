//! Connections: reads each request, calls the handler, and carries out its result.
//!
//! HTTP/1.1 only; a local API needs no more. A reset is a real TCP reset (zero linger),
//! as if the peer crashed.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::callbacks::{self, CallbackCounts, CallbackSettings};
use crate::faults::Fault;
use crate::mail::Captured;
use crate::providers::{self, Provider, sns};
use crate::reply::Outcome;
use crate::request::Request;
use crate::smtp::{self, Encryption};
use crate::state::{Config, State};
use crate::stored_objects::StoredObjects;
use crate::suppression_lists::Listed;
use crate::{control, inbox, searches, stored_objects, suppression_lists};

/// A longer body is not read to its end.
const BODY_BYTES_HARD_MAX: usize = 96 << 20;
/// The longest request body of the simulator's own pages.
const OWN_BODY_BYTES_MAX: usize = 1 << 20;
/// How long a call without a response lasts; far longer than any client waits.
const SILENCE_MAX: Duration = Duration::from_secs(900);
/// How long open connections may continue when the simulator stops.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Pause before the next accept when the process is out of sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A running simulator. Dropping it stops it.
pub struct Simulator {
    address: SocketAddr,
    smtp_address: Option<SocketAddr>,
    smtps_address: Option<SocketAddr>,
    state: Arc<State>,
    tasks: TaskTracker,
}

impl Simulator {
    /// Starts listening. Must be called within a Tokio runtime.
    pub fn start(config: Config) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = std::net::TcpListener::bind(config.listen)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let tasks = TaskTracker::new();
        let state = Arc::new(State::new(&config, &tasks));
        let telling = Arc::clone(&state.callbacks).run();
        tasks.spawn_on(telling, &runtime);
        let accepting = accept(listener, Arc::clone(&state), tasks.clone());
        tasks.spawn_on(accepting, &runtime);
        let listen = |address: Option<SocketAddr>, encryption| {
            let listen = |address| smtp::listen(address, encryption, &state, &tasks);
            address.map(listen).transpose()
        };
        let smtp_address = listen(config.smtp_listen, Encryption::Offered)?;
        let smtps_address = listen(config.smtps_listen, Encryption::Implicit)?;
        Ok(Self {
            address,
            smtp_address,
            smtps_address,
            state,
            tasks,
        })
    }

    /// The base URL of all four providers and of the simulator's own pages, without a
    /// final slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Address of the SMTP server with STARTTLS.
    pub fn smtp_address(&self) -> Option<SocketAddr> {
        self.smtp_address
    }

    /// Address of the SMTP server with TLS from the first byte.
    pub fn smtps_address(&self) -> Option<SocketAddr> {
        self.smtps_address
    }

    /// Number of SMTP connections so far.
    pub fn smtp_connection_count(&self) -> u64 {
        self.state.smtp_connections.load(Ordering::Relaxed)
    }

    /// Stops accepting, lets running responses finish for a moment, and closes the rest.
    pub async fn shutdown(self) {
        self.state.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The stored messages to an address, oldest first; one element per accepted
    /// recipient.
    pub fn captured_to(&self, address: &str) -> Vec<Captured> {
        self.state.captures.to(address, usize::MAX)
    }

    /// How many recipients were accepted, stored or not.
    pub fn captured_count(&self) -> u64 {
        self.state.captures.counts().iter().sum()
    }

    /// How many send calls this provider received over HTTP, whatever the responses: one
    /// call may have many recipients.
    pub fn send_call_count(&self, provider: Provider) -> u64 {
        self.state.send_calls[provider as usize].load(Ordering::Relaxed)
    }

    /// Deletes all accepted messages and resets the counts.
    pub fn clear_captured(&self) {
        self.state.captures.clear();
    }

    /// Sets a fault and replaces one with the same provider, kind and calls.
    pub fn set_fault(&self, fault: Fault) {
        self.state.faults.set(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.state.faults.clear(None);
    }

    /// Sets how callbacks are sent.
    pub fn set_callbacks(&self, settings: CallbackSettings) {
        self.state.callbacks.set(settings);
    }

    /// Counts of the callbacks so far.
    pub fn callbacks(&self) -> CallbackCounts {
        self.state.callbacks.counts()
    }

    /// Sets the delay until the providers' searches show accepted messages.
    pub fn set_search_lag(&self, lag: Duration) {
        self.state.searches.set_lag(lag);
    }

    /// Sets whether the SMTP server supports EHLO, or only HELO.
    pub fn set_smtp_ehlo(&self, knows: bool) {
        self.state.smtp_knows_ehlo.store(knows, Ordering::Relaxed);
    }

    /// Sets the domains of a credential (API key, account token, access key id).
    pub fn set_domains(&self, provider: Provider, credential: &str, domains: &[&str]) {
        let domains = domains.iter().map(|&domain| domain.to_owned()).collect();
        self.state.domains.set(provider, credential, domains);
    }

    /// Replaces the suppression lists of a credential (API key, server token, access key
    /// id).
    pub fn set_suppression_lists(&self, provider: Provider, credential: &str, listed: Vec<Listed>) {
        self.state
            .suppression_lists
            .set(provider, credential, listed);
    }

    /// Replaces the templates and webhooks of a credential (API key, server token, access key
    /// id).
    pub fn set_stored_objects(&self, provider: Provider, credential: &str, objects: StoredObjects) {
        self.state.stored_objects.set(provider, credential, objects);
    }

    /// Registers the secret with which requests of this access key id are signed.
    pub fn register_ses_credential(&self, access_key_id: &str, secret_access_key: &str) {
        self.state
            .ses_secrets
            .register(access_key_id, secret_access_key);
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.state.stopping.cancel();
    }
}

impl fmt::Debug for Simulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Simulator")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, tasks: TaskTracker) {
    loop {
        tokio::select! {
            () = state.stopping.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tasks.spawn(serve(stream, Arc::clone(&state)));
                }
                // Out of file descriptors, or the client disconnected: neither ends the
                // server.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// The error that makes hyper close a connection without a response.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the simulator cuts this connection")
    }
}

impl std::error::Error for Cut {}

type Response = http::Response<Full<Bytes>>;
type Answering = Pin<Box<dyn Future<Output = Result<Response, Cut>> + Send>>;

async fn serve(stream: TcpStream, state: Arc<State>) {
    // TCP_NODELAY: small responses must not wait for an acknowledgement. Without it they
    // are just slower.
    let _ = stream.set_nodelay(true);
    let shared = Arc::clone(&state);
    let service =
        service_fn(move |request| -> Answering { Box::pin(respond(request, Arc::clone(&shared))) });
    let mut connection = http1::Builder::new()
        // No timeout of idle connections: a pooled one must not close during a test.
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        ended = poll_fn(|context| connection.poll_without_shutdown(context)) => Some(ended),
        () = state.stopping.cancelled() => None,
    };
    match ended {
        Some(Ok(())) => {}
        Some(Err(_)) => {
            let stream = connection.into_parts().io.into_inner();
            // If the option fails, the connection closes normally.
            let _ = stream.set_zero_linger();
        }
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            let _ = tokio::time::timeout(STOP_GRACE, connection).await;
        }
    }
}

async fn respond(request: hyper::Request<Incoming>, state: Arc<State>) -> Result<Response, Cut> {
    let (parts, body) = request.into_parts();
    let mut request = Request {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        body: Bytes::new(),
        too_large: false,
    };
    let provider = providers::route(&request);
    let limit = match provider {
        Some(provider) => provider.body_bytes_max(request.path()),
        None => OWN_BODY_BYTES_MAX,
    };
    match read_body(body, limit).await? {
        Some(body) => request.body = body,
        None => request.too_large = true,
    }
    let outcome = match provider {
        Some(provider) => providers::handle(provider, &state, &request).await,
        None => own_page(&state, &request),
    };
    match outcome {
        Outcome::Answer(answer) => Ok(answer.into_response()),
        Outcome::Reset => Err(Cut),
        Outcome::Silence => {
            tokio::select! {
                () = tokio::time::sleep(SILENCE_MAX) => {}
                () = state.stopping.cancelled() => {}
            }
            Err(Cut)
        }
    }
}

fn own_page(state: &State, request: &Request) -> Outcome {
    sns::handle(state, request)
        .or_else(|| callbacks::handle(state, request))
        .or_else(|| searches::handle(state, request))
        .or_else(|| suppression_lists::handle(state, request))
        .or_else(|| stored_objects::handle(state, request))
        .or_else(|| smtp::control::handle(state, request))
        .or_else(|| inbox::handle(state, request))
        .or_else(|| control::handle(state, request))
        .unwrap_or_else(|| control::not_found(request))
        .into()
}

/// Reads a body up to its limit. A longer body is read and discarded, so that the client
/// sees the rejection and not a broken pipe.
async fn read_body(mut body: Incoming, limit: usize) -> Result<Option<Bytes>, Cut> {
    let (mut first, mut rest, mut length) = (Bytes::new(), BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Cut)?.into_data() else {
            continue;
        };
        length += data.len();
        if length > BODY_BYTES_HARD_MAX {
            return Err(Cut);
        }
        if length > limit {
            (first, rest) = (Bytes::new(), BytesMut::new());
        } else if first.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(match (length > limit, rest.is_empty()) {
        (true, _) => None,
        (false, true) => Some(first),
        (false, false) => Some(rest.freeze()),
    })
}
