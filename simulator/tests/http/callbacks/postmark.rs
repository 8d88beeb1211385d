use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{MAGIC_RECIPIENTS, address, set, texts, wait_until_idle, world};
use crate::support::{World, seen};

const TOKEN: &str = "server-token";

fn call(world: &World, method: &str, path: &str, body: &Value) -> RequestBuilder {
    let method = method.parse().expect("is a method");
    world
        .client
        .request(method, world.url(path))
        .header("X-Postmark-Server-Token", TOKEN)
        .header("Accept", "application/json")
        .json(body)
}

fn webhook(url: &str) -> Value {
    json!({
        "Url": url,
        "MessageStream": "outbound",
        "HttpAuth": {"Username": "waypost", "Password": "pass:word"},
        "HttpHeaders": [{"Name": "X-Own", "Value": "1"}],
        "Triggers": {
            "Open": {"Enabled": true, "PostFirstOpenOnly": false},
            "Click": {"Enabled": true},
            "Delivery": {"Enabled": true},
            "Bounce": {"Enabled": true, "IncludeContent": false},
            "SpamComplaint": {"Enabled": true, "IncludeContent": false},
            "SubscriptionChange": {"Enabled": true},
        },
    })
}

async fn send(world: &World, to: &str, stream: &str) -> String {
    let email = json!({
        "From": "Example <hello@example.com>",
        "To": to,
        "Subject": "Hello",
        "TextBody": "Hi",
        "Tag": "welcome",
        "Metadata": {"wp_id": to},
        "MessageStream": stream,
    });
    let answer = seen(call(world, "POST", "/email", &email)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let id = answer.json()["MessageID"].as_str().map(str::to_owned);
    id.expect("has an id")
}

#[tokio::test]
async fn a_webhook_is_created_read_changed_and_deleted() {
    let (world, receiver) = world().await;
    let mut wish = webhook(&receiver.url("/a"));
    let made = seen(call(&world, "POST", "/webhooks", &wish)).await;
    assert_eq!(made.status, 200, "{}", made.text);
    wish["ID"] = made.json()["ID"].clone();
    assert_eq!(made.json(), wish);
    let path = format!("/webhooks/{}", wish["ID"]);
    let url = receiver.url("/b");
    let changed = seen(call(&world, "PUT", &path, &json!({"Url": url})))
        .await
        .json();
    assert_eq!(
        (&changed["Url"], &changed["Triggers"]),
        (&json!(url), &wish["Triggers"])
    );
    let found = seen(call(&world, "GET", &path, &Value::Null)).await.json();
    assert_eq!(found, changed);
    let list = "/webhooks?MessageStream=outbound";
    let all = seen(call(&world, "GET", list, &Value::Null)).await.json();
    assert_eq!(all, json!({"Webhooks": [changed]}));
    let none = seen(call(
        &world,
        "GET",
        "/webhooks?MessageStream=other",
        &Value::Null,
    ))
    .await;
    assert_eq!(none.json(), json!({"Webhooks": []}));
    assert_eq!(
        seen(call(&world, "DELETE", &path, &Value::Null))
            .await
            .status,
        200
    );
    assert_eq!(
        seen(call(&world, "DELETE", &path, &Value::Null))
            .await
            .status,
        422
    );
    let bad = seen(call(&world, "POST", "/webhooks", &webhook("nowhere"))).await;
    assert_eq!(bad.json()["ErrorCode"], 300);
}

#[tokio::test]
async fn all_events_are_reported_with_the_password() {
    let (world, receiver) = world().await;
    let wish = webhook(&receiver.url("/events"));
    assert_eq!(
        seen(call(&world, "POST", "/webhooks", &wish)).await.status,
        200
    );
    let mut ids = Vec::new();
    for story in MAGIC_RECIPIENTS {
        ids.push(send(&world, &address(story), "outbound").await);
    }
    send(&world, &address("drop"), "outbound").await;
    send(&world, &address("ann"), "broadcast").await;
    wait_until_idle(&world).await;
    let expected = format!("Basic {}", STANDARD.encode("waypost:pass:word"));
    for post in receiver.posts() {
        assert_eq!(post.header("authorization"), expected);
        assert_eq!(post.header("x-own"), "1");
    }
    let events = receiver.events();
    let told = |id: &str| {
        let own = events.iter().filter(|one| one["MessageID"] == id);
        let mut words: Vec<_> = own
            .map(|one| one["Type"].as_str().or(one["RecordType"].as_str()))
            .map(Option::unwrap_or_default)
            .collect();
        words.sort_unstable();
        words
    };
    let all: Vec<_> = ids.iter().map(|id| told(id)).collect();
    let expected: [&[&str]; 9] = [
        &["Delivery"],
        &["HardBounce"],
        &["SoftBounce"],
        &["Blocked"],
        &["Delivery", "SpamComplaint"],
        &["Delivery", "Open"],
        &["Click", "Delivery", "Open"],
        &["Delivery", "SubscriptionChange"],
        &["Delivery", "Transient"],
    ];
    assert_eq!(all, expected);
    assert_eq!(
        texts(&events, "Type")
            .iter()
            .filter(|one| **one == "ManuallyDeactivated")
            .count(),
        1
    );
    assert!(events.iter().all(|one| one["MessageStream"] == "outbound"));
    let hard = events.iter().find(|one| one["Type"] == "HardBounce");
    let hard = hard.expect("something bounced");
    assert_eq!(hard["Email"], address("hard-bounce"));
    assert_eq!(hard["Metadata"]["wp_id"], address("hard-bounce"));
    assert_eq!(
        (&hard["Tag"], &hard["From"]),
        (&json!("welcome"), &json!("hello@example.com"))
    );
}

#[tokio::test]
async fn the_urls_user_info_is_a_password_too_and_faults_change_it() {
    let (world, receiver) = world().await;
    let url = receiver
        .url("/events")
        .replace("http://", "http://ann:p%40ss@");
    let body = json!({"Url": url, "Triggers": {"Delivery": {"Enabled": true}}});
    assert_eq!(
        seen(call(&world, "POST", "/webhooks", &body)).await.status,
        200
    );
    for fault in ["off", "wrong", "none"] {
        set(&world, json!({"signatureFault": fault})).await;
        send(&world, &address("ann"), "outbound").await;
        wait_until_idle(&world).await;
    }
    let posts = receiver.posts();
    let given: Vec<_> = posts
        .iter()
        .map(|post| post.header("authorization"))
        .collect();
    let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
    assert_eq!(given, [&basic("ann:p@ss"), &basic("ann:not-p@ss"), ""]);
}

#[tokio::test]
async fn only_200_accepts_a_call_and_403_ends_it() {
    let (world, receiver) = world().await;
    set(&world, json!({"retryFactor": 0.0001})).await;
    let body = json!({"Url": receiver.url("/"), "Triggers": {"Delivery": {"Enabled": true}}});
    assert_eq!(
        seen(call(&world, "POST", "/webhooks", &body)).await.status,
        200
    );
    receiver.answer(&[202, 500, 200]);
    send(&world, &address("ann"), "outbound").await;
    wait_until_idle(&world).await;
    let posts = receiver.posts();
    assert_eq!(posts.len(), 3);
    assert!(posts.iter().all(|post| post.body == posts[0].body));
    receiver.answer(&[403]);
    send(&world, &address("ann"), "outbound").await;
    wait_until_idle(&world).await;
    assert_eq!(receiver.posts().len(), 4);
    let counts = world.simulator.callbacks();
    assert_eq!((counts.acknowledged, counts.given_up), (1, 1));
}
