//! Traces, from the request to the webhook.

use http::Method;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Program, Receiver, TestApp, message_to, wait_until};

use super::Watched;
use super::collector::{CollectedSpan, Collector};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT_SPAN: &str = "00f067aa0ba902b7";

/// Sends a message with this header; returns its id.
async fn send_traced(app: &TestApp, recipient: &str, traceparent: &str) -> String {
    let body = message_to(recipient);
    let request = app.caller().try_call(Method::POST, "/v1/send", |request| {
        request.json(&body).header("traceparent", traceparent)
    });
    let reply = request.await.expect("the API answers").expect(202);
    reply["messageId"].as_str().unwrap().to_owned()
}

/// The spans of the message are a chain from the client's span. Returns the last of them.
fn assert_chain(collector: &Collector, id: &str) -> CollectedSpan {
    let request = collector.only("POST /v1/send");
    assert_eq!(
        (request.service.as_str(), request.parent_id.as_str()),
        ("waypost-api", CLIENT_SPAN)
    );
    assert_eq!(request.attributes["http.response.status_code"], "202");
    assert_eq!(request.attributes["http.route"], "/v1/send");
    let sending = collector.only("send message");
    assert_eq!(sending.service, "waypost-worker");
    assert_eq!(sending.parent_id, request.span_id);
    assert_eq!(sending.attributes["waypost.message.id"], id);
    let call = collector.only("call provider");
    assert_eq!(call.parent_id, sending.span_id);
    assert_eq!(call.attributes["waypost.outcome"], "ACCEPTED");
    let event = collector.spans().into_iter().find(|span| {
        span.name == "provider event" && span.attributes["waypost.event"] == "DELIVERED"
    });
    let event = event.expect("the event has a span");
    assert_eq!(
        (event.trace_id.as_str(), event.parent_id.as_str()),
        (TRACE_ID, request.span_id.as_str())
    );
    let posted = collector.only("post webhook");
    assert_eq!(posted.parent_id, request.span_id);
    assert_eq!(posted.attributes["http.response.status_code"], "200");
    assert_eq!(collector.keys()[0], "Bearer of the collector");
    assert!(
        collector
            .spans()
            .iter()
            .all(|span| !span.trace_id.starts_with("1111"))
    );
    posted
}

#[tokio::test]
async fn one_trace_leads_from_the_request_to_the_webhook() {
    let app = TestApp::builder().processes().start().await;
    let (collector, receiver) = (Collector::start().await, Receiver::start().await);
    let url = collector.url();
    let traced = [
        ("WAYPOST_OTLP_ENDPOINT", url.as_str()),
        (
            "WAYPOST_OTLP_HEADERS",
            "authorization=Bearer of the collector",
        ),
    ];
    let _api = Watched::start(&app, Program::Api, &traced).await;
    let _worker = Watched::start(&app, Program::Worker, &traced).await;
    let _scheduler = Watched::start(&app, Program::Scheduler, &traced).await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let register = format!("/v1/providers/{account}/event-webhook");
    app.caller().post_empty(&register).await.data(200);
    let endpoint = json!({ "url": receiver.url(), "events": ["DELIVERED"] });
    app.post("/v1/webhook-endpoints", &endpoint).await.data(201);

    let header = format!("00-{TRACE_ID}-{CLIENT_SPAN}-01");
    let id = send_traced(&app, "ada@example.org", &header).await;
    let unrecorded = "00-11111111111111111111111111111111-2222222222222222-00";
    send_traced(&app, "grace@example.org", unrecorded).await;
    wait_until("both webhooks came", async || {
        receiver.received().len() == 2
    })
    .await;
    wait_until("all spans came", async || {
        let spans = collector.spans();
        let names = [
            "POST /v1/send",
            "send message",
            "call provider",
            "provider event",
            "post webhook",
        ];
        names.iter().all(|name| {
            spans
                .iter()
                .any(|span| span.name == *name && span.trace_id == TRACE_ID)
        })
    })
    .await;

    let posted = assert_chain(&collector, &id);
    // The receiver can go on with the trace, of the recorded message alone.
    let received = receiver.received();
    let expected = format!("00-{TRACE_ID}-{}-01", posted.span_id);
    for webhook in received {
        let (_, recipient) = webhook.gist();
        let header = webhook.headers.get("traceparent");
        let header = header.map(|header| header.to_str().unwrap().to_owned());
        let is_recorded = recipient == "ada@example.org";
        assert_eq!(header, is_recorded.then(|| expected.clone()), "{recipient}");
    }
    let stored = "SELECT count(*) FROM messages WHERE traceparent IS NOT NULL";
    assert_eq!(app.value(stored).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn without_a_collector_nothing_of_a_trace_is_kept() {
    let app = TestApp::builder().processes().start().await;
    let receiver = Receiver::start().await;
    let _api = app.spawn_api().await;
    let (_worker, _scheduler) = (app.spawn_worker(), app.spawn_scheduler());
    app.connect(ProviderType::Sendgrid).await;
    let endpoint = json!({ "url": receiver.url(), "events": ["SENT"] });
    app.post("/v1/webhook-endpoints", &endpoint).await.data(201);
    send_traced(
        &app,
        "ada@example.org",
        &format!("00-{TRACE_ID}-{CLIENT_SPAN}-01"),
    )
    .await;
    wait_until("the webhook came", async || receiver.received().len() == 1).await;
    assert!(!receiver.received()[0].headers.contains_key("traceparent"));
    let stored = "SELECT count(*) FROM messages WHERE traceparent IS NOT NULL";
    assert_eq!(app.value(stored).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn a_collector_that_is_away_delays_nothing() {
    let app = TestApp::builder().processes().start().await;
    let nobody = format!("http://127.0.0.1:{}", waypost_tests::free_port());
    let traced = [("WAYPOST_OTLP_ENDPOINT", nobody.as_str())];
    let _api = Watched::start(&app, Program::Api, &traced).await;
    let _worker = Watched::start(&app, Program::Worker, &traced).await;
    app.connect(ProviderType::Sendgrid).await;
    for nth in 0..20 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    wait_until("all mails are sent", async || app.outbox().await.is_empty()).await;
}
