use reqwest::RequestBuilder;
use reqwest::multipart::{Form, Part};
use serde_json::json;
use waypost_simulator::Provider;

use crate::support::{World, assert_cut, assert_silent, seen};

const SEND: &str = "/v3/example.com/messages";

fn form(fields: &[(&'static str, &str)]) -> Form {
    fields.iter().fold(Form::new(), |form, (name, value)| {
        form.text(*name, (*value).to_owned())
    })
}

fn fields(to: &str) -> Vec<(&'static str, &str)> {
    vec![
        ("from", "Example <hello@example.com>"),
        ("to", to),
        ("subject", "Hello"),
        ("text", "Hi"),
        ("html", "<p>Hi</p>"),
        ("h:Reply-To", "answers@example.com"),
        ("h:X-One", "1"),
        ("v:wp_id", "1"),
        ("o:tag", "welcome"),
        ("o:tracking", "no"),
    ]
}

fn send(world: &World, key: &str, fields: &[(&'static str, &str)]) -> RequestBuilder {
    let request = world.post(SEND).basic_auth("api", Some(key));
    request.multipart(form(fields))
}

#[tokio::test]
async fn a_valid_send_is_accepted_and_captured() {
    let world = World::new();
    let file = Part::bytes(b"hello".as_slice()).file_name("a.txt");
    let form = form(&fields("Ann <ann@example.org>")).part("attachment", file);
    let request = world
        .post(SEND)
        .basic_auth("api", Some("good"))
        .multipart(form);
    let answer = seen(request).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["message"], "Queued. Thank you.");
    let recipient = world.only_recipient("ann@example.org");
    assert_eq!(recipient.provider, Provider::Mailgun);
    assert_eq!(answer.json()["id"], recipient.provider_message_id);
    assert!(recipient.provider_message_id.ends_with("@example.com>"));
    assert_eq!(recipient.from, "Example <hello@example.com>");
    assert_eq!(recipient.reply_to.as_deref(), Some("answers@example.com"));
    assert_eq!(
        recipient.headers.keys().collect::<Vec<_>>(),
        ["Reply-To", "X-One"]
    );
    assert_eq!(recipient.tags, ["welcome"]);
    assert_eq!(recipient.metadata["wp_id"], "1");
    let file = &recipient.attachments[0];
    assert_eq!((file.filename.as_str(), file.bytes), ("a.txt", 5));
}

#[tokio::test]
async fn recipient_variables_split_the_mail() {
    let world = World::new();
    let mut fields = fields("a@x.test, b@x.test");
    let variables = r#"{"a@x.test": {"name": "Ann", "id": 7}, "b@x.test": {"name": "Bob"}}"#;
    fields[3].1 = "Hi %recipient.name%";
    fields[7].1 = "%recipient.id%";
    fields.push(("recipient-variables", variables));
    assert_eq!(seen(send(&world, "good", &fields)).await.status, 200);
    let recipient = world.only_recipient("a@x.test");
    assert_eq!(recipient.text.as_deref(), Some("Hi Ann"));
    assert_eq!(recipient.metadata["wp_id"], "7");
    assert_eq!(recipient.visible_recipients, ["a@x.test"]);
    fields.pop();
    assert_eq!(seen(send(&world, "good", &fields)).await.status, 200);
    let open = &world.simulator.captured_to("a@x.test")[1];
    assert_eq!(open.visible_recipients, ["a@x.test", "b@x.test"]);
}

#[tokio::test]
async fn mistakes_are_reported_as_texts() {
    let world = World::new();
    let large = "x".repeat(17_000);
    let many: Vec<_> = (0..1_001).map(|at| format!("a{at}@x.test")).collect();
    let many = many.join(",");
    let cases: [(&str, &str, &str); 9] = [
        ("from", "", "from parameter is missing"),
        ("to", "", "to parameter is missing"),
        ("to", "nonsense", "to parameter is not a valid address"),
        ("to", &many, "Too many recipients, max is 1000"),
        ("subject", "", "subject parameter is missing"),
        ("v:wp_id", &large, "limited to 16 kB total"),
        ("o:tracking", "maybe", "o:tracking parameter is not valid"),
        (
            "o:tag",
            "x".repeat(129).leak(),
            "o:tag parameter must be ASCII",
        ),
        ("to", "refuse@x.test", "to parameter is not a valid address"),
    ];
    for (name, value, message) in cases {
        let mut fields = fields("ann@example.org");
        for field in fields.iter_mut().filter(|field| field.0 == name) {
            field.1 = value;
        }
        let answer = seen(send(&world, "good", &fields)).await;
        assert_eq!(answer.status, 400, "{name}");
        assert!(answer.text.contains(message), "{name}: {}", answer.text);
    }
    let mut bare = fields("ann@example.org");
    bare.retain(|field| !matches!(field.0, "text" | "html"));
    assert!(
        seen(send(&world, "good", &bare))
            .await
            .text
            .contains("Need at least one of")
    );
    let mut broken = fields("ann@example.org");
    broken.push(("recipient-variables", "["));
    assert_eq!(seen(send(&world, "good", &broken)).await.status, 400);
    let mut tags = fields("ann@example.org");
    tags.extend([("o:tag", "2"), ("o:tag", "3"), ("o:tag", "4")]);
    assert_eq!(seen(send(&world, "good", &tags)).await.status, 400);
    let urlencoded = world.post(SEND).basic_auth("api", Some("good"));
    let urlencoded = urlencoded
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body("from=a%40example.com");
    assert!(
        seen(urlencoded)
            .await
            .text
            .contains("Expecting 'multipart/form-data'")
    );
    assert_eq!(world.simulator.captured_count(), 0);
}

#[tokio::test]
async fn keys_and_domains_behave_as_their_names_say() {
    let world = World::new();
    let fields = fields("ann@example.org");
    let missing = seen(world.post(SEND).multipart(form(&fields))).await;
    assert_eq!(
        (missing.status.as_u16(), missing.text.as_str()),
        (401, "\"Forbidden\"")
    );
    for (key, status) in [("invalid", 401), ("htmlwall", 403), ("nocredit", 420)] {
        assert_eq!(
            seen(send(&world, key, &fields)).await.status,
            status,
            "{key}"
        );
    }
    for (domain, status) in [("invalid.test", 404), ("unverified.test", 400)] {
        let request = world.post(&format!("/v3/{domain}/messages"));
        let request = request
            .basic_auth("api", Some("good"))
            .multipart(form(&fields));
        assert_eq!(seen(request).await.status, status, "{domain}");
    }
    assert_eq!(seen(send(&world, "restricted", &fields)).await.status, 200);
    let probe = seen(send(&world, "restricted", &[("o:testmode", "yes")])).await;
    assert_eq!(probe.status, 400);
    assert!(probe.text.contains("parameter is missing"));
    let mut test = fields.clone();
    test.push(("o:testmode", "yes"));
    assert_eq!(seen(send(&world, "good", &test)).await.status, 200);
    assert_eq!(world.simulator.captured_count(), 1);
}

#[tokio::test]
async fn domains_report_their_state() {
    let world = World::new();
    let get = |path: &str, key: &str| seen(world.get(path).basic_auth("api", Some(key)));
    let good = get("/v4/domains/own.test", "good").await.json();
    assert_eq!(good["domain"]["state"], "active");
    assert_eq!(good["sending_dns_records"][0]["record_type"], "TXT");
    assert_eq!(good["sending_dns_records"][0]["valid"], "valid");
    let bad = get("/v4/domains/unverified.test", "good").await.json();
    assert_eq!(bad["domain"]["state"], "unverified");
    assert_eq!(get("/v4/domains/invalid.test", "good").await.status, 404);
    assert_eq!(get("/v4/domains/own.test", "restricted").await.status, 401);
    let wrong = get("/v4/domains/own.test", "invalid").await;
    assert_eq!(wrong.json(), json!({"message": "Invalid private key"}));
    let list = get("/v4/domains?state=active&limit=10", "good")
        .await
        .json();
    let names: Vec<_> = list["items"].as_array().into_iter().flatten().collect();
    assert_eq!(names.len(), 3);
    assert_eq!(names[2]["name"], "own.test");
    let lost = get("/v3/example.com/typo", "good").await;
    assert_eq!(
        (lost.status.as_u16(), lost.text.as_str()),
        (200, "Mailgun Magnificent API")
    );
}

#[tokio::test]
async fn recipients_behave_as_their_names_say() {
    let world = World::new();
    let to = |address: &str| send(&world, "good", &fields(address));
    let throttled = seen(to("throttle@x.test")).await;
    assert_eq!(throttled.status, 429);
    assert!(throttled.header("x-ratelimit-reset").parse::<i64>().is_ok());
    assert!(throttled.text.contains("try again after 2 seconds"));
    assert_eq!(seen(to("error@x.test")).await.status, 500);
    assert_silent(to("timeout@x.test")).await;
    assert_cut(to("reset@x.test")).await;
    assert_eq!(world.recipient_count("timeout@x.test"), 1);
    assert!(world.recipient_count("reset@x.test") >= 1);
    assert_eq!(seen(to("flaky@x.test")).await.status, 500);
    assert_eq!(seen(to("flaky@x.test")).await.status, 200);
}
