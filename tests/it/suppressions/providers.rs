//! Imports of the providers' own lists.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, ListKind, Listed, Provider};
use waypost_tests::{HTTP_PROVIDERS, TestApp, to_hash};

use super::{PATH, quiet, suppress, total};

fn simulated(kind: ProviderType) -> (Provider, &'static str) {
    match kind {
        ProviderType::Sendgrid => (Provider::SendGrid, "SG.good-key"),
        ProviderType::Postmark => (Provider::Postmark, "good-server"),
        ProviderType::Mailgun => (Provider::Mailgun, "good-key"),
        ProviderType::Ses => (Provider::Ses, "AKIAGOOD"),
        ProviderType::Smtp => (Provider::Smtp, "good-user"),
    }
}

fn path(account: &str) -> String {
    format!("/v1/providers/{account}/suppressions/import")
}

async fn sources(app: &TestApp) -> BTreeMap<String, String> {
    let rows = app.get(&format!("{PATH}?limit=100")).await.data(200);
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("emailHash"), text("source"))
    })
    .collect()
}

fn fault(provider: Provider, kind: FaultKind) -> Fault {
    Fault {
        provider: Some(provider),
        kind,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::All,
    }
}

#[tokio::test]
async fn the_lists_of_all_providers_are_imported_with_their_reasons() {
    for kind in HTTP_PROVIDERS {
        let app = quiet().await;
        let account = app.connect(kind).await;
        let (provider, credential) = simulated(kind);
        let listed = vec![
            Listed::now("Bounced@Example.org", ListKind::Bounce),
            Listed::now("there@example.org", ListKind::Bounce),
            Listed::now("complained+1@example.org", ListKind::Complaint),
            Listed::now("no address", ListKind::Complaint),
            Listed::now("left@example.org", ListKind::Unsubscribe),
            Listed::now("one-tag@example.org", ListKind::Tag),
            Listed::now("typo@example.org", ListKind::Invalid),
        ];
        app.simulator()
            .set_suppression_lists(provider, credential, listed);
        suppress(&app, "there@example.org").await;
        let mut expected = BTreeMap::from([
            ("bounced@example.org", "BOUNCE"),
            ("there@example.org", "MANUAL"),
            ("complained+1@example.org", "COMPLAINT"),
        ]);
        let mut unusable = 1;
        match kind {
            ProviderType::Sendgrid => {
                expected.extend([
                    ("typo@example.org", "BOUNCE"),
                    ("left@example.org", "UNSUBSCRIBE"),
                ]);
            }
            ProviderType::Postmark => expected.extend([("left@example.org", "UNSUBSCRIBE")]),
            ProviderType::Mailgun => {
                expected.extend([("left@example.org", "UNSUBSCRIBE")]);
                unusable += 1;
            }
            ProviderType::Ses | ProviderType::Smtp => {}
        }
        let result = app.post(&path(&account), &json!({})).await.data(200);
        let imported = expected.len() - 1;
        assert_eq!(
            result,
            json!({ "imported": imported, "alreadyThere": 1, "unusable": unusable, "nextCursor": null }),
            "{kind}"
        );
        let expected: BTreeMap<String, String> = expected
            .into_iter()
            .map(|(email, source)| (to_hash(email), source.to_owned()))
            .collect();
        assert_eq!(sources(&app).await, expected, "{kind}");
        // It is safe to repeat, also without a body.
        let again = app.caller().post_empty(&path(&account)).await.data(200);
        assert_eq!(again["imported"], 0, "{kind}");
        assert_eq!(again["alreadyThere"], imported + 1, "{kind}");
        let audited = app
            .value(&format!(
                "SELECT sum((metadata->>'imported')::int) FROM audit_logs
                 WHERE action = 'suppression.imported' AND metadata->>'providerAccountId' = '{account}'"
            ))
            .await;
        assert_eq!(audited, Some(imported.to_string()), "{kind}");
    }
}

