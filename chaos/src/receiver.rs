//! A customer's server: it receives the webhooks of one organization, verifies each
//! signature and records the events of each recipient. It can be made to fail, to hang
//! and to go offline. A webhook that it does not answer with a 2xx counts as not
//! received.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::Sha256;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use waypost_core::clock::Clock;

/// All events, in the order of their bits in an [`EventSet`].
const EVENTS: [&str; 10] = [
    "QUEUED",
    "SENT",
    "DELIVERED",
    "OPENED",
    "CLICKED",
    "BOUNCED",
    "COMPLAINED",
    "UNSUBSCRIBED",
    "DROPPED",
    "DEFERRED",
];
/// A receiver rejects an older signature, as the documentation demands.
const AGE_SECONDS_MAX: i64 = 300;
/// How soon it tries again to listen on a port that is in use.
const LISTEN_RETRY: Duration = Duration::from_millis(100);

/// The behaviour of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Accepts every webhook with a valid signature.
    Accepts,
    /// Responds with 500.
    Fails,
    Hangs,
    Offline,
}

/// A set of events, as bits.
#[derive(Debug, Clone, Copy, Default)]
struct EventSet(u16);

/// The running server.
#[derive(Debug)]
pub(crate) struct Receiver {
    port: u16,
    behavior: watch::Sender<Behavior>,
    secret: Mutex<String>,
    received: Mutex<Received>,
    clock: Clock,
}

/// The webhooks received so far.
#[derive(Debug, Default)]
struct Received {
    events: HashMap<(String, String), EventSet>,
    deliveries: HashSet<String>,
    counts: Counts,
}

/// Calls by result.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) accepted: usize,
    pub(crate) repeated: usize,
    /// Not answered with a 2xx, because the server failed or hung.
    pub(crate) rejected: usize,
    /// Without a valid signature.
    pub(crate) unsigned: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    pub(crate) fn new(port: u16) -> Arc<Self> {
        Arc::new(Self {
            port,
            behavior: watch::Sender::new(Behavior::Accepts),
            secret: Mutex::default(),
            received: Mutex::default(),
            clock: Clock::system(),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks", self.port)
    }

    /// Sets the secret with which its webhooks are signed.
    pub(crate) fn set_secret(&self, secret: &str) {
        secret.clone_into(&mut lock(&self.secret));
    }

    pub(crate) fn set_behavior(&self, behavior: Behavior) {
        self.behavior.send_replace(behavior);
    }

    pub(crate) fn counts(&self) -> Counts {
        lock(&self.received).counts
    }

    /// Whether it received this event of this recipient.
    pub(crate) fn has_received(&self, message_id: &str, address: &str, event: &str) -> bool {
        let received = lock(&self.received);
        let key = (message_id.to_owned(), address.to_owned());
        received
            .events
            .get(&key)
            .is_some_and(|events| events.contains(event))
    }

    /// All events that it received of a recipient.
    pub(crate) fn events(&self, message_id: &str, address: &str) -> Vec<&'static str> {
        let events = EVENTS.into_iter();
        events
            .filter(|event| self.has_received(message_id, address, event))
            .collect()
    }

    /// Serves for as long as it is polled.
    pub(crate) async fn serve(self: Arc<Self>) {
        let mut behavior = self.behavior.subscribe();
        loop {
            // The channel cannot be closed: `self` holds the sender.
            drop(behavior.wait_for(|now| *now != Behavior::Offline).await);
            let Ok(listener) = TcpListener::bind(("127.0.0.1", self.port)).await else {
                tokio::time::sleep(LISTEN_RETRY).await;
                continue;
            };
            // This drops the listener and all connections when the server goes offline.
            tokio::select! {
                _ = behavior.wait_for(|now| *now == Behavior::Offline) => {}
                () = Arc::clone(&self).listen(listener) => {}
            }
        }
    }

    async fn listen(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(Arc::clone(&self).handle(stream));
            while connections.try_join_next().is_some() {}
        }
    }

    async fn handle(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(move |request| {
            let own = Arc::clone(&self);
            async move { Ok::<_, Infallible>(own.respond(request).await) }
        });
        // A disconnect of the caller is no error of the server.
        let _gone = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    async fn respond(&self, request: http::Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        // A HEAD request checks the URL and carries no event.
        if head.method == Method::HEAD {
            return Response::default();
        }
        let body = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        let behavior = *self.behavior.borrow();
        let status = match behavior {
            Behavior::Accepts => self.record(&head.headers, &body.unwrap_or_default()),
            Behavior::Fails | Behavior::Hangs | Behavior::Offline => {
                lock(&self.received).counts.rejected += 1;
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        if behavior == Behavior::Hangs {
            std::future::pending::<()>().await;
        }
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response
    }

    fn record(&self, headers: &HeaderMap, body: &[u8]) -> StatusCode {
        let mut received = lock(&self.received);
        let Some((delivery, events)) = self.verify(headers, body) else {
            received.counts.unsigned += 1;
            return StatusCode::UNAUTHORIZED;
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = (
            text(&events["data"]["messageId"]),
            text(&events["data"]["recipient"]),
        );
        received
            .events
            .entry(key)
            .or_default()
            .add(&text(&events["event"]));
        if received.deliveries.insert(delivery) {
            received.counts.accepted += 1;
        } else {
            received.counts.repeated += 1;
        }
        StatusCode::OK
    }

    /// The delivery's id and its content, if the signature is valid.
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Option<(String, Value)> {
        let header = |name: &str| headers.get(name)?.to_str().ok();
        let timestamp = header("x-waypost-timestamp")?;
        let age = self.clock.now().timestamp() - timestamp.parse::<i64>().ok()?;
        let signature = hex::decode(header("x-waypost-signature")?).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(lock(&self.secret).as_bytes()).ok()?;
        mac.update(timestamp.as_bytes());
        mac.update(b".");
        mac.update(body);
        mac.verify_slice(&signature).ok()?;
        let events = serde_json::from_slice(body).ok()?;
        (age.abs() <= AGE_SECONDS_MAX).then_some((header("webhook-id")?.to_owned(), events))
    }
}

impl EventSet {
    fn bit(event: &str) -> u16 {
        let index = EVENTS.iter().position(|one| *one == event);
        index.map_or(0, |index| 1 << index)
    }

    fn add(&mut self, event: &str) {
        self.0 |= Self::bit(event);
    }

    fn contains(self, event: &str) -> bool {
        self.0 & Self::bit(event) != 0
    }
}
