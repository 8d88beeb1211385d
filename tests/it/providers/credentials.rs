//! Credentials: the provider's check of them, how they are stored, and that they are never
//! shown.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind};
use waypost_tests::{TestApp, credentials, message_to, wait_until};

use super::{account_count, connect, is_active, quiet, with};

/// The field by which the simulator judges credentials.
fn judged(kind: ProviderType) -> &'static str {
    match kind {
        ProviderType::Sendgrid | ProviderType::Mailgun => "apiKey",
        ProviderType::Postmark => "serverToken",
        ProviderType::Ses => "accessKeyId",
        ProviderType::Smtp => "username",
    }
}

fn all_calls(kind: FaultKind) -> Fault {
    Fault {
        provider: None,
        kind,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::All,
    }
}

#[tokio::test]
async fn credentials_that_the_provider_refuses_are_a_422_with_its_reason_and_nothing_is_stored() {
    let app = quiet().await;
    let mut cases: Vec<(ProviderType, Value)> = ProviderType::ALL
        .map(|kind| (kind, with(kind, judged(kind), json!("an-invalid-one"))))
        .into();
    cases.push((ProviderType::Sendgrid, json!({ "apiKey": "SG.noscope" })));
    cases.push((
        ProviderType::Ses,
        with(
            ProviderType::Ses,
            "secretAccessKey",
            json!("not-the-secret"),
        ),
    ));
    cases.push((
        ProviderType::Mailgun,
        with(
            ProviderType::Mailgun,
            "domain",
            json!("invalid.example.com"),
        ),
    ));
    for (kind, credentials) in cases {
        let reply = connect(&app, kind, &credentials).await;
        let error = reply.expect_error(422, "PROVIDER_INVALID_CREDENTIALS");
        assert!(
            error["message"].as_str().unwrap().contains(kind.as_str()),
            "{error}"
        );
    }
    assert_eq!(account_count(&app).await, 0);
    assert_eq!(
        app.value("SELECT count(*) FROM provider_accounts")
            .await
            .as_deref(),
        Some("0")
    );
    assert_eq!(
        app.value("SELECT count(*) FROM provider_domains")
            .await
            .as_deref(),
        Some("0")
    );
}

#[tokio::test]
async fn a_network_devices_reply_leaves_the_check_undecided() {
    let app = quiet().await;
    for kind in ProviderType::ALL {
        let reply = connect(&app, kind, &with(kind, judged(kind), json!("htmlwall-key"))).await;
        reply.expect_error(503, "SERVICE_UNAVAILABLE");
    }
    assert_eq!(account_count(&app).await, 0);
}

#[tokio::test]
async fn a_provider_that_fails_or_throttles_leaves_the_check_undecided() {
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "500ms")
        .start()
        .await;
    for fault in [
        FaultKind::Error,
        FaultKind::Throttle,
        FaultKind::Reset,
        FaultKind::Timeout,
    ] {
        app.simulator().set_fault(all_calls(fault));
        for kind in ProviderType::ALL {
            let reply = connect(&app, kind, &credentials(kind)).await;
            reply.expect_error(503, "SERVICE_UNAVAILABLE");
            assert!(reply.header("retry-after").is_some(), "{reply:?}");
        }
        app.simulator().clear_faults();
    }
    assert_eq!(account_count(&app).await, 0);
}

#[tokio::test]
async fn an_account_is_connected_only_with_its_domains() {
    let app = quiet().await;
    app.simulator().set_fault(Fault {
        rate: 0.3,
        ..all_calls(FaultKind::Throttle)
    });
    let mut connected = 0;
    for _ in 0..24 {
        let reply = connect(
            &app,
            ProviderType::Sendgrid,
            &credentials(ProviderType::Sendgrid),
        )
        .await;
        if reply.status == 201 {
            connected += 1;
        } else {
            reply.expect_error(503, "SERVICE_UNAVAILABLE");
        }
    }
    let told = "SELECT count(*) FROM provider_accounts WHERE domains_visible";
    assert_eq!(app.value(told).await, Some(connected.to_string()));
}

#[tokio::test]
async fn an_account_without_credits_is_not_called_invalid() {
    let app = quiet().await;
    for kind in ProviderType::ALL {
        let reply = connect(&app, kind, &with(kind, judged(kind), json!("nocredit-key"))).await;
        assert!([201, 503].contains(&reply.status), "{reply:?}");
    }
}

