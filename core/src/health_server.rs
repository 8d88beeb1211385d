//! The health listener of processes that serve nothing else: `GET /healthz` says
//! that the process lives, `GET /readyz` whether it can work.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::crypto::seal::Sealer;
use crate::db::{self, PgPool};
use crate::fault::Fault;
use crate::redis::{ErrorKind, Redis};
use crate::reencrypt;

/// How long to wait after a connection could not be accepted.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How long Postgres may take to answer.
const POSTGRES_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long is believed what was found of the keys.
const KEYS_EVERY: Duration = Duration::from_secs(5);
/// How long a caller may take to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves health on `address` until `shutdown`.
///
/// # Errors
/// A fault when the address cannot be bound.
pub async fn serve(
    address: SocketAddr,
    pool: PgPool,
    redis: Redis,
    sealer: Sealer,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Fault::internal("listen on WAYPOST_HEALTH_LISTEN", error))?;
    let readiness = Readiness::new(pool, redis, sealer).until(shutdown.clone());
    tokio::spawn(async move {
        while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
            let Ok((stream, _)) = accepted else {
                // Out of files, say: a moment later there may be some.
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            };
            let readiness = readiness.clone();
            let answer = service_fn(move |request| answer(request, readiness.clone()));
            tokio::spawn(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), answer),
            );
        }
    });
    Ok(())
}

async fn answer(
    request: Request<Incoming>,
    readiness: Readiness,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, body) = match request.uri().path() {
        "/healthz" if is_get => (StatusCode::OK, serde_json::json!({ "status": "ok" })),
        "/readyz" if is_get => readiness.ask().await,
        _ => (
            StatusCode::NOT_FOUND,
            serde_json::json!({ "status": "there is no such path" }),
        ),
    };
    let mut response = Response::new(Full::from(body.to_string()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

/// The status to answer with, and what is the matter.
type HealthAnswer = (StatusCode, serde_json::Value);

/// Whether a process can work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Readiness {
    pool: PgPool,
    redis: Redis,
    sealer: Sealer,
    /// The process is told to stop.
    stopping: CancellationToken,
    /// What was last found of the keys, and when.
    keys: Arc<Mutex<Option<(Instant, String)>>>,
    /// The last look, and when it began.
    last: Arc<Mutex<Option<(Instant, HealthAnswer)>>>,
}

impl Readiness {
    /// Of a process that works with these.
    #[must_use]
    pub fn new(pool: PgPool, redis: Redis, sealer: Sealer) -> Self {
        Self {
            pool,
            redis,
            sealer,
            stopping: CancellationToken::new(),
            keys: Arc::default(),
            last: Arc::default(),
        }
    }

    /// The same, until the process is told to stop.
    #[must_use]
    pub fn until(self, stopping: CancellationToken) -> Self {
        Self { stopping, ..self }
    }

    /// Whether Postgres answers, its schema is current, our keys open what is
    /// sealed in it and Redis takes writes. Without
    /// Redis mail still flows; it counts here so that an operator sees it. One look is under way
    /// at a time, since anybody may ask: whoever waits meanwhile shares the next.
    pub async fn ask(&self) -> HealthAnswer {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((began, found)) = &*last
            && *began >= asked
        {
            return found.clone();
        }
        let began = Instant::now();
        let found = self.look().await;
        *last = Some((began, found.clone()));
        found
    }

    async fn look(&self) -> HealthAnswer {
        let schema = tokio::time::timeout(POSTGRES_TIMEOUT, db::is_current(&self.pool));
        let (schema, writes) = tokio::join!(schema, self.redis.check_writes());
        let postgres = match schema {
            Ok(Ok(true)) => OK,
            Ok(Ok(false)) => "migrations are missing: run waypost-api migrate",
            Ok(Err(_)) | Err(_) => "does not answer",
        };
        let keys = if postgres == OK {
            self.look_at_keys().await
        } else {
            "not known".to_owned()
        };
        let redis = match writes {
            Ok(()) => OK.to_owned(),
            // Its code alone: the rest may name users and commands, and anybody may ask.
            Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
                "does not let us in".to_owned()
            }
            Err(error) => match error.code() {
                Some(code) => format!("refuses writes: {code}"),
                None => "does not answer".to_owned(),
            },
        };
        let (status, word) = if self.stopping.is_cancelled() {
            (StatusCode::SERVICE_UNAVAILABLE, "stopping")
        } else if postgres == OK && redis == OK && keys == OK {
            (StatusCode::OK, OK)
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        };
        let body = serde_json::json!({
            "status": word,
            "postgres": postgres,
            "redis": redis,
            "encryptionKeys": keys,
        });
        (status, body)
    }

    /// Whether the keys open what is sealed, looked at now and then: it reads the secrets
    /// of all accounts.
    async fn look_at_keys(&self) -> String {
        let mut known = self.keys.lock().await;
        if let Some((at, found)) = &*known
            && at.elapsed() < KEYS_EVERY
        {
            return found.clone();
        }
        let found = reencrypt::check(&self.pool, &self.sealer);
        let found = match tokio::time::timeout(POSTGRES_TIMEOUT, found).await {
            Ok(Ok(unopened)) if unopened.is_wrong() => unopened.to_string(),
            Ok(Ok(_)) => OK.to_owned(),
            Ok(Err(_)) | Err(_) => return "not known".to_owned(),
        };
        *known = Some((Instant::now(), found.clone()));
        found
    }
}

const OK: &str = "ok";
