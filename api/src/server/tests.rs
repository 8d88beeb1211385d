//! Slow clients, over pipes in memory, with bounds that are small enough to wait
//! for. None of the assertions is about how soon something happens on a busy
//! machine, only about what happens and what must not happen before its time.

use poem::endpoint::make;
use poem::{Body, IntoResponse as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, sleep};

use super::*;

/// What fits into a pipe before its reader takes something.
const PIPE_BYTES: usize = 16 << 10;
/// An answer that no pipe holds.
const LARGE_BYTES: usize = 1 << 20;
/// Between two bytes of a slow client.
const PAUSE: Duration = Duration::from_millis(20);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Nobody is waited for except where a test says so.
const SHORT: Duration = Duration::from_millis(600);
const LONG: Duration = Duration::from_secs(600);
const ENDLESS: ClientTimeouts = ClientTimeouts {
    head: LONG,
    unread: LONG,
    unread_idle: LONG,
    body: BodyPatience {
        while_max: LONG,
        bytes_per_second_min: 32 << 10,
    },
    stalled: LONG,
    idle: LONG,
};

/// A client of an endpoint that answers with the length of what it got, with why
/// it got nothing, on `/large` with a lot, or on `/unread` without a look at what it got.
fn connect(patience: ClientTimeouts, shutdown: &CancellationToken) -> DuplexStream {
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
    let ends = Ends {
        local: LocalAddr(here.clone()),
        remote: RemoteAddr(here),
    };
    let (endpoint, shutdown) = (Arc::new(endpoint), shutdown.clone());
    tokio::spawn(serve_connection(server, ends, endpoint, patience, shutdown));
    client
}

/// A client of a server that is not told to stop.
fn client(patience: ClientTimeouts) -> DuplexStream {
    connect(patience, &CancellationToken::new())
}

/// Writes slowly, byte by byte, until the server closes.
async fn is_cut_off_while_writing(client: &mut DuplexStream, byte: u8) -> bool {
    for _ in 0..10_000 {
        if client.write_all(&[byte]).await.is_err() {
            return true;
        }
        sleep(PAUSE).await;
    }
    false
}

/// All that the server says until it closes.
async fn rest(client: &mut DuplexStream) -> String {
    let mut said = Vec::new();
    client.read_to_end(&mut said).await.unwrap();
    String::from_utf8(said).unwrap()
}

/// One answer whose body ends in `end`, while the connection stays.
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
async fn a_head_that_comes_byte_by_byte_is_cut_off() {
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
async fn who_connects_and_says_nothing_is_cut_off() {
    let since = Instant::now();
    let mut client = client(ClientTimeouts {
        head: SHORT,
        ..ENDLESS
    });
    assert_eq!(rest(&mut client).await, "");
    assert!(since.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_slow_head_after_a_good_request_is_cut_off_and_the_pause_before_it_is_not_counted() {
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
async fn an_idle_connection_is_closed_after_its_time() {
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
async fn a_body_that_stops_drips_or_never_ends_is_given_up_with_an_answer() {
    let body = BodyPatience {
        while_max: SHORT,
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
async fn a_large_body_that_keeps_up_the_rate_is_taken() {
    let body = BodyPatience {
        while_max: SHORT,
        bytes_per_second_min: 1_000,
    };
    let mut client = client(ClientTimeouts { body, ..ENDLESS });
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    // Twice what every body may take, at ten times the rate that it must come at.
    for _ in 0..10 {
        client.write_all(&[b'x'; 10_000]).await.unwrap();
        sleep(SHORT / 5).await;
    }
    answer(&mut client, "got 100000 bytes").await;
}

#[tokio::test]
async fn an_answer_to_a_large_body_that_nobody_read_says_that_the_connection_ends() {
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
async fn what_comes_of_a_body_that_was_answered_unread_is_taken_for_a_while() {
    let head = "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    let mut client = client(ENDLESS);
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&vec![b'x'; 1_000_000]).await.unwrap();
    let said = rest(&mut client).await;
    assert!(said.ends_with("unread"), "{said}");
    for patience in [
        ClientTimeouts {
            unread: SHORT,
            ..ENDLESS
        },
        ClientTimeouts {
            unread_idle: PAUSE / 4,
            ..ENDLESS
        },
    ] {
        let mut client = self::client(patience);
        client.write_all(head.as_bytes()).await.unwrap();
        assert!(is_cut_off_while_writing(&mut client, b'x').await);
    }
}

#[tokio::test]
async fn who_reads_nothing_of_an_answer_is_cut_off_and_who_reads_slowly_is_not() {
    let patience = ClientTimeouts {
        stalled: SHORT,
        ..ENDLESS
    };
    let request = b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut deaf = client(patience);
    deaf.write_all(request).await.unwrap();
    sleep(SHORT * 3).await;
    assert!(rest(&mut deaf).await.len() < LARGE_BYTES);
    let mut slow = client(patience);
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
async fn heads_that_are_too_long_or_hold_too_many_fields_are_refused() {
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
async fn http_2_is_not_spoken() {
    let mut client = client(ENDLESS);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    client.write_all(preface).await.unwrap();
    assert!(!rest(&mut client).await.contains("HTTP/1.1 200"));
}

/// A connection that has had an answer and waits for its client, and is to close.
async fn closing() -> DuplexStream {
    let closing = CancellationToken::new();
    let mut client = connect(ENDLESS, &closing);
    client.write_all(REQUEST).await.unwrap();
    answer(&mut client, "got 0 bytes").await;
    closing.cancel();
    client
}

#[tokio::test]
async fn on_shutdown_idle_connections_end_after_a_moment_and_requests_are_answered_first() {
    let since = Instant::now();
    let mut idle = closing().await;
    let shutdown = CancellationToken::new();
    let mut busy = connect(ENDLESS, &shutdown);
    busy.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        .await
        .unwrap();
    // Until its head is read, it is idle too.
    sleep(SHORT).await;
    shutdown.cancel();
    assert_eq!(rest(&mut idle).await, "");
    assert!(since.elapsed() >= LINGER, "{:?}", since.elapsed());
    // The body is still arriving when the moment is over.
    sleep(LINGER).await;
    busy.write_all(b"b").await.unwrap();
    let said = rest(&mut busy).await;
    assert!(said.ends_with("got 2 bytes"), "{said}");
    assert!(said.contains("connection: close"), "{said}");
}

#[tokio::test]
async fn what_arrives_after_the_shutdown_is_answered_and_ends_the_connection() {
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    for (requests, answers) in [
        (vec![get.to_owned()], 1),
        // Three at once.
        (vec![format!("{get}{post}{get}")], 3),
        // The head in parts, and the body.
        (
            [&post[..20], &post[20..45], &post[45..post.len() - 2], "bc"]
                .map(str::to_owned)
                .into(),
            1,
        ),
        // The second begins with the first.
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
        assert_eq!(closing, 1, "only the last answer ends it: {said}");
    }
}

#[tokio::test]
async fn a_head_that_has_begun_when_the_moment_is_over_is_waited_for() {
    let mut client = closing().await;
    client.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    sleep(LINGER * 2).await;
    client.write_all(b"st: a\r\n\r\n").await.unwrap();
    let said = rest(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}
