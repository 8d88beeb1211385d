//! The end of a recipient, by the story that its address stands for.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::CallbackSettings;
use waypost_tests::{HTTP_PROVIDERS, TestApp, event_types, message_to, to_hash};

use super::{account, hostile, number, register, start, suppressions, wait_until_told};

/// The end of a story.
#[derive(Debug, PartialEq, Eq)]
struct End {
    /// The local part that the simulator recognizes.
    story: &'static str,
    status: String,
    /// All event types, sorted.
    events: Vec<String>,
    bounce_type: Option<String>,
    /// The source of the suppression, if the address is suppressed.
    suppressed: Option<String>,
}

const STORIES: [&str; 12] = [
    "plain",
    "hard-bounce",
    "soft-bounce",
    "block",
    "complaint",
    "open",
    "click",
    "unsubscribe",
    "defer",
    "drop",
    // The provider accepts the message and reports events, but the call gets no answer:
    // the events prove the send.
    "timeout",
    "reset",
];

/// The expected end of a story. Postmark reports nothing when it accepts a message, and
/// SendGrid only `dropped` for one that it drops. That makes no difference: SENT follows
/// from the answer to the call or from the first event.
fn expected(kind: ProviderType, story: &'static str) -> End {
    let (status, events, bounce_type, suppressed): (_, &[&str], _, _) = match story {
        "hard-bounce" => ("BOUNCED", &["BOUNCED"], Some("hard"), Some("BOUNCE")),
        "soft-bounce" => {
            // SendGrid has two types of bounces, and calls temporary ones `blocked`.
            let bounce_type = match kind {
                ProviderType::Sendgrid => "block",
                ProviderType::Postmark
                | ProviderType::Mailgun
                | ProviderType::Ses
                | ProviderType::Smtp => "soft",
            };
            ("BOUNCED", &["BOUNCED"], Some(bounce_type), None)
        }
        "block" => ("BOUNCED", &["BOUNCED"], Some("block"), None),
        "complaint" => (
            "DELIVERED",
            &["COMPLAINED", "DELIVERED"],
            None,
            Some("COMPLAINT"),
        ),
        "open" => ("DELIVERED", &["DELIVERED", "OPENED"], None, None),
        "click" => ("DELIVERED", &["CLICKED", "DELIVERED", "OPENED"], None, None),
        "unsubscribe" => (
            "DELIVERED",
            &["DELIVERED", "UNSUBSCRIBED"],
            None,
            Some("UNSUBSCRIBE"),
        ),
        "defer" => ("DELIVERED", &["DEFERRED", "DELIVERED"], None, None),
        // An address on the provider's own suppression list is not suppressed by Waypost:
        // it may be there because of another sender, and may be removed there.
        "drop" => ("FAILED", &["DROPPED"], None, None),
        _ => ("DELIVERED", &["DELIVERED"], None, None),
    };
    let mut events: Vec<String> = events.iter().map(ToString::to_string).collect();
    events.extend(["QUEUED".to_owned(), "SENT".to_owned()]);
    events.sort();
    End {
        story,
        status: status.to_owned(),
        events,
        bounce_type: bounce_type.map(str::to_owned),
        suppressed: suppressed.map(str::to_owned),
    }
}

/// Sent, delivered, opened, clicked, bounced, complained, unsubscribed: all are sent, and
/// all are delivered but the three bounces and the dropped one. A click counts as an open
/// too.
const TOTALS: [(&str, i64); 7] = [
    ("totalSent", 12),
    ("totalDelivered", 8),
    ("totalOpened", 2),
    ("totalClicked", 1),
    ("totalBounced", 3),
    ("totalComplained", 1),
    ("totalUnsubscribed", 1),
];

fn address(story: &str) -> String {
    format!("{story}@example.org")
}

async fn end(app: &TestApp, story: &'static str, id: &str) -> End {
    let mut events = app.events(id).await;
    events.sort();
    let bounce_type = format!(
        "SELECT data->>'bounceType' FROM events WHERE message_id = '{id}' AND event_type = 'BOUNCED'"
    );
    End {
        story,
        status: app.status(id).await,
        events,
        bounce_type: app.value(&bounce_type).await,
        suppressed: suppressions(app).await.remove(&to_hash(&address(story))),
    }
}

