//! A customer's server: takes the webhooks of one organization, verifies each by its
//! signature and notes who was told what. It can be made to fail, to hang and to be
//! gone. What it did not answer with a 2xx counts as not received.

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

/// All events there are, in the order of their bits in a [`Told`].
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
/// What a receiver is to refuse, by the contract.
const AGE_SECONDS_MAX: i64 = 300;
/// How soon a port is tried again that could not be listened on.
const LISTEN_AGAIN: Duration = Duration::from_millis(100);

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Takes everything that is signed.
    Takes,
    /// Answers 500.
    Fails,
    Hangs,
    IsGone,
}

/// The events that someone was told of, as a set of bits.
#[derive(Debug, Clone, Copy, Default)]
struct Told(u16);

/// The running server.
#[derive(Debug)]
pub(crate) struct Hooks {
    port: u16,
    manner: watch::Sender<Manner>,
    secret: Mutex<String>,
    book: Mutex<Book>,
    clock: Clock,
}

/// What came.
#[derive(Debug, Default)]
struct Book {
    told: HashMap<(String, String), Told>,
    deliveries: HashSet<String>,
    counts: Counts,
}

/// How many calls came, by what became of them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) taken: usize,
    pub(crate) repeated: usize,
    /// Not answered with a 2xx, as the server failed or hung.
    pub(crate) refused: usize,
    /// Not signed as they should be.
    pub(crate) forged: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hooks {
    pub(crate) fn new(port: u16) -> Arc<Self> {
        Arc::new(Self {
            port,
            manner: watch::Sender::new(Manner::Takes),
            secret: Mutex::default(),
            book: Mutex::default(),
            clock: Clock::system(),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks", self.port)
    }

    /// Tells it what its webhooks are signed with.
    pub(crate) fn trust(&self, secret: &str) {
        secret.clone_into(&mut lock(&self.secret));
    }

    pub(crate) fn behave(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    pub(crate) fn counts(&self) -> Counts {
        lock(&self.book).counts
    }

    /// Whether it was told of an event.
    pub(crate) fn was_told(&self, message_id: &str, address: &str, event: &str) -> bool {
        let book = lock(&self.book);
        let key = (message_id.to_owned(), address.to_owned());
        book.told.get(&key).is_some_and(|told| told.holds(event))
    }

    /// All that it was told of a recipient.
    pub(crate) fn told(&self, message_id: &str, address: &str) -> Vec<&'static str> {
        let events = EVENTS.into_iter();
        events
            .filter(|event| self.was_told(message_id, address, event))
            .collect()
    }

    /// Serves for as long as it is polled.
    pub(crate) async fn serve(self: Arc<Self>) {
        let mut manner = self.manner.subscribe();
        loop {
            // The sender lives as long as the server.
            drop(manner.wait_for(|now| *now != Manner::IsGone).await);
            let Ok(listener) = TcpListener::bind(("127.0.0.1", self.port)).await else {
                tokio::time::sleep(LISTEN_AGAIN).await;
                continue;
            };
            // Dropped with all connections when the server is to be gone.
            tokio::select! {
                _ = manner.wait_for(|now| *now == Manner::IsGone) => {}
                () = Arc::clone(&self).listen(listener) => {}
            }
        }
    }

    async fn listen(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(Arc::clone(&self).converse(stream));
            while connections.try_join_next().is_some() {}
        }
    }

    async fn converse(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(move |request| {
            let own = Arc::clone(&self);
            async move { Ok::<_, Infallible>(own.take(request).await) }
        });
        // A caller that goes away is none of our business.
        let _gone = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    async fn take(&self, request: http::Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        // Whoever asks whether somebody is there tells nothing.
        if head.method == Method::HEAD {
            return Response::default();
        }
        let body = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        let manner = *self.manner.borrow();
        let status = match manner {
            Manner::Takes => self.note(&head.headers, &body.unwrap_or_default()),
            Manner::Fails | Manner::Hangs | Manner::IsGone => {
                lock(&self.book).counts.refused += 1;
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        if manner == Manner::Hangs {
            std::future::pending::<()>().await;
        }
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response
    }

    fn note(&self, headers: &HeaderMap, body: &[u8]) -> StatusCode {
        let mut book = lock(&self.book);
        let Some((delivery, told)) = self.read(headers, body) else {
            book.counts.forged += 1;
            return StatusCode::UNAUTHORIZED;
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = (
            text(&told["data"]["messageId"]),
            text(&told["data"]["recipient"]),
        );
        book.told.entry(key).or_default().add(&text(&told["event"]));
        if book.deliveries.insert(delivery) {
            book.counts.taken += 1;
        } else {
            book.counts.repeated += 1;
        }
        StatusCode::OK
    }

    /// The delivery's id and its content, where the contract's signature is right.
    fn read(&self, headers: &HeaderMap, body: &[u8]) -> Option<(String, Value)> {
        let header = |name: &str| headers.get(name)?.to_str().ok();
        let timestamp = header("x-waypost-timestamp")?;
        let age = self.clock.now().timestamp() - timestamp.parse::<i64>().ok()?;
        let signature = hex::decode(header("x-waypost-signature")?).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(lock(&self.secret).as_bytes()).ok()?;
        mac.update(timestamp.as_bytes());
        mac.update(b".");
        mac.update(body);
        mac.verify_slice(&signature).ok()?;
        let told = serde_json::from_slice(body).ok()?;
        (age.abs() <= AGE_SECONDS_MAX).then_some((header("webhook-id")?.to_owned(), told))
    }
}

impl Told {
    fn bit(event: &str) -> u16 {
        let place = EVENTS.iter().position(|known| *known == event);
        place.map_or(0, |place| 1 << place)
    }

    fn add(&mut self, event: &str) {
        self.0 |= Self::bit(event);
    }

    fn holds(self, event: &str) -> bool {
        self.0 & Self::bit(event) != 0
    }
}
