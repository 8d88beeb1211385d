//! Webhook endpoints: creating, changing, testing and removing them, their secrets, which
//! URLs are allowed, and their deliveries.

mod deliveries;
mod guard;
mod receiver;
mod secrets;

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_tests::TestApp;

use receiver::{Manner, Receiver, contract_signature, standard_signature};

const PATH: &str = "/v1/webhook-endpoints";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

/// An app that allows webhooks only to public addresses.
async fn strict() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_WEBHOOK_ALLOW", "none")
        .start()
        .await
}

/// Creates an endpoint for an event that no test causes.
async fn endpoint(app: &TestApp, receiver: &Receiver) -> Value {
    let body = json!({ "url": receiver.url(), "events": ["COMPLAINED"] });
    let made = app.post(PATH, &body).await.data(201);
    receiver.take();
    made
}

fn path_of(endpoint: &Value) -> String {
    format!("{PATH}/{}", endpoint["id"].as_str().unwrap())
}

async fn actions(app: &TestApp) -> Vec<Value> {
    let entries = app.get("/v1/audit-logs").await.data(200);
    entries
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|entry| json!([entry["action"], entry["metadata"]]))
        .collect()
}

fn reason(error: &Value) -> &Value {
    &error["details"]["reason"]
}

#[tokio::test]
async fn an_endpoint_is_created_shown_changed_and_removed() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(404)).await;
    let body = json!({ "url": receiver.url(), "events": ["DELIVERED", "BOUNCED", "DELIVERED"] });
    let mut made = app.post(PATH, &body).await.data(201);
    assert_eq!(receiver.methods(), ["HEAD"]);
    let secret = made.as_object_mut().unwrap().remove("secret").unwrap();
    assert!(secret.as_str().unwrap().starts_with("whsec_"));
    let expected = json!({
        "id": made["id"],
        "organizationId": app.organization_id().to_string(),
        "url": receiver.url(),
        "events": ["DELIVERED", "BOUNCED"],
        "tags": [],
        "isActive": true,
        "failingSince": null,
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    });
    assert_eq!(made, expected);
    assert_eq!(app.get(PATH).await.expect(200), json!({ "data": [made] }));
    let path = path_of(&made);
    assert_eq!(app.get(&path).await.data(200), made);
    app.advance(TimeDelta::seconds(5));
    let change = json!({ "events": ["OPENED"], "isActive": false });
    let changed = app.patch(&path, &change).await.data(200);
    assert_eq!(changed["events"], json!(["OPENED"]));
    assert_eq!(changed["isActive"], false);
    assert_ne!(changed["updatedAt"], made["updatedAt"]);
    assert_eq!(app.get(&path).await.data(200), changed);
    // No call was made for that.
    assert!(receiver.take().is_empty());
    let gone = app.delete(&path).await.expect(200);
    assert_eq!(gone, json!({ "success": true }));
    app.get(&path).await.expect_error(404, "NOT_FOUND");
    app.delete(&path).await.expect_error(404, "NOT_FOUND");
    app.patch(&path, &json!({}))
        .await
        .expect_error(404, "NOT_FOUND");
    let expected = [
        json!(["webhook_endpoint.created", { "events": ["DELIVERED", "BOUNCED"], "isActive": true }]),
        json!(["webhook_endpoint.updated", { "fields": ["events", "isActive"], "isActive": false }]),
        json!(["webhook_endpoint.deleted", {}]),
    ];
    assert_eq!(actions(&app).await, expected);
}

#[tokio::test]
async fn all_mistakes_are_reported_together_and_no_call_is_made() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    app.post(PATH, &json!({}))
        .await
        .expect_issues(400, &["url", "events"]);
    let body = json!({ "url": "example.com", "events": [], "isActive": "yes" });
    app.post(PATH, &body)
        .await
        .expect_issues(400, &["url", "events", "isActive"]);
    let body = json!({ "url": receiver.url(), "events": ["DELIVERED", "DELETED", 7] });
    app.post(PATH, &body)
        .await
        .expect_issues(400, &["events.1", "events.2"]);
    let long = format!("https://example.com/{}", "a".repeat(3_000));
    for url in [
        // Plain HTTP is allowed only to allowed addresses.
        "http://8.8.8.8/hook",
        "http://[2606:4700:4700::1111]/hook",
        "http://10.0.0.1/hook",
        "ftp://example.com/hook",
        "https://user:pass@example.com/hook",
        "https://exam ple.com/hook",
        "https://",
        "",
        &long,
    ] {
        let body = json!({ "url": url, "events": ["DELIVERED"] });
        app.post(PATH, &body).await.expect_issues(400, &["url"]);
    }
    assert!(receiver.take().is_empty());
    assert_eq!(app.get(PATH).await.expect(200), json!({ "data": [] }));
    let made = endpoint(&app, &receiver).await;
    let body = json!({ "url": 1, "events": ["NONE"], "isActive": 0 });
    app.patch(&path_of(&made), &body)
        .await
        .expect_issues(400, &["url", "events.0", "isActive"]);
    let body = json!({ "url": "http://8.8.8.8/" });
    app.patch(&path_of(&made), &body)
        .await
        .expect_issues(400, &["url"]);
}

