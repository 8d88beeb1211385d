use serde_json::{Value, json};

use super::proof::is_from_sns;
use super::{MAGIC_RECIPIENTS, Receiver, address, set, wait_until_idle, world};
use crate::ses::{Signer, email};
use crate::support::{World, seen};

const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:ses-events";

async fn certificate(world: &World, message: &Value) -> String {
    let url = message["SigningCertURL"]
        .as_str()
        .expect("names its certificate");
    let path = url.strip_prefix("https://sns.eu-west-1.amazonaws.com");
    seen(world.get(path.expect("is of the topic's region")))
        .await
        .text
}

/// Subscribes and confirms, as an operator and Waypost do; removes the two messages about
/// it.
async fn subscribe(world: &World, receiver: &Receiver, more: Value) -> String {
    let mut body = json!({"topicArn": TOPIC, "url": receiver.url("/sns")});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    let before = receiver.posts().len();
    let answer = seen(world.post("/sns/subscriptions").json(&body)).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let post = receiver.wait_for(before + 1).await.remove(before);
    let message = post.json();
    assert_eq!(
        post.header("x-amz-sns-message-type"),
        "SubscriptionConfirmation"
    );
    assert_eq!(post.header("x-amz-sns-topic-arn"), TOPIC);
    assert_eq!(post.header("x-amz-sns-subscription-arn"), "");
    let certificate = certificate(world, &message).await;
    assert!(is_from_sns(&message, &certificate));
    let url = message["SubscribeURL"].as_str().expect("can be confirmed");
    let path = url.strip_prefix("https://sns.eu-west-1.amazonaws.com");
    let path = path.expect("is of the topic's region");
    assert_eq!(seen(world.get(&format!("{path}0"))).await.status, 400);
    let confirmed = seen(world.get(path)).await;
    assert!(
        confirmed
            .text
            .contains("<SubscriptionArn>arn:aws:sns:eu-west-1:")
    );
    let validated = receiver
        .wait_for(before + 2)
        .await
        .remove(before + 1)
        .json();
    assert!(is_from_sns(&validated, &certificate));
    let text = validated["Message"].as_str().unwrap_or_default();
    assert!(text.starts_with("Successfully validated SNS topic"));
    certificate
}

