//! Which chunks become dead letters, and which do not.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Fault;
use waypost_tests::{TestApp, credentials, message_to, wait_until, wait_within};

use super::{die_with, is_dead_letter, losses, number, of_chunk};

#[tokio::test]
async fn a_chunk_that_kills_its_workers_becomes_a_dead_letter_and_the_others_are_sent() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let poison = app.send_to("poison@example.org").await;
    let mut all = vec![poison.clone()];
    for nth in 0..3 {
        all.push(app.send_to(&format!("innocent{nth}@example.org")).await);
    }
    let ids: Vec<&str> = all.iter().map(String::as_str).collect();
    for death in 1..=5 {
        assert!(!is_dead_letter(&app, &poison).await, "before death {death}");
        die_with(&app, &ids, Some(&poison)).await;
        wait_until("all were taken back", async || {
            number(
                &app,
                "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL",
            )
            .await
                == 0
        })
        .await;
    }
    assert!(is_dead_letter(&app, &poison).await);
    let reason = of_chunk(&app, "dead_reason", &poison).await;
    assert_eq!(reason.as_deref(), Some("its worker was lost each time"));
    for id in &ids[1..] {
        assert_eq!(losses(&app, id).await.as_deref(), Some("2"), "{id}");
    }
    app.start_worker();
    app.drain().await;
    for nth in 0..3 {
        app.captured_once(&format!("innocent{nth}@example.org"));
    }
    assert!(app.captured("poison@example.org").is_empty());
    assert_eq!(app.status(&poison).await, "QUEUED");
    // Neither a pushed job nor the relay brings it to a worker.
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert!(is_dead_letter(&app, &poison).await);
    assert!(app.captured("poison@example.org").is_empty());
}

#[tokio::test]
async fn workers_killed_from_outside_cause_no_dead_letters() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut all = Vec::new();
    for nth in 0..20 {
        all.push(app.send_to(&format!("r{nth}@example.org")).await);
    }
    let ids: Vec<&str> = all.iter().map(String::as_str).collect();
    for death in 0..20 {
        die_with(&app, &ids, Some(ids[death])).await;
        wait_until("all were taken back", async || {
            number(
                &app,
                "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL",
            )
            .await
                == 0
        })
        .await;
    }
    assert_eq!(number(&app, "SELECT max(losses) FROM outbox").await, 3);
    assert_eq!(number(&app, "SELECT count(dead_at) FROM outbox").await, 0);
    app.start_worker();
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 20);
}

#[tokio::test]
async fn quarantined_chunks_run_one_at_a_time_beside_all_others() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    for nth in 0..12 {
        app.send_to(&format!("quarantined{nth}@example.org")).await;
    }
    app.execute("UPDATE outbox SET losses = 2").await;
    for nth in 0..12 {
        app.send_to(&format!("fresh{nth}@example.org")).await;
    }
    app.simulator().set_fault(Fault::slow_sends(150));
    app.start_worker();
    let most = AtomicI64::new(0);
    let beside = AtomicBool::new(false);
    let open = "SELECT count(*) FROM send_attempts a JOIN outbox o USING (message_id) WHERE a.outcome IS NULL";
    let all_sent = wait_within(Duration::from_secs(40), async || {
        // The clock stands still, and isolated chunks wait by the clock.
        app.advance(TimeDelta::milliseconds(100));
        let quarantined = number(&app, &format!("{open} AND o.losses >= 2")).await;
        let others = number(&app, &format!("{open} AND o.losses < 2")).await;
        most.fetch_max(quarantined, Ordering::SeqCst);
        if quarantined == 1 && others > 0 {
            beside.store(true, Ordering::SeqCst);
        }
        app.outbox().await.is_empty()
    })
    .await;
    assert!(all_sent, "{:?}", app.outbox().await);
    assert_eq!(most.into_inner(), 1);
    assert!(
        beside.into_inner(),
        "others are sent beside a quarantined one"
    );
    assert_eq!(app.simulator().captured_count(), 24);
    assert_eq!(number(&app, "SELECT count(*) FROM send_attempts").await, 24);
}

#[tokio::test]
async fn of_quarantined_chunks_in_a_killed_worker_only_the_running_one_gets_a_loss() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    app.connect(ProviderType::Sendgrid).await;
    for nth in 0..4 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    app.execute("UPDATE outbox SET losses = 4").await;
    app.simulator().set_fault(Fault::slow_sends(1_500));
    let mut doomed = app.spawn_worker();
    wait_until("one is being sent and others wait", async || {
        number(
            &app,
            "SELECT count(*) FROM send_attempts WHERE outcome IS NULL",
        )
        .await
            == 1
            && number(
                &app,
                "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL",
            )
            .await
                > 1
    })
    .await;
    doomed.kill().await;
    app.simulator().clear_faults();
    let _worker = app.spawn_worker();
    wait_until("only the dead letter is left", async || {
        number(&app, "SELECT count(*) FROM outbox").await == 1
            && number(&app, "SELECT count(dead_at) FROM outbox").await == 1
    })
    .await;
    let sent = "SELECT count(*) FROM recipients WHERE status = 'SENT'";
    assert_eq!(number(&app, sent).await, 3);
    let unknown = "SELECT count(*) FROM recipients WHERE status = 'SENDING' AND unknowns = 1";
    assert_eq!(number(&app, unknown).await, 1, "its reply was lost");
    app.leave_work();
}

