//! The health endpoints of all programs, on an address that is not public. `GET /healthz`
//! answers 200 while the process runs. `GET /readyz` answers 200 if the process can do its
//! work, else 503 with the reasons. `GET /metrics` answers the metrics for Prometheus.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
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
use crate::monitoring::Sampler;
use crate::redis::{ErrorKind, Redis};
use crate::reencrypt;
use crate::telemetry::instruments;

/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_AFTER: Duration = Duration::from_millis(100);
/// How long Postgres may take to answer.
const POSTGRES_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long the result of the check of the encryption keys is cached.
const KEYS_TTL: Duration = Duration::from_secs(5);
/// How long a client may take to send the headers of its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves the health endpoints until `shutdown`, if WAYPOST_HEALTH_LISTEN is set. A scheduler
/// has a `sampler`: its metrics show the whole installation.
///
/// # Errors
/// A fault when the address cannot be bound.
pub async fn serve(
    address: Option<SocketAddr>,
    readiness: Readiness,
    sampler: Option<Sampler>,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let Some(address) = address else {
        return Ok(());
    };
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Fault::internal("listen on WAYPOST_HEALTH_LISTEN", error))?;
    let server = HealthServer {
        readiness: readiness.until(shutdown.clone()),
        sampler: sampler.map(Arc::new),
    };
    tokio::spawn(async move {
        while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
            let Ok((stream, _)) = accepted else {
                // For example, the process has no free file descriptor at the moment.
                tokio::time::sleep(ACCEPT_RETRY_AFTER).await;
                continue;
            };
            let server = server.clone();
            let answer = service_fn(move |request| answer(request, server.clone()));
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

/// What the endpoints need. Cheap to clone.
#[derive(Clone)]
struct HealthServer {
    readiness: Readiness,
    sampler: Option<Arc<Sampler>>,
}

async fn answer(
    request: Request<Incoming>,
    server: HealthServer,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, content_type, body) = match request.uri().path() {
        "/healthz" if is_get => json(StatusCode::OK, &serde_json::json!({ "status": "ok" })),
        "/readyz" if is_get => {
            let (status, body) = server.readiness.ask().await;
            json(status, &body)
        }
        "/metrics" if is_get => (StatusCode::OK, METRICS_TYPE, server.metrics().await),
        _ => json(
            StatusCode::NOT_FOUND,
            &serde_json::json!({ "status": "there is no such path" }),
        ),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, content_type);
    Ok(response)
}

/// The type of Prometheus' text format:
/// <https://prometheus.io/docs/instrumenting/exposition_formats/>.
const METRICS_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");
const JSON_TYPE: HeaderValue = HeaderValue::from_static("application/json");

fn json(status: StatusCode, body: &serde_json::Value) -> (StatusCode, HeaderValue, String) {
    (status, JSON_TYPE, body.to_string())
}

impl HealthServer {
    async fn metrics(&self) -> String {
        let (_, body) = self.readiness.ask().await;
        for (server, key) in READY_SERVERS {
            let is_known = body[key] != NOT_KNOWN;
            instruments::ready(server, is_known.then(|| body[key] == OK));
        }
        if let Some(sampler) = &self.sampler {
            sampler.sample(body["postgres"] == OK).await;
        }
        instruments::render()
    }
}

/// The servers of the metrics, and their keys in the answer of `/readyz`.
const READY_SERVERS: [(&str, &str); 3] = [
    ("postgres", "postgres"),
    ("redis", "redis"),
    ("encryption_keys", "encryptionKeys"),
];

/// The status and the body of an answer.
type HealthAnswer = (StatusCode, serde_json::Value);

/// Checks whether a process can do its work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Readiness {
    pool: PgPool,
    redis: Redis,
    sealer: Sealer,
    /// Cancelled when the process shuts down.
    stopping: CancellationToken,
    /// The result of the last check of the encryption keys, and when it was made.
    keys: Arc<Mutex<Option<(Instant, String)>>>,
    /// The result of the last check, and when it began.
    last: Arc<Mutex<Option<(Instant, HealthAnswer)>>>,
}

impl Readiness {
    /// The readiness of a process that uses these servers and keys.
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

    /// The same, and not ready once `stopping` is cancelled.
    #[must_use]
    pub fn until(self, stopping: CancellationToken) -> Self {
        Self { stopping, ..self }
    }

    /// Ready means: Postgres answers, its schema is current, the encryption keys open the
    /// secrets in it, and Redis accepts writes. Mail is sent without Redis too; it counts
    /// here so that the operator notices. Anybody may call this, so only one check runs at a
    /// time, and callers that wait meanwhile share the next one.
    pub async fn ask(&self) -> HealthAnswer {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((began, found)) = &*last
            && *began >= asked
        {
            return found.clone();
        }
        let began = Instant::now();
        let found = self.check().await;
        *last = Some((began, found.clone()));
        found
    }

    async fn check(&self) -> HealthAnswer {
        let schema = tokio::time::timeout(POSTGRES_TIMEOUT, db::is_current(&self.pool));
        let (schema, writes) = tokio::join!(schema, self.redis.check_writes());
        let postgres = match schema {
            Ok(Ok(true)) => OK,
            Ok(Ok(false)) => "migrations are missing: run waypost-api migrate",
            Ok(Err(_)) | Err(_) => "does not answer",
        };
        let keys = if postgres == OK {
            self.check_keys().await
        } else {
            NOT_KNOWN.to_owned()
        };
        let redis = match writes {
            Ok(()) => OK.to_owned(),
            // Only the error code: the message may name users and commands, and anybody may
            // read this.
            Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
                "denies access".to_owned()
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

    /// Whether the encryption keys open the stored secrets. The result is cached, since the
    /// check reads the secrets of all accounts.
    async fn check_keys(&self) -> String {
        let mut known = self.keys.lock().await;
        if let Some((at, found)) = &*known
            && at.elapsed() < KEYS_TTL
        {
            return found.clone();
        }
        let found = reencrypt::check(&self.pool, &self.sealer);
        let found = match tokio::time::timeout(POSTGRES_TIMEOUT, found).await {
            Ok(Ok(unopened)) if unopened.is_wrong() => unopened.to_string(),
            Ok(Ok(_)) => OK.to_owned(),
            Ok(Err(_)) | Err(_) => return NOT_KNOWN.to_owned(),
        };
        *known = Some((Instant::now(), found.clone()));
        found
    }
}

const OK: &str = "ok";
const NOT_KNOWN: &str = "not known";
