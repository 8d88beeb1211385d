use std::time::{Duration, Instant};

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use waypost_simulator::{Config, Fault, FaultCalls, FaultKind, Provider};

use crate::support::{World, assert_cut, assert_silent, seen};

fn send(world: &World, to: &str, subject: &str) -> RequestBuilder {
    let mail = json!({
        "personalizations": [{"to": [{"email": to}]}],
        "from": {"email": "hello@example.com"},
        "subject": subject,
        "content": [{"type": "text/html", "value": "<script>alert(1)</script>"}],
    });
    world
        .post("/v3/mail/send")
        .bearer_auth("SG.good")
        .json(&mail)
}

async fn get(world: &World, path: &str) -> Value {
    seen(world.get(path)).await.json()
}

#[tokio::test]
async fn captured_messages_are_listed_counted_and_cleared() {
    let world = World::new();
    for (to, subject) in [("a@x.test", "1"), ("b@x.test", "2"), ("a@x.test", "3")] {
        assert_eq!(seen(send(&world, to, subject)).await.status, 202);
    }
    let found = get(&world, "/captured?to=A@x.test&provider=SENDGRID").await;
    let messages = found["messages"].as_array().expect("is a list");
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["subject"], "1");
    assert_eq!(messages[0]["provider"], "SENDGRID");
    for name in [
        "html",
        "text",
        "headers",
        "tags",
        "metadata",
        "replyTo",
        "acceptedAt",
    ] {
        assert!(messages[0].get(name).is_some(), "{name}");
    }
    assert_eq!(
        get(&world, "/captured?to=a@x.test&limit=1").await["messages"][0]["subject"],
        "3"
    );
    assert_eq!(
        get(&world, "/captured?limit=2").await["messages"][0]["subject"],
        "2"
    );
    assert_eq!(
        get(&world, "/captured?provider=SES").await,
        json!({"messages": []})
    );
    assert_eq!(seen(world.get("/captured?provider=X")).await.status, 400);
    let counted = json!({
        "count": 3,
        "byProvider": {"SENDGRID": 3, "POSTMARK": 0, "MAILGUN": 0, "SES": 0, "SMTP": 0},
    });
    assert_eq!(get(&world, "/captured/count").await, counted);
    let cleared = seen(world.client.delete(world.url("/captured"))).await;
    assert_eq!(cleared.status, 204);
    assert_eq!(get(&world, "/captured/count").await["count"], 0);
}

