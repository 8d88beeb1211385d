use reqwest::RequestBuilder;
use serde_json::{Value, json};
use waypost_simulator::Provider;

use crate::support::{World, assert_cut, assert_silent, seen};

const SEND: &str = "/v3/mail/send";

fn mail(to: &str) -> Value {
    json!({
        "personalizations": [{"to": [{"email": to}], "custom_args": {"wp_id": "1"}}],
        "from": {"email": "hello@example.com", "name": "Example"},
        "reply_to": {"email": "answers@example.com"},
        "subject": "Hello",
        "content": [
            {"type": "text/plain", "value": "Hi"},
            {"type": "text/html", "value": "<p>Hi</p>"},
        ],
        "headers": {"X-One": "1"},
        "categories": ["welcome"],
    })
}

fn send(world: &World, key: &str, mail: &Value) -> RequestBuilder {
    world.post(SEND).bearer_auth(key).json(mail)
}

#[tokio::test]
async fn a_valid_send_is_accepted_and_captured() {
    let world = World::new();
    let answer = seen(send(&world, "SG.good", &mail("ann@example.org"))).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.text, "");
    assert!(!answer.header("x-ratelimit-reset").is_empty());
    let recipient = world.only_recipient("ANN@example.org");
    assert_eq!(recipient.provider, Provider::SendGrid);
    assert_eq!(recipient.provider_message_id, answer.header("x-message-id"));
    assert_eq!(recipient.from, "Example <hello@example.com>");
    assert_eq!(recipient.subject, "Hello");
    assert_eq!(recipient.text.as_deref(), Some("Hi"));
    assert_eq!(recipient.html.as_deref(), Some("<p>Hi</p>"));
    assert_eq!(recipient.headers["X-One"], "1");
    assert_eq!(recipient.headers["Reply-To"], "answers@example.com");
    assert_eq!(recipient.tags, ["welcome"]);
    assert_eq!(recipient.metadata["wp_id"], "1");
}

#[tokio::test]
async fn personalizations_are_separate_messages_with_their_own_texts() {
    let world = World::new();
    let mut body = mail("unused@example.org");
    body["content"][0]["value"] = json!("Hi -name-");
    body["custom_args"] = json!({"shared": "s", "wp_id": "0"});
    body["personalizations"] = json!([
        {"to": [{"email": "a@x.test"}], "substitutions": {"-name-": "Ann"}},
        {
            "to": [{"email": "b@x.test"}],
            "cc": [{"email": "c@x.test"}],
            "bcc": [{"email": "d@x.test"}],
            "subject": "Own",
            "headers": {"X-One": "2"},
            "custom_args": {"wp_id": "2"},
        },
    ]);
    assert_eq!(seen(send(&world, "SG.good", &body)).await.status, 202);
    let first = world.only_recipient("a@x.test");
    assert_eq!(first.text.as_deref(), Some("Hi Ann"));
    assert_eq!(first.visible_recipients, ["a@x.test"]);
    assert_eq!(first.metadata["wp_id"], "0");
    let hidden = world.only_recipient("d@x.test");
    assert_eq!(hidden.visible_recipients, ["b@x.test", "c@x.test"]);
    assert_eq!(hidden.subject, "Own");
    assert_eq!(hidden.headers["X-One"], "2");
    assert_eq!(
        (
            hidden.metadata["wp_id"].as_str(),
            hidden.metadata["shared"].as_str()
        ),
        ("2", "s")
    );
    assert_eq!(world.simulator.captured_count(), 4);
}

