//! The providers' three searches over captured messages.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::support::{Seen, World, seen};

const ID: &str = "0193a1b2-0000-7000-8000-000000000001";
const OTHER: &str = "0193a1b2-0000-7000-8000-000000000002";

async fn send_postmark(world: &World, token: &str, to: &str, id: &str) {
    let mail = json!({
        "From": "hello@example.com", "To": to, "Subject": "Hello", "TextBody": "Hi",
        "Metadata": {"attempt": id},
    });
    let request = world
        .post("/email")
        .header("X-Postmark-Server-Token", token);
    let request = request.header("Accept", "application/json").json(&mail);
    assert_eq!(seen(request).await.status, 200);
}

async fn send_sendgrid(world: &World, key: &str, to: &str, id: &str) {
    let mail = json!({
        "personalizations": [{"to": [{"email": to}], "custom_args": {"attempt": id}}],
        "from": {"email": "hello@example.com"},
        "subject": "Hello",
        "content": [{"type": "text/plain", "value": "Hi"}],
    });
    let request = world.post("/v3/mail/send").bearer_auth(key).json(&mail);
    assert_eq!(seen(request).await.status, 202);
}

async fn send_mailgun(world: &World, to: &str, id: &str) {
    let form = reqwest::multipart::Form::new();
    let fields = [
        ("from", "hello@example.com"),
        ("to", to),
        ("subject", "Hello"),
        ("text", "Hi"),
    ];
    let form = fields.into_iter().fold(form, |form, (name, value)| {
        form.text(name, value.to_owned())
    });
    let form = form.text("v:attempt", id.to_owned());
    let request = world.post("/v3/mg.example.com/messages").multipart(form);
    let request = request.basic_auth("api", Some("key"));
    assert_eq!(seen(request).await.status, 200);
}

fn postmark(world: &World, token: &str, query: &str) -> RequestBuilder {
    let request = world.get(&format!("/messages/outbound{query}"));
    let request = request.header("X-Postmark-Server-Token", token);
    request.header("Accept", "application/json")
}

fn sendgrid(world: &World, key: &str, path: &str) -> RequestBuilder {
    world.get(&format!("/v3/messages{path}")).bearer_auth(key)
}

fn mailgun(world: &World, path: &str) -> RequestBuilder {
    world.get(path).basic_auth("api", Some("key"))
}

fn list<'a>(seen: &'a Value, name: &str) -> &'a Vec<Value> {
    seen[name].as_array().expect("a list")
}

fn argument(id: &str) -> String {
    format!("?limit=2&query=(unique_args%5B'attempt'%5D%3D%22{id}%22)")
}

#[tokio::test]
async fn postmark_finds_a_message_by_one_field_of_its_metadata() {
    let world = World::new();
    send_postmark(&world, "good", "a@example.org", ID).await;
    send_postmark(&world, "good", "b@example.org", OTHER).await;
    let by_id = format!("?count=10&offset=0&metadata_attempt={ID}");
    let found = seen(postmark(&world, "good", &by_id)).await.json();
    assert_eq!(found["TotalCount"], 1);
    let mail = &list(&found, "Messages")[0];
    assert_eq!(mail["Metadata"]["attempt"], ID);
    assert_eq!(
        mail["MessageID"],
        world.only_recipient("a@example.org").provider_message_id
    );
    let path = format!("/{}/details", mail["MessageID"].as_str().expect("an id"));
    let details = seen(postmark(&world, "good", &path)).await.json();
    assert_eq!(
        (&details["TextBody"], &details["Subject"]),
        (&json!("Hi"), &json!("Hello"))
    );
    // Only the server's own messages, only existing ones, one field at a time, both
    // numbers.
    let found = seen(postmark(&world, "another", &by_id)).await.json();
    assert_eq!(found["TotalCount"], 0);
    let all = seen(postmark(&world, "good", "?count=10&offset=0"))
        .await
        .json();
    assert_eq!(
        list(&all, "Messages")[0]["Recipients"],
        json!(["b@example.org"])
    );
    for query in [
        "?count=10",
        "?count=501&offset=0",
        "?count=10&offset=0&metadata_a=1&metadata_b=2",
        "/0193a1b2-0000-7000-8000-00000000000f/details",
    ] {
        let answer = seen(postmark(&world, "good", query)).await;
        assert_eq!(answer.status, 422, "{query}");
    }
    assert_eq!(seen(postmark(&world, "invalid", &by_id)).await.status, 401);
}

