//! The route: which requests are accepted, the answers, and that an event answered with
//! 200 is recorded.

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

use super::{SIGNING_KEY, connect, event, ids_of, mailgun_signature, number, totals, unrecorded};

async fn assert_untouched(app: &TestApp, id: &str) {
    assert_eq!(app.status(id).await, "SENT");
    assert_eq!(number(app, "SELECT count(*) FROM provider_events").await, 0);
    assert_eq!(
        number(app, "SELECT count(*) FROM unrecorded_event_counts").await,
        0
    );
    let verified = "SELECT count(*) FROM provider_accounts WHERE events_verified_at IS NOT NULL";
    assert_eq!(number(app, verified).await, 0);
}

#[tokio::test]
async fn an_unsigned_request_is_refused_and_stores_nothing() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let forger = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    let told = json!([event(&app, &ids_of(&app, &id, 0).await, "bounce", "b", 0)]);
    let caller = app.caller().anonymous();
    let json_type = Some("application/json");
    let unsigned = caller
        .post_raw(&account.path, json_type, told.to_string())
        .await;
    unsigned.expect_error(401, "AUTHENTICATION_ERROR");
    assert!(
        unsigned
            .header("www-authenticate")
            .unwrap()
            .starts_with("Basic")
    );
    // With an API key, with another account's signature, and without any.
    let with_key = app.caller().post(&account.path, &told).await;
    with_key.expect_error(401, "AUTHENTICATION_ERROR");
    let forged = super::Account {
        path: account.path.clone(),
        ..forger
    };
    forged
        .post(&app, &told)
        .await
        .expect_error(401, "AUTHENTICATION_ERROR");
    caller
        .post_empty(&account.path)
        .await
        .expect_error(401, "AUTHENTICATION_ERROR");
    assert_untouched(&app, &id).await;
}

#[tokio::test]
async fn an_account_without_secrets_refuses_all_requests() {
    let app = TestApp::start().await;
    let id = app.connect(ProviderType::Mailgun).await;
    let account = app.get(&format!("/v1/providers/{id}")).await.data(200);
    let url = account["webhookUrl"].as_str().unwrap();
    let path = &url[url.find("/v1/").unwrap()..];
    let seconds = app.clock.now().timestamp().to_string();
    let content = json!({ "signature": mailgun_signature(&seconds, "token"), "event-data": {} });
    let reply = app.caller().anonymous().post(path, &content).await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn unknown_tokens_are_404_and_too_many_of_them_429() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "5")
        .start()
        .await;
    let caller = app.caller().anonymous();
    let tokens = [
        "x".repeat(32),
        "x".to_owned(),
        "é".repeat(16),
        "x".repeat(5_000),
    ];
    for token in tokens {
        let path = format!("/v1/provider-events/{token}");
        let reply = caller.post(&path, &json!([])).await;
        reply.expect_error(404, "NOT_FOUND");
    }
    let path = format!("/v1/provider-events/{}", "y".repeat(32));
    let mut last = caller.post(&path, &json!([])).await;
    for _ in 0..5 {
        last = caller.post(&path, &json!([])).await;
    }
    last.expect_error(429, "RATE_LIMIT_EXCEEDED");
    // Requests with known tokens are still accepted.
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    for _ in 0..10 {
        account.tell(&app, &json!([])).await;
    }
    let get = caller.get(&path).await;
    assert!([405, 429].contains(&get.status), "{get:?}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let caller = app.caller().anonymous();
    let large = vec![b' '; (5 << 20) + 1];
    let reply = caller
        .post_raw(&account.path, Some("text/plain"), large)
        .await;
    reply.expect_error(413, "PAYLOAD_TOO_LARGE");
    let largest = vec![b' '; 5 << 20];
    let reply = caller.post_raw(&account.path, None, largest).await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn a_verified_request_that_is_unreadable_is_acknowledged_and_counted() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    account.tell(&app, &json!({ "not": "a list" })).await;
    assert_eq!(unrecorded(&app, &account).await, (0, 1));
    let good = event(&app, &ids_of(&app, &id, 0).await, "delivered", "d", 0);
    account
        .tell(
            &app,
            &json!([7, {}, good, { "event": "account_status_change" }]),
        )
        .await;
    assert_eq!(unrecorded(&app, &account).await, (0, 3));
    assert_eq!(app.status(&id).await, "DELIVERED");
}