#[tokio::test]
async fn long_lists_are_read_page_by_page() {
    for (kind, size) in [
        (ProviderType::Sendgrid, 1_200),
        (ProviderType::Sendgrid, 1_000),
        (ProviderType::Postmark, 12_000),
        (ProviderType::Mailgun, 2_500),
        (ProviderType::Mailgun, 2_000),
        (ProviderType::Ses, 2_500),
    ] {
        let app = quiet().await;
        let account = app.connect(kind).await;
        let (provider, credential) = simulated(kind);
        let listed = (0..size).map(|nth| {
            let address = format!("r+{nth}&x=y%20@example.org");
            Listed::now(&address, ListKind::Bounce)
        });
        app.simulator()
            .set_suppression_lists(provider, credential, listed.collect());
        let result = app.post(&path(&account), &json!({})).await.data(200);
        assert_eq!(
            result,
            json!({ "imported": size, "alreadyThere": 0, "unusable": 0, "nextCursor": null }),
            "{kind} {size}"
        );
        assert_eq!(total(&app, "?source=BOUNCE").await, size, "{kind} {size}");
    }
}

#[tokio::test]
async fn a_request_reads_a_bounded_number_of_pages_and_the_next_one_continues() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let (provider, credential) = simulated(ProviderType::Sendgrid);
    let listed = (0..50_100).map(|nth| {
        let address = format!("r{nth}@example.org");
        Listed::now(&address, ListKind::Bounce)
    });
    app.simulator()
        .set_suppression_lists(provider, credential, listed.collect());
    let mut cursor = Value::Null;
    let mut imported = 0;
    for _ in 0..20 {
        let result = app
            .post(&path(&account), &json!({ "cursor": cursor }))
            .await
            .data(200);
        assert!(result["imported"].as_u64().unwrap() <= 50_000, "{result}");
        assert_eq!(result["alreadyThere"], 0);
        imported += result["imported"].as_u64().unwrap();
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((imported, cursor), (50_100, Value::Null));
}

#[tokio::test]
async fn a_failure_on_the_way_says_what_was_imported_and_where_to_continue() {
    for (kind, fault_kind) in [
        (ProviderType::Sendgrid, FaultKind::Throttle),
        (ProviderType::Postmark, FaultKind::Error),
        (ProviderType::Mailgun, FaultKind::Gateway),
        (ProviderType::Ses, FaultKind::Throttle),
        (ProviderType::Ses, FaultKind::Reset),
    ] {
        let app = quiet().await;
        let account = app.connect(kind).await;
        let (provider, credential) = simulated(kind);
        let listed = vec![Listed::now("ada@example.org", ListKind::Bounce)];
        app.simulator()
            .set_suppression_lists(provider, credential, listed);
        app.simulator().set_fault(fault(provider, fault_kind));
        let reply = app.post(&path(&account), &json!({})).await;
        let error = reply.expect_error(503, "SERVICE_UNAVAILABLE");
        let details = &error["details"];
        assert_eq!(details["providerType"], kind.as_str());
        assert_eq!(
            (
                &details["imported"],
                &details["alreadyThere"],
                &details["unusable"]
            ),
            (&json!(0), &json!(0), &json!(0))
        );
        app.simulator().clear_faults();
        let body = json!({ "cursor": details["nextCursor"] });
        let result = app.post(&path(&account), &body).await.data(200);
        assert_eq!(result["imported"], 1, "{kind}");
    }
}

