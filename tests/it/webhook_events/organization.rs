//! Events of suppressions, domains and endpoints, and the rules for all events that are about
//! no message.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::event::EventType;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Provider;
use waypost_tests::{Answer, Receiver, TestApp, to_hash, wait_until};

use super::{
    FURTHER, PATH, bodies, counts, fields, first, number, said, subscribe, subscribe_with,
};

async fn suppress(app: &TestApp, body: &Value) -> Value {
    app.post("/v1/suppressions", body).await.data(201)
}

#[tokio::test]
async fn suppressions_are_announced_when_they_come_and_go() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    subscribe(
        &app,
        &receiver,
        &["SUPPRESSION_CREATED", "SUPPRESSION_REMOVED"],
    )
    .await;
    let group = json!({ "name": "News" });
    let group = app.post("/v1/unsubscribe-groups", &group).await.data(201);
    let everywhere = suppress(&app, &json!({ "email": "Ada@example.org" })).await;
    let in_group = json!({ "email": "bob@example.org", "unsubscribeGroupId": group["id"] });
    let in_group = suppress(&app, &in_group).await;
    // What exists is not created again.
    app.post("/v1/suppressions", &json!({ "email": "ada@example.org" }))
        .await
        .expect_error(409, "CONFLICT");
    let import = json!({ "emails": ["ada@example.org", "cy@example.org", "cy@example.org"] });
    app.post("/v1/suppressions/import", &import)
        .await
        .expect(200);
    app.drain().await;
    assert_eq!(counts(&receiver)["SUPPRESSION_CREATED"], 3);
    let expected = |made: &Value| {
        json!({
            "suppressionId": made["id"],
            "emailHash": made["emailHash"],
            "unsubscribeGroupId": made["unsubscribeGroupId"],
            "source": made["source"],
        })
    };
    let created: Vec<Value> = bodies(&receiver).iter().map(said).collect();
    assert!(created.contains(&expected(&everywhere)), "{created:?}");
    assert!(created.contains(&expected(&in_group)), "{created:?}");
    let imported = created.iter().find(|one| one["source"] == "IMPORT");
    let imported = imported.unwrap();
    assert_eq!(imported["emailHash"], to_hash("cy@example.org"));
    let form = first(&receiver, "SUPPRESSION_CREATED");
    assert_eq!(
        fields(&form),
        fields(&waypost_tests::webhook_example("SUPPRESSION_CREATED"))
    );
    assert!(!form.to_string().contains("example.org"), "{form}");
    // One by one, and with their group.
    let id = everywhere["id"].as_str().unwrap();
    app.delete(&format!("/v1/suppressions/{id}"))
        .await
        .expect(200);
    let id = group["id"].as_str().unwrap();
    app.delete(&format!("/v1/unsubscribe-groups/{id}"))
        .await
        .expect(200);
    app.drain().await;
    let removed: Vec<Value> = bodies(&receiver)
        .iter()
        .filter(|body| body["event"] == "SUPPRESSION_REMOVED")
        .map(said)
        .collect();
    assert_eq!(removed.len(), 2);
    assert!(removed.contains(&expected(&everywhere)), "{removed:?}");
    assert!(removed.contains(&expected(&in_group)), "{removed:?}");
}

#[tokio::test]
async fn what_providers_and_recipients_suppress_is_announced_too() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["SUPPRESSION_CREATED"]).await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let path = format!("/v1/providers/{account}/event-webhook");
    app.caller().post_empty(&path).await.data(200);
    for story in ["hard-bounce", "complaint", "soft-bounce"] {
        app.send_to(&format!("{story}@example.org")).await;
    }
    app.drain().await;
    wait_until("both are announced", async || {
        counts(&receiver).get("SUPPRESSION_CREATED") == Some(&2)
    })
    .await;
    wait_until("the simulator has reported all events", async || {
        app.simulator().callbacks().waiting == 0
    })
    .await;
    app.drain().await;
    let mut announced: Vec<(String, String)> = bodies(&receiver)
        .iter()
        .map(|body| {
            let text = |field: &str| body["data"][field].as_str().unwrap().to_owned();
            (text("source"), text("emailHash"))
        })
        .collect();
    announced.sort();
    let expected = [
        ("BOUNCE".to_owned(), to_hash("hard-bounce@example.org")),
        ("COMPLAINT".to_owned(), to_hash("complaint@example.org")),
    ];
    assert_eq!(announced, expected);
}

