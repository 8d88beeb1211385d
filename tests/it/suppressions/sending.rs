//! Suppressions and sending: at acceptance, before the provider call, and with a Redis that
//! loses data.

use serde_json::{Value, json};
use waypost_core::ids::OrganizationId;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, credentials, event_types, message_to, redis_connection, wait_until};

use super::{IMPORT, PATH, addresses, group, import, suppress};

/// Enough suppressions for a filter.
const MANY: u32 = 3_000;

fn message_to_all(to: &[&str]) -> Value {
    let mut message = message_to("");
    message["to"] = json!(to);
    message
}

async fn suppressed(app: &TestApp, to: &str) -> bool {
    app.post("/v1/send", &message_to(to)).await.expect(202)["status"] == "suppressed"
}

/// The positions of the dropped recipients of a message.
async fn dropped(app: &TestApp, id: &str) -> Vec<usize> {
    let recipients = app.recipients(id).await;
    let dropped = recipients.iter().enumerate().filter(|(_, recipient)| {
        let is_dropped = event_types(recipient) == ["QUEUED", "DROPPED"];
        assert_eq!(
            is_dropped,
            recipient["lastError"] == "suppressed",
            "{recipient}"
        );
        assert_eq!(is_dropped, recipient["status"] == "FAILED", "{recipient}");
        is_dropped
    });
    dropped.map(|(place, _)| place).collect()
}

#[tokio::test]
async fn suppressed_recipients_are_dropped_and_the_others_are_sent_to() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    suppress(&app, "Two@example.org").await;
    let to = [
        "one@example.org",
        "Two <TWO@example.org>",
        "three@example.org",
    ];
    let reply = app.post("/v1/send", &message_to_all(&to)).await.expect(202);
    let id = reply["messageId"].as_str().unwrap();
    let expected = json!({
        "messageId": id,
        "providerId": account,
        "providerType": "SENDGRID",
        "status": "queued",
        "domainVerified": true,
        "suppressedCount": 1,
        "acceptedCount": 2,
    });
    assert_eq!(reply, expected);
    app.drain().await;
    assert_eq!(app.status(id).await, "SENT");
    assert_eq!(dropped(&app, id).await, [1]);
    let recipient = &app.recipients(id).await[1];
    assert_eq!(
        (&recipient["attempts"], &recipient["providerAccountId"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!(app.simulator().captured_count(), 2);
    assert!(app.captured("two@example.org").is_empty());
    let reason = "SELECT data->>'reason' FROM events WHERE event_type = 'DROPPED'";
    assert_eq!(app.value(reason).await.as_deref(), Some("suppressed"));
}

#[tokio::test]
async fn a_message_with_only_suppressed_recipients_is_not_accepted() {
    let app = TestApp::start().await;
    let emails = ["a@example.org".to_owned(), "b@example.org".to_owned()];
    import(&app, &emails).await;
    // The check precedes routing, so no account is needed.
    let message = message_to_all(&["a@example.org", "B@example.org", "A@example.org"]);
    let reply = app.post("/v1/send", &message).await.expect(202);
    let expected = json!({ "messageId": null, "providerId": null, "status": "suppressed", "suppressedCount": 2 });
    assert_eq!(reply, expected);
    for table in ["messages", "recipients", "events", "outbox"] {
        let count = app.value(&format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(count.as_deref(), Some("0"), "{table}");
    }
}

#[tokio::test]
async fn a_batch_reports_suppression_for_each_message() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    suppress(&app, "a@example.org").await;
    let messages = [
        message_to("a@example.org"),
        message_to("b@example.org"),
        json!({}),
        message_to_all(&["a@example.org", "c@example.org"]),
    ];
    let body = app
        .post("/v1/emails/batch", &json!({ "messages": messages }))
        .await
        .expect(200);
    let results = body["results"].as_array().unwrap();
    assert_eq!(
        results[0],
        json!({ "messageId": null, "status": "suppressed" })
    );
    for queued in [&results[1], &results[3]] {
        assert!(queued["messageId"].is_string(), "{queued}");
        assert_eq!(
            (&queued["status"], queued.as_object().unwrap().len()),
            (&json!("queued"), 2)
        );
    }
    assert!(results[2]["error"].is_string());
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 2);
    assert!(app.captured("a@example.org").is_empty());
}

#[tokio::test]
async fn chunks_of_only_suppressed_recipients_create_no_jobs() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let all = addresses(0..250);
    import(&app, &all[..200]).await;
    let to: Vec<&str> = all.iter().map(String::as_str).collect();
    let reply = app.post("/v1/send", &message_to_all(&to)).await.expect(202);
    assert_eq!(
        (&reply["suppressedCount"], &reply["acceptedCount"]),
        (&json!(200), &json!(50))
    );
    let chunks = app
        .value("SELECT string_agg(chunk::text, ',') FROM outbox")
        .await;
    assert_eq!(chunks.as_deref(), Some("2"));
    app.start_worker();
    app.drain().await;
    assert_eq!(
        app.status(reply["messageId"].as_str().unwrap()).await,
        "SENT"
    );
    assert_eq!(app.simulator().captured_count(), 50);
}

