//! A provider whose answers repeat the whole request.

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

/// Replaces Mailgun. Dropping it stops it.
pub(super) struct Echo {
    pub(super) url: String,
    is_friendly: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Echo {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let is_friendly = Arc::new(AtomicBool::new(true));
        let friendly = Arc::clone(&is_friendly);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&friendly)));
            }
        });
        Self {
            url,
            is_friendly,
            task,
        }
    }

    /// From now on it also rejects every query, with an unknown error.
    pub(super) fn turn_unfriendly(&self) {
        self.is_friendly.store(false, Ordering::SeqCst);
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(stream: TcpStream, is_friendly: Arc<AtomicBool>) {
    let answer = service_fn(move |request| {
        let is_friendly = is_friendly.load(Ordering::SeqCst);
        async move { Ok::<_, Infallible>(answer(request, is_friendly).await) }
    });
    let _gone = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(request: Request<Incoming>, is_friendly: bool) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let body = body.unwrap_or_default();
    let (status, said) = if is_friendly && head.method == Method::GET {
        let domain = json!({ "domain": { "name": "example.com", "state": "active" } });
        (StatusCode::OK, domain)
    } else {
        let body = String::from_utf8_lossy(&body);
        // Long texts are truncated at the end, so a secret comes first.
        let key = head.headers.get(http::header::AUTHORIZATION);
        let said = format!("{key:?} is not let in to {} with {body}", head.uri);
        // A rejected mail, and an undecided answer whose text is logged.
        let status = match is_friendly {
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
