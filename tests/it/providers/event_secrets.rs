//! Event secrets: read with all issues at once, stored sealed, never shown.

use std::collections::HashSet;

use serde_json::{Value, json};
use waypost_core::config::Settings;
use waypost_core::provider::event_secrets::EventSecrets;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::ProviderAccount;
use waypost_core::provider_account::store;
use waypost_core::secret::ExposeSecret;
use waypost_tests::{Reply, TestApp};

use super::{quiet, request};

/// A public key from SendGrid's own examples (sendgrid/sendgrid-nodejs,
/// `eventwebhook.spec.js`).
pub(super) const PUBLIC_KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==";
const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:ses-events";

async fn connect(app: &TestApp, kind: ProviderType, secrets: &Value) -> Reply {
    let mut body = request(kind, &waypost_tests::credentials(kind));
    body["eventSecrets"] = secrets.clone();
    app.post("/v1/providers", &body).await
}

/// The account of a token and its secrets, as the event receiver reads them.
async fn find(app: &TestApp, token: &str) -> Option<(ProviderAccount, Option<EventSecrets>)> {
    let settings = Settings::from_map(&app.variables).unwrap();
    let mut connection = app.pool.acquire().await.unwrap();
    let found = store::find_by_event_token(&mut connection, token).await;
    let (account, sealed) = found.unwrap()?;
    let opened = sealed.map(|sealed| {
        account
            .open_event_secrets(&settings.sealer, &sealed)
            .unwrap()
    });
    Some((account, opened))
}

pub(super) async fn stored(app: &TestApp, account: &Value) -> Option<EventSecrets> {
    let url = account["webhookUrl"].as_str().unwrap();
    let (_, token) = url.rsplit_once('/').unwrap();
    let (found, secrets) = find(app, token).await.unwrap();
    assert_eq!(found.id.to_string(), account["id"]);
    assert_eq!(found.organization_id, app.organization_id());
    secrets
}

#[tokio::test]
async fn every_account_has_its_own_url_and_the_secrets_given_for_it() {
    let app = quiet().await;
    let mut tokens = HashSet::new();
    for kind in ProviderType::ALL {
        let given = match kind {
            ProviderType::Sendgrid => json!({ "publicKey": PUBLIC_KEY }),
            ProviderType::Mailgun => json!({ "signingKey": "ca9ary-signing" }),
            ProviderType::Ses => json!({ "topicArn": TOPIC }),
            ProviderType::Postmark | ProviderType::Smtp => Value::Null,
        };
        let reply = connect(&app, kind, &given).await;
        assert!(!reply.text.contains("ca9ary"), "{reply:?}");
        let account = reply.data(201);
        let url = account["webhookUrl"].as_str().unwrap();
        let token = url
            .strip_prefix(&format!(
                "http://{}/v1/provider-events/",
                app.variables["WAYPOST_LISTEN"]
            ))
            .unwrap_or_else(|| panic!("{url}"));
        assert_eq!(token.len(), 32);
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert!(tokens.insert(token.to_owned()));
        match (stored(&app, &account).await, kind) {
            (Some(EventSecrets::Sendgrid { public_key }), ProviderType::Sendgrid) => {
                assert_eq!(public_key, PUBLIC_KEY);
            }
            (Some(EventSecrets::Mailgun { .. }), ProviderType::Mailgun) => {}
            (Some(EventSecrets::Ses { topic_arn }), ProviderType::Ses) => {
                assert_eq!(topic_arn.as_str(), TOPIC);
            }
            // Postmark's are generated when the account is connected.
            (Some(EventSecrets::Postmark { username, .. }), ProviderType::Postmark) => {
                assert_eq!(username.len(), 32);
            }
            (None, ProviderType::Smtp) => {}
            (other, _) => panic!("{kind}: {other:?}"),
        }
    }
    let rows = "SELECT string_agg(a::text || encode(a.event_secrets_sealed, 'escape'), ' ') FROM provider_accounts a";
    let rows = app.value(rows).await.unwrap();
    assert!(!rows.contains("ca9ary") && !rows.contains("signingKey"));
    assert!(find(&app, "nobody").await.is_none());
}