#[tokio::test]
async fn mistakes_are_named_by_their_field() {
    let world = World::new();
    let long = "x".repeat(256);
    let many: Vec<Value> = (0..1_001)
        .map(|at| json!({"to": [{"email": format!("a{at}@x.test")}]}))
        .collect();
    let cases = [
        ("personalizations", json!({"personalizations": []})),
        ("personalizations", json!({"personalizations": many})),
        (
            "personalizations.0.to",
            json!({"personalizations": [{"to": []}]}),
        ),
        (
            "personalizations.0.to.0.email",
            json!({"personalizations": [{"to": [{"email": "nonsense"}]}]}),
        ),
        (
            "personalizations",
            json!({"personalizations": [{"to": [{"email": "a@x.test"}], "cc": [{"email": "A@x.test"}]}]}),
        ),
        (
            "personalizations.0.custom_args",
            json!({"custom_args": {"big": "x".repeat(10_001)}}),
        ),
        ("from", json!({"from": null})),
        ("subject", json!({"subject": ""})),
        ("content", json!({"content": []})),
        (
            "content.0.value",
            json!({"content": [{"type": "text/html", "value": ""}]}),
        ),
        (
            "headers.Reply-To",
            json!({"headers": {"Reply-To": "a@x.test"}}),
        ),
        (
            "categories",
            json!({"categories": (0..11).map(|at| at.to_string()).collect::<Vec<_>>()}),
        ),
        ("categories", json!({"categories": ["a", "a"]})),
        ("categories", json!({"categories": [long]})),
        (
            "reply_to_list",
            json!({"reply_to_list": [{"email": "a@x.test"}]}),
        ),
        ("send_at", json!({"send_at": 99_999_999_999_i64})),
    ];
    for (field, changes) in cases {
        let mut body = mail("ann@example.org");
        for (name, value) in changes.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let answer = seen(send(&world, "SG.good", &body)).await;
        assert_eq!(answer.status, 400, "{changes}");
        assert_eq!(answer.json()["errors"][0]["field"], field, "{changes}");
    }
    let mut unknown = mail("ann@example.org");
    unknown["bogus"] = json!(1);
    assert_eq!(seen(send(&world, "SG.good", &unknown)).await.status, 400);
    let form = world.post(SEND).bearer_auth("SG.good").body("{}");
    assert_eq!(seen(form).await.status, 415);
    assert_eq!(world.simulator.captured_count(), 0);
}

#[tokio::test]
async fn a_message_over_30_mb_is_too_large() {
    let world = World::new();
    let mut body = mail("ann@example.org");
    body["content"][0]["value"] = json!("x".repeat(30_000_001));
    let answer = seen(send(&world, "SG.good", &body)).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["errors"][0]["message"], "content too large");
}

#[tokio::test]
async fn keys_behave_as_their_names_say() {
    let world = World::new();
    let body = mail("ann@example.org");
    let missing = seen(world.post(SEND).json(&body)).await;
    assert_eq!(missing.status, 401);
    assert_eq!(
        missing.json()["errors"][0]["message"],
        "authorization required"
    );
    for (key, status, word) in [
        ("SG.invalid", 401, "invalid, expired, or revoked"),
        ("SG.noscope", 403, "access forbidden"),
        ("SG.nocredit", 401, "Maximum credits exceeded"),
        ("SG.htmlwall", 403, "<html>"),
        ("SG.restricted", 202, ""),
    ] {
        let answer = seen(send(&world, key, &body)).await;
        assert_eq!(answer.status, status, "{key}");
        assert!(answer.text.contains(word), "{key}: {}", answer.text);
    }
    let scopes = |key: &str| seen(world.get("/v3/scopes").bearer_auth(key));
    assert!(scopes("SG.good").await.text.contains("mail.send"));
    assert!(!scopes("SG.noscope").await.text.contains("mail.send"));
    assert_eq!(
        scopes("SG.restricted").await.json(),
        json!({"scopes": ["mail.send"]})
    );
    assert_eq!(scopes("SG.nocredit").await.status, 200);
    let domains = seen(
        world
            .get("/v3/whitelabel/domains")
            .bearer_auth("SG.restricted"),
    )
    .await;
    assert_eq!(domains.status, 403);
}