#[tokio::test]
async fn mail_is_sent_after_a_suppression_is_removed_and_despite_one_of_a_group() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let suppression = suppress(&app, "a@example.org").await;
    assert!(suppressed(&app, "A@example.org").await);
    let _done = app
        .delete(&format!("{PATH}/{}", suppression["id"].as_str().unwrap()))
        .await
        .expect(200);
    let news = group(&app, "News").await;
    let grouped = json!({ "email": "a@example.org", "unsubscribeGroupId": news });
    let _done = app.post(PATH, &grouped).await.data(201);
    assert!(!suppressed(&app, "a@example.org").await);
    app.drain().await;
    let _copy = app.captured_once("a@example.org");
}

#[tokio::test]
async fn suppressions_of_another_organization_have_no_effect() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other = app.tenant("Other").await;
    let _done = other
        .caller
        .post(PATH, &json!({ "email": "a@example.org" }))
        .await
        .data(201);
    assert!(!suppressed(&app, "a@example.org").await);
    app.drain().await;
}

#[tokio::test]
async fn a_recipient_suppressed_after_acceptance_is_never_sent_to() {
    let app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app
        .send(&message_to_all(&[
            "a@example.org",
            "b@example.org",
            "c@example.org",
        ]))
        .await;
    let alone = app.send_to("b@example.org").await;
    suppress(&app, "B@example.org").await;
    app.redis.as_ref().unwrap().flush().await;
    app.start_worker();
    app.advance_and_drain(chrono::TimeDelta::minutes(1)).await;
    assert_eq!(dropped(&app, &id).await, [1]);
    assert_eq!(
        (app.status(&id).await, app.status(&alone).await),
        ("SENT".to_owned(), "FAILED".to_owned())
    );
    assert_eq!(app.events(&alone).await, ["QUEUED", "DROPPED"]);
    assert!(app.attempts(&alone).await.is_empty());
    assert!(app.captured("b@example.org").is_empty());
    assert_eq!(app.simulator().captured_count(), 2);
}

#[tokio::test]
async fn the_group_of_a_message_counts_before_the_call() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let (news, offers) = (group(&app, "News").await, group(&app, "Offers").await);
    let mut ids = Vec::new();
    for own in [Some(&news), Some(&offers), None] {
        let id = app.send_to("a@example.org").await;
        if let Some(own) = own {
            app.execute(&format!(
                "UPDATE messages SET unsubscribe_group_id = '{own}' WHERE id = '{id}'"
            ))
            .await;
        }
        ids.push(id);
    }
    let grouped = json!({ "emails": ["a@example.org"], "unsubscribeGroupId": news });
    let _done = app.post(IMPORT, &grouped).await.data(200);
    app.start_worker();
    app.drain().await;
    let mut found = Vec::new();
    for id in &ids {
        found.push(app.status(id).await);
    }
    assert_eq!(found, ["FAILED", "SENT", "SENT"]);
    assert_eq!(app.captured("a@example.org").len(), 2);
}

