//! Tests count nowhere: not in metrics, not for accounts, and they suppress nobody.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind};
use waypost_tests::{Receiver, TestApp, credentials, message_to};

use super::{STORIES, finish, number, subscribe, test_to};

/// Sends tests with every outcome, each to so many recipients.
async fn send_tests(app: &TestApp, recipients: usize) -> Vec<String> {
    let mut sent = Vec::new();
    for (outcome, ..) in STORIES {
        let mut message = test_to("", outcome);
        let to = (0..recipients).map(|nth| format!("{outcome}{nth}@example.org"));
        message["to"] = json!(to.collect::<Vec<_>>());
        sent.push(app.send(&message).await);
    }
    sent
}

async fn summary(app: &TestApp) -> Value {
    let from = (app.clock.now() - TimeDelta::days(2)).to_rfc3339();
    let to = (app.clock.now() + TimeDelta::days(2)).to_rfc3339();
    let query = [("from", from.as_str()), ("to", to.as_str())];
    app.caller()
        .query("/v1/metrics/summary", &query)
        .await
        .data(200)
}

#[tokio::test]
async fn metrics_know_no_tests() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let live = app.send_to("live@example.org").await;
    app.drain().await;
    let before = summary(&app).await;
    assert!(before.to_string().contains('1'), "{before}");
    send_tests(&app, 12).await;
    finish(&app).await;
    // Also what an operator's SQL adds, and what corrects it.
    for id in [
        &live,
        &app.send(&test_to("a@example.org", "delivered")).await,
    ] {
        app.execute(&format!(
            "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
             SELECT id, gen_random_uuid(), organization_id, 0, type::event_type, created_at
             FROM messages, UNNEST(ARRAY['DELIVERED', 'OPENED', 'BOUNCED', 'UNSUBSCRIBED']) AS type
             WHERE id = '{id}';
             UPDATE events SET occurred_at = occurred_at - interval '1 day'
             WHERE message_id = '{id}' AND event_type = 'DELIVERED'"
        ))
        .await;
    }
    finish(&app).await;
    let query = "SELECT concat_ws(' ', sum(sent), sum(delivered), sum(opened), sum(clicked), sum(bounced),
                                  sum(complained), sum(unsubscribed))
                 FROM (SELECT sent, delivered, opened, clicked, bounced, complained, unsubscribed FROM metric_deltas
                       UNION ALL
                       SELECT sent, delivered, opened, clicked, bounced, complained, unsubscribed
                       FROM metric_rollups WHERE filter = 'TOTAL' AND grouped_by = 'TOTAL') m";
    let counted = app.value(query).await.unwrap();
    assert_eq!(counted, "1 1 1 0 1 0 1", "those of the live message");
}

#[tokio::test]
async fn tests_suppress_nobody_and_say_nothing_about_accounts() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    let account = app.connect(ProviderType::Mailgun).await;
    subscribe(&app, &receiver).await;
    let path = format!("/v1/providers/{account}");
    let before = app.get(&path).await.data(200);
    send_tests(&app, 20).await;
    finish(&app).await;
    assert_eq!(app.get(&path).await.data(200), before);
    assert_eq!(number(&app, "SELECT count(*) FROM suppressions").await, 0);
    assert_eq!(
        number(&app, "SELECT count(*) FROM provider_account_failures").await,
        0
    );
    assert_eq!(
        number(&app, "SELECT count(*) FROM unrecorded_event_counts").await,
        0
    );
    for (outcome, ..) in STORIES {
        let address = format!("{outcome}0@example.org");
        let id = app.send_to(&address).await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "SENT", "{outcome}");
        app.captured_once(&address);
    }
    let types = receiver.received().into_iter().map(|one| one.gist().0);
    let other =
        types.filter(|kind| kind.starts_with("SUPPRESSION") || kind.starts_with("PROVIDER"));
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn tests_use_nothing_of_an_accounts_limits() {
    let app = TestApp::start().await;
    let kind = ProviderType::Postmark;
    let body = json!({
        "providerType": kind, "displayName": "Paced", "credentials": credentials(kind),
        "registerEventWebhook": false, "maxRatePerSecond": 1, "maxConcurrency": 1,
    });
    app.post("/v1/providers", &body).await.data(201);
    let mut tests = Vec::new();
    for nth in 0..50 {
        tests.push(
            app.send(&test_to(&format!("r{nth}@example.org"), "delivered"))
                .await,
        );
    }
    // The clock stands still: all of them within the second of the one live call.
    let live = app.send_to("live@example.org").await;
    let mut many = test_to("", "failover");
    many["to"] = json!(
        (0..50)
            .map(|nth| format!("m{nth}@example.org"))
            .collect::<Vec<_>>()
    );
    tests.push(app.send(&many).await);
    app.drain().await;
    assert_eq!(app.status(&live).await, "SENT");
    for id in &tests {
        assert_ne!(app.attempts(id).await, [], "{id} was not held back");
    }
    finish(&app).await;
    for id in &tests {
        assert_eq!(app.status(id).await, "DELIVERED");
    }
}

