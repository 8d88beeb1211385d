//! What a client can do before it is authenticated: connect and be slow. The limits
//! themselves are tested in `api/src/server/tests.rs`, without waiting for them; here
//! many such clients connect to a process at once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, wait_within};

/// Many more than the process's connections to Postgres, of which there are 8.
const CLIENTS: usize = 100;
/// The longest time of other requests meanwhile. Builds share the machine.
const SERVED_WITHIN: Duration = Duration::from_secs(5);
/// The time limit of a request head.
const HEAD_MAX: Duration = Duration::from_secs(10);

async fn connect(app: &TestApp) -> TcpStream {
    TcpStream::connect(&app.variables["WAYPOST_LISTEN"])
        .await
        .unwrap()
}

async fn assert_others_are_served(app: &TestApp, number: usize) {
    let since = Instant::now();
    app.send(&message_to(&format!("r{number}@example.org")))
        .await;
    app.get("/v1/messages").await.expect(200);
    assert!(since.elapsed() < SERVED_WITHIN, "{:?}", since.elapsed());
}

/// The remaining output of the server, until it closes the connection.
async fn rest(client: &mut TcpStream) -> String {
    let mut said = Vec::new();
    let _cut_off = client.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

async fn start() -> TestApp {
    TestApp::builder().processes().start().await
}

#[tokio::test]
async fn slow_clients_hold_no_connection_to_postgres_and_delay_no_other() {
    let app = start().await;
    let _api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    let key = app
        .key(app.organization_id(), &waypost_core::auth::Permission::ALL)
        .await;
    let half = format!(
        "POST /v1/send HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    );
    let starts = [
        // Nothing, half of the headers, half of the body, an open chunk, and a body after a
        // 100.
        String::new(),
        half.clone(),
        format!("{half}Content-Length: 1000\r\n\r\n{{\"to\":"),
        format!("{half}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"to\""),
        format!("{half}Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n"),
    ];
    let since = Instant::now();
    let clients = (0..CLIENTS).map(async |number| {
        let mut client = connect(&app).await;
        let start = &starts[number % starts.len()];
        client.write_all(start.as_bytes()).await.unwrap();
        client
    });
    let mut clients = join_all(clients).await;
    assert_others_are_served(&app, 0).await;
    // Connections with an incomplete head are closed without a response, and not earlier.
    let heads: Vec<&mut TcpStream> = clients
        .iter_mut()
        .enumerate()
        .filter_map(|(number, client)| (number % starts.len() < 2).then_some(client))
        .collect();
    let cut_off = join_all(heads.into_iter().map(rest)).await;
    assert!(cut_off.iter().all(String::is_empty), "{cut_off:?}");
    assert!(since.elapsed() >= HEAD_MAX);
    assert!(
        since.elapsed() < HEAD_MAX + SERVED_WITHIN * 2,
        "{:?}",
        since.elapsed()
    );
    assert_others_are_served(&app, 1).await;
    app.leave_work();
}

#[tokio::test]
async fn further_connections_wait_and_are_served_when_a_slot_is_free() {
    let app = TestApp::builder()
        .processes()
        .setting("WAYPOST_API_CONNECTIONS_MAX", "10")
        .start()
        .await;
    let mut api = app.spawn_api().await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let silent = join_all((0..10).map(|_| connect(&app))).await;
    let mut late = connect(&app).await;
    late.write_all(request).await.unwrap();
    let mut early = [0; 1];
    let is_early = tokio::time::timeout(Duration::from_secs(1), late.peek(&mut early)).await;
    assert!(is_early.is_err(), "served although all places are taken");
    drop(silent);
    assert!(rest(&mut late).await.starts_with("HTTP/1.1 200 "));
    // Slots are released however connections end.
    for _ in 0..50 {
        let mut client = connect(&app).await;
        client.write_all(request).await.unwrap();
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 200 "));
    }
    assert!(!api.has_ended());
}

#[tokio::test]
async fn a_flood_of_broken_connections_does_not_affect_the_process() {
    let app = start().await;
    let mut api = app.spawn_api().await;
    let before = api.memory_bytes();
    let floods: [Vec<u8>; 8] = [
        b"\0".repeat(4_000),
        b"GET ".repeat(50_000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        [b"\x16\x03\x01\x02\x00\x01\x00".to_vec(), vec![0; 1_000]].concat(),
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(200_000)).into_bytes(),
        format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(20_000)).into_bytes(),
        b"GET /v1/messages HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
        b"POST /v1/send HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n".to_vec(),
    ];
    for _ in 0..20 {
        let clients = floods.iter().map(async |flood| {
            let mut client = connect(&app).await;
            let _refused = client.write_all(flood).await;
            let _refused = client.shutdown().await;
            let said = rest(&mut client).await;
            assert!(!said.starts_with("HTTP/1.1 2"), "{said}");
        });
        join_all(clients).await;
    }
    assert_eq!(app.get("/v1/messages").await.status, 200);
    assert!(!api.has_ended());
    let is_small = wait_within(SERVED_WITHIN, async || {
        api.memory_bytes() < before + (64 << 20)
    })
    .await;
    assert!(is_small, "{} bytes of {before}", api.memory_bytes());
}