#[tokio::test]
async fn a_retry_is_not_sent_to_a_recipient_suppressed_meanwhile() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("flaky@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "QUEUED");
    suppress(&app, "flaky@example.org").await;
    app.advance_and_drain(chrono::TimeDelta::minutes(1)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    assert_eq!(app.events(&id).await, ["QUEUED", "DEFERRED", "DROPPED"]);
    assert!(app.captured("flaky@example.org").is_empty());
}

/// Redis commands for the filter of an organization.
struct FilterKey {
    connection: redis::aio::MultiplexedConnection,
    key: String,
}

impl FilterKey {
    async fn of(app: &TestApp) -> Self {
        Self::in_organization(app, app.organization_id()).await
    }

    async fn in_organization(app: &TestApp, organization_id: OrganizationId) -> Self {
        Self {
            connection: redis_connection(&app.variables["REDIS_URL"]).await.unwrap(),
            key: format!(
                "{}:suppressions:{{{organization_id}}}",
                app.variables["WAYPOST_REDIS_PREFIX"],
            ),
        }
    }

    async fn is_complete(&self) -> bool {
        let words: Vec<i64> = redis::cmd("BITFIELD_RO")
            .arg(&self.key)
            .arg(&["GET", "i64", "#2"])
            .query_async(&mut self.connection.clone())
            .await
            .unwrap();
        words == [1]
    }

    async fn read(&self) -> Vec<u8> {
        redis::cmd("GET")
            .arg(&self.key)
            .query_async(&mut self.connection.clone())
            .await
            .unwrap()
    }

    /// Pauses writes to Redis.
    async fn pause_writes(&self, millis: u32) {
        redis::cmd("CLIENT")
            .arg("PAUSE")
            .arg(millis)
            .arg("WRITE")
            .query_async(&mut self.connection.clone())
            .await
            .unwrap()
    }

    async fn write(&self, value: &[u8]) {
        redis::cmd("SET")
            .arg(&self.key)
            .arg(value)
            .query_async(&mut self.connection.clone())
            .await
            .unwrap()
    }
}

/// Enough suppressions for a filter: those of [`crowd`] and many others.
fn many() -> Vec<String> {
    let mut many = addresses(0..MANY);
    many.extend(crowd());
    many
}

/// More recipients than the INSERT checks itself, so that acceptance reads the filter.
fn crowd() -> impl Iterator<Item = String> {
    (0..100).map(|number| format!("crowd{number}@example.org"))
}

fn message_to_crowd_and(to: &str) -> Value {
    let to: Vec<String> = crowd().chain([to.to_owned()]).collect();
    let mut message = message_to("");
    message["to"] = json!(to);
    message
}

/// Whether a recipient is suppressed in a send with the suppressed [`crowd`].
async fn is_held_back(app: &TestApp, to: &str) -> bool {
    let reply = app.post("/v1/send", &message_to_crowd_and(to)).await;
    reply.expect(202)["status"] == "suppressed"
}

/// Sends until the filter has been requested and built.
async fn with_filter(app: &TestApp) -> FilterKey {
    import(app, &many()).await;
    let filter = FilterKey::of(app).await;
    wait_until("the filter is built", async || {
        assert!(is_held_back(app, "r1@example.org").await);
        filter.is_complete().await
    })
    .await;
    filter
}

/// Sends to so many recipients that the filter is read by several commands. Only suppressed
/// recipients are dropped.
async fn holds_back_every_seventh_of_many(app: &TestApp) {
    let to: Vec<String> = (0..1_000)
        .map(|number| match number % 7 {
            0 => format!("r{number}@example.org"),
            _ => format!("stranger{number}@example.org"),
        })
        .collect();
    let to: Vec<&str> = to.iter().map(String::as_str).collect();
    let reply = app.post("/v1/send", &message_to_all(&to)).await.expect(202);
    let failed = format!(
        "SELECT string_agg(position::text, ' ' ORDER BY position)
         FROM recipients
         WHERE message_id = '{}' AND status = 'FAILED' AND last_error = 'suppressed'",
        reply["messageId"].as_str().unwrap()
    );
    let expected: Vec<String> = (0..1_000).step_by(7).map(|n| n.to_string()).collect();
    assert_eq!(app.value(&failed).await, Some(expected.join(" ")));
}

#[tokio::test]
async fn a_filter_is_built_and_has_all_suppressions_added_before_and_after() {
    let app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let filter = with_filter(&app).await;
    for number in (0..MANY).step_by(97) {
        assert!(
            is_held_back(&app, &format!("R{number}@example.org")).await,
            "{number}"
        );
    }
    // Added one by one and in imports of hundreds, while the filter is in use.
    suppress(&app, "later@example.org").await;
    assert!(is_held_back(&app, "later@example.org").await);
    let more = addresses(MANY..MANY + 600);
    import(&app, &more).await;
    for number in (MANY..MANY + 600).step_by(23) {
        assert!(
            is_held_back(&app, &format!("r{number}@example.org")).await,
            "{number}"
        );
    }
    let counted = i64::from_be_bytes(filter.read().await[8..16].try_into().unwrap());
    let additions = app
        .value("SELECT additions FROM suppression_filters")
        .await
        .unwrap();
    assert_eq!((counted, additions.as_str()), (601, "601"));
    assert!(!is_held_back(&app, "stranger@example.org").await);
    holds_back_every_seventh_of_many(&app).await;
    app.leave_work();
}

#[tokio::test]
async fn an_emptied_redis_lets_no_suppressed_recipient_through() {
    let app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let filter = with_filter(&app).await;
    app.redis.as_ref().unwrap().flush().await;
    holds_back_every_seventh_of_many(&app).await;
    assert!(is_held_back(&app, "r7@example.org").await);
    suppress(&app, "later@example.org").await;
    assert!(is_held_back(&app, "later@example.org").await);
    wait_until("the filter is built again", async || {
        assert!(is_held_back(&app, "later@example.org").await);
        filter.is_complete().await
    })
    .await;
    app.leave_work();
}

#[tokio::test]
async fn filters_that_are_lost_together_are_all_rebuilt() {
    let app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    let first = (app.organization_id(), app.caller().clone());
    let mut organizations = vec![first];
    for name in ["Second", "Third", "Fourth"] {
        let tenant = app.tenant(name).await;
        organizations.push((tenant.organization_id, tenant.caller));
    }
    let credentials = credentials(ProviderType::Sendgrid);
    let provider =
        json!({ "providerType": "SENDGRID", "displayName": "Theirs", "credentials": credentials });
    let emails = json!({ "emails": many() });
    let mut filters = Vec::new();
    for (organization_id, caller) in organizations {
        caller.post("/v1/providers", &provider).await.expect(201);
        caller.post(IMPORT, &emails).await.expect(200);
        let filter = FilterKey::in_organization(&app, organization_id).await;
        filters.push((caller, filter));
    }
    let send_to_all = async || {
        for (caller, _) in &filters {
            let message = message_to_crowd_and("r1@example.org");
            let reply = caller.post("/v1/send", &message).await.expect(202);
            assert_eq!(reply["status"], "suppressed");
        }
    };
    let are_built = async || {
        let mut are_built = true;
        for (_, filter) in &filters {
            are_built &= filter.is_complete().await;
        }
        are_built
    };
    // Each build is requested once, all but the first while the first is processed.
    send_to_all().await;
    wait_until("all filters are built", are_built).await;
    app.redis.as_ref().unwrap().flush().await;
    wait_until("all filters are built again", async || {
        send_to_all().await;
        are_built().await
    })
    .await;
}

#[tokio::test]
async fn a_filter_is_built_with_a_slow_redis() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    import(&app, &many()).await;
    let filter = FilterKey::of(&app).await;
    filter.pause_writes(3_000).await;
    // Once the build has started, no further build is requested.
    wait_until("the filter is begun", async || {
        assert!(is_held_back(&app, "r1@example.org").await);
        let locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                     WHERE l.locktype = 'advisory' AND d.datname = current_database()";
        app.value(locks).await.unwrap() != "0"
    })
    .await;
    wait_until("the filter is built", async || filter.is_complete().await).await;
    assert!(is_held_back(&app, "r1@example.org").await);
    assert!(!is_held_back(&app, "stranger@example.org").await);
    app.leave_work();
}

