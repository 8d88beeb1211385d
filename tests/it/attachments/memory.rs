//! The memory that large requests take: at most twice the file for one, and a bound for many.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use http::Method;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Reply, TestApp, wait_until};

use super::with_files;

const MIB: u64 = 1 << 20;

/// A send with a file of so many bytes, as its JSON.
fn body(bytes: u64) -> bytes::Bytes {
    let content: Vec<u8> = (0..bytes)
        .map(|index| (index * index % 253) as u8)
        .collect();
    let file = json!({ "filename": "a.bin", "content": STANDARD.encode(content) });
    with_files(&json!([file])).to_string().into()
}

async fn send(caller: &Caller, body: &bytes::Bytes) -> Reply {
    let body = body.clone();
    let shape = |request: reqwest::RequestBuilder| {
        request
            .header("content-type", "application/json")
            .body(body)
    };
    caller.call(Method::POST, "/v1/send", shape).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_large_send_takes_twice_its_file_and_many_take_their_bound() {
    let app = TestApp::builder()
        .processes()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_LARGE_REQUESTS_MAX_BYTES", &(60 * MIB).to_string())
        .start()
        .await;
    app.leave_work();
    let api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    app.send(&with_files(
        &json!([{ "filename": "a", "content": "QQ==" }]),
    ))
    .await;
    let large = body(20 * MIB);
    let idle = api.memory_bytes();
    send(app.caller(), &large).await.expect(202);
    let peak = api.memory_peak_bytes().saturating_sub(idle) / MIB;
    println!(
        "idle {} MiB, one send of 20 MiB: {peak} MiB more at its peak",
        idle / MIB
    );
    assert!(peak <= 40, "{peak} MiB");
    // Two of 27 MiB fit.
    let replies = join_all((0..100).map(|_| send(app.caller(), &large))).await;
    let (mut accepted, mut refused) = (0, 0);
    for reply in replies {
        if reply.status == 202 {
            accepted += 1;
        } else {
            reply.expect_error(503, "SERVICE_UNAVAILABLE");
            assert!(reply.headers.contains_key("retry-after"));
            refused += 1;
        }
    }
    let peak = api.memory_peak_bytes().saturating_sub(idle) / MIB;
    println!(
        "a hundred at once: {accepted} accepted, {refused} refused, {peak} MiB more at the peak"
    );
    assert!(accepted >= 2 && refused > 0, "{accepted} {refused}");
    assert!(peak <= 100, "{peak} MiB");
    // Everything is given back: small and large requests are served again.
    app.send(&with_files(
        &json!([{ "filename": "a", "content": "QQ==" }]),
    ))
    .await;
    send(app.caller(), &large).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_a_length_is_bounded_too() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.leave_work();
    app.connect(ProviderType::Sendgrid).await;
    for (bytes, status) in [(3 * MIB, 202), (31 * MIB, 413)] {
        let body = body(bytes);
        let chunks: Vec<_> = (0..body.len())
            .step_by(100_000)
            .map(|at| body.slice(at..body.len().min(at + 100_000)))
            .map(|chunk| Ok::<_, std::io::Error>(Frame::data(chunk)))
            .collect();
        let reply = app
            .caller()
            .try_call(Method::POST, "/v1/send", |request| {
                let chunks = futures_util::stream::iter(chunks);
                let request = request.header("content-type", "application/json");
                request.body(reqwest::Body::wrap(StreamBody::new(chunks)))
            })
            .await;
        // The connection ends with the refusal, perhaps before the client reads it.
        match reply {
            Ok(reply) => assert_eq!(reply.status, status),
            Err(error) => assert_eq!(status, 413, "{error}"),
        }
    }
}

/// The file is encoded while it is sent, so the worker holds it once.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_holds_less_than_twice_the_file_that_it_sends() {
    let app = TestApp::builder().processes().start().await;
    let (_api, worker) = (app.spawn_api().await, app.spawn_worker());
    app.connect(ProviderType::Sendgrid).await;
    app.send_to("small@example.org").await;
    wait_until("the small mail is sent", async || {
        app.outbox().await.is_empty()
    })
    .await;
    let idle = worker.memory_bytes();
    send(app.caller(), &body(20 * MIB)).await.expect(202);
    wait_until("the large mail is sent", async || {
        app.outbox().await.is_empty()
    })
    .await;
    let peak = worker.memory_peak_bytes().saturating_sub(idle) / MIB;
    println!(
        "idle {} MiB, one mail of 20 MiB: {peak} MiB more",
        idle / MIB
    );
    assert!((20..=40).contains(&peak), "{peak} MiB");
}