#[tokio::test]
async fn an_import_of_ten_thousand_is_announced_by_one_statement() {
    let app = TestApp::builder().without_worker().start().await;
    let emails = |word: &str| -> Vec<String> {
        (0..10_000)
            .map(|nth| format!("{word}{nth}@example.org"))
            .collect()
    };
    let count = "SELECT count(*) FROM webhook_deliveries";
    // No endpoint asks for it, so nothing is written.
    let receiver = Receiver::start().await;
    let of_messages = EventType::ALL.map(EventType::as_str);
    subscribe(&app, &receiver, &of_messages).await;
    let import = |word: &str| json!({ "emails": emails(word) });
    app.post("/v1/suppressions/import", &import("a"))
        .await
        .expect(200);
    assert_eq!(number(&app, count).await, 0);
    // Statements that insert deliveries are counted.
    app.execute(
        "CREATE TABLE statements (at timestamptz);
         CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN INSERT INTO statements VALUES (now()); RETURN NULL; END';
         CREATE TRIGGER count_statement AFTER INSERT ON webhook_deliveries
         FOR EACH STATEMENT EXECUTE FUNCTION count_statement()",
    )
    .await;
    subscribe(&app, &receiver, &["SUPPRESSION_CREATED"]).await;
    app.post("/v1/suppressions/import", &import("b"))
        .await
        .expect(200);
    assert_eq!(number(&app, count).await, 10_000);
    assert_eq!(number(&app, "SELECT count(*) FROM statements").await, 1);
    let distinct =
        "SELECT count(DISTINCT event_id) FROM webhook_deliveries WHERE event_id = message_id";
    assert_eq!(number(&app, distinct).await, 10_000);
    app.leave_work();
}

#[tokio::test]
async fn an_endpoint_gets_no_further_type_unless_it_names_it() {
    let app = TestApp::start().await;
    let (old, one, off, other) = (
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    );
    let of_messages = EventType::ALL.map(EventType::as_str);
    subscribe(&app, &old, &of_messages).await;
    subscribe(&app, &one, &["SUPPRESSION_REMOVED"]).await;
    let inactive = json!({ "events": FURTHER, "isActive": false });
    subscribe_with(app.caller(), &off, &inactive).await;
    let neighbour = app.tenant("Neighbours").await;
    let all = json!({ "events": FURTHER });
    subscribe_with(&neighbour.caller, &other, &all).await;
    let made = suppress(&app, &json!({ "email": "a@example.org" })).await;
    let path = format!("/v1/suppressions/{}", made["id"].as_str().unwrap());
    app.delete(&path).await.expect(200);
    app.drain().await;
    assert_eq!((old.count(), off.count(), other.count()), (0, 0, 0));
    assert_eq!(
        counts(&one).into_iter().collect::<Vec<_>>(),
        [("SUPPRESSION_REMOVED".to_owned(), 1)]
    );
    for hostile in ["suppression_created", "SUPPRESSION", "*", "", "QUEUED,SENT"] {
        let body = json!({ "url": one.url(), "events": ["SENT", hostile] });
        app.post(PATH, &body)
            .await
            .expect_issues(400, &["events.1"]);
    }
}

#[tokio::test]
async fn a_domain_is_announced_when_it_is_verified_and_when_it_breaks() {
    const NEW: &str = "new.example.org";
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["DOMAIN_VERIFIED", "DOMAIN_BROKEN"]).await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let path = format!("/v1/providers/{account}/domains");
    let added = app.post(&path, &json!({ "domain": NEW })).await.data(201);
    assert_eq!(added["state"], "unverified");
    app.drain().await;
    assert_eq!(
        receiver.count(),
        0,
        "what is imported or added has not changed"
    );
    app.advance(TimeDelta::minutes(4));
    wait_until("it is verified", async || receiver.count() == 1).await;
    let verified = json!({
        "domainId": added["id"],
        "domain": NEW,
        "providerAccountId": account,
        "state": "verified",
        "source": "provider",
        "records": [],
    });
    assert_eq!(said(&first(&receiver, "DOMAIN_VERIFIED")), verified);
    // A check that finds the same is no event.
    let domain = added["id"].as_str().unwrap();
    app.caller()
        .post_empty(&format!("{path}/{domain}/verify"))
        .await
        .data(200);
    let left = ["example.com", "unverified.example.net"];
    app.simulator()
        .set_domains(Provider::SendGrid, "SG.good-key", &left);
    app.caller()
        .post_empty(&format!("{path}/{domain}/verify"))
        .await
        .data(200);
    app.drain().await;
    let mut broken = verified.clone();
    broken["state"] = json!("unverified");
    assert_eq!(said(&first(&receiver, "DOMAIN_BROKEN")), broken);
    assert_eq!(receiver.count(), 2);
    // A validation finds that the provider no longer lists another one.
    let validate = format!("/v1/providers/{account}/validate");
    app.caller().post_empty(&validate).await.expect(200);
    app.drain().await;
    let broken: Vec<Value> = bodies(&receiver)
        .iter()
        .filter(|body| body["event"] == "DOMAIN_BROKEN")
        .map(|body| body["data"]["domain"].clone())
        .collect();
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(broken.contains(&json!("mail.example.com")), "{broken:?}");
    // Its owner removes one: nothing broke.
    let rest = app.get(&path).await.data(200);
    let rest = rest.as_array().unwrap().iter();
    let kept = rest
        .clone()
        .find(|one| one["domain"] == "example.com")
        .unwrap();
    let kept = kept["id"].as_str().unwrap();
    app.delete(&format!("{path}/{kept}")).await.expect(200);
    app.delete(&format!("/v1/providers/{account}"))
        .await
        .expect(200);
    app.drain().await;
    assert_eq!(receiver.count(), 3);
}

