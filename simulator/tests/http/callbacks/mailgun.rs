use reqwest::RequestBuilder;
use reqwest::multipart::Form;
use serde_json::{Value, json};

use super::proof::is_from_mailgun;
use super::{MAGIC_RECIPIENTS, address, set, texts, wait_until_idle, world};
use crate::support::{World, seen};

const KEY: &str = "mailgun-key";
const WEBHOOKS: &str = "/v3/domains/example.com/webhooks";

fn call(world: &World, method: &str, path: &str) -> RequestBuilder {
    let method = method.parse().expect("is a method");
    let request = world.client.request(method, world.url(path));
    request.basic_auth("api", Some(KEY))
}

fn form(fields: &[(&'static str, &str)]) -> Form {
    fields.iter().fold(Form::new(), |form, (name, value)| {
        form.text(*name, (*value).to_owned())
    })
}

async fn signing_key(world: &World) -> String {
    let answer = seen(call(world, "GET", "/v5/accounts/http_signing_key")).await;
    let key = answer.json()["http_signing_key"]
        .as_str()
        .map(str::to_owned);
    key.expect("there is a key")
}

/// Registers one URL for all kinds of events, as v4 does it.
async fn register(world: &World, url: &str) {
    let names = [
        "accepted",
        "delivered",
        "opened",
        "clicked",
        "unsubscribed",
        "complained",
        "temporary_fail",
        "permanent_fail",
    ];
    let mut body = format!("url={}", url.replace(':', "%3A"));
    names
        .iter()
        .for_each(|name| body.extend(["&event_types=", name]));
    let request = call(world, "POST", "/v4/domains/example.com/webhooks").body(body);
    let answer = seen(request.header("content-type", "application/x-www-form-urlencoded")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["webhooks"]["opened"]["urls"], json!([url]));
}

async fn send(world: &World, to: &str) -> String {
    let form = form(&[
        ("from", "Example <hello@example.com>"),
        ("to", to),
        ("subject", "Hello"),
        ("text", "Hi"),
        ("o:tag", "welcome"),
        ("o:tag", "second"),
        ("v:wp_id", to),
    ]);
    let request = call(world, "POST", "/v3/example.com/messages").multipart(form);
    let answer = seen(request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let id = answer.json()["id"].as_str().map(str::to_owned);
    id.expect("has an id")
}

#[tokio::test]
async fn webhooks_are_created_changed_and_deleted_by_kind() {
    let (world, receiver) = world().await;
    let (a, b) = (receiver.url("/a"), receiver.url("/b"));
    let wish = form(&[("id", "delivered"), ("url", &a), ("url", &b)]);
    let made = seen(call(&world, "POST", WEBHOOKS).multipart(wish)).await;
    let expected = json!({
        "message": "Webhook has been created",
        "webhook": {"urls": [a, b]},
    });
    assert_eq!((made.status.as_u16(), made.json()), (200, expected));
    let again = form(&[("id", "delivered"), ("url", &a)]);
    let again = seen(call(&world, "POST", WEBHOOKS).multipart(again)).await;
    assert_eq!(again.status, 400);
    let all = seen(call(&world, "GET", WEBHOOKS)).await.json();
    assert_eq!(all["webhooks"]["delivered"], json!({"urls": [a, b]}));
    assert_eq!(all["webhooks"]["opened"], Value::Null);
    let path = format!("{WEBHOOKS}/delivered");
    let put = call(&world, "PUT", &path).multipart(form(&[("url", &b)]));
    assert_eq!(seen(put).await.json()["webhook"]["urls"], json!([b]));
    let found = seen(call(&world, "GET", &path)).await.json();
    assert_eq!(found, json!({"webhook": {"urls": [b]}}));
    assert_eq!(seen(call(&world, "DELETE", &path)).await.status, 200);
    assert_eq!(seen(call(&world, "DELETE", &path)).await.status, 404);
    for wrong in [
        form(&[("id", "nothing"), ("url", &a)]),
        form(&[("id", "opened"), ("url", "nowhere")]),
        form(&[("id", "opened")]),
        form(&[
            ("id", "opened"),
            ("url", &a),
            ("url", &a),
            ("url", &a),
            ("url", &b),
        ]),
    ] {
        let answer = seen(call(&world, "POST", WEBHOOKS).multipart(wrong)).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
    let other = seen(call(&world, "GET", "/v3/domains/invalid.test/webhooks")).await;
    assert_eq!(other.status, 404);
    let sending_key = world.get(WEBHOOKS).basic_auth("api", Some("restricted"));
    assert_eq!(seen(sending_key).await.status, 401);
}

#[tokio::test]
async fn one_url_is_associated_with_kinds() {
    let (world, receiver) = world().await;
    let url = receiver.url("/a");
    register(&world, &url).await;
    let body = format!("url={url}&event_types=opened");
    let put = call(&world, "PUT", "/v4/domains/example.com/webhooks").body(body.clone());
    let shown = seen(put).await.json();
    assert_eq!(shown["webhooks"]["opened"]["urls"], json!([url]));
    assert_eq!(shown["webhooks"]["clicked"], Value::Null);
    let post = call(&world, "POST", "/v4/domains/example.com/webhooks").body(body);
    assert_eq!(seen(post).await.status, 400);
    let path = format!("/v4/domains/example.com/webhooks?url={url}");
    let gone = seen(call(&world, "DELETE", &path)).await.json();
    assert_eq!(gone["webhooks"]["opened"], Value::Null);
}

#[tokio::test]
async fn all_events_are_reported_with_a_signature() {
    let (world, receiver) = world().await;
    let key = signing_key(&world).await;
    register(&world, &receiver.url("/events")).await;
    let mut ids = Vec::new();
    for story in MAGIC_RECIPIENTS.into_iter().chain(["drop"]) {
        ids.push(send(&world, &address(story)).await);
    }
    wait_until_idle(&world).await;
    let posts: Vec<_> = receiver.posts().iter().map(|post| post.json()).collect();
    assert!(posts.iter().all(|post| is_from_mailgun(post, &key)));
    let mut tokens: Vec<_> = posts
        .iter()
        .map(|one| one["signature"]["token"].as_str())
        .collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), posts.len());
    let told = |id: &str| {
        let id = id.trim_matches(['<', '>']);
        let mut own: Vec<_> = posts
            .iter()
            .map(|post| &post["event-data"])
            .filter(|one| one["message"]["headers"]["message-id"] == id)
            .collect();
        own.sort_by(|a, b| {
            a["timestamp"]
                .as_f64()
                .partial_cmp(&b["timestamp"].as_f64())
                .unwrap()
        });
        let words = own.iter().map(|one| match one["event"].as_str() {
            Some("failed") => format!("{} {}", one["severity"], one["reason"]).replace('"', ""),
            name => name.unwrap_or_default().to_owned(),
        });
        words.collect::<Vec<_>>()
    };
    let all: Vec<_> = ids.iter().map(|id| told(id)).collect();
    let expected: [&[&str]; 10] = [
        &["accepted", "delivered"],
        &["accepted", "permanent bounce"],
        &["accepted", "permanent old"],
        &["accepted", "permanent espblock"],
        &["accepted", "delivered", "complained"],
        &["accepted", "delivered", "opened"],
        &["accepted", "delivered", "opened", "clicked"],
        &["accepted", "delivered", "unsubscribed"],
        &["accepted", "temporary generic", "delivered"],
        &["accepted", "permanent suppress-bounce"],
    ];
    assert_eq!(all, expected);
    let data = posts.iter().map(|post| &post["event-data"]);
    let hard = data.clone().find(|one| one["reason"] == "bounce");
    let hard = hard.expect("something bounced");
    assert_eq!(
        hard["user-variables"],
        json!({"wp_id": address("hard-bounce")})
    );
    assert_eq!(hard["recipient"], address("hard-bounce"));
    assert_eq!(hard["tags"], json!(["welcome", "second"]));
    let mut ids = texts(data, "id");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), posts.len());
}

#[tokio::test]
async fn a_retried_call_has_a_new_token_and_406_ends_it() {
    let (world, receiver) = world().await;
    set(&world, json!({"retryFactor": 0.0001})).await;
    let key = signing_key(&world).await;
    let wish = form(&[("id", "delivered"), ("url", &receiver.url("/"))]);
    seen(call(&world, "POST", WEBHOOKS).multipart(wish)).await;
    receiver.answer(&[500, 200, 406]);
    send(&world, &address("ann")).await;
    wait_until_idle(&world).await;
    send(&world, &address("ann")).await;
    wait_until_idle(&world).await;
    let posts: Vec<_> = receiver.posts().iter().map(|post| post.json()).collect();
    assert_eq!(posts.len(), 3);
    assert!(posts.iter().all(|post| is_from_mailgun(post, &key)));
    assert_eq!(posts[0]["event-data"], posts[1]["event-data"]);
    assert_ne!(
        posts[0]["signature"]["token"],
        posts[1]["signature"]["token"]
    );
    let counts = world.simulator.callbacks();
    assert_eq!((counts.acknowledged, counts.given_up), (1, 1));
    assert_eq!((counts.refused[&500], counts.refused[&406]), (1, 1));
}