#[tokio::test]
async fn what_was_read_before_a_refusal_is_kept() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let (provider, credential) = simulated(ProviderType::Sendgrid);
    let listed = (0..600).map(|nth| {
        let address = format!("r{nth}@example.org");
        Listed::now(&address, ListKind::Bounce)
    });
    app.simulator()
        .set_suppression_lists(provider, credential, listed.collect());
    // Half of the calls fail: sooner or later one does after a page was stored.
    let mut half = fault(provider, FaultKind::Error);
    half.rate = 0.5;
    app.simulator().set_fault(half);
    let (mut cursor, mut imported, mut failures) = (Value::Null, 0, 0);
    for _ in 0..200 {
        let reply = app
            .post(&path(&account), &json!({ "cursor": cursor }))
            .await;
        if reply.status == 200 {
            let result = reply.data(200);
            imported += result["imported"].as_u64().unwrap();
            assert_eq!(result["nextCursor"], Value::Null);
            break;
        }
        let details = reply.expect_error(503, "SERVICE_UNAVAILABLE")["details"].clone();
        imported += details["imported"].as_u64().unwrap();
        assert_eq!(total(&app, "").await, imported, "{details}");
        cursor = details["nextCursor"].clone();
        failures += 1;
    }
    assert_eq!(
        (imported, total(&app, "").await),
        (600, 600),
        "{failures} failures"
    );
}

#[tokio::test]
async fn accounts_that_may_not_read_lists_are_refused() {
    let app = quiet().await;
    for (kind, credentials) in [
        (
            ProviderType::Sendgrid,
            json!({ "apiKey": "SG.restricted-key" }),
        ),
        (
            ProviderType::Mailgun,
            json!({ "apiKey": "restricted-key", "domain": "example.com" }),
        ),
        (
            ProviderType::Postmark,
            json!({ "serverToken": "good-server", "messageStream": "missing-stream" }),
        ),
    ] {
        let account = app.connect_with(kind, &credentials).await;
        let error = app
            .post(&path(&account), &json!({}))
            .await
            .expect_error(422, "VALIDATION_ERROR");
        assert_eq!(
            error["details"]["reason"], "PROVIDER_REFUSED",
            "{kind} {error}"
        );
        assert_eq!(error["details"]["imported"], 0, "{kind}");
    }
}

#[tokio::test]
async fn smtp_accounts_have_no_lists_and_others_need_their_own_cursor() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Smtp).await;
    let error = app
        .post(&path(&account), &json!({}))
        .await
        .expect_error(422, "VALIDATION_ERROR");
    assert_eq!(error["details"]["reason"], "SUPPRESSION_LISTS_NOT_OFFERED");
    for kind in HTTP_PROVIDERS {
        let account = app.connect(kind).await;
        // "9:", "0:x" and "1:x" are pages of none of them.
        let mut cursors = vec![json!("x"), json!(7), json!(""), json!("OTo")];
        if kind == ProviderType::Sendgrid || kind == ProviderType::Postmark {
            cursors.push(json!("MDp4"));
        }
        if kind == ProviderType::Ses {
            cursors.extend([json!("MDp4"), json!("MTp4")]);
        }
        for cursor in cursors {
            app.post(&path(&account), &json!({ "cursor": cursor }))
                .await
                .expect_issues(400, &["cursor"]);
        }
    }
    app.post(&path(&account), &json!({ "page": 2 }))
        .await
        .expect_issues(400, &["page"]);
    for missing in ["0193a1b2-0000-7000-8000-000000000000", "no-id"] {
        app.post(&path(missing), &json!({}))
            .await
            .expect_error(404, "NOT_FOUND");
    }
    let other = app.tenant("Other").await.caller;
    other
        .post(&path(&account), &json!({}))
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn both_permissions_are_required() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    for (held, lacking) in [
        (Permission::ProvidersWrite, "SETTINGS_WRITE"),
        (Permission::SettingsWrite, "PROVIDERS_WRITE"),
    ] {
        let key = app.key(app.organization_id(), &[held]).await;
        let reply = app
            .caller()
            .with_key(&key)
            .post(&path(&account), &json!({}))
            .await;
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(error["details"]["requiredPermission"], lacking);
    }
    let both = [Permission::ProvidersWrite, Permission::SettingsWrite];
    let key = app.key(app.organization_id(), &both).await;
    app.caller()
        .with_key(&key)
        .post(&path(&account), &json!({}))
        .await
        .data(200);
}
