//! A provider whose responses repeat everything that it received.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A stand-in for Mailgun. Dropping it ends it.
pub(super) struct Echo {
    pub(super) url: String,
    accepts: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Echo {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let accepts = Arc::new(AtomicBool::new(true));
        let friendly = Arc::clone(&accepts);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&friendly)));
            }
        });
        Self { url, accepts, task }
    }

    /// From now on it rejects every request, with an unknown reason.
    pub(super) fn reject_everything(&self) {
        self.accepts.store(false, Ordering::SeqCst);
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(stream: TcpStream, accepts: Arc<AtomicBool>) {
    let answer = service_fn(move |request| {
        let accepts = accepts.load(Ordering::SeqCst);
        async move { Ok::<_, Infallible>(answer(request, accepts).await) }
    });
    let _gone = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(request: Request<Incoming>, accepts: bool) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let body = body.unwrap_or_default();
    let (status, said) = if accepts && head.method == Method::GET {
        let domain = json!({ "domain": { "name": "example.com", "state": "active" } });
        (StatusCode::OK, domain)
    } else {
        let body = String::from_utf8_lossy(&body);
        // Only the beginning of a long text is reported: the secret comes first.
        let key = head.headers.get(http::header::AUTHORIZATION);
        let said = format!("{key:?} is not let in to {} with {body}", head.uri);
        // The rejection of a message; and a response that decides nothing, so that its
        // text is shown.
        let status = match accepts {
            true => StatusCode::BAD_REQUEST,
            false => StatusCode::CONFLICT,
        };
        (status, json!({ "message": said }))
    };
    let mut response = Response::new(Full::from(said.to_string()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}
