use reqwest::RequestBuilder;
use serde_json::{Value, json};
use waypost_simulator::Provider;

use crate::support::{World, assert_cut, assert_silent, seen};

const ACCEPT: (&str, &str) = ("Accept", "application/json");

fn email(to: &str) -> Value {
    json!({
        "From": "\"Example, Inc.\" <hello@example.com>",
        "To": to,
        "Subject": "Hello",
        "HtmlBody": "<p>Hi</p>",
        "TextBody": "Hi",
        "ReplyTo": "answers@example.com",
        "Tag": "welcome",
        "Metadata": {"wp_id": "1"},
        "MessageStream": "outbound",
        "Headers": [{"Name": "X-One", "Value": "1"}],
        "TrackOpens": true,
        "TrackLinks": "HtmlOnly",
    })
}

fn post(world: &World, path: &str, token: &str, body: &Value) -> RequestBuilder {
    let request = world.post(path).header("X-Postmark-Server-Token", token);
    request.header(ACCEPT.0, ACCEPT.1).json(body)
}

fn get(world: &World, path: &str, header: &str, token: &str) -> RequestBuilder {
    world
        .get(path)
        .header(header, token)
        .header(ACCEPT.0, ACCEPT.1)
}

#[tokio::test]
async fn a_valid_send_is_accepted_and_captured() {
    let world = World::new();
    let answer = seen(post(
        &world,
        "/email",
        "good",
        &email("Ann <ann@example.org>"),
    ))
    .await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!(
        (&body["ErrorCode"], &body["Message"]),
        (&json!(0), &json!("OK"))
    );
    let recipient = world.only_recipient("ann@example.org");
    assert_eq!(recipient.provider, Provider::Postmark);
    assert_eq!(body["MessageID"], recipient.provider_message_id);
    assert_eq!(recipient.from, "\"Example, Inc.\" <hello@example.com>");
    assert_eq!(recipient.headers["Reply-To"], "answers@example.com");
    assert_eq!(recipient.headers["X-One"], "1");
    assert_eq!(recipient.tags, ["welcome"]);
    assert_eq!(recipient.metadata["wp_id"], "1");
    assert_eq!(recipient.text.as_deref(), Some("Hi"));
}

#[tokio::test]
async fn mistakes_have_their_error_codes() {
    let world = World::new();
    let fifty_one: Vec<_> = (0..51).map(|at| format!("a{at}@x.test")).collect();
    let eleven: Value = (0..11).map(|at| (format!("k{at}"), json!("v"))).collect();
    let cases = [
        (300, json!({"To": ""})),
        (300, json!({"To": "nonsense"})),
        (300, json!({"To": fifty_one.join(",")})),
        (300, json!({"From": "Example, Inc. <hello@example.com>"})),
        (300, json!({"HtmlBody": null, "TextBody": ""})),
        (300, json!({"Metadata": eleven})),
        (300, json!({"Metadata": {"a-name-of-21-character": "v"}})),
        (300, json!({"Metadata": {"k": "x".repeat(81)}})),
        (300, json!({"Tag": "x".repeat(1_001)})),
        (300, json!({"TrackLinks": "Some"})),
        (400, json!({"From": "a@unverified.example.net"})),
        (403, json!({"To": ["ann@example.org"]})),
        (406, json!({"To": "refuse@x.test"})),
        (1235, json!({"MessageStream": "invalid-stream"})),
    ];
    for (code, changes) in cases {
        let mut body = email("ann@example.org");
        for (name, value) in changes.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let answer = seen(post(&world, "/email", "good", &body)).await;
        assert_eq!(answer.status, 422, "{changes}");
        assert_eq!(answer.json()["ErrorCode"], code, "{changes}");
    }
    let token = ("X-Postmark-Server-Token", "good");
    let broken = world
        .post("/email")
        .header(token.0, token.1)
        .header(ACCEPT.0, ACCEPT.1);
    let broken = broken.header("Content-Type", "application/json").body("{");
    assert_eq!(seen(broken).await.json()["ErrorCode"], 402);
    let body = email("ann@example.org");
    let accepting_all = world.post("/email").header(token.0, token.1).json(&body);
    assert_eq!(seen(accepting_all).await.json()["ErrorCode"], 409);
    let text = world.post("/email").header(token.0, token.1).body("{}");
    assert_eq!(seen(text).await.status, 415);
    assert_eq!(world.simulator.captured_count(), 0);
}