#[tokio::test]
async fn memory_is_bounded_and_counts_are_exact() {
    let world = World::with(Config {
        keep_recipients_max: 2,
        keep_bodies: false,
        ..Config::default()
    });
    for at in 0..5 {
        assert_eq!(
            seen(send(&world, &format!("a{at}@x.test"), "s"))
                .await
                .status,
            202
        );
    }
    let kept = get(&world, "/captured").await;
    assert_eq!(kept["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(kept["messages"][1]["to"], "a4@x.test");
    assert_eq!(kept["messages"][1]["html"], Value::Null);
    assert_eq!(world.simulator.captured_count(), 5);
}

#[tokio::test]
async fn faults_are_set_shown_and_cleared() {
    let world = World::new();
    let post = |body: Value| seen(world.post("/faults").json(&body));
    let to = |address: &str| send(&world, address, "s");
    let set = post(json!({"provider": "SENDGRID", "kind": "throttle", "rate": 1})).await;
    assert_eq!(set.json()["faults"][0]["kind"], "throttle");
    assert_eq!(seen(to("a@x.test")).await.status, 429);
    let scopes = seen(world.get("/v3/scopes").bearer_auth("SG.good")).await;
    assert_eq!(scopes.status, 200, "faults affect sends only by default");
    post(json!({"provider": "SENDGRID", "kind": "throttle", "rate": 0})).await;
    post(json!({"provider": "ALL", "kind": "error", "calls": "ALL"})).await;
    assert_eq!(seen(to("a@x.test")).await.status, 500);
    assert_eq!(
        seen(world.get("/v3/scopes").bearer_auth("SG.good"))
            .await
            .status,
        500
    );
    assert_eq!(world.simulator.captured_count(), 0);
    assert_eq!(
        post(json!({"provider": "ALL", "kind": "none"}))
            .await
            .json(),
        json!({"faults": []})
    );
    assert_eq!(seen(to("a@x.test")).await.status, 202);
    for bad in [
        json!({}),
        json!({"provider": "X", "kind": "error"}),
        json!({"provider": "SES", "kind": "error", "rate": 2}),
    ] {
        assert_eq!(post(bad).await.status, 400);
    }
    assert_eq!(get(&world, "/faults").await, json!({"faults": []}));
}

#[tokio::test]
async fn faults_after_acceptance_record_the_message() {
    let world = World::new();
    let fault = |kind| Fault {
        provider: Some(Provider::SendGrid),
        kind,
        rate: 1.0,
        latency_ms: 50,
        calls: FaultCalls::Send,
    };
    world.simulator.set_fault(fault(FaultKind::Timeout));
    assert_silent(send(&world, "silent@x.test", "s")).await;
    assert_eq!(world.recipient_count("silent@x.test"), 1);
    world.simulator.clear_faults();
    world.simulator.set_fault(fault(FaultKind::Reset));
    assert_cut(send(&world, "cut@x.test", "s")).await;
    assert!(world.recipient_count("cut@x.test") >= 1);
    world.simulator.clear_faults();
    world.simulator.set_fault(fault(FaultKind::Latency));
    let start = Instant::now();
    assert_eq!(seen(send(&world, "late@x.test", "s")).await.status, 202);
    assert!(start.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn domains_and_credentials_are_set_over_http() {
    let world = World::new();
    let body = json!({"provider": "SENDGRID", "credential": "SG.own", "domains": ["own.test"]});
    assert_eq!(seen(world.post("/domains").json(&body)).await.status, 204);
    let list = seen(world.get("/v3/whitelabel/domains").bearer_auth("SG.own"))
        .await
        .json();
    assert_eq!(list[0]["domain"], "own.test");
    let body = json!({"accessKeyId": "AKID", "secretAccessKey": "s"});
    assert_eq!(
        seen(world.post("/ses/credentials").json(&body))
            .await
            .status,
        204
    );
    assert_eq!(
        seen(world.post("/ses/credentials").json(&json!({})))
            .await
            .status,
        400
    );
    assert_eq!(seen(world.get("/healthz")).await.text, "ok");
    assert_eq!(seen(world.get("/no/such/page")).await.status, 404);
}

#[tokio::test]
async fn the_inbox_shows_messages_and_escapes_them() {
    let world = World::new();
    assert!(seen(world.get("/")).await.text.contains("No mail yet"));
    let sent = seen(send(&world, "a@x.test", "<b>Bold</b> & more")).await;
    assert_eq!(sent.status, 202);
    let list = seen(world.get("/")).await;
    assert!(
        list.header("content-security-policy")
            .contains("default-src 'none'")
    );
    assert!(list.text.contains("&lt;b&gt;Bold&lt;/b&gt; &amp; more"));
    assert!(!list.text.contains("<b>Bold"));
    let none = seen(world.get("/?to=<b@x.test>")).await.text;
    assert!(none.contains("No mail to &lt;b@x.test&gt;."), "{none}");
    let detail = seen(world.get("/inbox/0")).await.text;
    assert!(detail.contains(
        "srcdoc=\"&lt;base target=&quot;_blank&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\""
    ));
    assert!(detail.contains("sandbox=\"allow-popups allow-popups-to-escape-sandbox\""));
    assert!(!detail.contains("<script"));
    assert_eq!(seen(world.get("/inbox/77")).await.status, 404);
}

#[tokio::test]
async fn shutdown_ends_even_silent_calls_and_frees_the_port() {
    let world = World::new();
    let url = world.simulator.url();
    let silent = tokio::spawn(send(&world, "timeout@x.test", "s").send());
    while world.simulator.captured_count() == 0 {
        tokio::task::yield_now().await;
    }
    let World { simulator, client } = world;
    simulator.shutdown().await;
    assert!(silent.await.expect("the task ends").is_err());
    assert!(client.get(format!("{url}/healthz")).send().await.is_err());
}
