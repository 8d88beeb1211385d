//! How events change one recipient.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, wait_until};

use super::{connect, event, ids_of, number, totals, unrecorded};

async fn impatient() -> TestApp {
    TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "300ms")
        .start()
        .await
}

/// The data of the only event of a type.
async fn data(app: &TestApp, event_type: &str) -> Value {
    let query = format!("SELECT data FROM events WHERE event_type = '{event_type}'");
    serde_json::from_str(&app.value(&query).await.unwrap()).unwrap()
}

#[tokio::test]
async fn events_of_each_provider_move_its_recipients() {
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let app = TestApp::start().await;
        let account = connect(&app, app.caller(), kind).await;
        let id = app.send_to("ada@example.org").await;
        app.drain().await;
        let shown = format!("/v1/providers/{}", account.id);
        assert_eq!(app.get(&shown).await.data(200)["eventsVerified"], false);
        app.advance(TimeDelta::minutes(1));
        let ids = ids_of(&app, &id, 0).await;
        let now = app.clock.now();
        let contents = match kind {
            ProviderType::Sendgrid => vec![json!([
                event(&app, &ids, "delivered", "d", -5),
                event(&app, &ids, "open", "o", -1),
            ])],
            ProviderType::Postmark => vec![
                json!({ "RecordType": "Delivery", "MessageID": "m", "Recipient": "ada@example.org",
                        "DeliveredAt": now.to_rfc3339(), "Metadata": ids }),
                json!({ "RecordType": "Open", "MessageID": "m", "Recipient": "ada@example.org",
                        "ReceivedAt": now.to_rfc3339(), "Metadata": ids }),
            ],
            ProviderType::Mailgun => ["delivered", "opened"]
                .map(|word| {
                    json!({ "event": word, "id": word, "timestamp": now.timestamp(),
                            "recipient": "ada@example.org", "user-variables": ids })
                })
                .to_vec(),
            ProviderType::Ses | ProviderType::Smtp => unreachable!(),
        };
        for content in &contents {
            account.tell(&app, content).await;
            account.tell(&app, content).await;
        }
        assert_eq!(app.status(&id).await, "DELIVERED", "{kind}");
        assert_eq!(
            app.events(&id).await,
            ["QUEUED", "SENT", "DELIVERED", "OPENED"],
            "{kind}"
        );
        assert_eq!(totals(&app).await, [1, 1, 1, 0, 0, 0, 0], "{kind}");
        assert!(app.message(&id).await["events"][2]["occurredAt"].is_string());
        assert_eq!(data(&app, "DELIVERED").await["providerType"], kind.as_str());
        assert_eq!(data(&app, "OPENED").await["isBot"], false);
        assert_eq!(
            number(&app, "SELECT count(*) FROM provider_events").await,
            2
        );
        assert_eq!(unrecorded(&app, &account).await, (0, 0), "{kind}");
        wait_until("the account is verified", async || {
            app.get(&shown).await.data(200)["eventsVerified"] == true
        })
        .await;
    }
}

#[tokio::test]
async fn raw_events_are_sealed() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    let ids = ids_of(&app, &id, 0).await;
    let mut bounce = event(&app, &ids, "bounce", "b", 0);
    bounce["reason"] = json!("550 5.1.1 no such mailbox: c4nary@example.org\u{0}");
    bounce["email"] = json!("c4nary@example.org");
    account.tell(&app, &json!([bounce])).await;
    assert_eq!(app.status(&id).await, "BOUNCED");
    assert_eq!(data(&app, "BOUNCED").await["bounceType"], "hard");
    let recipient = app.recipient(&id).await;
    let error = recipient["lastError"].as_str().unwrap();
    assert!(error.starts_with("550 5.1.1"), "{error}");
    for table in ["provider_events", "events", "recipients", "audit_logs"] {
        let rows = format!("SELECT string_agg(t::text, ' ') FROM {table} t");
        let rows = app.value(&rows).await.unwrap();
        assert!(!rows.contains("c4nary"), "{table}: {rows}");
        assert!(!rows.contains(&hex::encode("c4nary")), "{table}: {rows}");
    }
}