#[tokio::test]
async fn a_batch_reports_each_entry() {
    let world = World::new();
    let batch = json!([
        email("ann@example.org"),
        email("refuse@example.org"),
        email("nonsense"),
        email("bob@example.org, REFUSE+1@example.org"),
    ]);
    let answer = seen(post(&world, "/email/batch", "good", &batch)).await;
    assert_eq!(answer.status, 200);
    let entries = answer.json();
    let codes: Vec<_> = (0..4).map(|at| entries[at]["ErrorCode"].clone()).collect();
    assert_eq!(codes, [0, 406, 300, 0]);
    let warning = entries[3]["Message"].as_str().unwrap_or_default();
    assert!(warning.contains("will not deliver to these inactive addresses: refuse+1@example.org"));
    assert_eq!(
        world
            .only_recipient("bob@example.org")
            .visible_recipients
            .len(),
        2
    );
    assert_eq!(world.simulator.captured_count(), 2);
    let large = Value::Array(vec![email("ann@example.org"); 501]);
    let refused = seen(post(&world, "/email/batch", "good", &large)).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["ErrorCode"]),
        (422, &json!(410))
    );
}

#[tokio::test]
async fn tokens_behave_as_their_names_say() {
    let world = World::new();
    let body = email("ann@example.org");
    let missing = seen(world.post("/email").header(ACCEPT.0, ACCEPT.1).json(&body)).await;
    assert_eq!(
        (missing.status.as_u16(), &missing.json()["ErrorCode"]),
        (401, &json!(10))
    );
    for (token, status, word) in [
        ("invalid", 401, "\"ErrorCode\":10"),
        ("nocredit", 422, "\"ErrorCode\":405"),
        ("htmlwall", 403, "<html>"),
        ("POSTMARK_API_TEST", 200, "Test job accepted"),
    ] {
        let answer = seen(post(&world, "/email", token, &body)).await;
        assert_eq!(answer.status, status, "{token}");
        assert!(answer.text.contains(word), "{token}: {}", answer.text);
    }
    assert_eq!(world.simulator.captured_count(), 0);
    let server = |token| seen(get(&world, "/server", "X-Postmark-Server-Token", token));
    assert_eq!(server("good").await.json()["ID"], 1);
    assert_eq!(server("invalid").await.status, 401);
    assert_eq!(server("nocredit").await.status, 200);
    assert_eq!(server("htmlwall").await.status, 403);
}

#[tokio::test]
async fn only_the_account_token_sees_domains() {
    let world = World::new();
    let path = "/domains?count=2&offset=1";
    let account = |path: &str| seen(get(&world, path, "X-Postmark-Account-Token", "account"));
    let server = seen(get(&world, path, "X-Postmark-Server-Token", "good")).await;
    assert_eq!(server.status, 401);
    let page = account(path).await.json();
    assert_eq!(page["TotalCount"], 3);
    assert_eq!(page["Domains"][1]["Name"], "unverified.example.net");
    assert_eq!(page["Domains"][1]["DKIMVerified"], false);
    assert_eq!(account("/domains").await.status, 422);
    let one = account("/domains/3").await.json();
    assert_eq!(
        one["DKIMPendingHost"],
        "20260101._domainkey.unverified.example.net"
    );
    assert_eq!(one["DKIMHost"], "");
    assert_eq!(account("/domains/9").await.status, 422);
}

#[tokio::test]
async fn recipients_behave_as_their_names_say() {
    let world = World::new();
    let to = |address: &str| post(&world, "/email", "good", &email(address));
    assert_eq!(seen(to("throttle@x.test")).await.status, 429);
    let failed = seen(to("error@x.test")).await;
    assert_eq!(
        (failed.status.as_u16(), &failed.json()["ErrorCode"]),
        (500, &json!(100))
    );
    assert_silent(to("timeout@x.test")).await;
    assert_cut(to("reset@x.test")).await;
    assert_eq!(world.recipient_count("timeout@x.test"), 1);
    assert!(world.recipient_count("reset@x.test") >= 1);
    assert_eq!(seen(to("flaky@x.test")).await.status, 500);
    assert_eq!(seen(to("flaky@x.test")).await.status, 200);
    assert_eq!(seen(to("soft-bounce@x.test")).await.status, 200);
}
