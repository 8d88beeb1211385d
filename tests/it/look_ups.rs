//! Reconciliation: messages whose answer was lost are looked up at the provider. The
//! tests control the time, except for the throttle.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{CallbackSettings, Fault, FaultCalls, FaultKind, Provider, SignatureFault};
use waypost_tests::{TestApp, credentials, message_to, wait_until, wait_within};

/// The provider types with a message search.
const SEARCHED: [ProviderType; 3] = [
    ProviderType::Postmark,
    ProviderType::Mailgun,
    ProviderType::Sendgrid,
];
/// Just before the first lookup, and at it, within the 15 minutes that evidence is
/// awaited.
const TOO_EARLY: TimeDelta = TimeDelta::seconds(9);
const FIRST_LOOK: TimeDelta = TimeDelta::seconds(10);

/// An app whose calls time out soon, but not because a busy machine is late, and whose
/// providers' searches find messages at once.
async fn start() -> TestApp {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "3s")
        .start()
        .await;
    app.simulator().set_search_lag(Duration::ZERO);
    app
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// The number of attempts to be looked up.
async fn looked_for(app: &TestApp) -> i64 {
    number(app, "SELECT count(*) FROM unknown_attempts").await
}

/// Sends to an address whose answer is lost.
async fn send_lost(app: &TestApp, recipient: &str) -> String {
    let id = app.send_to(recipient).await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENDING");
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"]);
    id
}

async fn until_sent(app: &TestApp, id: &str) {
    wait_until("the message is found", async || {
        app.status(id).await == "SENT"
    })
    .await;
}

async fn until_nothing_is_looked_for(app: &TestApp) {
    wait_until("no attempt is left to look up", async || {
        looked_for(app).await == 0
    })
    .await;
}

async fn until_looked(app: &TestApp, looks: i64) {
    wait_until("it was looked up", async || {
        number(app, "SELECT coalesce(max(looks), -1) FROM unknown_attempts").await == looks
    })
    .await;
}

#[tokio::test]
async fn a_message_that_the_provider_has_is_found_and_not_sent_again() {
    for kind in SEARCHED {
        let app = start().await;
        app.connect(kind).await;
        let id = send_lost(&app, "timeout@example.org").await;
        assert_eq!(looked_for(&app).await, 1, "{kind}");
        let began = "SELECT to_json(started_at) #>> '{}' FROM send_attempts";
        let began = app.value(began).await.unwrap();
        app.advance(FIRST_LOOK);
        until_sent(&app, &id).await;
        until_nothing_is_looked_for(&app).await;
        assert_eq!(app.events(&id).await, ["QUEUED", "SENT"], "{kind}");
        assert_eq!(app.outcomes(&id).await, ["ACCEPTED"], "{kind}");
        let copy = app.captured_once("timeout@example.org");
        let recipient = app.recipient(&id).await;
        let its_id = copy.provider_message_id.trim_matches(['<', '>']);
        assert_eq!(recipient["providerMessageId"], its_id, "{kind}");
        assert_eq!(
            (&recipient["attempts"], &recipient["lastError"]),
            (&json!(1), &Value::Null),
            "{kind}"
        );
        let sent_at = "SELECT to_json(sent_at) #>> '{}' FROM recipients";
        assert_eq!(
            app.value(sent_at).await,
            Some(began),
            "{kind}: as of when the call began"
        );
        assert!(app.outbox().await.is_empty(), "{kind}: no work is left");
        app.advance_and_drain(TimeDelta::hours(1)).await;
        app.captured_once("timeout@example.org");
        assert_eq!(app.events(&id).await, ["QUEUED", "SENT"], "{kind}");
    }
}

