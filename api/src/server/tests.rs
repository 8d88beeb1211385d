//! Slow clients, over in-memory pipes, with short time-outs. The assertions check what
//! happens and what must not happen too early. None checks how soon something happens,
//! since the machine may be busy.

use poem::endpoint::make;
use poem::{Body, IntoResponse as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, sleep};

use super::*;

/// The capacity of a pipe.
const PIPE_BYTES: usize = 16 << 10;
/// A response larger than a pipe.
const LARGE_BYTES: usize = 1 << 20;
/// The pause between two bytes of a slow client.
const PAUSE: Duration = Duration::from_millis(20);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Time-outs that no test reaches.
const SHORT: Duration = Duration::from_millis(600);
const LONG: Duration = Duration::from_secs(600);
const ENDLESS: ClientTimeouts = ClientTimeouts {
    head: LONG,
    unread: LONG,
    unread_idle: LONG,
    body: BodyTimeout {
        fixed: LONG,
        bytes_per_second_min: 32 << 10,
    },
    stalled: LONG,
    idle: LONG,
};

/// A client of an endpoint that responds with the length of the body or the error of
/// reading it, on `/large` with a large response, and on `/unread` without reading the
/// body.
fn connect(timeouts: ClientTimeouts, shutdown: &CancellationToken) -> DuplexStream {
    let endpoint = make(|request: Request| async move {
        if request.uri().path() == "/large" {
            return Ok::<_, poem::Error>(Body::from(vec![b'x'; LARGE_BYTES]).into_response());
        }
        if request.uri().path() == "/unread" {
            return Ok("unread".into_response());
        }
        let said = match request.into_body().into_bytes().await {
            Ok(bytes) => format!("got {} bytes", bytes.len()),
            Err(error) => format!("got nothing: {error}"),
        };
        Ok(said.into_response())
    });
    let (client, server) = duplex(PIPE_BYTES);
    let here = Addr::SocketAddr(([127, 0, 0, 1], 1).into());
    let addresses = PeerAddresses {
        local: LocalAddr(here.clone()),
        remote: RemoteAddr(here),
    };
    let (endpoint, shutdown) = (Arc::new(endpoint), shutdown.clone());
    tokio::spawn(serve_connection(
        server, addresses, endpoint, timeouts, shutdown,
    ));
    client
}

/// A client of a server that does not shut down.
fn client(timeouts: ClientTimeouts) -> DuplexStream {
    connect(timeouts, &CancellationToken::new())
}

/// Writes slowly, byte by byte, until the server closes the connection.
async fn is_cut_off_while_writing(client: &mut DuplexStream, byte: u8) -> bool {
    for _ in 0..10_000 {
        if client.write_all(&[byte]).await.is_err() {
            return true;
        }
        sleep(PAUSE).await;
    }
    false
}

/// Everything that the server sends until it closes the connection.
async fn rest(client: &mut DuplexStream) -> String {
    let mut said = Vec::new();
    client.read_to_end(&mut said).await.unwrap();
    String::from_utf8(said).unwrap()
}

/// Reads one response whose body ends in `end`. The connection stays open.
async fn answer(client: &mut (impl AsyncRead + Unpin), end: &str) {
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).ends_with(end) {
        let mut bytes = [0; 1_024];
        let count = client.read(&mut bytes).await.unwrap();
        assert!(count > 0, "closed after {}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&bytes[..count]);
    }
}