#[tokio::test]
async fn an_event_proves_that_a_message_whose_answer_was_lost_was_sent() {
    let app = impatient().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("timeout-once@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENDING");
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"]);
    app.advance(TimeDelta::minutes(1));
    let ids = ids_of(&app, &id, 0).await;
    let mut delivered = event(&app, &ids, "delivered", "d", 0);
    delivered["sg_message_id"] = json!("its-id.recvd-1");
    account.tell(&app, &json!([delivered])).await;
    assert_eq!(app.status(&id).await, "DELIVERED");
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT", "DELIVERED"]);
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
    let recipient = app.recipient(&id).await;
    assert_eq!(recipient["providerMessageId"], "its-id");
    assert_eq!(recipient["attempts"], 1);
    assert_eq!(recipient["lastError"], Value::Null);
    assert_eq!(app.outbox().await.len(), 0, "no work is left");
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert_eq!(app.captured("timeout-once@example.org").len(), 1);
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT", "DELIVERED"]);
    assert_eq!(totals(&app).await, [1, 1, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn after_an_event_the_late_answer_changes_nothing() {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "3s")
        .start()
        .await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    // The provider accepts both, answers one call late and the other never.
    let mut message = message_to("");
    message["to"] = json!(["ada@example.org", "timeout@example.org", "late@example.org"]);
    app.simulator().set_fault(waypost_simulator::Fault {
        provider: None,
        kind: waypost_simulator::FaultKind::Latency,
        rate: 1.0,
        latency_ms: 1_500,
        calls: waypost_simulator::FaultCalls::Send,
    });
    let id = app.send(&message).await;
    wait_until("the calls are running", async || {
        number(
            &app,
            "SELECT count(*) FROM send_attempts WHERE outcome IS NULL",
        )
        .await
            == 3
    })
    .await;
    let mut events = Vec::new();
    for position in 0..2 {
        let ids = ids_of(&app, &id, position).await;
        let key = position.to_string();
        events.push(event(&app, &ids, "processed", &format!("p{key}"), 0));
        events.push(event(&app, &ids, "delivered", &format!("d{key}"), 0));
    }
    account.tell(&app, &json!(events)).await;
    let leased = number(
        &app,
        "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL",
    )
    .await;
    assert_eq!(leased, 1, "the worker still holds its lease");
    app.drain().await;
    assert_eq!(app.outbox().await.len(), 0);
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"; 3]);
    let recipients = app.recipients(&id).await;
    let statuses: Vec<&Value> = recipients.iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["DELIVERED", "DELIVERED", "SENT"]);
    assert!(recipients.iter().all(|one| one["attempts"] == 1));
    assert_eq!(totals(&app).await, [3, 2, 0, 0, 0, 0, 0]);
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert_eq!(app.simulator().captured_count(), 3);
}

#[tokio::test]
async fn a_pending_retry_is_not_made_after_an_event_proves_the_send() {
    let app = impatient().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let mut message = message_to("");
    message["to"] = json!(["timeout-once@example.org", "flaky@example.org"]);
    let id = app.send(&message).await;
    app.drain().await;
    let proven = event(&app, &ids_of(&app, &id, 0).await, "processed", "p", 0);
    // The provider answered 500, but had accepted the message.
    let failed = event(&app, &ids_of(&app, &id, 1).await, "processed", "q", 0);
    account.tell(&app, &json!([proven, failed])).await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.outbox().await.len(), 0);
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"; 2]);
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"; 2]);
    assert_eq!(totals(&app).await, [2, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_recipient_that_was_given_up_becomes_sent_by_an_event() {
    let app = impatient().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("timeout@example.org").await;
    app.drain().await;
    app.advance_and_drain(TimeDelta::minutes(16)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    let delivered = event(&app, &ids_of(&app, &id, 0).await, "delivered", "d", 0);
    account.tell(&app, &json!([delivered])).await;
    assert_eq!(app.status(&id).await, "DELIVERED");
    assert_eq!(totals(&app).await, [1, 1, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn bounces_and_drops_are_final() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let mut message = message_to("");
    message["to"] = json!([
        "a@example.org",
        "b@example.org",
        "c@example.org",
        "d@example.org"
    ]);
    let id = app.send(&message).await;
    app.drain().await;
    app.advance(TimeDelta::minutes(1));
    let mut ids = Vec::new();
    for position in 0..4 {
        ids.push(ids_of(&app, &id, position).await);
    }
    let mut block = event(&app, &ids[1], "bounce", "block", -1);
    block["type"] = json!("blocked");
    let mut dropped = event(&app, &ids[2], "dropped", "drop", -1);
    dropped["reason"] = json!("Bounced Address");
    account
        .tell(
            &app,
            &json!([
                event(&app, &ids[0], "delivered", "d0", -30),
                event(&app, &ids[0], "bounce", "b0", -1),
                block,
                dropped,
                event(&app, &ids[3], "deferred", "defer", -20),
                event(&app, &ids[3], "spamreport", "spam", -1),
            ]),
        )
        .await;
    let late = json!([
        event(&app, &ids[0], "processed", "p0", -40),
        event(&app, &ids[1], "deferred", "de1", -40),
        event(&app, &ids[2], "processed", "p2", -40),
    ]);
    account.tell(&app, &late).await;
    let recipients = app.recipients(&id).await;
    let shown: Vec<(&str, Value)> = recipients
        .iter()
        .map(|one| (one["status"].as_str().unwrap(), one["lastError"].clone()))
        .collect();
    assert_eq!(
        shown,
        [
            ("BOUNCED", json!("hard bounce")),
            ("BOUNCED", json!("block bounce")),
            ("FAILED", json!("Bounced Address")),
            ("SENT", Value::Null),
        ]
    );
    assert_eq!(totals(&app).await, [4, 1, 0, 0, 2, 1, 0]);
}

#[tokio::test]
async fn an_open_implies_the_delivery_until_the_delivery_is_reported() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    app.advance(TimeDelta::hours(30));
    let ids = ids_of(&app, &id, 0).await;
    let mut scan = event(&app, &ids, "open", "o1", -3_600);
    scan["sg_machine_open"] = json!(true);
    account.tell(&app, &json!([scan])).await;
    assert_eq!(app.status(&id).await, "SENT", "a machine proves nothing");
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT", "OPENED"]);
    assert_eq!(totals(&app).await, [1, 0, 0, 0, 0, 0, 0]);
    account
        .tell(&app, &json!([event(&app, &ids, "click", "c1", -7_200)]))
        .await;
    assert_eq!(app.status(&id).await, "DELIVERED");
    assert_eq!(
        app.events(&id).await,
        ["QUEUED", "SENT", "DELIVERED", "CLICKED", "OPENED"]
    );
    assert_eq!(data(&app, "DELIVERED").await["isImplied"], true);
    assert_eq!(totals(&app).await, [1, 1, 0, 1, 0, 0, 0]);
    account
        .tell(
            &app,
            &json!([event(&app, &ids, "delivered", "d1", -36_000)]),
        )
        .await;
    assert_eq!(
        app.events(&id).await,
        ["QUEUED", "SENT", "DELIVERED", "CLICKED", "OPENED"]
    );
    assert_eq!(data(&app, "DELIVERED").await.get("isImplied"), None);
    assert_eq!(totals(&app).await, [1, 1, 0, 1, 0, 0, 0]);
    let hours = "SELECT count(DISTINCT quarter) FROM (
                     SELECT quarter, delivered FROM metric_deltas
                     UNION ALL
                     SELECT quarter, delivered FROM metric_rollups
                     WHERE filter = 'TOTAL' AND grouped_by = 'TOTAL') c
                 WHERE delivered > 0 AND quarter = waypost_quarter((SELECT delivered_at FROM recipients))";
    assert_eq!(number(&app, hours).await, 1, "in the hour of the delivery");
    assert_eq!(
        app.message(&id).await["events"][2]["occurredAt"],
        (app.clock.now() - TimeDelta::hours(10))
            .format("%Y-%m-%dT%H:%M:%S.000Z")
            .to_string()
    );
}

#[tokio::test]
async fn no_event_counts_as_before_the_send_or_after_now() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    let ids = ids_of(&app, &id, 0).await;
    account
        .tell(
            &app,
            &json!([
                event(&app, &ids, "delivered", "d", -600),
                event(&app, &ids, "open", "o", 600),
            ]),
        )
        .await;
    let message = app.message(&id).await;
    let sent_at = &message["events"][1]["occurredAt"];
    assert_eq!(&message["events"][2]["occurredAt"], sent_at);
    assert_eq!(
        &message["events"][3]["occurredAt"], sent_at,
        "the clock stands still"
    );
}

#[tokio::test]
async fn a_late_bounce_without_waypost_ids_is_matched_by_the_providers_message_id() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    let other = app.send_to("bob@example.org").await;
    app.drain().await;
    let recipient = app.recipient(&id).await;
    let its_id = recipient["providerMessageId"].as_str().unwrap();
    let bounce = |event_id: &str, message_id: &str, email: &str| {
        let timestamp = app.clock.now().timestamp();
        json!({ "event": "bounce", "sg_event_id": event_id, "timestamp": timestamp,
                "sg_message_id": format!("{message_id}.filter-7"), "email": email })
    };
    account
        .tell(
            &app,
            &json!([
                bounce("1", "another", "ada@example.org"),
                bounce("2", its_id, "bob@example.org"),
            ]),
        )
        .await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(unrecorded(&app, &account).await, (2, 0));
    account
        .tell(&app, &json!([bounce("3", its_id, "Ada@Example.org")]))
        .await;
    assert_eq!(app.status(&id).await, "BOUNCED");
    assert_eq!(app.status(&other).await, "SENT");
    assert_eq!(unrecorded(&app, &account).await, (2, 0));
}

#[tokio::test]
async fn a_click_on_a_tracked_link_shows_the_original_url() {
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let app = TestApp::start().await;
        let account = connect(&app, app.caller(), kind).await;
        let group = json!({ "name": "News" });
        let group = app.post("/v1/unsubscribe-groups", &group).await.data(201);
        let mut message = message_to("ada@example.org");
        message["html"] = json!("<a href=\"https://shop.example/a?b=1&amp;c=2\">x</a>");
        message["tracking"] = json!({ "opens": false, "clicks": true });
        message["unsubscribeGroupId"] = group["id"].clone();
        let id = app.send(&message).await;
        app.drain().await;
        app.advance(TimeDelta::minutes(1));
        let copy = app.captured_once("ada@example.org");
        let html = copy.html.unwrap();
        let links: Vec<&str> = html
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let [tracked, unsubscribing] = links[..] else {
            panic!("{html}");
        };
        let start = tracked.find("/v1/").unwrap();
        let foreign = format!("{}{}", &tracked[..start], "/v1/t/c/none-of-ours");
        let without_token = format!("{}/v1/unsubscribe/", &tracked[..start]);
        let ids = ids_of(&app, &id, 0).await;
        let at = app.clock.now();
        let urls = [
            (tracked.to_owned(), "https://shop.example/a?b=1&c=2"),
            (
                format!("{tracked}?utm_source=x"),
                "https://shop.example/a?b=1&c=2",
            ),
            (unsubscribing.to_owned(), without_token.as_str()),
            (foreign.clone(), foreign.as_str()),
            ("https://e.com/z".to_owned(), "https://e.com/z"),
        ];
        for (nth, (url, shown)) in urls.iter().enumerate() {
            let at = at + TimeDelta::seconds(nth as i64);
            let told = match kind {
                ProviderType::Sendgrid => {
                    let mut told = event(&app, &ids, "click", &nth.to_string(), nth as i64);
                    told["url"] = json!(url);
                    json!([told])
                }
                ProviderType::Postmark => json!({
                    "RecordType": "Click", "MessageID": "m", "Recipient": "ada@example.org",
                    "ReceivedAt": at.to_rfc3339(), "OriginalLink": url, "Metadata": ids,
                }),
                ProviderType::Mailgun => json!({
                    "event": "clicked", "id": nth.to_string(), "timestamp": at.timestamp(),
                    "recipient": "ada@example.org", "url": url, "user-variables": ids,
                }),
                ProviderType::Ses | ProviderType::Smtp => unreachable!(),
            };
            account.tell(&app, &told).await;
            let latest = "SELECT data ->> 'url' FROM events WHERE event_type = 'CLICKED' ORDER BY id DESC LIMIT 1";
            assert_eq!(
                app.value(latest).await.as_deref(),
                Some(*shown),
                "{kind} {url}"
            );
        }
    }
}