async fn send(world: &World, to: &str, set: Option<&str>) -> String {
    let mut body = email(to);
    body["ConfigurationSetName"] = json!(set);
    let answer = seen(Signer::new("AKID").send(world, &body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let id = answer.json()["MessageId"].as_str().map(str::to_owned);
    id.expect("has an id")
}

/// The published messages after those about the subscription.
fn published(receiver: &Receiver) -> Vec<Value> {
    let posts = receiver.posts().into_iter().map(|post| post.json());
    posts
        .filter_map(|post| serde_json::from_str(post["Message"].as_str()?).ok())
        .collect()
}

#[tokio::test]
async fn all_events_are_published_once_the_subscription_is_confirmed() {
    let (world, receiver) = world().await;
    send(&world, &address("ann"), Some("main")).await;
    let certificate = subscribe(&world, &receiver, json!({})).await;
    let mut ids = Vec::new();
    for story in MAGIC_RECIPIENTS.into_iter().chain(["drop"]) {
        ids.push(send(&world, &address(story), Some("main")).await);
    }
    send(&world, &address("ann"), None).await;
    wait_until_idle(&world).await;
    for post in receiver.posts() {
        let message = post.json();
        assert_eq!(message["SignatureVersion"], "2");
        assert!(is_from_sns(&message, &certificate));
        assert_eq!(post.header("x-amz-sns-message-id"), message["MessageId"]);
        assert_eq!(post.header("content-type"), "text/plain; charset=UTF-8");
    }
    let events = published(&receiver);
    let told = |id: &str| {
        let own = events.iter().filter(|one| one["mail"]["messageId"] == id);
        let mut words: Vec<_> = own
            .map(|one| match one["bounce"]["bounceSubType"].as_str() {
                Some(kind) => kind,
                None => one["eventType"].as_str().unwrap_or_default(),
            })
            .collect();
        words.sort_unstable();
        words
    };
    let all: Vec<_> = ids.iter().map(|id| told(id)).collect();
    let expected: [&[&str]; 10] = [
        &["Delivery", "Send"],
        &["General", "Send"],
        &["MailboxFull", "Send"],
        &["ContentRejected", "Send"],
        &["Complaint", "Delivery", "Send"],
        &["Delivery", "Open", "Send"],
        &["Click", "Delivery", "Open", "Send"],
        &["Delivery", "Send", "Subscription"],
        &["Delivery", "DeliveryDelay", "Send"],
        &["Reject", "Send"],
    ];
    assert_eq!(all, expected);
    assert_eq!(events.len(), all.iter().map(Vec::len).sum::<usize>());
    let hard = events
        .iter()
        .find(|one| one["bounce"]["bounceType"] == "Permanent");
    let hard = hard.expect("something bounced");
    assert_eq!(hard["mail"]["tags"]["wp_id"], json!(["1"]));
    assert_eq!(
        hard["mail"]["tags"]["ses:configuration-set"],
        json!(["main"])
    );
    let recipient = &hard["bounce"]["bouncedRecipients"][0];
    assert_eq!(recipient["emailAddress"], address("hard-bounce"));
    assert_eq!(recipient["status"], "5.1.1");
}

#[tokio::test]
async fn a_topic_can_be_for_one_configuration_set_and_sign_the_old_way() {
    let (world, receiver) = world().await;
    let wish = json!({"configurationSet": "main", "signatureVersion": "1"});
    let certificate = subscribe(&world, &receiver, wish).await;
    send(&world, &address("ann"), Some("other")).await;
    let id = send(&world, &address("ann"), Some("main")).await;
    wait_until_idle(&world).await;
    let events = published(&receiver);
    assert_eq!(events.len(), 2);
    assert!(
        events
            .iter()
            .all(|one| one["mail"]["messageId"] == id.as_str())
    );
    for post in receiver.posts() {
        let message = post.json();
        assert_eq!(message["SignatureVersion"], "1");
        assert!(is_from_sns(&message, &certificate));
    }
}

#[tokio::test]
async fn a_message_is_retried_unchanged_and_4xx_ends_it() {
    let (world, receiver) = world().await;
    set(&world, json!({"retryFactor": 0.001})).await;
    let certificate = subscribe(&world, &receiver, json!({})).await;
    receiver.answer(&[503, 503, 503, 503]);
    send(&world, &address("ann"), Some("main")).await;
    wait_until_idle(&world).await;
    let posts = receiver.posts().split_off(2);
    let mut by_id: Vec<_> = posts
        .iter()
        .map(|post| post.json()["MessageId"].to_string())
        .collect();
    by_id.sort_unstable();
    by_id.dedup();
    assert_eq!((by_id.len(), posts.len()), (2, 6));
    receiver.answer(&[401, 401]);
    let before = receiver.posts().len();
    send(&world, &address("ann"), Some("main")).await;
    wait_until_idle(&world).await;
    assert_eq!(receiver.posts().len() - before, 2);
    assert_eq!(world.simulator.callbacks().given_up, 2);
    set(&world, json!({"signatureFault": "wrong"})).await;
    send(&world, &address("ann"), Some("main")).await;
    wait_until_idle(&world).await;
    let last = receiver.posts().pop().expect("something was posted");
    assert!(!is_from_sns(&last.json(), &certificate));
    let gone = seen(world.client.delete(world.url("/sns/subscriptions"))).await;
    assert_eq!(gone.status, 204);
    let all = seen(world.get("/sns/subscriptions")).await.json();
    assert_eq!(all, json!({"subscriptions": []}));
}

#[tokio::test]
async fn a_subscriber_is_not_subscribed_twice() {
    let (world, receiver) = world().await;
    let body = json!({"topicArn": TOPIC, "url": receiver.url("/sns")});
    let first = seen(world.post("/sns/subscriptions").json(&body)).await;
    assert_eq!(first.json()["isConfirmed"], false);
    receiver.wait_for(1).await;
    subscribe(&world, &receiver, json!({})).await;
    let again = seen(world.post("/sns/subscriptions").json(&body)).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["isConfirmed"]),
        (200, &json!(true))
    );
    let all = seen(world.get("/sns/subscriptions")).await.json();
    assert_eq!(all["subscriptions"].as_array().map(Vec::len), Some(1));
    let elsewhere = json!({"topicArn": "arn:aws:sqs:x:1:y", "url": receiver.url("/")});
    let wrong = seen(world.post("/sns/subscriptions").json(&elsewhere)).await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn an_unsubscribed_topic_reports_nothing_more() {
    let (world, receiver) = world().await;
    subscribe(&world, &receiver, json!({})).await;
    send(&world, &address("ann"), Some("main")).await;
    wait_until_idle(&world).await;
    let last = receiver.posts().pop().expect("something was posted").json();
    let url = last["UnsubscribeURL"].as_str().unwrap_or_default();
    let path = url.strip_prefix("https://sns.eu-west-1.amazonaws.com");
    let answer = seen(world.get(path.expect("is of the topic's region"))).await;
    assert_eq!(answer.status, 200);
    let before = receiver.posts().len();
    send(&world, &address("ann"), Some("main")).await;
    wait_until_idle(&world).await;
    assert_eq!(receiver.posts().len(), before);
}
