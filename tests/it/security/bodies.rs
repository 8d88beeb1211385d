//! Malicious bodies: without a length, with a wrong one, compressed, nested, repeated. A
//! process must reject each, keep running, and not keep the memory.

use futures_util::future::join_all;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Process, Reply, TestApp, wait_within};

const MIB: usize = 1 << 20;
/// The allowed growth of memory after a flood: pages that the allocator keeps, and no
/// bodies.
const MEMORY_MORE: u64 = 400 << 20;

struct Sut {
    app: TestApp,
    api: Process,
    before: u64,
}

impl Sut {
    async fn start() -> Self {
        let app = TestApp::builder().processes().start().await;
        let api = app.spawn_api().await;
        app.connect(ProviderType::Sendgrid).await;
        let before = api.memory_bytes();
        Self { app, api, before }
    }

    async fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Reply {
        let caller = self.app.caller();
        caller.post_raw(path, Some("application/json"), body).await
    }

    async fn end_as_before(mut self) {
        assert!(!self.api.has_ended());
        self.app.get("/v1/messages").await.expect(200);
        let bound = self.before + MEMORY_MORE;
        let is_small = wait_within(waypost_tests::WAIT_MAX, async || {
            self.api.memory_bytes() < bound
        });
        let is_small = is_small.await;
        let now = self.api.memory_bytes();
        assert!(is_small, "{now} bytes in hand, {} before", self.before);
        self.app.leave_work();
    }
}

fn message_with(field: &str, json: &str) -> String {
    format!(
        r#"{{"to":"a@example.org","from":"a@example.com","subject":"s","text":"t","{field}":{json}}}"#
    )
}

#[tokio::test]
async fn an_endless_body_is_rejected_at_its_limit_whatever_it_announces() {
    let sut = Sut::start().await;
    let key = sut
        .app
        .key(sut.app.organization_id(), &Permission::ALL)
        .await;
    let address = &sut.app.variables["WAYPOST_LISTEN"];
    let head = |path: &str, more: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n{more}\r\n\r\n"
        )
    };
    for (path, bound) in [
        ("/v1/templates", MIB),
        ("/v1/suppressions/import", 5 * MIB),
        ("/v1/send", 30 * MIB),
    ] {
        let endless = "Transfer-Encoding: chunked";
        let huge = format!("Content-Length: {}", 1_u64 << 40);
        for more in [endless, huge.as_str()] {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(head(path, more).as_bytes()).await.unwrap();
            let (mut reader, mut writer) = client.split();
            let piece = vec![b' '; 64 << 10];
            let writing = async {
                let mut sent = 0;
                loop {
                    if more == endless && writer.write_all(b"10000\r\n").await.is_err() {
                        return sent;
                    }
                    if writer.write_all(&piece).await.is_err() {
                        return sent;
                    }
                    if more == endless && writer.write_all(b"\r\n").await.is_err() {
                        return sent;
                    }
                    sent += piece.len();
                }
            };
            let reading = async {
                let mut said = Vec::new();
                let _cut_off = reader.read_to_end(&mut said).await;
                String::from_utf8_lossy(&said).into_owned()
            };
            let (sent, said) = tokio::join!(writing, reading);
            // After the response 64 MiB are read and discarded, so that the response
            // arrives, and the system's buffers take some of it too.
            assert!(
                sent < bound + (64 + 16) * MIB,
                "{path} {more}: {sent} bytes went out"
            );
            assert!(
                said.is_empty() || said.starts_with("HTTP/1.1 413 "),
                "{path} {more}: {said}"
            );
        }
    }
    // A content length that is too small: the rest is no valid request.
    let mut client = TcpStream::connect(address).await.unwrap();
    let short = head("/v1/templates", "Content-Length: 5") + "{\"name\": \"x\"}";
    client.write_all(short.as_bytes()).await.unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    // A client that disconnects before the end of its body.
    for _ in 0..50 {
        let mut client = TcpStream::connect(address).await.unwrap();
        let long = head("/v1/send", "Content-Length: 1000000") + "{";
        client.write_all(long.as_bytes()).await.unwrap();
    }
    sut.end_as_before().await;
}