#[tokio::test]
async fn domains_are_listed_in_pages_and_validated() {
    let world = World::new();
    let path = "/v3/whitelabel/domains?limit=2&offset=1";
    let page = seen(world.get(path).bearer_auth("SG.good")).await.json();
    assert_eq!(page[0]["domain"], "mail.example.com");
    assert_eq!(page[0]["dns"]["dkim1"]["type"], "cname");
    assert_eq!(page[1]["domain"], "unverified.example.net");
    assert_eq!(page[1]["valid"], false);
    let validate = |id| world.post(&format!("/v3/whitelabel/domains/{id}/validate"));
    let good = seen(validate(1).bearer_auth("SG.good")).await.json();
    assert_eq!(good["valid"], true);
    let bad = seen(validate(3).bearer_auth("SG.good")).await.json();
    assert_eq!(bad["validation_results"]["dkim1"]["valid"], false);
    assert_eq!(seen(validate(9).bearer_auth("SG.good")).await.status, 404);
    let senders = ["one@example.com", "example.com"];
    world
        .simulator
        .set_domains(Provider::SendGrid, "SG.own", &senders);
    let found = seen(world.get("/v3/verified_senders").bearer_auth("SG.own"))
        .await
        .json();
    assert_eq!(found["results"][0]["from_email"], "one@example.com");
    assert_eq!(found["results"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_unverified_sender_is_rejected() {
    let world = World::new();
    let mut body = mail("ann@example.org");
    body["from"]["email"] = json!("a@unverified.example.net");
    let answer = seen(send(&world, "SG.good", &body)).await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.json()["errors"][0]["field"], "from");
}

#[tokio::test]
async fn recipients_behave_as_their_names_say() {
    let world = World::new();
    let to = |address: &str| send(&world, "SG.good", &mail(address));
    let throttled = seen(to("throttle+1@x.test")).await;
    assert_eq!(throttled.status, 429);
    assert_eq!(
        throttled.json()["errors"][0]["message"],
        "too many requests"
    );
    assert_eq!(throttled.header("x-ratelimit-remaining"), "0");
    assert_eq!(seen(to("error@x.test")).await.status, 500);
    let refused = seen(to("refuse@x.test")).await;
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.json()["errors"][0]["field"],
        "personalizations.0.to.0.email"
    );
    assert_eq!(world.simulator.captured_count(), 0);
    assert_silent(to("timeout@x.test")).await;
    assert_eq!(world.recipient_count("timeout@x.test"), 1);
    assert_cut(to("reset@x.test")).await;
    assert!(world.recipient_count("reset@x.test") >= 1);
    for address in ["hard-bounce@x.test", "open+1@x.test", "drop@x.test"] {
        assert_eq!(seen(to(address)).await.status, 202);
    }
}

#[tokio::test]
async fn once_recipients_fail_only_once() {
    let world = World::new();
    let to = |address: &str| send(&world, "SG.good", &mail(address));
    assert_eq!(seen(to("flaky@x.test")).await.status, 500);
    assert_eq!(seen(to("flaky@x.test")).await.status, 202);
    assert_eq!(world.recipient_count("flaky@x.test"), 1);
    assert_eq!(seen(to("throttle-once@x.test")).await.status, 429);
    assert_eq!(seen(to("throttle-once@x.test")).await.status, 202);
    assert_silent(to("timeout-once@x.test")).await;
    assert_eq!(seen(to("timeout-once@x.test")).await.status, 202);
    assert_eq!(world.recipient_count("timeout-once@x.test"), 2);
}

#[tokio::test]
async fn sandbox_mode_sends_nothing_and_other_paths_are_unknown() {
    let world = World::new();
    let mut body = mail("ann@example.org");
    body["mail_settings"] = json!({"sandbox_mode": {"enable": true}});
    assert_eq!(seen(send(&world, "SG.good", &body)).await.status, 200);
    assert_eq!(world.simulator.captured_count(), 0);
    let unknown = seen(world.get("/v3/nothing").bearer_auth("SG.good")).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(
        seen(world.get(SEND).bearer_auth("SG.good")).await.status,
        405
    );
}