#[tokio::test]
async fn ids_of_another_organization_or_that_do_not_belong_together_match_no_recipient() {
    let app = TestApp::start().await;
    let other = app.tenant("Other").await;
    let own = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let foreign = connect(&app, &other.caller, ProviderType::Sendgrid).await;
    let mut message = message_to("");
    message["to"] = json!(["a@example.org", "b@example.org"]);
    let id = app.send(&message).await;
    let second = app.send_to("ada@example.org").await;
    app.drain().await;
    let ids = ids_of(&app, &id, 0).await;
    let bounce =
        |ids: &serde_json::Map<String, Value>, key: &str| event(&app, ids, "bounce", key, 0);
    foreign.tell(&app, &json!([bounce(&ids, "1")])).await;
    assert_eq!(unrecorded(&app, &foreign).await, (1, 0));
    let mut mixed = Vec::new();
    let second_ids = ids_of(&app, &second, 0).await;
    for (field, value) in [
        ("waypost_recipient", json!("1")),
        ("waypost_recipient", json!("7")),
        ("waypost_message", second_ids["waypost_message"].clone()),
        ("waypost_attempt", second_ids["waypost_attempt"].clone()),
        ("waypost_message", json!(uuid::Uuid::nil())),
        ("waypost_attempt", json!(uuid::Uuid::max())),
    ] {
        let mut ids = ids.clone();
        ids.insert(field.to_owned(), value);
        mixed.push(bounce(&ids, &format!("m{}", mixed.len())));
    }
    own.tell(&app, &json!(mixed)).await;
    assert_eq!(unrecorded(&app, &own).await, (6, 0));
    for id in [&id, &second] {
        assert_eq!(app.status(id).await, "SENT");
    }
    assert_eq!(number(&app, "SELECT count(*) FROM suppressions").await, 0);
    own.tell(&app, &json!([bounce(&ids, "1")])).await;
    assert_eq!(totals(&app).await, [3, 0, 0, 0, 1, 0, 0]);
}

#[tokio::test]
async fn the_same_request_sent_concurrently_counts_once() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let other = app.start_another_api().await;
    let mut message = message_to("");
    let addresses: Vec<String> = (0..100).map(|n| format!("r{n}@example.org")).collect();
    message["to"] = json!(addresses);
    let mut events = Vec::new();
    let mut sent = Vec::new();
    for _ in 0..10 {
        sent.push(app.send(&message).await);
    }
    app.drain().await;
    for (nth, id) in sent.iter().enumerate() {
        let attempts = format!(
            "SELECT json_object_agg(position, id) FROM send_attempts WHERE message_id = '{id}'"
        );
        let attempts: Value = serde_json::from_str(&app.value(&attempts).await.unwrap()).unwrap();
        for position in 0..100 {
            let attempt = attempts[position.to_string()].as_str().unwrap();
            let ids = super::tags(id, position, attempt);
            let word = if position % 10 == 0 {
                "bounce"
            } else {
                "delivered"
            };
            events.push(event(&app, &ids, word, &format!("{nth}-{position}"), 0));
        }
    }
    assert_eq!(events.len(), 1_000);
    // The same events in another order, split differently, sent to two processes.
    let backwards: Vec<Value> = events.iter().rev().cloned().collect();
    let (all, backwards) = (json!(events), json!(backwards));
    let half = json!(events[300..700]);
    let posts = [
        account.post(&app, &all),
        account.post(&app, &backwards),
        account.post(&app, &half),
    ];
    let elsewhere = [
        account.post_to(&other, &app, &all),
        account.post_to(&other, &app, &backwards),
    ];
    let (here, there) = tokio::join!(join_all(posts), join_all(elsewhere));
    for reply in here.into_iter().chain(there) {
        reply.expect(200);
    }
    assert_eq!(totals(&app).await, [1_000, 900, 0, 0, 100, 0, 0]);
    assert_eq!(number(&app, "SELECT count(*) FROM suppressions").await, 10);
    let bounced = "SELECT count(*) FROM recipients WHERE status = 'BOUNCED'";
    assert_eq!(number(&app, bounced).await, 100);
    for id in &sent {
        assert_eq!(app.status(id).await, "DELIVERED");
    }
}