#[tokio::test]
async fn while_the_provider_is_unreachable_no_account_is_connected_or_changed() {
    let mut app = quiet().await;
    let on = app.connect(ProviderType::Mailgun).await;
    let off = app.connect(ProviderType::Sendgrid).await;
    app.patch(
        &format!("/v1/providers/{off}"),
        &json!({ "isActive": false }),
    )
    .await
    .data(200);
    app.stop_simulator().await;
    for kind in ProviderType::ALL {
        connect(&app, kind, &credentials(kind))
            .await
            .expect_error(503, "SERVICE_UNAVAILABLE");
    }
    for id in [&on, &off] {
        let reply = app
            .caller()
            .post_empty(&format!("/v1/providers/{id}/validate"))
            .await;
        reply.expect_error(503, "SERVICE_UNAVAILABLE");
    }
    assert!(is_active(&app, &on).await);
    assert!(!is_active(&app, &off).await);
    assert_eq!(account_count(&app).await, 2);
}

#[tokio::test]
async fn a_check_with_refused_credentials_deactivates_the_account() {
    let app = quiet().await;
    let id = app.connect(ProviderType::Ses).await;
    app.simulator()
        .register_ses_credential("AKIAGOOD", "rotated-meanwhile");
    let path = format!("/v1/providers/{id}/validate");
    let verdict = app.caller().post_empty(&path).await.expect(200);
    assert_eq!(verdict, json!({ "valid": false, "providerType": "SES" }));
    assert!(!is_active(&app, &id).await);
    app.post("/v1/send", &message_to("a@example.org"))
        .await
        .expect_error(422, "VALIDATION_ERROR");
    let good = credentials(ProviderType::Ses);
    app.simulator()
        .register_ses_credential("AKIAGOOD", good["secretAccessKey"].as_str().unwrap());
    assert_eq!(
        app.caller().post_empty(&path).await.expect(200)["valid"],
        true
    );
    assert!(is_active(&app, &id).await);
}

#[tokio::test]
async fn missing_and_malformed_credentials_are_reported_with_their_paths() {
    use ProviderType::{Mailgun, Postmark, Ses};
    let app = quiet().await;
    let evil_region = with(Ses, "region", json!("evil.example/"));
    let strange_region = json!({ "apiKey": "k", "domain": "x.org", "region": "mars" });
    let no_domain = json!({ "apiKey": "k", "domain": "no domain" });
    for (kind, given, fields) in [
        (Postmark, json!({}), vec!["serverToken"]),
        (Mailgun, json!({}), vec!["apiKey", "domain"]),
        (Mailgun, json!({ "apiKey": "k" }), vec!["domain"]),
        (Mailgun, no_domain, vec!["domain"]),
        (Mailgun, strange_region, vec!["region"]),
        (
            Ses,
            json!({}),
            vec!["accessKeyId", "region", "secretAccessKey"],
        ),
        (Ses, evil_region, vec!["region"]),
    ] {
        let paths: Vec<String> = fields
            .iter()
            .map(|field| format!("credentials.{field}"))
            .collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        connect(&app, kind, &given).await.expect_issues(400, &paths);
    }
    assert_eq!(account_count(&app).await, 0);
}

#[tokio::test]
async fn a_secret_that_no_header_could_carry_is_refused() {
    let app = quiet().await;
    let kind = ProviderType::Sendgrid;
    let long = "x".repeat(5_000);
    for key in [
        json!(null),
        json!(""),
        json!(7),
        json!("a b"),
        json!("a\r\nX-Evil: 1"),
        json!("a\0b"),
        json!(long),
    ] {
        let reply = connect(&app, kind, &json!({ "apiKey": key })).await;
        reply.expect_issues(400, &["credentials.apiKey"]);
    }
    let reply = connect(&app, kind, &json!({})).await;
    reply.expect_issues(400, &["credentials.apiKey"]);
    let reply = connect(&app, kind, &json!({ "apiKey": "k", "region": "moon" })).await;
    reply.expect_issues(400, &["credentials.region"]);
    for given in [json!("SG.key"), json!([]), json!(1), Value::Null] {
        let reply = connect(&app, kind, &given).await;
        reply.expect_issues(400, &["credentials"]);
    }
    assert_eq!(account_count(&app).await, 0);
}

#[tokio::test]
async fn replaced_credentials_are_the_ones_that_send() {
    let app = TestApp::start().await;
    let id = app.connect(ProviderType::Ses).await;
    app.simulator()
        .register_ses_credential("AKIANEW", "the-new-secret");
    let new = json!({ "accessKeyId": "AKIANEW", "secretAccessKey": "the-new-secret", "region": "us-east-1" });
    app.patch(
        &format!("/v1/providers/{id}"),
        &json!({ "credentials": new }),
    )
    .await
    .data(200);
    app.simulator()
        .register_ses_credential("AKIAGOOD", "revoked-since");
    let message = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&message).await, "SENT");
}