#[tokio::test]
async fn the_other_endpoints_learn_that_one_was_deactivated() {
    for (answer, reason) in [
        (Answer::Status(410), "GONE"),
        (Answer::Status(500), "FAILING"),
    ] {
        let app = TestApp::start().await;
        let (dead, healthy) = (Receiver::start().await, Receiver::start().await);
        dead.answer(answer);
        let events = ["SUPPRESSION_CREATED", "WEBHOOK_ENDPOINT_DISABLED"];
        let path = subscribe(&app, &dead, &events).await;
        subscribe(&app, &healthy, &["WEBHOOK_ENDPOINT_DISABLED"]).await;
        suppress(&app, &json!({ "email": "a@example.org" })).await;
        app.drain().await;
        if reason == "FAILING" {
            assert_eq!(healthy.count(), 0);
            app.advance_and_drain(TimeDelta::days(5)).await;
        }
        assert_eq!(app.get(&path).await.data(200)["isActive"], false);
        let body = first(&healthy, "WEBHOOK_ENDPOINT_DISABLED");
        let id = path.rsplit('/').next().unwrap();
        assert_eq!(body["data"]["webhookEndpointId"], id);
        assert_eq!(body["data"]["reason"], reason);
        assert!(body["data"]["failingSince"].is_string(), "{body}");
        assert_eq!(healthy.count(), 1);
        assert_eq!(counts(&dead).len(), 1, "it does not learn it itself");
        // What its owner switches off is no event.
        let change = json!({ "isActive": true });
        app.patch(&path, &change).await.data(200);
        app.patch(&path, &json!({ "isActive": false }))
            .await
            .data(200);
        app.delete(&path).await.expect(200);
        assert_eq!(healthy.count(), 1);
        app.leave_work();
    }
}

#[tokio::test]
async fn a_delivery_without_a_message_is_listed_retried_and_replayed_like_any_other() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    let path = subscribe(&app, &receiver, &["SUPPRESSION_CREATED"]).await;
    receiver.answer(Answer::Status(500));
    let before = app.clock.now();
    suppress(&app, &json!({ "email": "a@example.org" })).await;
    app.drain().await;
    receiver.answer(Answer::Status(200));
    app.advance_and_drain(TimeDelta::seconds(6)).await;
    let list = app.get(&format!("{path}/deliveries")).await.data(200);
    let delivery = &list[0];
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(delivery["eventType"], "SUPPRESSION_CREATED");
    assert_eq!(delivery["messageId"], Value::Null);
    assert_eq!(delivery["toHash"], Value::Null);
    assert_eq!(delivery["status"], "DELIVERED");
    assert_eq!(delivery["attempts"].as_array().unwrap().len(), 2);
    let id = delivery["id"].as_str().unwrap();
    let replay = format!("{path}/deliveries/{id}/replay");
    let replayed = app.caller().post_empty(&replay).await.data(200);
    assert_eq!(replayed["messageId"], Value::Null);
    app.drain().await;
    let period = json!({
        "since": (before - TimeDelta::hours(1)).to_rfc3339(),
        "until": (app.clock.now() + TimeDelta::hours(1)).to_rfc3339(),
    });
    let replayed = app.post(&format!("{path}/replay"), &period).await.data(200);
    assert_eq!(replayed["replayed"], 1);
    app.drain().await;
    let received = receiver.received();
    assert_eq!(received.len(), 4);
    for webhook in &received {
        assert_eq!(webhook.header("webhook-id"), id);
        assert_eq!(webhook.json(), received[0].json());
    }
    assert_eq!(received[0].json()["data"]["eventId"], delivery["eventId"]);
}
