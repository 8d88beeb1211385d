//! Messages that name their account.

use serde_json::json;
use waypost_core::provider::kind::ProviderType;

use super::{accepted, accepting, of_message, send};

#[tokio::test]
async fn the_named_account_is_taken_whatever_the_rules_say() {
    let app = accepting().await;
    let first = app.connect(ProviderType::Mailgun).await;
    let named = app.connect(ProviderType::Postmark).await;
    let rule = json!({ "name": "All", "priority": 1, "providerAccountId": first });
    app.post("/v1/routing-rules", &rule).await.expect(201);
    let fields = json!({ "to": "a@example.org", "providerAccountId": named });
    let reply = send(&app, fields.clone()).await.expect(202);
    assert_eq!(reply["providerId"], named.as_str());
    assert_eq!(reply["providerType"], "POSTMARK");
    let id = accepted(&app, fields).await;
    assert_eq!(of_message(&app, &id, "m.provider_account_id").await, named);
    assert_eq!(of_message(&app, &id, "m.is_account_pinned").await, true);
    assert_eq!(
        of_message(&app, &id, "m.routing_rule_id").await,
        json!(null)
    );
    let id = accepted(
        &app,
        json!({ "to": "a@example.org", "providerAccountId": null }),
    )
    .await;
    assert_eq!(of_message(&app, &id, "m.provider_account_id").await, first);
    assert_eq!(
        of_message(&app, &id, "m.is_account_pinned").await,
        json!(null)
    );
}

#[tokio::test]
async fn an_account_that_cannot_send_the_message_is_refused_by_its_id() {
    let app = accepting().await;
    let inactive = app.connect(ProviderType::Mailgun).await;
    let path = format!("/v1/providers/{inactive}");
    app.patch(&path, &json!({ "isActive": false }))
        .await
        .expect(200);
    let named = app.connect(ProviderType::Postmark).await;
    let foreign = app.tenant("Other").await;
    let other = json!({
        "providerType": "POSTMARK", "displayName": "x",
        "credentials": waypost_tests::credentials(ProviderType::Postmark),
    });
    let other = foreign.caller.post("/v1/providers", &other).await.data(201);
    let other = other["id"].as_str().unwrap().to_owned();
    let unknown = uuid::Uuid::nil().to_string();
    let unverified = "x@unverified.example.net";
    for (id, from, reason) in [
        (&unknown, "news@example.com", "PROVIDER_ACCOUNT_NOT_ACTIVE"),
        (&other, "news@example.com", "PROVIDER_ACCOUNT_NOT_ACTIVE"),
        (&inactive, "news@example.com", "PROVIDER_ACCOUNT_NOT_ACTIVE"),
        (&named, unverified, "DOMAIN_NOT_VERIFIED"),
    ] {
        let fields = json!({ "to": "a@example.org", "from": from, "providerAccountId": id });
        let reply = send(&app, fields.clone()).await;
        let error = reply.expect_issues(422, &["providerAccountId"]);
        assert_eq!(error["details"]["reason"], reason);
        assert!(
            error["message"].as_str().unwrap().contains(id.as_str()),
            "{error}"
        );
        let batch = json!({ "messages": [super::message(fields)] });
        let reply = app.post("/v1/emails/batch", &batch).await.expect(200);
        let error = reply["results"][0]["error"].as_str().unwrap();
        assert!(error.contains(id.as_str()), "{error}");
    }
    let fields = json!({ "to": "a@example.org", "providerAccountId": "x" });
    super::assert_rejected(&app, fields, &["providerAccountId"]).await;
}