#[tokio::test]
async fn sendgrid_finds_a_message_by_an_argument_if_the_account_has_activity() {
    let world = World::new();
    send_sendgrid(&world, "SG.good", "a@example.org", ID).await;
    send_sendgrid(&world, "SG.good", "b@example.org", OTHER).await;
    let found = seen(sendgrid(&world, "SG.good", &argument(ID)))
        .await
        .json();
    let entries = list(&found, "messages");
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["to_email"], "a@example.org");
    let id = entries[0]["msg_id"].as_str().expect("an id");
    let recipient = world.only_recipient("a@example.org");
    assert!(
        id.starts_with(&format!("{}.", recipient.provider_message_id)),
        "{id}"
    );
    let details = seen(sendgrid(&world, "SG.good", &format!("/{id}")))
        .await
        .json();
    let arguments = details["unique_args"].as_str().expect("a text");
    assert!(arguments.contains(ID), "{arguments}");
    let status = async |key: &str, path: &str| -> Seen { seen(sendgrid(&world, key, path)).await };
    for (key, path, expected) in [
        ("SG.noactivity", argument(ID).as_str(), 403),
        ("SG.noactivity", &format!("/{id}"), 403),
        ("SG.restricted", &argument(ID), 403),
        ("SG.good", "", 400),
        ("SG.good", "?query=bad_field%3D%22x%22", 400),
        ("SG.good", "/nothing", 404),
        ("SG.invalid", &argument(ID), 401),
    ] {
        assert_eq!(status(key, path).await.status, expected, "{key} {path}");
    }
}

#[tokio::test]
async fn mailgun_lists_the_events_of_a_recipient_in_pages() {
    let world = World::new();
    send_mailgun(&world, "a@example.org", ID).await;
    send_mailgun(&world, "b@example.org", OTHER).await;
    let path = "/v3/mg.example.com/events?begin=1&ascending=yes&limit=1&recipient=a%40example.org";
    let first = seen(mailgun(&world, path)).await.json();
    let event = &list(&first, "items")[0];
    assert_eq!(
        (&event["event"], &event["recipient"]),
        (&json!("accepted"), &json!("a@example.org"))
    );
    assert_eq!(event["user-variables"]["attempt"], ID);
    let id = world.only_recipient("a@example.org").provider_message_id;
    assert_eq!(
        event["message"]["headers"]["message-id"],
        id.trim_matches(['<', '>'])
    );
    let mut named = first["paging"]["next"].clone();
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let url = named.as_str().expect("a next page is always named");
        let path = url
            .strip_prefix(&world.simulator.url())
            .expect("it is here");
        let page = seen(mailgun(&world, path)).await.json();
        kinds.extend(
            list(&page, "items")
                .iter()
                .map(|event| event["event"].clone()),
        );
        named = page["paging"]["next"].clone();
    }
    assert_eq!(kinds, ["delivered"], "and then an empty page");
    for (path, expected) in [
        ("/v3/mg.example.com/events?begin=1", 400),
        ("/v3/mg.example.com/events?begin=soon&ascending=yes", 400),
        ("/v3/mg.example.com/events/nonsense", 400),
    ] {
        assert_eq!(seen(mailgun(&world, path)).await.status, expected, "{path}");
    }
    let other = seen(mailgun(&world, &path.replace("mg.", "other.")))
        .await
        .json();
    assert!(list(&other, "items").is_empty());
    let restricted = world.get(path).basic_auth("api", Some("restricted"));
    assert_eq!(seen(restricted).await.status, 401);
}

#[tokio::test]
async fn searches_lag_if_configured() {
    let world = World::new();
    send_postmark(&world, "good", "a@example.org", ID).await;
    let lag = |lag_ms: &Value| world.post("/searches").json(&json!({ "lagMs": lag_ms }));
    let by_id = format!("?count=10&offset=0&metadata_attempt={ID}");
    for (lag_ms, found) in [(3_600_000, 0), (0, 1)] {
        assert_eq!(
            seen(lag(&json!(lag_ms))).await.json(),
            json!({ "lagMs": lag_ms })
        );
        let answer = seen(postmark(&world, "good", &by_id)).await.json();
        assert_eq!(answer["TotalCount"], found, "{lag_ms}");
    }
    assert_eq!(seen(lag(&json!(-1))).await.status, 400);
    assert_eq!(
        seen(world.get("/searches")).await.json(),
        json!({ "lagMs": 0 })
    );
}
