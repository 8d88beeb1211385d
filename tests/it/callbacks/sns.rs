//! SNS: subscriptions, two versions of signatures, and the certificate that is fetched
//! before a signature can be verified.

use http::Method;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{CallbackSettings, SignatureFault};
use waypost_tests::{ReceivedWebhook, Receiver, Reply, TestApp, wait_until};

use super::{Simulated, account, connect, number, start, wait_until_told, wait_until_verified};

const MESSAGE_TYPE: &str = "x-amz-sns-message-type";

async fn webhook_url(app: &TestApp, id: &str) -> String {
    let account = account(app, id).await;
    account["webhookUrl"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn both_signature_versions_are_accepted() {
    for version in ["1", "2"] {
        let app = start().await;
        let id = connect(&app, ProviderType::Ses).await;
        let url = webhook_url(&app, &id).await;
        Simulated::of(&app).subscribe(&url, version).await;
        wait_until_verified(&app, &id).await;
        let message = app.send_to("click@example.org").await;
        wait_until_told(&app).await;
        assert_eq!(app.status(&message).await, "DELIVERED", "{version}");
        let mut events = app.events(&message).await;
        events.sort();
        assert_eq!(
            events,
            ["CLICKED", "DELIVERED", "OPENED", "QUEUED", "SENT"],
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_subscription_that_sns_did_not_sign_is_not_confirmed() {
    let app = start().await;
    let id = connect(&app, ProviderType::Ses).await;
    let url = webhook_url(&app, &id).await;
    app.simulator().set_callbacks(CallbackSettings {
        signature_fault: SignatureFault::Wrong,
        ..CallbackSettings::default()
    });
    Simulated::of(&app).subscribe(&url, "2").await;
    wait_until("it is refused", async || {
        app.simulator().callbacks().refused.contains_key(&401)
    })
    .await;
    assert_eq!(account(&app, &id).await["eventsVerified"], false);
    app.simulator().set_callbacks(CallbackSettings::default());
    let message = app.send_to("plain@example.org").await;
    wait_until_told(&app).await;
    assert_eq!(
        app.simulator().callbacks().queued,
        0,
        "nobody is subscribed"
    );
    assert_eq!(app.status(&message).await, "SENT");
}

/// Posts a request that SNS sent to another subscriber, unchanged.
async fn repeat(app: &TestApp, url: &str, posted: &ReceivedWebhook) -> Reply {
    let path = &url[url.find("/v1/").unwrap()..];
    let caller = app.caller().anonymous();
    let reply = caller.call(Method::POST, path, |request| {
        request
            .header(MESSAGE_TYPE, posted.header(MESSAGE_TYPE))
            .header("content-type", posted.header("content-type"))
            .body(posted.body.clone())
    });
    reply.await
}

#[tokio::test]
async fn without_the_certificate_sns_is_asked_to_retry() {
    let mut app = start().await;
    let id = connect(&app, ProviderType::Ses).await;
    let url = webhook_url(&app, &id).await;
    // A subscriber of the test records the requests of SNS.
    let (receiver, simulated) = (Receiver::start().await, Simulated::of(&app));
    simulated.subscribe(&receiver.url(), "2").await;
    wait_until("it is asked to confirm", async || receiver.count() == 1).await;
    let asked = receiver.received()[0].json();
    simulated
        .confirm(asked["SubscribeURL"].as_str().unwrap())
        .await;
    let message = app.send_to("plain@example.org").await;
    wait_until_told(&app).await;
    let delivered = receiver.received().into_iter().find(|posted| {
        let told = posted.json()["Message"].as_str().unwrap().to_owned();
        told.contains(r#""eventType":"Delivery""#)
    });
    let delivered = delivered.expect("the delivery was told");
    app.stop_simulator().await;
    for _ in 0..2 {
        let reply = repeat(&app, &url, &delivered).await;
        reply.expect_error(503, "SERVICE_UNAVAILABLE");
    }
    assert_eq!(app.events(&message).await, ["QUEUED", "SENT"]);
    assert_eq!(account(&app, &id).await["eventsVerified"], false);
    app.resume_simulator().await;
    repeat(&app, &url, &delivered).await.expect(200);
    assert_eq!(app.status(&message).await, "DELIVERED");
    assert_eq!(account(&app, &id).await["eventsVerified"], true);
    // The certificate is cached.
    app.stop_simulator().await;
    repeat(&app, &url, &delivered).await.expect(200);
    let events = number(&app, "SELECT count(*) FROM provider_events").await;
    assert_eq!(events, 1);
}
