//! Attachments that are named by URL: what is fetched, from where, and what hostile
//! servers come to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use waypost_tests::TestApp;

use super::{pieces, quiet, quiet_with, text_of, with_files};

/// A server that answers with the bytes of its paths, without regard to HTTP.
struct Server {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (count, base) = (Arc::clone(&requests), url.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, base.clone()));
            }
        });
        Self { url, requests }
    }
}

async fn serve(mut stream: TcpStream, base: String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let redirect =
        |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let sized = |length: usize, body: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let answer = match path {
        "/file.pdf" => sized(300_000, &text_of(300_000, 9)),
        "/empty" => sized(0, ""),
        "/chunked" => {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nABC\r\n2\r\nDE\r\n0\r\n\r\n"
                .to_owned()
        }
        "/to-file" => redirect("/file.pdf"),
        "/three" => redirect("/two"),
        "/two" => redirect("/to-file"),
        "/four" => redirect("/three"),
        "/loop" => redirect("/loop"),
        "/to-metadata" => redirect("http://169.254.169.254/latest/meta-data"),
        "/to-private" => redirect("https://10.0.0.1/x"),
        "/to-ftp" => redirect("ftp://example.com/x"),
        "/to-file-url" => redirect("file:///etc/passwd"),
        "/to-user" => redirect(&base.replace("http://", "http://ann:secret@")),
        "/to-nowhere" => "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/missing" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/partial" => "HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nAB".to_owned(),
        "/error" => "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/short" => sized(1_000, "cut off"),
        "/liar" => sized(usize::MAX / 4, "little"),
        "/zipped" => {
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nAB".to_owned()
        }
        "/garbage" => "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
        "/hang-up" => String::new(),
        "/endless" => return endless(stream).await,
        "/silent" => return std::future::pending().await,
        "/trickle" => return trickle(stream).await,
        _ => redirect("/unknown"),
    };
    let _closed = stream.write_all(answer.as_bytes()).await;
    let _closed = stream.shutdown().await;
}

async fn endless(mut stream: TcpStream) {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut sent = stream.write_all(head).await;
    let chunk = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
    while sent.is_ok() {
        sent = stream.write_all(&chunk).await;
    }
}

/// One byte and then another, each time that the client has read the one before.
async fn trickle(mut stream: TcpStream) {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n";
    let mut sent = stream.write_all(head).await;
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(200));
    while sent.is_ok() {
        ticks.tick().await;
        sent = stream.write_all(b"x").await;
    }
}

fn file(url: &str) -> Value {
    json!({ "filename": "a.pdf", "url": url })
}

async fn refused(app: &TestApp, url: &str) -> String {
    let good = json!({ "filename": "b", "content": "QQ==" });
    let reply = app
        .post("/v1/send", &with_files(&json!([good, file(url)])))
        .await;
    let error = reply.expect_issues(reply.status, &["attachments.1.url"]);
    if reply.status != 400 {
        assert_eq!(reply.status, 422, "{url}: {error}");
        assert_eq!(
            error["details"]["reason"], "ATTACHMENT_NOT_FETCHED",
            "{url}"
        );
    }
    format!("{} {}", reply.status, error["message"].as_str().unwrap())
}

#[tokio::test]
async fn a_file_is_fetched_once_and_kept() {
    let app = quiet().await;
    let server = Server::start().await;
    for (path, content) in [
        ("/file.pdf", text_of(300_000, 9)),
        ("/empty", String::new()),
        ("/chunked", "ABCDE".to_owned()),
        ("/to-file", text_of(300_000, 9)),
        ("/three", text_of(300_000, 9)),
    ] {
        let id = app
            .send(&with_files(&json!([file(&format!(
                "{}{path}",
                server.url
            ))])))
            .await;
        let asked = server.requests.load(Ordering::SeqCst);
        let list = app
            .get(&format!("/v1/messages/{id}/attachments"))
            .await
            .data(200);
        assert_eq!(list[0]["size"], content.len());
        assert_eq!(list[0]["contentType"], "application/pdf");
        let reply = app.get(&format!("/v1/messages/{id}/attachments/0")).await;
        assert_eq!(reply.text, content, "{path}");
        assert_eq!(server.requests.load(Ordering::SeqCst), asked);
    }
    assert_eq!(pieces(&app).await, "3");
}