#[tokio::test]
async fn compressed_bodies_are_not_decompressed() {
    let sut = Sut::start().await;
    // The body need not be a real gzip of a gigabyte to be rejected.
    let packed = [&[0x1f, 0x8b, 8, 0][..], &[0; 1_000]].concat();
    for coding in ["gzip", "deflate", "br", "zstd", "identity, gzip", "x"] {
        let reply = sut.app.caller().call(Method::POST, "/v1/send", |request| {
            request
                .header("content-type", "application/json")
                .header("content-encoding", coding)
                .body(packed.clone())
        });
        reply.await.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    let plain = sut
        .app
        .caller()
        .call(Method::POST, "/v1/templates", |request| {
            let request = request.header("content-encoding", "identity");
            request.json(&json!({ "name": "Plain" }))
        });
    plain.await.data(201);
    sut.end_as_before().await;
}

#[tokio::test]
async fn nesting_is_limited_wherever_json_is_parsed() {
    let sut = Sut::start().await;
    let arrays = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let account = sut.app.get("/v1/providers").await.data(200)[0].clone();
    let url = account["webhookUrl"].as_str().unwrap();
    let callback = url[url.find("/v1/").unwrap()..].to_owned();
    let template = json!({ "name": "Letter" });
    let template = sut.app.post("/v1/templates", &template).await.data(201);
    let versions = format!(
        "/v1/templates/{}/versions",
        template["id"].as_str().unwrap()
    );
    for depth in [200, 10_000, 1_000_000] {
        for deep in [
            arrays(depth),
            objects(depth),
            "[".repeat(depth),
            "{\"a\":".repeat(depth),
        ] {
            for field in ["metadata", "variables", "to", "tracking", "unknown"] {
                let reply = sut.post("/v1/send", message_with(field, &deep)).await;
                reply.expect_error(400, "VALIDATION_ERROR");
            }
            let batch = format!(r#"{{"messages":[{}]}}"#, message_with("metadata", &deep));
            sut.post("/v1/emails/batch", batch)
                .await
                .expect_error(400, "VALIDATION_ERROR");
            if deep.len() < MIB {
                let version = format!(r#"{{"htmlContent":"x","variablesSchema":{deep}}}"#);
                sut.post(&versions, version)
                    .await
                    .expect_error(400, "VALIDATION_ERROR");
            }
            let caller = sut.app.caller().anonymous();
            let told = caller
                .post_raw(&callback, Some("application/json"), deep.clone())
                .await;
            assert!([401, 413].contains(&told.status), "{told:?}");
        }
    }
    // What is within the limit is parsed and stored.
    let deep = objects(120);
    sut.post("/v1/send", message_with("metadata", &deep))
        .await
        .expect(202);
    let found = sut.app.get("/v1/messages").await.expect(200);
    assert_eq!(found["pagination"]["total"], 1);
    sut.end_as_before().await;
}

#[tokio::test]
async fn many_small_values_are_rejected_before_they_use_much_memory() {
    let sut = Sut::start().await;
    let many = |value: &str, count: usize| format!("[{}]", vec![value; count].join(","));
    // 28 MB each, eight at a time: as parsed values they would take more than a gigabyte.
    let bodies = [
        message_with("metadata", &format!(r#"{{"a":{}}}"#, many("1", 14_000_000))),
        message_with("to", &many("[]", 9_000_000)),
        message_with(
            "variables",
            &format!(r#"{{"a":{}}}"#, many("{}", 9_000_000)),
        ),
        message_with("unknown", &many("\"\"", 9_000_000)),
    ];
    for _ in 0..2 {
        let both = bodies
            .iter()
            .chain(&bodies)
            .map(|body| sut.post("/v1/send", body.clone()));
        for reply in join_all(both).await {
            reply.expect_error(400, "VALIDATION_ERROR");
        }
    }
    let batch = format!(r#"{{"messages":{}}}"#, many("{}", 2_000_000));
    sut.post("/v1/emails/batch", batch)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    sut.end_as_before().await;
}

#[tokio::test]
async fn long_numbers_repeated_names_and_long_queries_are_harmless() {
    let sut = Sut::start().await;
    let number = "1".repeat(5 * MIB);
    for metadata in [
        format!(r#"{{"n":{number}}}"#),
        format!(r#"{{"n":-0.{number}}}"#),
        format!(r#"{{"n":1e{number}}}"#),
        format!("{{{}}}", vec![r#""a":1"#; 300_000].join(",")),
    ] {
        let reply = sut
            .post("/v1/send", message_with("metadata", &metadata))
            .await;
        assert!([202, 400].contains(&reply.status), "{}", reply.status);
    }
    let long_name = format!(r#"{{"{}":1}}"#, "k".repeat(60_000));
    sut.post("/v1/send", message_with("metadata", &long_name))
        .await
        .expect(202);
    for query in [
        format!("search={}", "a".repeat(50_000)),
        "page=1&".repeat(8_000),
        "a[b][c]=1&".repeat(5_000),
        format!("page={}", "9".repeat(50_000)),
        "%00%ff%".to_owned(),
    ] {
        let reply = sut.app.get(&format!("/v1/messages?{query}")).await;
        assert!([200, 400].contains(&reply.status), "{reply:?}");
    }
    sut.end_as_before().await;
}