#[tokio::test]
async fn a_filter_from_an_old_snapshot_is_invalid() {
    let app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let filter = with_filter(&app).await;
    let old = filter.read().await;
    let accepted = app.send_to("later@example.org").await;
    suppress(&app, "later@example.org").await;
    assert_ne!(filter.read().await, old);
    filter.write(&old).await;
    // A process that has read the additions from Postgres treats the filter as invalid. The
    // state is cached for a second.
    wait_until("the snapshot is found out", async || {
        is_held_back(&app, "later@example.org").await
    })
    .await;
    wait_until("the filter is built again", async || {
        assert!(is_held_back(&app, "later@example.org").await);
        let counted = filter.read().await;
        counted[..8] != old[..8] && filter.is_complete().await
    })
    .await;
    // The check before the provider call prevented sends in the meantime.
    app.start_worker();
    app.drain().await;
    assert_eq!(app.status(&accepted).await, "FAILED");
    assert!(app.captured("later@example.org").is_empty());
}

#[tokio::test]
async fn without_redis_postgres_answers() {
    let mut app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    with_filter(&app).await;
    app.redis.as_mut().unwrap().stop().await;
    suppress(&app, "later@example.org").await;
    for address in ["later@example.org", "r1@example.org", "r2999@example.org"] {
        assert!(is_held_back(&app, address).await, "{address}");
    }
    assert!(!is_held_back(&app, "stranger@example.org").await);
    holds_back_every_seventh_of_many(&app).await;
    app.leave_work();
}