#[tokio::test]
async fn a_slow_head_is_cut_off() {
    let since = Instant::now();
    let mut client = client(ClientTimeouts {
        head: SHORT,
        ..ENDLESS
    });
    client.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    assert!(is_cut_off_while_writing(&mut client, b'x').await);
    assert!(since.elapsed() >= SHORT);
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn a_silent_client_is_cut_off() {
    let since = Instant::now();
    let mut client = client(ClientTimeouts {
        head: SHORT,
        ..ENDLESS
    });
    assert_eq!(rest(&mut client).await, "");
    assert!(since.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_slow_head_after_a_good_request_is_cut_off_and_the_idle_time_is_not_counted() {
    let mut client = client(ClientTimeouts {
        head: SHORT,
        ..ENDLESS
    });
    client.write_all(REQUEST).await.unwrap();
    answer(&mut client, "got 0 bytes").await;
    sleep(SHORT * 2).await;
    client.write_all(REQUEST).await.unwrap();
    answer(&mut client, "got 0 bytes").await;
    sleep(SHORT * 2).await;
    let since = Instant::now();
    client.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    assert!(is_cut_off_while_writing(&mut client, b'x').await);
    assert!(since.elapsed() >= SHORT);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let mut client = client(ClientTimeouts {
        idle: SHORT,
        ..ENDLESS
    });
    client.write_all(REQUEST).await.unwrap();
    answer(&mut client, "got 0 bytes").await;
    let since = Instant::now();
    assert_eq!(rest(&mut client).await, "");
    assert!(since.elapsed() + PAUSE >= SHORT);
}

#[tokio::test]
async fn a_body_that_stops_trickles_or_never_ends_is_answered_and_cut_off() {
    let body = BodyTimeout {
        fixed: SHORT,
        ..ENDLESS.body
    };
    for (head, more) in [
        ("Content-Length: 100000\r\n\r\nsome", ""),
        ("Content-Length: 100000\r\n\r\nsome", "x"),
        ("Transfer-Encoding: chunked\r\n\r\n3e8\r\nsome", "x"),
        ("Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
    ] {
        let since = Instant::now();
        let client = client(ClientTimeouts { body, ..ENDLESS });
        let (mut reader, mut writer) = tokio::io::split(client);
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{head}");
        writer.write_all(head.as_bytes()).await.unwrap();
        let dripping = tokio::spawn(async move {
            while writer.write_all(more.as_bytes()).await.is_ok() {
                sleep(PAUSE).await;
            }
        });
        let mut said = String::new();
        reader.read_to_string(&mut said).await.unwrap();
        assert!(said.contains("got nothing"), "{head:?} {more:?}: {said}");
        assert!(said.contains("too slowly"), "{head:?} {more:?}: {said}");
        assert!(since.elapsed() >= SHORT);
        dripping.abort();
    }
}

#[tokio::test]
async fn a_large_body_that_keeps_the_rate_is_read() {
    let body = BodyTimeout {
        fixed: SHORT,
        bytes_per_second_min: 1_000,
    };
    let mut client = client(ClientTimeouts { body, ..ENDLESS });
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    // Twice the fixed time of a body, at ten times the minimum rate.
    for _ in 0..10 {
        client.write_all(&[b'x'; 10_000]).await.unwrap();
        sleep(SHORT / 5).await;
    }
    answer(&mut client, "got 100000 bytes").await;
}

#[tokio::test]
async fn a_response_to_a_large_unread_body_closes_the_connection() {
    for head in [
        "Content-Length: 100000\r\n\r\nsome",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
    ] {
        let mut client = client(ENDLESS);
        let head = format!("POST /unread HTTP/1.1\r\nHost: a\r\n{head}");
        client.write_all(head.as_bytes()).await.unwrap();
        let said = rest(&mut client).await;
        assert!(said.contains("connection: close"), "{said}");
    }
    let large = "x".repeat(100_000);
    for (path, body, end) in [
        ("/unread", "some", "unread"),
        ("/", &large, "got 100000 bytes"),
    ] {
        let (mut reader, mut writer) = tokio::io::split(client(ENDLESS));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let writing = tokio::spawn(async move {
            writer.write_all(head.as_bytes()).await.unwrap();
            writer
        });
        answer(&mut reader, end).await;
        let mut writer = writing.await.unwrap();
        writer.write_all(REQUEST).await.unwrap();
        answer(&mut reader, "got 0 bytes").await;
    }
}

#[tokio::test]
async fn the_rest_of_an_unread_body_is_discarded_for_a_while() {
    let head = "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    let mut client = client(ENDLESS);
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&vec![b'x'; 1_000_000]).await.unwrap();
    let said = rest(&mut client).await;
    assert!(said.ends_with("unread"), "{said}");
    for timeouts in [
        ClientTimeouts {
            unread: SHORT,
            ..ENDLESS
        },
        ClientTimeouts {
            unread_idle: PAUSE / 4,
            ..ENDLESS
        },
    ] {
        let mut client = self::client(timeouts);
        client.write_all(head.as_bytes()).await.unwrap();
        assert!(is_cut_off_while_writing(&mut client, b'x').await);
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off_and_a_slow_reader_is_not() {
    let timeouts = ClientTimeouts {
        stalled: SHORT,
        ..ENDLESS
    };
    let request = b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut silent = client(timeouts);
    silent.write_all(request).await.unwrap();
    sleep(SHORT * 3).await;
    assert!(rest(&mut silent).await.len() < LARGE_BYTES);
    let mut slow = client(timeouts);
    slow.write_all(request).await.unwrap();
    let mut bytes = vec![0; PIPE_BYTES];
    let mut count = 0;
    loop {
        let read = slow.read(&mut bytes).await.unwrap();
        if read == 0 {
            break;
        }
        count += read;
        sleep(PAUSE).await;
    }
    assert!(count > LARGE_BYTES, "{count} bytes");
}

#[tokio::test]
async fn heads_that_are_too_long_or_have_too_many_fields_are_rejected() {
    let long = format!("X-Long: {}\r\n", "x".repeat(HEAD_BYTES_MAX));
    let many = "X-Many: x\r\n".repeat(HEAD_FIELDS_MAX + 1);
    for fields in [long, many] {
        let client = client(ENDLESS);
        let (mut reader, mut writer) = tokio::io::split(client);
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        tokio::spawn(async move {
            let _cut_off = writer.write_all(head.as_bytes()).await;
            writer
        });
        let mut said = String::new();
        reader.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
    }
}

#[tokio::test]
async fn http_2_is_not_supported() {
    let mut client = client(ENDLESS);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    client.write_all(preface).await.unwrap();
    assert!(!rest(&mut client).await.contains("HTTP/1.1 200"));
}

/// An idle connection, after one response, of a server that shuts down.
async fn closing() -> DuplexStream {
    let closing = CancellationToken::new();
    let mut client = connect(ENDLESS, &closing);
    client.write_all(REQUEST).await.unwrap();
    answer(&mut client, "got 0 bytes").await;
    closing.cancel();
    client
}

#[tokio::test]
async fn on_shutdown_idle_connections_end_after_a_second_and_requests_are_answered() {
    let since = Instant::now();
    let mut idle = closing().await;
    let shutdown = CancellationToken::new();
    let mut busy = connect(ENDLESS, &shutdown);
    busy.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        .await
        .unwrap();
    // Until its head is read, this connection counts as idle too.
    sleep(SHORT).await;
    shutdown.cancel();
    assert_eq!(rest(&mut idle).await, "");
    assert!(since.elapsed() >= LINGER, "{:?}", since.elapsed());
    // The body is still arriving after the second.
    sleep(LINGER).await;
    busy.write_all(b"b").await.unwrap();
    let said = rest(&mut busy).await;
    assert!(said.ends_with("got 2 bytes"), "{said}");
    assert!(said.contains("connection: close"), "{said}");
}

#[tokio::test]
async fn requests_that_arrive_after_the_shutdown_are_answered_and_end_the_connection() {
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    for (requests, answers) in [
        (vec![get.to_owned()], 1),
        // Three requests at once.
        (vec![format!("{get}{post}{get}")], 3),
        // The head and the body in parts.
        (
            [&post[..20], &post[20..45], &post[45..post.len() - 2], "bc"]
                .map(str::to_owned)
                .into(),
            1,
        ),
        // The second request begins in the same write as the first.
        (vec![format!("{get}{}", &get[..8]), get[8..].to_owned()], 2),
    ] {
        let mut client = closing().await;
        for part in &requests {
            sleep(PAUSE).await;
            client.write_all(part.as_bytes()).await.unwrap();
        }
        let said = rest(&mut client).await;
        assert_eq!(said.matches("HTTP/1.1 200 ").count(), answers, "{said}");
        let closing = said.matches("connection: close").count();
        assert_eq!(closing, 1, "only the last response ends it: {said}");
    }
}

#[tokio::test]
async fn a_head_that_has_begun_is_awaited_after_the_second() {
    let mut client = closing().await;
    client.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    sleep(LINGER * 2).await;
    client.write_all(b"st: a\r\n\r\n").await.unwrap();
    let said = rest(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}
