//! A receiver of callbacks: stores the posts, and responds as configured.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;

/// Time limit of every wait, long enough for a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(super) struct Receiver {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    posts: Mutex<Vec<Post>>,
    /// Statuses of the next responses; 200 after the last one.
    statuses: Mutex<VecDeque<u16>>,
}

#[derive(Clone)]
pub(super) struct Post {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Receiver {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port exists");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&own);
                let service = service_fn(move |request| keep(request, Arc::clone(&shared)));
                let connection = http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            url: format!("http://{address}"),
            shared,
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Sets the statuses of the next responses, before every call is accepted again.
    pub(super) fn answer(&self, statuses: &[u16]) {
        self.shared.statuses.lock().extend(statuses);
    }

    pub(super) fn posts(&self) -> Vec<Post> {
        self.shared.posts.lock().clone()
    }

    /// Waits for this many posts.
    pub(super) async fn wait_for(&self, count: usize) -> Vec<Post> {
        until(|| self.posts().len() >= count).await;
        self.posts()
    }

    /// Waits for this many events, in any number of arrays.
    pub(super) async fn wait_for_events(&self, count: usize) -> Vec<Value> {
        until(|| self.events().len() >= count).await;
        self.events()
    }

    /// The elements of all posted arrays.
    pub(super) fn events(&self) -> Vec<Value> {
        let posts = self.posts();
        let all = posts.iter().map(|post| {
            let body = post.json();
            body.as_array().cloned().unwrap_or_else(|| vec![body])
        });
        all.flatten().collect()
    }
}

impl Post {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap_or_default())
    }
}

/// Waits until a condition is true.
pub(super) async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_MAX, waiting).await;
    waited.expect("the condition becomes true");
}

async fn keep(
    request: hyper::Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("the body is complete");
    shared.posts.lock().push(Post {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: body.to_bytes(),
    });
    let status = shared.statuses.lock().pop_front().unwrap_or(200);
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status.try_into().expect("is a status");
    Ok(response)
}