#[tokio::test]
async fn credentials_are_never_shown_and_never_stored_as_plain_text() {
    let app = quiet().await;
    let secrets = [
        (ProviderType::Sendgrid, json!({ "apiKey": "SG.ca9ary-one" })),
        (
            ProviderType::Postmark,
            json!({ "serverToken": "ca9ary-two", "accountToken": "ca9ary-three" }),
        ),
        (
            ProviderType::Mailgun,
            json!({ "apiKey": "ca9ary-four", "domain": "example.com" }),
        ),
        (
            ProviderType::Ses,
            json!({ "accessKeyId": "AKIAca9ary", "secretAccessKey": "ca9ary-five", "region": "eu-west-1" }),
        ),
        (
            ProviderType::Smtp,
            json!({ "host": "smtp.example.com", "username": "ca9ary-six", "password": "ca9ary-seven" }),
        ),
    ];
    app.simulator()
        .register_ses_credential("AKIAca9ary", "ca9ary-five");
    for (kind, credentials) in secrets {
        let reply = connect(&app, kind, &credentials).await;
        assert!(!reply.text.contains("ca9ary"), "{reply:?}");
        let id = reply.data(201)["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/providers/{id}");
        for reply in [
            app.get(&path).await,
            app.get(&format!("{path}/domains")).await,
            app.patch(&path, &json!({ "credentials": credentials }))
                .await,
            app.caller().post_empty(&format!("{path}/validate")).await,
        ] {
            assert_eq!(reply.status, 200, "{reply:?}");
            assert!(
                !reply.text.contains("ca9ary") && !reply.text.contains("credentials"),
                "{reply:?}"
            );
        }
        let refused = json!({ "apiKey": "ca9ary invalid", "serverToken": "ca9ary invalid", "accessKeyId": "ca9ary invalid", "port": "ca9ary" });
        let reply = connect(&app, kind, &refused).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(!reply.text.contains("ca9ary"), "{reply:?}");
        let mut invalid = credentials.clone();
        invalid[judged(kind)] = json!("ca9ary-invalid");
        let reply = connect(&app, kind, &invalid).await;
        assert_eq!(reply.status, 422, "{reply:?}");
        assert!(!reply.text.contains("ca9ary"), "{reply:?}");
    }
    let rows = "SELECT string_agg(a::text || encode(a.credentials_sealed, 'escape'), ' ') FROM provider_accounts a";
    let stored = app.value(rows).await.unwrap();
    let as_hex: String = "ca9ary".bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(
        !stored.contains("ca9ary") && !stored.contains(&as_hex),
        "{stored}"
    );
}

#[tokio::test]
async fn credentials_addresses_keys_and_contents_are_not_logged() {
    let app = TestApp::builder()
        .processes()
        .setting("WAYPOST_LOG", "trace")
        .setting("WAYPOST_LOG_FORMAT", "json")
        .setting("WAYPOST_RETRY_FIRST", "1s")
        .start()
        .await;
    let api = app.spawn_api().await;
    let (worker, scheduler) = (app.spawn_worker(), app.spawn_scheduler());
    app.connect_with(
        ProviderType::Sendgrid,
        &json!({ "apiKey": "SG.ca9ary-key" }),
    )
    .await;
    connect(
        &app,
        ProviderType::Mailgun,
        &json!({ "apiKey": "ca9ary-invalid", "domain": "example.com" }),
    )
    .await
    .expect_error(422, "PROVIDER_INVALID_CREDENTIALS");
    let mut ids = Vec::new();
    for local in ["ca9ary-fine", "refuse+ca9ary", "flaky+ca9ary"] {
        let message = json!({
            "from": "Ca9ary <ca9ary-sender@example.com>",
            "to": format!("{local}@example.org"),
            "subject": "ca9ary subject",
            "html": "ca9ary html",
            "text": "ca9ary text",
            "replyTo": "ca9ary-reply@example.org",
            "metadata": { "ca9ary": "ca9ary" },
        });
        ids.push(app.send(&message).await);
    }
    // Processes use the real clock: the retries run by themselves.
    wait_until("every message is settled", async || {
        for id in &ids {
            if ["QUEUED", "SENDING"].contains(&app.status(id).await.as_str()) {
                return false;
            }
        }
        true
    })
    .await;
    app.drain().await;
    let key = app.key(app.organization_id(), &[]).await;
    app.caller()
        .with_key(&key)
        .get("/v1/messages")
        .await
        .expect_error(403, "FORBIDDEN");
    for process in [&api, &worker, &scheduler] {
        let log = process.log();
        assert!(!log.is_empty());
        let bad: Vec<&str> = log
            .lines()
            .filter(|line| line.to_lowercase().contains("ca9ary") || line.contains(&key))
            .collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}
