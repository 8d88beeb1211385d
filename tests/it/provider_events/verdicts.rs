//! Hard bounces: an address is suppressed only if the bounce is about the address.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, to_hash, wait_until};

use super::{connect, event, ids_of};

async fn suppressed(app: &TestApp) -> Vec<String> {
    let list = app.get("/v1/suppressions?limit=100").await.data(200);
    let list = list.as_array().unwrap().iter();
    let mut hashes: Vec<String> = list
        .map(|one| one["emailHash"].as_str().unwrap().to_owned())
        .collect();
    hashes.sort();
    hashes
}

/// Sends to each address, posts the event that `told` builds from its index and ids, and
/// returns the suppressed addresses.
async fn suppressed_by(
    kind: ProviderType,
    rows: usize,
    told: impl Fn(&TestApp, usize, &serde_json::Map<String, Value>) -> Value,
) -> Vec<usize> {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), kind).await;
    let to: Vec<String> = (0..rows).map(|nth| format!("r{nth}@example.org")).collect();
    let mut message = message_to("");
    message["to"] = json!(to);
    let id = app.send(&message).await;
    app.drain().await;
    for nth in 0..rows {
        let ids = ids_of(&app, &id, i32::try_from(nth).unwrap()).await;
        account.tell(&app, &told(&app, nth, &ids)).await;
    }
    for recipient in app.recipients(&id).await {
        assert_eq!(recipient["status"], "BOUNCED", "{kind}: {recipient}");
    }
    let found = suppressed(&app).await;
    (0..rows)
        .filter(|nth| found.contains(&to_hash(&to[*nth])))
        .collect()
}

#[tokio::test]
async fn sendgrid_suppresses_only_by_the_type_bounce_or_without_a_type() {
    let types = [
        json!("bounce"),
        Value::Null,
        json!("expired"),
        json!("blocked"),
        json!("something new"),
    ];
    let hard = suppressed_by(ProviderType::Sendgrid, types.len(), |app, nth, ids| {
        let mut bounce = event(app, ids, "bounce", &format!("e{nth}"), 0);
        bounce["type"] = types[nth].clone();
        bounce["reason"] = json!("unable to deliver");
        json!([bounce])
    });
    assert_eq!(hard.await, [0, 1]);
}

#[tokio::test]
async fn mailguns_permanent_failures_suppress_if_the_address_is_the_reason() {
    let failures = [
        ("bounce", 550, "", "No Such User"),
        ("generic", 550, "5.1.1", "user unknown"),
        ("generic", 550, "", "550 5.1.1 user unknown"),
        ("generic", 554, "", "blocked using Spamhaus"),
        ("generic", 550, "5.7.1", "refused"),
        ("hardfail", 550, "", "refused"),
        ("espblock", 550, "", "refused"),
        ("old", 602, "", "Too old"),
    ];
    let hard = suppressed_by(ProviderType::Mailgun, failures.len(), |app, nth, ids| {
        let (reason, code, enhanced, message) = failures[nth];
        json!({
            "event": "failed", "severity": "permanent", "reason": reason,
            "id": format!("e{nth}"), "timestamp": app.clock.now().timestamp(),
            "user-variables": ids,
            "delivery-status": { "code": code, "enhanced-code": enhanced, "message": message },
        })
    });
    assert_eq!(hard.await, [0, 1, 2]);
}

#[tokio::test]
async fn postmarks_hard_bounces_suppress_if_the_address_is_the_reason() {
    let bounces = [
        (
            "HardBounce",
            "smtp;550 5.1.1 The email account does not exist.",
        ),
        ("BadEmailAddress", ""),
        ("HardBounce", "smtp;554 5.7.1 Message blocked"),
        ("HardBounce", "smtp;554 listed at zen.spamhaus.org"),
        ("Blocked", "smtp;550 blocked"),
        ("SoftBounce", "smtp;552 full"),
    ];
    let hard = suppressed_by(ProviderType::Postmark, bounces.len(), |_, nth, ids| {
        let (kind, details) = bounces[nth];
        json!({
            "RecordType": "Bounce", "ID": nth + 1, "Type": kind, "Details": details,
            "MessageID": format!("m{nth}"), "Metadata": ids,
        })
    });
    assert_eq!(hard.await, [0, 1]);
}

/// Reported by the simulator in each provider's own format.
#[tokio::test]
async fn a_sender_block_list_and_an_expired_message_suppress_no_address() {
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let app = TestApp::start().await;
        let account = app.connect(kind).await;
        let path = format!("/v1/providers/{account}/event-webhook");
        app.caller().post_empty(&path).await.expect(200);
        let mut message = message_to("");
        message["to"] = json!([
            "listed@example.org",
            "expired@example.org",
            "hard-bounce@example.org"
        ]);
        let id = app.send(&message).await;
        app.drain().await;
        wait_until("the simulator has reported all events", async || {
            app.simulator().callbacks().waiting == 0
        })
        .await;
        for recipient in app.recipients(&id).await {
            assert_eq!(recipient["status"], "BOUNCED", "{kind}: {recipient}");
        }
        let expected = [to_hash("hard-bounce@example.org")];
        assert_eq!(suppressed(&app).await, expected, "{kind}");
    }
}
