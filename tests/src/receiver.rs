//! A customer's server: receives and stores webhooks, and responds as configured. A test fails
//! if one of its webhooks is not as the OpenAPI document describes it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::document::find_webhook_problem;

/// The server's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Status(u16),
    /// This status, with a `Retry-After` of so many seconds.
    RetryAfter(u16, u64),
    Silence,
}

/// A received webhook.
#[derive(Debug, Clone)]
pub struct ReceivedWebhook {
    pub headers: HeaderMap,
    pub body: Bytes,
    pub at: Instant,
}

impl ReceivedWebhook {
    /// A header.
    ///
    /// # Panics
    /// If the header is missing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        let value = value.unwrap_or_else(|| panic!("no {name} in {:?}", self.headers));
        value.to_str().expect("our headers are ASCII")
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is no JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a webhook is JSON")
    }

    /// The event's type and the recipient.
    #[must_use]
    pub fn gist(&self) -> (String, String) {
        let body = self.json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&body["event"]), text(&body["data"]["recipient"]))
    }
}

/// The running server. Dropping it ends it.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    answer: Mutex<Answer>,
    judge: Mutex<Option<Judge>>,
    keeps: bool,
    received: Mutex<Vec<ReceivedWebhook>>,
    /// Why webhooks are not as documented.
    problems: Mutex<Vec<String>>,
    count: AtomicUsize,
    connections: AtomicUsize,
}

/// Decides on the status of each response.
struct Judge(Box<dyn Fn(&ReceivedWebhook) -> u16 + Send + Sync>);

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Judge")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    /// Starts a server that accepts everything.
    pub async fn start() -> Self {
        Self::with(true).await
    }

    /// Starts a server that only counts, for measurements.
    pub async fn counting() -> Self {
        Self::with(false).await
    }

    async fn with(keeps: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the loopback interface has free ports");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(State {
            answer: Mutex::new(Answer::Status(200)),
            judge: Mutex::default(),
            keeps,
            received: Mutex::default(),
            problems: Mutex::default(),
            count: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            task,
        }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// Sets all further responses.
    pub fn answer(&self, answer: Answer) {
        *lock(&self.state.answer) = answer;
    }

    /// Responds with the status that `judge` returns for each webhook.
    pub fn judge(&self, judge: impl Fn(&ReceivedWebhook) -> u16 + Send + Sync + 'static) {
        *lock(&self.state.judge) = Some(Judge(Box::new(judge)));
    }

    /// The webhooks so far, in order.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedWebhook> {
        lock(&self.state.received).clone()
    }

    /// The number of webhooks so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.state.count.load(Ordering::SeqCst)
    }

    /// The number of connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
        let problems = std::mem::take(&mut *lock(&self.state.problems));
        if !std::thread::panicking() {
            assert!(problems.is_empty(), "{}", problems.join("\n"));
        }
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        connections.spawn(handle(stream, Arc::clone(&state)));
        while connections.try_join_next().is_some() {}
    }
}

async fn handle(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(state.respond(request).await) }
    });
    // A disconnect of the caller is no error of the server.
    let _gone = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl State {
    async fn respond(&self, request: http::Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        // A HEAD request checks the URL and carries no event.
        if head.method == Method::HEAD {
            return Response::default();
        }
        let body = body.collect().await;
        let body = body.map(http_body_util::Collected::to_bytes);
        let webhook = ReceivedWebhook {
            headers: head.headers,
            body: body.unwrap_or_default(),
            at: Instant::now(),
        };
        let judged = lock(&self.judge).as_ref().map(|judge| (judge.0)(&webhook));
        if self.keeps {
            // Tests also subscribe it to what the simulator posts.
            if webhook.headers.contains_key("x-waypost-event") {
                lock(&self.problems).extend(find_webhook_problem(&webhook.body));
            }
            lock(&self.received).push(webhook);
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        let answer = judged.map_or_else(|| *lock(&self.answer), Answer::Status);
        let mut response = Response::new(Full::new(Bytes::from_static(b"noted")));
        let status = match answer {
            Answer::Status(status) => status,
            Answer::RetryAfter(status, seconds) => {
                let headers = response.headers_mut();
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
                status
            }
            Answer::Silence => std::future::pending().await,
        };
        *response.status_mut() = status.try_into().expect("a status of three digits");
        response
    }
}