#[tokio::test]
async fn a_url_without_a_server_is_refused() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::Cut).await;
    let closed = Receiver::start(Manner::Cut).await.url();
    let closed_https = closed.replace("http", "https");
    for url in [receiver.url(), closed, closed_https] {
        let body = json!({ "url": url, "events": ["DELIVERED"] });
        let reply = app.post(PATH, &body).await;
        let error = reply.expect_issues(422, &["url"]);
        assert_eq!(reason(&error), "URL_UNREACHABLE", "{url}");
    }
    // HEAD, then POST.
    assert_eq!(receiver.methods(), ["HEAD", "POST"]);
    assert_eq!(app.get(PATH).await.expect(200), json!({ "data": [] }));
    assert!(actions(&app).await.is_empty());
    // A server that does not support HEAD is accepted.
    receiver.behave(Manner::CutHead);
    let body = json!({ "url": receiver.url(), "events": ["DELIVERED"] });
    let made = app.post(PATH, &body).await.data(201);
    let path = path_of(&made);
    receiver.behave(Manner::Cut);
    let other = json!({ "url": format!("http://{}/other", receiver.address) });
    app.patch(&path, &other)
        .await
        .expect_error(422, "VALIDATION_ERROR");
    assert_eq!(app.get(&path).await.data(200)["url"], receiver.url());
    // An unchanged URL is not called.
    receiver.take();
    let _same = app
        .patch(&path, &json!({ "url": receiver.url() }))
        .await
        .data(200);
    assert!(receiver.take().is_empty());
    receiver.behave(Manner::status(500));
    let changed = app.patch(&path, &other).await.data(200);
    assert_eq!(changed["url"], other["url"]);
}

#[tokio::test]
async fn a_hanging_server_is_refused_after_five_seconds() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::Silent).await;
    let body = json!({ "url": receiver.url(), "events": ["DELIVERED"] });
    let error = app.post(PATH, &body).await.expect_issues(422, &["url"]);
    assert_eq!(reason(&error), "URL_UNREACHABLE");
    assert_eq!(receiver.methods(), ["HEAD"]);
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_in_every_form() {
    let app = strict().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let port = receiver.address.port();
    let hosts = [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "localhost",
        "0.0.0.0",
        "0",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "%31%32%37.0.0.1",
    ];
    for host in hosts {
        let url = format!("https://{host}:{port}/hook");
        let body = json!({ "url": url, "events": ["DELIVERED"] });
        let error = app.post(PATH, &body).await.expect_issues(422, &["url"]);
        assert_eq!(reason(&error), "ADDRESS_NOT_PUBLIC", "{host}");
        // HTTP is refused whatever the address is.
        let body = json!({ "url": format!("http://{host}:{port}/"), "events": ["DELIVERED"] });
        app.post(PATH, &body).await.expect_issues(400, &["url"]);
    }
    assert!(receiver.take().is_empty());
    assert_eq!(app.get(PATH).await.expect(200), json!({ "data": [] }));
}

#[tokio::test]
async fn concurrent_creations_do_not_exceed_ten_endpoints() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    app.execute(&format!(
        "INSERT INTO webhook_endpoints (id, organization_id, url, events, is_active, secret_sealed, created_at, updated_at)
         SELECT gen_random_uuid(), '{}', 'https://example.com', '{{SENT}}', false, '', now(), now()
         FROM generate_series(1, 7)",
        app.organization_id()
    ))
    .await;
    let body = json!({ "url": receiver.url(), "events": ["DELIVERED"] });
    let replies = join_all((0..6).map(|_| app.caller().post(PATH, &body))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 201, 201, 422, 422, 422]);
    let refused = app.post(PATH, &body).await;
    let error = refused.expect_error(422, "VALIDATION_ERROR");
    assert_eq!(reason(&error), "TOO_MANY_WEBHOOK_ENDPOINTS");
    // Another organization has its own limit.
    let other = app.tenant("Other").await;
    let _made = other.caller.post(PATH, &body).await.data(201);
}