#[tokio::test]
async fn a_quarantined_chunk_that_makes_progress_is_released() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let both = json!({
        "to": ["good@example.org", "flaky@example.org"], "from": "sender@example.com",
        "subject": "Two", "text": "Text",
    });
    let id = app.send(&both).await;
    let stuck = app.send_to("throttle@example.org").await;
    app.execute("UPDATE outbox SET losses = 4").await;
    app.start_worker();
    app.drain().await;
    wait_until("the stuck one was tried", async || {
        app.recipient(&stuck).await["lastError"].is_string()
    })
    .await;
    app.drain().await;
    assert_eq!(losses(&app, &stuck).await.as_deref(), Some("4"));
    assert_eq!(losses(&app, &id).await.as_deref(), Some("0"));
}

/// A clock beyond the year 9999 makes the signature of SES requests panic: a real panic
/// during a call.
#[tokio::test]
async fn a_panic_costs_only_its_own_chunk_a_loss() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Ses).await;
    let other = app.tenant("Others").await;
    let account = json!({
        "providerType": "SENDGRID", "displayName": "An account",
        "credentials": credentials(ProviderType::Sendgrid),
    });
    other.caller.post("/v1/providers", &account).await.data(201);
    let many: Vec<String> = (0..100).map(|nth| format!("r{nth}@example.org")).collect();
    let mut message = message_to("r0@example.org");
    message["to"] = json!(many);
    let poison = app.send(&message).await;
    other
        .caller
        .post("/v1/send", &message_to("innocent@example.org"))
        .await
        .expect(202);
    app.advance(TimeDelta::days(366 * 8_000));
    app.start_worker();
    wait_until("the other organization's mail is sent", async || {
        app.captured("innocent@example.org").len() == 1
    })
    .await;
    let epoch = app.value("SELECT min(id::text) FROM workers").await;
    for loss in 1..=5_i64 {
        wait_until("the next panic", async || {
            app.advance(TimeDelta::seconds(1));
            losses(&app, &poison).await.unwrap().parse::<i64>().unwrap() >= loss
        })
        .await;
    }
    wait_until("it is a dead letter", async || {
        is_dead_letter(&app, &poison).await
    })
    .await;
    let reason = of_chunk(&app, "dead_reason", &poison).await.unwrap();
    assert!(reason.starts_with("its handler panicked"), "{reason}");
    let count =
        async |condition: &str| number(&app, &format!("SELECT count(*) FROM {condition}")).await;
    assert_eq!(count("send_attempts WHERE outcome IS NULL").await, 0);
    assert_eq!(count("outbox WHERE leased_by IS NOT NULL").await, 0);
    let unknown = count("send_attempts WHERE outcome = 'UNKNOWN'").await;
    assert!((5..100).contains(&unknown), "{unknown}");
    assert!(count("recipients WHERE status = 'QUEUED'").await > 0);
    assert_eq!(
        app.value("SELECT string_agg(id::text, ',') FROM workers")
            .await,
        epoch
    );
}

#[tokio::test]
async fn an_outcome_that_cannot_be_recorded_becomes_a_dead_letter_and_the_worker_continues() {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .setting("WAYPOST_WORKER_LEASE", "5s")
        .without_worker()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let poison = app.send_to("poison@example.org").await;
    // Another attempt overflows the column.
    app.execute("UPDATE recipients SET attempts = 2147483647")
        .await;
    app.start_worker();
    wait_until("it is a dead letter", async || {
        is_dead_letter(&app, &poison).await
    })
    .await;
    let reason = of_chunk(&app, "dead_reason", &poison).await.unwrap();
    assert!(
        reason.starts_with("its outcomes cannot be recorded: "),
        "{reason}"
    );
    app.captured_once("poison@example.org");
    app.send_to("innocent@example.org").await;
    app.drain().await;
    app.captured_once("innocent@example.org");
}

#[tokio::test]
async fn a_chunk_of_a_message_without_bodies_becomes_a_dead_letter_at_once() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let orphan = app.send_to("orphan@example.org").await;
    app.execute("DELETE FROM message_bodies").await;
    app.send_to("innocent@example.org").await;
    app.start_worker();
    app.drain().await;
    app.captured_once("innocent@example.org");
    assert!(is_dead_letter(&app, &orphan).await);
    assert_eq!(app.status(&orphan).await, "QUEUED");
    assert_eq!(number(&app, "SELECT count(*) FROM workers").await, 1);
}

/// It is no poison job: the missing key may be configured again.
#[tokio::test]
async fn a_message_that_cannot_be_composed_is_retried_for_24_hours() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let healed = app.send_to("healed@example.org").await;
    let lost = app.send_to("lost@example.org").await;
    app.execute(
        r"CREATE TABLE kept AS SELECT message_id, address_sealed FROM recipients;
          UPDATE recipients SET address_sealed = '\x00'",
    )
    .await;
    app.start_worker();
    app.drain().await;
    let recipient = app.recipient(&healed).await;
    assert_eq!(recipient["status"], "QUEUED");
    assert_eq!(recipient["lastError"], "could not open a sealed value");
    app.execute(&format!(
        "UPDATE recipients r SET address_sealed = k.address_sealed
         FROM kept k
         WHERE k.message_id = r.message_id AND r.message_id = '{healed}'"
    ))
    .await;
    app.advance_and_drain(TimeDelta::hours(1)).await;
    app.captured_once("healed@example.org");
    app.advance_and_drain(TimeDelta::hours(24)).await;
    assert_eq!(app.status(&lost).await, "FAILED");
    assert_eq!(number(&app, "SELECT count(*) FROM outbox").await, 0);
}