#[tokio::test]
async fn a_signature_that_does_not_cover_the_body_is_accepted_with_one_body_only() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Mailgun).await;
    assert!(!SIGNING_KEY.is_empty());
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    app.advance(TimeDelta::minutes(1));
    let ids = ids_of(&app, &id, 0).await;
    let timestamp = app.clock.now().timestamp();
    let signature = mailgun_signature(&timestamp.to_string(), "token-of-one-post");
    let content = |word: &str| {
        json!({ "signature": signature, "event-data": {
            "event": word, "id": word, "timestamp": timestamp,
            "recipient": "ada@example.org", "user-variables": ids } })
    };
    let caller = app.caller().anonymous();
    for _ in 0..2 {
        caller
            .post(&account.path, &content("delivered"))
            .await
            .expect(200);
    }
    let reused = caller.post(&account.path, &content("complained")).await;
    reused.expect_error(401, "AUTHENTICATION_ERROR");
    caller
        .post(&account.path, &content("delivered"))
        .await
        .expect(200);
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT", "DELIVERED"]);
    assert_eq!(number(&app, "SELECT count(*) FROM suppressions").await, 0);
    app.execute("UPDATE provider_signatures SET expires_at = 'epoch'")
        .await;
    account
        .tell(
            &app,
            &json!({ "event": "opened", "id": "o", "timestamp": timestamp, "user-variables": ids }),
        )
        .await;
    let kept = "SELECT count(*) FROM provider_signatures";
    assert_eq!(
        number(&app, kept).await,
        1,
        "expired signatures are deleted"
    );
}

#[tokio::test]
async fn without_postgres_no_request_is_acknowledged() {
    let mut app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    app.advance(TimeDelta::minutes(1));
    let told = json!([event(
        &app,
        &ids_of(&app, &id, 0).await,
        "delivered",
        "d",
        0
    )]);
    app.variables.insert(
        "DATABASE_URL".to_owned(),
        "postgres://nobody:nothing@127.0.0.1:1/nowhere".to_owned(),
    );
    let cut_off = app.start_another_api().await;
    let reply = account.post_to(&cut_off, &app, &told).await;
    reply.expect_error(503, "SERVICE_UNAVAILABLE");
    assert!(reply.header("retry-after").is_some(), "{reply:?}");
    assert_untouched(&app, &id).await;
    // A request that fails halfway leaves no rows, and is accepted the next time.
    app.execute("ALTER TABLE suppressions RENAME TO suppressions_away")
        .await;
    let bounced = json!([
        told[0],
        event(&app, &ids_of(&app, &id, 0).await, "bounce", "b", 0)
    ]);
    let reply = account.post(&app, &bounced).await;
    reply.expect_error(500, "INTERNAL_ERROR");
    app.execute("ALTER TABLE suppressions_away RENAME TO suppressions")
        .await;
    assert_untouched(&app, &id).await;
    account.tell(&app, &bounced).await;
    assert_eq!(
        app.events(&id).await,
        ["QUEUED", "SENT", "DELIVERED", "BOUNCED"]
    );
    assert_eq!(app.status(&id).await, "BOUNCED");
}