#[tokio::test]
async fn what_a_server_does_wrong_is_a_reason_and_never_a_file() {
    let app = quiet_with(&[("WAYPOST_ATTACHMENTS_MAX_BYTES", "1000000")]).await;
    let server = Server::start().await;
    for (path, words) in [
        (
            "/missing",
            "422 attachments.1.url could not be fetched: it answers with 404",
        ),
        ("/partial", "it answers with 206"),
        ("/error", "it answers with 500"),
        ("/short", "could not be fetched"),
        ("/liar", "has more bytes"),
        ("/endless", "has more bytes"),
        ("/zipped", "Content-Encoding"),
        ("/garbage", "could not be fetched"),
        ("/hang-up", "could not be fetched"),
        ("/four", "redirects more than 3 times"),
        ("/loop", "redirects more than 3 times"),
        ("/to-metadata", "must have a host with a public address"),
        ("/to-private", "must have a host with a public address"),
        (
            "/to-ftp",
            "redirects to a URL that must begin with https://",
        ),
        (
            "/to-file-url",
            "redirects to a URL that must begin with https://",
        ),
        ("/to-user", "must not contain a user or a password"),
        ("/to-nowhere", "without a valid Location"),
        ("/silent", "in time"),
        ("/trickle", "in time"),
    ] {
        let message = refused(&app, &format!("{}{path}", server.url)).await;
        assert!(message.contains(words), "{path}: {message}");
        assert!(!message.contains("127.0.0.1"), "{path}: {message}");
    }
    assert_eq!(pieces(&app).await, "0");
}

#[tokio::test]
async fn only_public_addresses_are_asked_and_only_with_https() {
    let app = quiet_with(&[("WAYPOST_WEBHOOK_ALLOW", "none")]).await;
    let server = Server::start().await;
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    for url in [
        format!("http://127.0.0.1:{port}/file.pdf"),
        format!("https://127.0.0.1:{port}/file.pdf"),
        format!("https://localhost:{port}/file.pdf"),
        format!("https://[::1]:{port}/file.pdf"),
        format!("https://[::ffff:127.0.0.1]:{port}/file.pdf"),
        format!("https://2130706433:{port}/file.pdf"),
        format!("https://0x7f.1:{port}/file.pdf"),
        format!("https://0:{port}/file.pdf"),
        "https://10.0.0.1/".to_owned(),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "https://[fd00::1]/".to_owned(),
        "https://ann:secret@example.com/".to_owned(),
        "ftp://example.com/a".to_owned(),
    ] {
        let message = refused(&app, &url).await;
        let words = [
            "must have a host with a public address",
            "must begin with https://",
            "must not contain a user",
        ];
        assert!(
            words.iter().any(|words| message.contains(words)),
            "{url}: {message}"
        );
    }
    assert_eq!(server.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_files_of_a_message_share_one_limit_and_one_time() {
    let app = quiet_with(&[("WAYPOST_ATTACHMENTS_MAX_BYTES", "700000")]).await;
    let server = Server::start().await;
    let pdf = file(&format!("{}/file.pdf", server.url));
    app.send(&with_files(&json!([pdf, pdf]))).await;
    let reply = app
        .post("/v1/send", &with_files(&json!([pdf, pdf, pdf])))
        .await;
    let error = reply.expect_error(422, "VALIDATION_ERROR");
    assert!(error.to_string().contains("has more bytes"), "{error}");
    let begun = tokio::time::Instant::now();
    let silent = file(&format!("{}/silent", server.url));
    let reply = app
        .post("/v1/send", &with_files(&json!(vec![silent; 50])))
        .await;
    reply.expect_error(422, "VALIDATION_ERROR");
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