#[tokio::test]
async fn endpoints_of_another_organization_are_not_found() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let other = app.tenant("Other").await.caller;
    assert_eq!(other.get(PATH).await.expect(200), json!({ "data": [] }));
    let path = path_of(&made);
    let empty = json!({});
    let period = json!({ "since": "2026-01-01", "until": "2026-01-02" });
    for reply in [
        other.get(&path).await,
        other.patch(&path, &empty).await,
        other.delete(&path).await,
        other.post_empty(&format!("{path}/test")).await,
        other.post(&format!("{path}/rotate-secret"), &empty).await,
        other.get(&format!("{path}/deliveries")).await,
        other.post(&format!("{path}/replay"), &period).await,
    ] {
        reply.expect_error(404, "NOT_FOUND");
    }
    assert!(receiver.take().is_empty());
    assert_eq!(app.get(&path).await.data(200)["isActive"], true);
}

#[tokio::test]
async fn a_test_posts_a_signed_event_and_returns_the_result() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(204)).await;
    let made = endpoint(&app, &receiver).await;
    let path = format!("{}/test", path_of(&made));
    let result = app.caller().post_empty(&path).await.expect(200);
    assert_eq!(result["success"], true);
    assert_eq!(result["statusCode"], 204);
    let time = result["responseTime"].as_str().unwrap();
    let _millis: u64 = time.strip_suffix("ms").unwrap().parse().unwrap();
    assert_eq!(result.as_object().unwrap().len(), 3);
    let requests = receiver.take();
    let [request] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/hook?token=t")
    );
    let secret = made["secret"].as_str().unwrap();
    let signature = contract_signature(secret, request);
    assert_eq!(request.header("x-waypost-signature"), Some(&*signature));
    let signature = standard_signature(secret, request);
    assert_eq!(request.header("webhook-signature"), Some(&*signature));
    let now = app.clock.now().timestamp().to_string();
    assert_eq!(request.header("x-waypost-timestamp"), Some(&*now));
    assert_eq!(request.header("x-waypost-event"), Some("COMPLAINED"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(
        request
            .header("user-agent")
            .is_some_and(|name| name.starts_with("waypost-webhooks/"))
    );
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let expected = json!({
        "event": "COMPLAINED",
        "timestamp": body["timestamp"],
        "data": {
            "messageId": body["data"]["messageId"],
            "eventType": "COMPLAINED",
            "recipient": "recipient@example.com",
            "from": "sender@example.com",
            "subject": "Test event",
            "eventId": body["data"]["eventId"],
            "tags": [],
            "metadata": { "test": true },
        },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_failed_test_returns_the_reason() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_WEBHOOK_TIMEOUT", "300ms")
        .start()
        .await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let path = format!("{}/test", path_of(&made));
    let elsewhere = "location: /other\r\n";
    for (manner, status) in [
        (Manner::status(500), 500),
        (Manner::Answer(302, elsewhere, String::new()), 302),
        (Manner::Cut, 0),
        (Manner::Silent, 0),
    ] {
        receiver.behave(manner);
        let result = app.caller().post_empty(&path).await.expect(200);
        assert_eq!(result["success"], false);
        assert_eq!(result["statusCode"], status);
        // A redirect is not followed, and no call is repeated.
        assert_eq!(receiver.methods(), ["POST"]);
    }
    // An inactive endpoint can be tested too.
    receiver.behave(Manner::status(201));
    let _off = app
        .patch(&path_of(&made), &json!({ "isActive": false }))
        .await
        .data(200);
    let result = app.caller().post_empty(&path).await.expect(200);
    assert_eq!(result["success"], true);
    assert_eq!(
        app.value("SELECT (SELECT count(*) FROM webhook_attempts) + (SELECT count(*) FROM webhook_deliveries)")
            .await,
        Some("0".to_owned())
    );
}

#[tokio::test]
async fn reactivating_an_endpoint_or_changing_its_url_clears_its_failures() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let path = path_of(&made);
    let fail = "UPDATE webhook_endpoints SET failing_since = '2026-11-20T12:00:00Z'";
    let since = "2026-11-20T12:00:00.000Z";
    app.execute(fail).await;
    // It is active already.
    for (change, expected) in [
        (json!({ "isActive": true }), json!(since)),
        (json!({ "isActive": false }), json!(since)),
        (json!({ "isActive": true }), Value::Null),
    ] {
        let changed = app.patch(&path, &change).await.data(200);
        assert_eq!(changed["failingSince"], expected, "{change}");
    }
    app.execute(fail).await;
    for (url, expected) in [
        (receiver.url(), json!(since)),
        (format!("http://{}/other", receiver.address), Value::Null),
    ] {
        let changed = app.patch(&path, &json!({ "url": url })).await.data(200);
        assert_eq!(changed["failingSince"], expected, "{url}");
    }
}