#[tokio::test]
async fn malformed_secrets_are_reported_with_their_paths() {
    use ProviderType::{Mailgun, Sendgrid, Ses};
    let app = quiet().await;
    let p384 = "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE";
    let other_region = "arn:aws:sns:us-east-1:123456789012:ses-events";
    for (kind, given, paths) in [
        (Sendgrid, json!("key"), vec!["eventSecrets"]),
        (Sendgrid, json!([]), vec!["eventSecrets"]),
        (Sendgrid, json!({}), vec!["eventSecrets.publicKey"]),
        (
            Sendgrid,
            json!({ "publicKey": 7 }),
            vec!["eventSecrets.publicKey"],
        ),
        (
            Sendgrid,
            json!({ "publicKey": "" }),
            vec!["eventSecrets.publicKey"],
        ),
        (
            Sendgrid,
            json!({ "publicKey": p384 }),
            vec!["eventSecrets.publicKey"],
        ),
        (
            Sendgrid,
            json!({ "publicKey": &PUBLIC_KEY[..100] }),
            vec!["eventSecrets.publicKey"],
        ),
        (
            Mailgun,
            json!({ "signingKey": "a b" }),
            vec!["eventSecrets.signingKey"],
        ),
        (
            Mailgun,
            json!({ "signingKey": "k".repeat(257) }),
            vec!["eventSecrets.signingKey"],
        ),
        (
            Ses,
            json!({ "topicArn": "arn:aws:sqs:eu-central-1:123456789012:q" }),
            vec!["eventSecrets.topicArn"],
        ),
        (
            Ses,
            json!({ "topicArn": other_region }),
            vec!["eventSecrets.topicArn"],
        ),
    ] {
        let reply = connect(&app, kind, &given).await;
        reply.expect_issues(400, &paths);
    }
    assert_eq!(super::account_count(&app).await, 0);
}

#[tokio::test]
async fn secrets_of_another_provider_are_reported_with_their_paths() {
    use ProviderType::{Mailgun, Postmark, Sendgrid};
    let app = quiet().await;
    let foreign_and_missing = json!({ "signingKey": "k", "topicArn": TOPIC });
    for (kind, given, paths) in [
        (
            Sendgrid,
            foreign_and_missing,
            vec![
                "eventSecrets.publicKey",
                "eventSecrets.signingKey",
                "eventSecrets.topicArn",
            ],
        ),
        (
            Mailgun,
            json!({ "signingKey": "k", "publicKey": PUBLIC_KEY }),
            vec!["eventSecrets.publicKey"],
        ),
        (Postmark, json!({}), vec!["eventSecrets"]),
        (
            Postmark,
            json!({ "signingKey": "k" }),
            vec!["eventSecrets", "eventSecrets.signingKey"],
        ),
    ] {
        let reply = connect(&app, kind, &given).await;
        reply.expect_issues(400, &paths);
    }
    assert_eq!(super::account_count(&app).await, 0);
}

#[tokio::test]
async fn the_secrets_of_a_change_are_checked_against_the_account() {
    let app = quiet().await;
    let other_region = "arn:aws:sns:us-east-1:123456789012:ses-events";
    let id = app.connect(ProviderType::Ses).await;
    let path = format!("/v1/providers/{id}");
    for (given, paths) in [
        (
            json!({ "topicArn": other_region }),
            vec!["eventSecrets.topicArn"],
        ),
        (
            json!({ "topicArn": TOPIC, "signingKey": "k" }),
            vec!["eventSecrets.signingKey"],
        ),
    ] {
        let body = json!({ "eventSecrets": given, "isActive": "no" });
        let paths = [paths, vec!["isActive"]].concat();
        app.patch(&path, &body).await.expect_issues(400, &paths);
    }
}

#[tokio::test]
async fn replaced_secrets_start_unverified() {
    let app = quiet().await;
    let kind = ProviderType::Mailgun;
    let account = connect(&app, kind, &json!({ "signingKey": "old" }))
        .await
        .data(201);
    let path = format!("/v1/providers/{}", account["id"].as_str().unwrap());
    app.execute("UPDATE provider_accounts SET events_verified_at = now()")
        .await;
    assert_eq!(app.get(&path).await.data(200)["eventsVerified"], true);
    let renamed = app.patch(&path, &json!({ "displayName": "Renamed" })).await;
    assert_eq!(renamed.data(200)["eventsVerified"], true);
    let body = json!({ "eventSecrets": { "signingKey": "new" } });
    let changed = app.patch(&path, &body).await.data(200);
    assert_eq!(changed["eventsVerified"], false);
    assert_eq!(changed["webhookUrl"], account["webhookUrl"]);
    let entries = app.get("/v1/audit-logs?action=provider.updated").await;
    let entries = entries.expect(200);
    assert_eq!(
        entries["data"][0]["metadata"],
        json!({ "fields": ["eventSecrets"] })
    );
    let secrets = stored(&app, &account).await;
    let Some(EventSecrets::Mailgun { signing_key }) = secrets else {
        panic!("{secrets:?}");
    };
    assert_eq!(signing_key.expose_secret(), "new");
}
