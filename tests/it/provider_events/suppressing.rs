//! Which addresses provider events suppress.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, to_hash};

use super::{connect, event, ids_of, number};

async fn suppressions(app: &TestApp) -> Vec<Value> {
    let list = app.get("/v1/suppressions?limit=100").await.data(200);
    let mut list = list.as_array().unwrap().clone();
    list.sort_by_key(|one| one["emailHash"].to_string());
    list
}

fn hash_and_source(suppressions: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    suppressions
        .iter()
        .map(|one| (text(&one["emailHash"]), text(&one["source"])))
        .collect()
}

#[tokio::test]
async fn hard_bounces_and_complaints_suppress_exactly_the_recipients_address() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let mut message = message_to("");
    let addresses = [
        "gone@example.org",
        "cross@example.org",
        "fine@example.org",
        "blocked@example.org",
    ];
    message["to"] = json!(addresses);
    let id = app.send(&message).await;
    app.drain().await;
    let mut block = event(&app, &ids_of(&app, &id, 3).await, "bounce", "x", 0);
    block["type"] = json!("blocked");
    let mut hard = event(&app, &ids_of(&app, &id, 0).await, "bounce", "b", 0);
    // The address in the event is ignored: the recipient's address counts.
    hard["email"] = json!("fine@example.org");
    let complaint = event(&app, &ids_of(&app, &id, 1).await, "spamreport", "c", 0);
    let again = event(&app, &ids_of(&app, &id, 0).await, "spamreport", "c2", 0);
    for _ in 0..2 {
        let told = json!([hard, complaint, block]);
        account.tell(&app, &told).await;
    }
    account.tell(&app, &json!([again])).await;
    let mut expected = [
        (to_hash("gone@example.org"), "BOUNCE".to_owned()),
        (to_hash("cross@example.org"), "COMPLAINT".to_owned()),
    ];
    expected.sort();
    let found = suppressions(&app).await;
    assert_eq!(hash_and_source(&found), expected);
    assert!(found.iter().all(|one| one["unsubscribeGroupId"].is_null()));
    let entries = app
        .get("/v1/audit-logs?action=suppression.created")
        .await
        .data(200);
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        assert_eq!(entry["actor"]["type"], "system");
        assert_eq!(entry["metadata"]["messageId"], json!(id));
    }
    assert_eq!(
        number(&app, "SELECT entries FROM suppression_filters").await,
        2
    );
    let receipt = app.post("/v1/send", &message).await.expect(202);
    assert_eq!(receipt["suppressedCount"], 2);
    app.drain().await;
    assert_eq!(app.captured("gone@example.org").len(), 1);
    assert_eq!(app.captured("fine@example.org").len(), 2);
}

#[tokio::test]
async fn unsubscribing_at_the_provider_applies_to_the_messages_group() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let group = async |name: &str| -> String {
        let body = json!({ "name": name });
        let group = app.post("/v1/unsubscribe-groups", &body).await.data(201);
        group["id"].as_str().unwrap().to_owned()
    };
    let (news, gone) = (group("News").await, group("Gone").await);
    let mut ids = Vec::new();
    for (address, group) in [
        ("a@example.org", Some(&news)),
        ("b@example.org", Some(&gone)),
        ("c@example.org", None),
    ] {
        let mut message = message_to(address);
        message["unsubscribeGroupId"] = json!(group);
        if group.is_none() {
            message
                .as_object_mut()
                .unwrap()
                .remove("unsubscribeGroupId");
        }
        ids.push(app.send(&message).await);
    }
    app.drain().await;
    app.advance(TimeDelta::minutes(1));
    let removed = app.delete(&format!("/v1/unsubscribe-groups/{gone}")).await;
    removed.expect(200);
    let mut told = Vec::new();
    for id in &ids {
        told.push(event(
            &app,
            &ids_of(&app, id, 0).await,
            "unsubscribe",
            id,
            0,
        ));
    }
    account.tell(&app, &json!(told)).await;
    let found = suppressions(&app).await;
    for (address, group) in [
        ("a@example.org", Some(&news)),
        ("b@example.org", None),
        ("c@example.org", None),
    ] {
        let one = found
            .iter()
            .find(|one| one["emailHash"] == to_hash(address).as_str());
        let one = one.unwrap_or_else(|| panic!("{address} is not suppressed: {found:?}"));
        assert_eq!(one["source"], "UNSUBSCRIBE");
        assert_eq!(one["unsubscribeGroupId"], json!(group), "{address}");
        assert_eq!(app.status(&ids[0]).await, "SENT");
    }
    assert_eq!(
        app.events(&ids[0]).await,
        ["QUEUED", "SENT", "UNSUBSCRIBED"]
    );
}

/// Sends to an address and reports a soft bounce of so many hours ago.
async fn bounce_softly(app: &TestApp, account: &super::Account, nth: i64, hours_ago: i64) {
    let id = app.send_to("full@example.org").await;
    app.drain().await;
    let at = app.clock.now() - TimeDelta::hours(hours_ago);
    let content = json!({
        "RecordType": "Bounce", "Type": "SoftBounce", "ID": nth, "Email": "full@example.org",
        "BouncedAt": at.to_rfc3339(), "Metadata": ids_of(app, &id, 0).await,
    });
    account.tell(app, &content).await;
    account.tell(app, &content).await;
    assert_eq!(app.status(&id).await, "BOUNCED");
}

#[tokio::test]
async fn soft_bounces_suppress_after_the_number_and_within_the_window_of_the_settings() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Postmark).await;
    let settings = json!({ "softBounceLimit": 3, "softBounceWindowDays": 2 });
    let _set = app.patch("/v1/settings", &settings).await.data(200);
    bounce_softly(&app, &account, 1, 0).await;
    app.advance_and_drain(TimeDelta::hours(47)).await;
    bounce_softly(&app, &account, 2, 0).await;
    // The first bounce is too old to count.
    app.advance_and_drain(TimeDelta::hours(2)).await;
    bounce_softly(&app, &account, 3, 0).await;
    assert_eq!(suppressions(&app).await, Vec::<Value>::new());
    bounce_softly(&app, &account, 4, 1).await;
    let found = suppressions(&app).await;
    let expected = [(to_hash("full@example.org"), "BOUNCE".to_owned())];
    assert_eq!(hash_and_source(&found), expected);
    // After the suppression is lifted, the count starts again.
    let path = format!("/v1/suppressions/{}", found[0]["id"].as_str().unwrap());
    app.delete(&path).await.expect(200);
    bounce_softly(&app, &account, 5, 0).await;
    assert_eq!(suppressions(&app).await, Vec::<Value>::new());
    let never = json!({ "softBounceLimit": 0 });
    let _set = app.patch("/v1/settings", &never).await.data(200);
    for nth in 6..10 {
        bounce_softly(&app, &account, nth, 0).await;
    }
    assert_eq!(suppressions(&app).await, Vec::<Value>::new());
}