#[tokio::test]
async fn a_search_that_lags_behind_is_repeated() {
    for kind in [ProviderType::Postmark, ProviderType::Mailgun] {
        let app = start().await;
        app.simulator().set_search_lag(Duration::from_hours(1));
        app.connect(kind).await;
        let id = send_lost(&app, "timeout@example.org").await;
        app.advance(TOO_EARLY);
        // A lookup that is due would be made within a few ticks of 50 ms.
        let is_early = wait_within(Duration::from_millis(500), async || {
            number(&app, "SELECT max(looks) FROM unknown_attempts").await > 0
        });
        assert!(!is_early.await, "{kind}: looked too early");
        app.advance(FIRST_LOOK - TOO_EARLY);
        until_looked(&app, 1).await;
        assert_eq!(
            app.status(&id).await,
            "SENDING",
            "{kind}: not found proves nothing"
        );
        app.simulator().set_search_lag(Duration::ZERO);
        app.advance(TimeDelta::seconds(20));
        until_sent(&app, &id).await;
        until_nothing_is_looked_for(&app).await;
        app.advance_and_drain(TimeDelta::hours(1)).await;
        app.captured_once("timeout@example.org");
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_looked_up_is_sent_again_after_the_wait() {
    for (kind, field, value) in [
        (ProviderType::Sendgrid, "apiKey", "SG.noactivity-key"),
        (ProviderType::Ses, "accessKeyId", "AKIAGOOD"),
        (ProviderType::Smtp, "username", "good-user"),
    ] {
        // SES signatures contain the time, and the simulator uses the real time.
        let app = TestApp::builder()
            .setting("WAYPOST_PROVIDER_TIMEOUT", "3s")
            .setting("WAYPOST_UNKNOWN_WAIT", "60s")
            .start()
            .await;
        app.simulator().set_search_lag(Duration::ZERO);
        let mut credentials = credentials(kind);
        credentials[field] = json!(value);
        app.connect_with(kind, &credentials).await;
        let id = send_lost(&app, "timeout-once@example.org").await;
        app.advance(TimeDelta::seconds(1));
        until_nothing_is_looked_for(&app).await;
        assert_eq!(app.status(&id).await, "SENDING", "{kind}");
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"], "{kind}");
        assert_eq!(app.captured("timeout-once@example.org").len(), 2, "{kind}");
        // The missing search is remembered: the next message is not looked up at all.
        let id = send_lost(&app, "timeout-once+2@example.org").await;
        until_nothing_is_looked_for(&app).await;
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
    }
}

#[tokio::test]
async fn a_message_that_the_provider_never_had_is_sent_again_after_the_wait() {
    for kind in SEARCHED {
        let app = start().await;
        app.connect(kind).await;
        let id = send_lost(&app, "timeout-once@example.org").await;
        app.simulator().clear_captured();
        app.advance(FIRST_LOOK);
        until_looked(&app, 1).await;
        // The last lookup is shortly before the end of the wait.
        if kind != ProviderType::Sendgrid {
            app.advance(TimeDelta::minutes(14) + TimeDelta::seconds(30));
            until_nothing_is_looked_for(&app).await;
            assert_eq!(app.status(&id).await, "SENDING", "{kind}");
        }
        app.advance_and_drain(TimeDelta::minutes(15)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(app.events(&id).await, ["QUEUED", "SENT"], "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"], "{kind}");
        app.captured_once("timeout-once@example.org");
        until_nothing_is_looked_for(&app).await;
    }
}

#[tokio::test]
async fn a_found_message_becomes_delivered_by_a_later_event() {
    for kind in SEARCHED {
        let app = start().await;
        let account = app.connect(kind).await;
        let path = format!("/v1/providers/{account}/event-webhook");
        app.caller().post_empty(&path).await.data(200);
        // An event before the lookup is refused; the provider repeats it later.
        let told = |signature_fault| CallbackSettings {
            signature_fault,
            retry_factor: 0.001,
            ..CallbackSettings::default()
        };
        app.simulator().set_callbacks(told(SignatureFault::Wrong));
        let id = send_lost(&app, "timeout@example.org").await;
        app.advance(FIRST_LOOK);
        until_sent(&app, &id).await;
        app.simulator().set_callbacks(told(SignatureFault::Off));
        let delivered = wait_within(Duration::from_secs(60), async || {
            app.status(&id).await == "DELIVERED"
        });
        let delivered = delivered.await;
        assert!(delivered, "{kind}: {:?}", app.simulator().callbacks());
        assert_eq!(
            app.events(&id).await,
            ["QUEUED", "SENT", "DELIVERED"],
            "{kind}"
        );
        assert_eq!(app.outcomes(&id).await, ["ACCEPTED"], "{kind}");
        app.advance_and_drain(TimeDelta::hours(1)).await;
        app.captured_once("timeout@example.org");
    }
}

#[tokio::test]
async fn a_throttled_search_waits() {
    let app = start().await;
    app.connect(ProviderType::Mailgun).await;
    let id = send_lost(&app, "timeout@example.org").await;
    app.simulator().set_fault(Fault {
        provider: Some(Provider::Mailgun),
        kind: FaultKind::Throttle,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::All,
    });
    app.advance(FIRST_LOOK);
    until_looked(&app, 1).await;
    let waits = "SELECT count(*) FROM unknown_attempts
                 WHERE next_lookup_at < unknown_at + interval '30 s'";
    wait_until("the lookup is postponed", async || {
        number(&app, waits).await == 1
    })
    .await;
    app.simulator().clear_faults();
    app.advance(TimeDelta::seconds(10));
    until_sent(&app, &id).await;
    app.captured_once("timeout@example.org");
}

#[tokio::test]
async fn every_recipient_of_a_message_is_looked_up() {
    let app = start().await;
    app.connect(ProviderType::Postmark).await;
    let to: Vec<String> = (0..5)
        .map(|nth| format!("timeout+{nth}@example.org"))
        .chain(["ada@example.org".to_owned()])
        .collect();
    let mut message = message_to("ada@example.org");
    message["to"] = json!(to);
    let id = app.send(&message).await;
    app.drain().await;
    assert_eq!(looked_for(&app).await, 5);
    app.advance(FIRST_LOOK);
    until_nothing_is_looked_for(&app).await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"; 6]);
    app.advance_and_drain(TimeDelta::hours(1)).await;
    for address in to {
        app.captured_once(&address);
    }
}

#[tokio::test]
async fn a_lookup_whose_process_died_is_repeated() {
    let app = start().await;
    app.simulator().set_search_lag(Duration::from_hours(1));
    app.connect(ProviderType::Postmark).await;
    let id = send_lost(&app, "timeout@example.org").await;
    // The last lookup, leased by a process that died.
    app.execute(
        "UPDATE unknown_attempts SET looks = 7, next_lookup_at = unknown_at + interval '16 min'",
    )
    .await;
    app.simulator().set_search_lag(Duration::ZERO);
    // The recipient still waits, as for a rule with a longer wait.
    app.execute("UPDATE recipients SET next_attempt_at = next_attempt_at + interval '1 h'")
        .await;
    app.advance(TimeDelta::minutes(16));
    until_sent(&app, &id).await;
    until_nothing_is_looked_for(&app).await;
    // The relay also queued it: a worker may have leased it for a moment.
    app.drain().await;
    app.captured_once("timeout@example.org");
}

#[tokio::test]
async fn finished_attempts_are_deleted() {
    let app = start().await;
    app.simulator().set_search_lag(Duration::from_hours(1));
    let account = app.connect(ProviderType::Postmark).await;
    let id = send_lost(&app, "timeout@example.org").await;
    // Of a message that retention deleted, of an account that is gone, and too old.
    app.execute(&format!(
        "INSERT INTO unknown_attempts
             (message_id, attempt_id, organization_id, position, provider_account_id,
              started_at, unknown_at, next_lookup_at)
         SELECT CASE n WHEN 1 THEN gen_random_uuid() ELSE message_id END, gen_random_uuid(),
                organization_id, position,
                CASE n WHEN 2 THEN gen_random_uuid() ELSE provider_account_id END,
                started_at, CASE n WHEN 3 THEN unknown_at - interval '2 days' ELSE unknown_at END,
                next_lookup_at
         FROM unknown_attempts, generate_series(1, 3) n
         WHERE provider_account_id = '{account}'"
    ))
    .await;
    wait_until("they are deleted", async || looked_for(&app).await == 1).await;
    assert_eq!(app.status(&id).await, "SENDING");
    // And of a recipient that got its outcome in another way.
    app.execute("UPDATE recipients SET status = 'SENT'").await;
    until_nothing_is_looked_for(&app).await;
    app.execute("DELETE FROM outbox").await;
}

#[tokio::test]
async fn only_attempts_of_unknown_outcome_are_looked_up() {
    // No call times out here, however slow the machine is.
    let app = TestApp::start().await;
    app.connect(ProviderType::Postmark).await;
    for address in [
        "ada@example.org",
        "refuse@example.org",
        "flaky@example.org",
        "throttle-once@example.org",
    ] {
        app.send_to(address).await;
    }
    app.drain().await;
    assert_eq!(
        number(
            &app,
            "SELECT count(*) FROM send_attempts WHERE outcome IS NULL"
        )
        .await,
        0
    );
    assert_eq!(looked_for(&app).await, 0);
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert_eq!(looked_for(&app).await, 0);
}

#[tokio::test]
async fn attempts_of_a_killed_worker_are_looked_up() {
    let app = TestApp::builder()
        .processes()
        .setting("WAYPOST_UNKNOWN_WAIT", "60s")
        .start()
        .await;
    app.simulator().set_search_lag(Duration::ZERO);
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    app.connect(ProviderType::Mailgun).await;
    let mut doomed = app.spawn_worker();
    let id = app.send_to("timeout@example.org").await;
    wait_until("the provider has it", async || {
        !app.captured("timeout@example.org").is_empty()
    })
    .await;
    doomed.kill().await;
    assert_eq!(app.outcomes(&id).await, ["OPEN"]);
    let is_found = wait_within(Duration::from_secs(40), async || {
        app.status(&id).await == "SENT"
    });
    assert!(is_found.await, "{:?}", app.outcomes(&id).await);
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
    app.captured_once("timeout@example.org");
    assert!(app.outbox().await.is_empty());
}
