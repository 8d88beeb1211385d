//! An API shuts down while clients use keep-alive connections: a client that has sent a
//! request gets a response, and the last response announces the end of the connection.
//! Processes and time are real.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use waypost_tests::{Process, TestApp, wait_until};

const STOPS: usize = 20;
const CLIENTS: usize = 24;
/// A second for idle connections, and the time that a busy machine needs.
const STOPPED_WITHIN: Duration = Duration::from_secs(4);

/// The end of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Announced by the last response.
    Told,
    /// Between requests, as an idle connection ends.
    Idle,
    /// After a request, without a complete response.
    Cut,
}

/// Sends requests one after the other on one connection until it ends.
async fn use_connection(address: SocketAddr, request: String, answered: Arc<AtomicU64>) -> End {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return End::Idle;
    };
    loop {
        if stream.write_all(request.as_bytes()).await.is_err() {
            return End::Idle;
        }
        let Some(is_last) = read_answer(&mut stream).await else {
            return End::Cut;
        };
        answered.fetch_add(1, Ordering::Relaxed);
        if is_last {
            return End::Told;
        }
    }
}

/// Whether the response announces the end of the connection; `None` without a response.
async fn read_answer(stream: &mut TcpStream) -> Option<bool> {
    let mut said = Vec::new();
    loop {
        if stream.read_buf(&mut said).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&said).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        let length = head.split("content-length: ").nth(1)?;
        let length: usize = length.split("\r\n").next()?.parse().ok()?;
        if body.len() >= length {
            return Some(head.contains("connection: close"));
        }
    }
}

/// Stops a process under load, and returns the ends of the connections and the duration.
async fn stop(app: &TestApp, mut api: Process, clients: usize) -> (Vec<End>, Duration) {
    let address: SocketAddr = app.variables["WAYPOST_LISTEN"].parse().unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    let mut connections = JoinSet::new();
    for _ in 0..clients {
        let request = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".to_owned();
        connections.spawn(use_connection(address, request, Arc::clone(&answered)));
    }
    let enough = u64::try_from(clients * 5).unwrap();
    wait_until("they are served", async || {
        answered.load(Ordering::Relaxed) >= enough
    })
    .await;
    let since = Instant::now();
    let status = api.terminate().await;
    let took = since.elapsed();
    assert!(status.success(), "{status}");
    (connections.join_all().await, took)
}

#[tokio::test]
async fn an_api_that_stops_under_load_answers_every_request() {
    let app = TestApp::builder().processes().start().await;
    for nth in 0..STOPS {
        let api = app.spawn_api().await;
        let (ends, took) = stop(&app, api, CLIENTS).await;
        let cut = ends.iter().filter(|end| **end == End::Cut).count();
        assert_eq!(cut, 0, "stop {nth}: {ends:?}");
        assert!(took < STOPPED_WITHIN, "stop {nth} took {took:?}");
    }
}

#[tokio::test]
async fn an_api_with_a_shutdown_delay_keeps_serving_and_is_not_ready() {
    let builder = TestApp::builder().processes();
    let builder = builder.setting("WAYPOST_API_SHUTDOWN_DELAY", "2s");
    let app = builder.start().await;
    let mut api = app.spawn_api().await;
    let anonymous = app.caller().anonymous();
    assert_eq!(anonymous.get("/readyz").await.status, 200);
    let stopping = async {
        let since = Instant::now();
        let status = api.terminate().await;
        assert!(status.success(), "{status}");
        since.elapsed()
    };
    let looking = wait_until("it says so", async || {
        let reply = anonymous.get("/readyz").await;
        reply.status == 503 && reply.json()["status"] == "stopping"
    });
    let (took, ()) = tokio::join!(stopping, looking);
    assert!(took >= Duration::from_secs(2), "{took:?}");
}