/// Sends to every story and compares the ends with the table.
async fn run(kind: ProviderType, settings: CallbackSettings) -> TestApp {
    let app = start().await;
    app.simulator().set_callbacks(settings);
    let account_id = register(&app, kind).await;
    let mut ids = Vec::new();
    for story in STORIES {
        ids.push(app.send_to(&address(story)).await);
    }
    wait_until_told(&app).await;
    let mut ends = Vec::new();
    for (story, id) in STORIES.into_iter().zip(&ids) {
        ends.push(end(&app, story, id).await);
    }
    let table = STORIES.map(|story| expected(kind, story));
    assert_eq!(ends, table, "{kind}");
    let is_verified = account(&app, &account_id).await["eventsVerified"].clone();
    assert_eq!(is_verified, true, "{kind}");
    let summary = app.get("/v1/metrics/summary").await.data(200);
    let totals = TOTALS.map(|(name, _)| (name, summary[name].as_i64().unwrap()));
    assert_eq!(totals, TOTALS, "{kind}");
    let lost = "SELECT coalesce(sum(unmatched + unreadable), 0) FROM unrecorded_event_counts";
    assert_eq!(number(&app, lost).await, 0, "{kind}");
    let counts = app.simulator().callbacks();
    assert_eq!(counts.acknowledged, counts.queued, "{kind}: {counts:?}");
    assert!(counts.refused.is_empty(), "{kind}: {counts:?}");
    app.drain().await;
    for story in STORIES {
        app.captured_once(&address(story));
    }
    app
}

#[tokio::test]
async fn every_story_ends_as_its_provider_reports_it() {
    for kind in HTTP_PROVIDERS {
        let app = run(kind, CallbackSettings::default()).await;
        assert_eq!(app.simulator().callbacks().duplicated, 0, "{kind}");
    }
}

#[tokio::test]
async fn repeated_events_in_any_order_end_every_story_the_same() {
    for kind in HTTP_PROVIDERS {
        let app = run(kind, hostile()).await;
        assert!(app.simulator().callbacks().duplicated > 0, "{kind}");
    }
}

/// An event that the provider dates before Waypost's call is recorded as of the call. The
/// history lists it after the call, whichever of two processes has the greater ids.
#[tokio::test]
async fn an_event_at_the_time_of_the_send_follows_it_in_the_history() {
    let app = start().await;
    register(&app, ProviderType::Sendgrid).await;
    // Ahead of the provider's clock, and another millisecond each: the ids within one
    // millisecond are ordered by its first two.
    app.advance(TimeDelta::minutes(1));
    let mut ids = Vec::new();
    for nth in 0..12 {
        ids.push(app.send_to(&format!("ada+{nth}@example.org")).await);
        wait_until_told(&app).await;
        app.advance(TimeDelta::milliseconds(1));
    }
    let moments = "SELECT count(DISTINCT occurred_at) FROM events";
    assert_eq!(number(&app, moments).await, 12, "each story at one moment");
    for id in ids {
        assert_eq!(app.events(&id).await, ["QUEUED", "SENT", "DELIVERED"]);
        let of_copy = event_types(&app.recipient(&id).await);
        assert_eq!(of_copy, ["QUEUED", "SENT", "DELIVERED"]);
    }
}

/// Recipients of each story in the one message: 96 in total.
const COPIES: i64 = 8;

/// Many events of one message while it is still being sent: concurrent requests of the
/// provider before the answer to Waypost's call, which never arrives.
#[tokio::test]
async fn concurrent_callbacks_about_one_message_lose_and_duplicate_no_event() {
    for kind in HTTP_PROVIDERS {
        let app = start().await;
        app.simulator().set_callbacks(CallbackSettings {
            delay_ms: 5,
            flush_ms: 5,
            ..hostile()
        });
        register(&app, kind).await;
        let addresses: Vec<String> = (0..COPIES)
            .flat_map(|copy| STORIES.map(|story| format!("{story}+{copy}@example.org")))
            .collect();
        let mut message = message_to("");
        message["to"] = json!(addresses);
        let id = app.send(&message).await;
        wait_until_told(&app).await;
        let mut ends = BTreeMap::new();
        for recipient in app.recipients(&id).await {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let mut events = event_types(&recipient);
            events.sort();
            let end = (text(&recipient["status"]), events);
            ends.insert(text(&recipient["toHash"]), end);
        }
        let mut table = BTreeMap::new();
        for (address, story) in addresses.iter().zip(STORIES.into_iter().cycle()) {
            let End { status, events, .. } = expected(kind, story);
            table.insert(to_hash(address), (status, events));
        }
        assert_eq!(ends, table, "{kind}");
        let summary = app.get("/v1/metrics/summary").await.data(200);
        for (name, count) in TOTALS {
            assert_eq!(summary[name], count * COPIES, "{kind}: {name}");
        }
        assert_eq!(suppressions(&app).await.len() as i64, 3 * COPIES, "{kind}");
        let lost = "SELECT coalesce(sum(unmatched + unreadable), 0) FROM unrecorded_event_counts";
        assert_eq!(number(&app, lost).await, 0, "{kind}");
        let counts = app.simulator().callbacks();
        assert_eq!(counts.acknowledged, counts.queued, "{kind}: {counts:?}");
        assert!(counts.refused.is_empty(), "{kind}: {counts:?}");
        for address in &addresses {
            app.captured_once(address);
        }
    }
}