#[tokio::test]
async fn an_open_circuit_and_a_paused_account_hold_back_no_test() {
    for kind in [FaultKind::Error, FaultKind::Limit] {
        let app = TestApp::start().await;
        app.connect(ProviderType::Mailgun).await;
        app.simulator().set_fault(Fault {
            provider: None,
            kind,
            rate: 1.0,
            latency_ms: 0,
            calls: FaultCalls::Send,
        });
        for nth in 0..10 {
            app.send_to(&format!("r{nth}@example.org")).await;
        }
        app.drain().await;
        let id = app.send(&test_to("a@example.org", "delivered")).await;
        app.drain().await;
        assert_eq!(app.outcomes(&id).await, ["ACCEPTED"], "{kind:?}");
        app.simulator().clear_faults();
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        app.leave_work();
    }
}

#[tokio::test]
async fn an_erasure_finds_the_tests_to_a_person() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let live = app.send_to("ada@example.org").await;
    let test = app.send(&test_to("ada@example.org", "delivered")).await;
    finish(&app).await;
    app.post("/v1/erasures", &json!({ "email": "ada@example.org" }))
        .await
        .expect(200);
    for id in [live, test] {
        assert_eq!(app.message(&id).await["subject"], "", "{id}");
    }
}

#[tokio::test]
async fn deleted_tests_leave_their_list_and_no_other() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let tester = app.test_key(&Permission::ALL).await;
    for nth in 0..6 {
        app.send_to(&format!("live{nth}@example.org")).await;
        tester
            .post("/v1/send", &message_to(&format!("t{nth}@example.org")))
            .await
            .expect(202);
    }
    app.execute("DELETE FROM outbox; UPDATE messages SET status = 'SENT'")
        .await;
    let total = async |query: &str| {
        let body = app.get(&format!("/v1/messages?{query}")).await.expect(200);
        body["pagination"]["total"].as_i64().unwrap()
    };
    for (gone, is_folded) in [(2, false), (4, true)] {
        if is_folded {
            app.fold_messages().await;
        }
        app.execute(
            "SELECT waypost_delete_messages(ARRAY(SELECT id FROM messages WHERE is_test ORDER BY id LIMIT 2))",
        )
        .await;
        for filter in [
            "",
            "&status=SENT",
            "&search=hello",
            "&from=example.com",
            "&status=SENT&search=hello",
        ] {
            assert_eq!(
                total(&format!("test=true{filter}")).await,
                6 - gone,
                "{filter}"
            );
            assert_eq!(total(&format!("test=false{filter}")).await, 6, "{filter}");
        }
    }
    app.fold_messages().await;
    assert_eq!(total("test=true").await, 2);
    assert_eq!(
        number(&app, "SELECT count(*) FROM message_subjects WHERE is_test").await,
        2
    );
    assert_eq!(
        number(&app, "SELECT count(*) FROM message_subjects").await,
        8
    );
}
