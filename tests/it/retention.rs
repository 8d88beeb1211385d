//! Retention: months that are dropped whole, messages that are deleted one by one, what
//! is kept, and that sends are not delayed.

mod beside_others;
mod one_by_one;

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::clock::Timestamp;
use waypost_core::config::RetentionSettings;
use waypost_core::partition::{self, DropOutcome, Month};
use waypost_core::provider::kind::ProviderType;
use waypost_core::retention::Retention;
use waypost_tests::{Caller, TestApp, message_to, wait_until};

/// The longest run of a deletion in these tests.
const TURN: Duration = Duration::from_secs(20);
/// An old month, as SQL.
const OLD: &str = "2020-01-01Z";
const BODY_GONE: &str = "The message's content is no longer stored; send a new message";

async fn quiet() -> TestApp {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app
}

/// Another organization that can send.
async fn with_account(app: &TestApp) -> Caller {
    let other = app.tenant("Another").await.caller;
    let connect = json!({ "providerType": "SENDGRID", "displayName": "Mail",
                          "credentials": waypost_tests::credentials(ProviderType::Sendgrid) });
    other.post("/v1/providers", &connect).await.expect(201);
    other
}

/// The scheduler's retention task, with the operator's days for messages and bodies.
fn retention(app: &TestApp, message_days: Option<u32>, body_days: Option<u32>) -> Retention {
    Retention {
        pool: app.pool.clone(),
        clock: app.clock.clone(),
        settings: RetentionSettings {
            message_days,
            body_days,
        },
    }
}

async fn total(caller: &Caller) -> Value {
    let page = caller.get("/v1/messages").await.expect(200);
    page["pagination"]["total"].clone()
}

/// Inserts a sent message.
async fn sent(app: &TestApp, caller: &Caller, recipient: &str) -> String {
    let receipt = caller.post("/v1/send", &message_to(recipient)).await;
    let id = receipt.expect(202)["messageId"]
        .as_str()
        .unwrap()
        .to_owned();
    set_status(app, &id, "SENT").await;
    id
}

async fn set_status(app: &TestApp, id: &str, status: &str) {
    for statement in [
        format!("DELETE FROM outbox WHERE message_id = '{id}'"),
        format!("UPDATE recipients SET status = '{status}' WHERE message_id = '{id}'"),
        format!("UPDATE messages SET status = '{status}' WHERE id = '{id}'"),
    ] {
        app.execute(&statement).await;
    }
}

/// Moves the clock to the first day of the next month, whose partitions exist.
async fn next_month(app: &TestApp) {
    let now = app.clock.now();
    let end = Month::of(now).end();
    app.advance(end + TimeDelta::hours(1) - now);
    partition::create_ahead(&app.pool, app.clock.now(), 3)
        .await
        .unwrap();
}

/// The number of a message's rows in all tables that are partitioned by it.
async fn rows_of(app: &TestApp, id: &str) -> i64 {
    let tables = app
        .value(
            "SELECT string_agg(format('SELECT count(*) AS n FROM %I WHERE %I = ''@''', parent, key_column), ' UNION ALL ')
             FROM waypost_partitioned_tables()",
        )
        .await
        .unwrap();
    let rows = format!("SELECT sum(n) FROM ({}) counted", tables.replace('@', id));
    app.value(&rows).await.unwrap().parse().unwrap()
}

/// The number of a month's partitions, and of those that are still to be dropped.
async fn partitions_of(app: &TestApp, month: Month) -> (usize, usize) {
    let all = partition::list(&app.pool).await.unwrap();
    let of_month = |is_attached| {
        let own = all.iter().filter(|partition| partition.month == month);
        own.filter(|partition| partition.is_attached == is_attached)
            .count()
    };
    (of_month(true), of_month(false))
}

/// Asserts that all counts equal the rows, per organization, in total and by hour. The
/// hours of a month whose messages are detached are ignored, as lists ignore them.
async fn assert_counted(app: &TestApp) {
    let difference = async |counted: &str, there: &str| {
        let rows = format!(
            "SELECT count(*)
             FROM (SELECT organization_id, status, hour
                   FROM ({counted} UNION ALL {there}) both_sides (organization_id, status, hour, n)
                   GROUP BY organization_id, status, hour
                   HAVING sum(n) <> 0) d"
        );
        app.value(&rows).await.unwrap()
    };
    let in_all = difference(
        "SELECT organization_id, status, NULL::timestamptz, count FROM message_counts
         UNION ALL SELECT organization_id, status, NULL, change FROM message_changes",
        "SELECT organization_id, status, NULL, -1 FROM messages",
    );
    assert_eq!(in_all.await, "0");
    let by_hour = difference(
        "SELECT *
         FROM (SELECT organization_id, status, hour, count FROM message_hours
               UNION ALL SELECT organization_id, status, hour, change FROM message_changes WHERE hour IS NOT NULL) h
         WHERE NOT EXISTS (SELECT
                           FROM partition_drops d
                           WHERE d.detached_at IS NOT NULL AND d.month = date_trunc('month', h.hour, 'UTC'))",
        "SELECT organization_id, status, waypost_message_hour(id), -1 FROM messages",
    );
    assert_eq!(by_hour.await, "0");
}

/// Inserts messages of an old month with all their rows.
async fn add_old(app: &TestApp, month: &str, count: u32) {
    app.execute(&format!("SELECT waypost_create_partitions('{month}', 1)"))
        .await;
    let organization = app.organization_id();
    let ids = format!(
        "SELECT (substr(waypost_uuid_floor('{month}'::timestamptz + n * interval '1 second')::text, 1, 14)
                     || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id
         FROM generate_series(1, {count}) AS n"
    );
    for insert in [
        format!(
            "INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status,
                                   tags, recipient_count, created_at)
             SELECT id, '{organization}', gen_random_uuid(), 'news@example.com', sha256('a'), 'Old', 'SENT', '{{}}', 1, now()
             FROM ({ids}) i"
        ),
        format!(
            "INSERT INTO message_bodies (message_id, organization_id, from_mailbox, html)
             SELECT id, '{organization}', 'news@example.com', repeat('x', 500) FROM ({ids}) i"
        ),
        format!(
            "INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash, status, next_attempt_at)
             SELECT id, 0, '{organization}', 'a', sha256('a'), 'SENT', now() FROM ({ids}) i"
        ),
        format!(
            "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
             SELECT id, gen_random_uuid(), '{organization}', 0, 'SENT', now() FROM ({ids}) i"
        ),
    ] {
        app.execute(&insert).await;
    }
}

#[tokio::test]
async fn a_month_is_dropped_whole_with_its_totals_while_metrics_stay() {
    let app = TestApp::builder().without_scheduler().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let month = Month::of(app.clock.now());
    let old = [
        app.send_to("a@example.org").await,
        app.send_to("refuse@example.org").await,
    ];
    app.drain().await;
    let (from, to) = (month.begin().to_rfc3339(), month.end().to_rfc3339());
    let metrics = async || {
        let period = [("from", from.as_str()), ("to", to.as_str())];
        let summary = app.caller().query("/v1/metrics/summary", &period).await;
        summary.data(200)
    };
    let before = metrics().await;
    next_month(&app).await;
    let new = app.send_to("b@example.org").await;
    app.drain().await;
    let keeper = retention(&app, Some(30), None);
    // A month is over after its last day; no month is over yet.
    assert_eq!(keeper.drop_months().await.unwrap(), 0);
    assert_eq!(keeper.delete_expired(TURN).await.unwrap(), 0);
    assert_eq!(total(app.caller()).await, 3);
    app.advance(TimeDelta::days(30));
    assert_eq!(keeper.drop_months().await.unwrap(), 1);
    assert_eq!(partitions_of(&app, month).await, (0, 0));
    for id in old {
        for path in ["", "/recipients"] {
            let reply = app.get(&format!("/v1/messages/{id}{path}")).await;
            reply.expect_error(404, "NOT_FOUND");
        }
        assert_eq!(rows_of(&app, &id).await, 0);
    }
    assert_eq!(total(app.caller()).await, 1);
    assert_eq!(app.status(&new).await, "SENT");
    assert_counted(&app).await;
    assert_eq!(metrics().await, before);
    assert_eq!(before["totalSent"], 1, "{before}");
    // No work is left, and a second run does nothing.
    assert_eq!(
        app.value("SELECT count(*) FROM partition_drops")
            .await
            .as_deref(),
        Some("0")
    );
    assert_eq!(keeper.drop_months().await.unwrap(), 0);
}

#[tokio::test]
async fn an_organization_with_fewer_days_loses_its_messages_one_by_one() {
    let app = quiet().await;
    let other = with_account(&app).await;
    app.patch("/v1/settings", &json!({ "retentionDays": 30 }))
        .await
        .expect(200);
    let month = Month::of(app.clock.now());
    let kept = sent(&app, &other, "a@example.org").await;
    let mut old = Vec::new();
    for nth in 0..3 {
        old.push(sent(&app, app.caller(), &format!("r{nth}@example.org")).await);
        if nth == 1 {
            // The subjects of these are indexed, those of the others are not yet.
            app.fold_messages().await;
        }
    }
    app.advance(TimeDelta::days(29));
    next_month(&app).await;
    let young = sent(&app, app.caller(), "young@example.org").await;
    let keeper = retention(&app, None, None);
    assert_eq!(keeper.delete_expired(TURN).await.unwrap(), 3);
    for id in &old {
        app.get(&format!("/v1/messages/{id}"))
            .await
            .expect_error(404, "NOT_FOUND");
        assert_eq!(rows_of(&app, id).await, 0);
    }
    let queued = app
        .value("SELECT count(*) FROM new_messages WHERE subject IS NOT NULL")
        .await;
    assert_eq!(queued.as_deref(), Some("1"));
    assert_eq!(app.status(&young).await, "SENT");
    assert_eq!(
        (total(app.caller()).await, total(&other).await),
        (json!(1), json!(1))
    );
    assert_counted(&app).await;
    // The month stays, since an organization keeps it.
    next_month(&app).await;
    keeper.drop_months().await.unwrap();
    assert!(rows_of(&app, &kept).await > 0);
    assert!(partitions_of(&app, month).await.0 > 0);
    // It is dropped when no organization keeps it, even without an operator's setting.
    other
        .patch("/v1/settings", &json!({ "retentionDays": 10 }))
        .await
        .expect(200);
    assert!(keeper.drop_months().await.unwrap() > 0);
    assert_eq!(total(&other).await, 0);
    assert_counted(&app).await;
}

#[tokio::test]
async fn unfinished_messages_stay_and_keep_their_month_while_the_rest_is_deleted() {
    let app = quiet().await;
    let month = Month::of(app.clock.now());
    let done = sent(&app, app.caller(), "done@example.org").await;
    let queued = app.send_to("queued@example.org").await;
    next_month(&app).await;
    app.advance(TimeDelta::days(31));
    let keeper = retention(&app, Some(30), Some(10));
    assert_eq!(keeper.drop_months().await.unwrap(), 0);
    assert!(partitions_of(&app, month).await.0 > 0);
    assert_eq!(keeper.delete_expired(TURN).await.unwrap(), 1);
    assert_eq!(rows_of(&app, &done).await, 0);
    assert_eq!(app.status(&queued).await, "QUEUED");
    assert_eq!(total(app.caller()).await, 1);
    set_status(&app, &queued, "FAILED").await;
    assert_eq!(keeper.drop_months().await.unwrap(), 1);
    assert_eq!(partitions_of(&app, month).await, (0, 0));
    assert_eq!(total(app.caller()).await, 0);
    assert_counted(&app).await;
}

#[tokio::test]
async fn a_message_retried_at_that_moment_is_kept() {
    let app = quiet().await;
    let id = sent(&app, app.caller(), "a@example.org").await;
    set_status(&app, &id, "FAILED").await;
    let organization = app.organization_id();
    let mut transaction = app.pool.begin().await.unwrap();
    for statement in [
        format!("UPDATE recipients SET status = 'QUEUED' WHERE message_id = '{id}'"),
        format!(
            "INSERT INTO outbox (message_id, chunk, organization_id, wake_at) VALUES ('{id}', 0, '{organization}', now())"
        ),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&mut *transaction)
            .await
            .unwrap();
    }
    let delete = format!("SELECT waypost_delete_messages(ARRAY['{id}']::uuid[])");
    let deletion = app.value(&delete);
    let goes_on = async {
        wait_until("the deletion waits", async || app.lock_waits().await == 1).await;
        transaction.commit().await.unwrap();
    };
    let (deleted, ()) = tokio::join!(deletion, goes_on);
    assert_eq!(deleted.as_deref(), Some("0"));
    assert_eq!(app.recipient(&id).await["status"], "QUEUED");
    app.leave_work();
}

#[tokio::test]
async fn a_message_without_its_bodies_is_shown_and_not_retried() {
    let app = quiet().await;
    let id = sent(&app, app.caller(), "a@example.org").await;
    set_status(&app, &id, "FAILED").await;
    next_month(&app).await;
    app.advance(TimeDelta::days(10));
    let keeper = retention(&app, None, Some(10));
    assert_eq!(keeper.drop_months().await.unwrap(), 1);
    assert_eq!(app.status(&id).await, "FAILED");
    assert_eq!(total(app.caller()).await, 1);
    let error = app.retry(&id).await.expect_error(409, "CONFLICT");
    assert_eq!(error["message"], BODY_GONE);
    assert_eq!(keeper.drop_months().await.unwrap(), 0);
    assert_counted(&app).await;
}

#[tokio::test]
async fn an_interrupted_drop_continues_and_counts_changes_in_between() {
    let app = quiet().await;
    let other = app.tenant("Other").await;
    add_old(&app, OLD, 50).await;
    app.execute("SELECT waypost_begin_partition_drop('2020-01-01Z')")
        .await;
    // Changes are not lost, whether they were counted before or not.
    let pick = "SELECT id FROM messages WHERE status = 'SENT' ORDER BY id";
    let change = async || {
        app.execute(&format!(
            "UPDATE messages SET status = 'BOUNCED' WHERE id IN ({pick} LIMIT 3)"
        ))
        .await;
        app.execute(&format!(
            "DELETE FROM messages WHERE id IN ({pick} LIMIT 2)"
        ))
        .await;
        app.execute(&format!(
            "UPDATE messages SET status = status WHERE id IN ({pick} LIMIT 2)"
        ))
        .await;
    };
    change().await;
    app.execute("SELECT waypost_count_partition_drop('2020-01-01Z')")
        .await;
    app.execute("SELECT waypost_count_partition_drop('2020-01-01Z')")
        .await;
    change().await;
    assert_eq!(total(app.caller()).await, 46);
    assert_counted(&app).await;
    let one = app.value(&format!("{pick} LIMIT 1")).await.unwrap();
    app.execute("SELECT waypost_detach_partition('messages', '2020-01-01Z')")
        .await;
    // Half of it is gone: for every reader the message is gone.
    assert_eq!(total(app.caller()).await, 0);
    assert_counted(&app).await;
    for path in ["", "/recipients"] {
        let reply = app.get(&format!("/v1/messages/{one}{path}")).await;
        reply.expect_error(404, "NOT_FOUND");
    }
    app.retry(&one).await.expect_error(404, "NOT_FOUND");
    let january = Month::of("2020-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
    assert!(partitions_of(&app, january).await.0 > 0);
    // A row was still added after its table was dropped.
    app.execute("SELECT waypost_detach_partition('events', '2020-01-01Z')")
        .await;
    app.execute(&format!(
        "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
         VALUES ('{one}', gen_random_uuid(), '{}', 0, 'OPENED', now())",
        app.organization_id()
    ))
    .await;
    // No rule applies any more, and the drop is still completed.
    let keeper = retention(&app, None, None);
    keeper.drop_months().await.unwrap();
    assert_eq!(partitions_of(&app, january).await, (0, 0));
    assert_eq!(
        app.value("SELECT count(*) FROM partition_drops")
            .await
            .as_deref(),
        Some("0")
    );
    keeper.delete_expired(TURN).await.unwrap();
    assert_eq!(
        app.value("SELECT count(*) FROM events_default")
            .await
            .as_deref(),
        Some("0")
    );
    assert_eq!(total(&other.caller).await, 0);
}

#[tokio::test]
async fn a_dropped_month_leaves_no_hours_and_no_subjects() {
    let app = quiet().await;
    // Some hours of the first month wait for a recount, and all of the second.
    let months = ["2040-01-01Z", "2040-02-01Z"];
    add_old(&app, months[0], 20).await;
    app.fold_messages().await;
    let hours = "SELECT coalesce(sum(count), 0) FROM message_hours";
    assert_eq!(app.value(hours).await.as_deref(), Some("20"));
    app.execute(
        "UPDATE messages SET status = 'DELIVERED' WHERE id IN (SELECT id FROM messages LIMIT 5)",
    )
    .await;
    add_old(&app, months[1], 10).await;
    assert_counted(&app).await;
    for month in months {
        let month = Month::of(month.replace('Z', "T00:00:00Z").parse().unwrap());
        let ending = partition::drop_month(&app.pool, month).await.unwrap();
        assert_eq!(ending, DropOutcome::Dropped);
    }
    for is_folded in [false, true] {
        if is_folded {
            app.fold_messages().await;
        }
        assert_counted(&app).await;
        assert_eq!(total(app.caller()).await, 0);
        for table in ["message_hours", "message_subjects"] {
            let left = app.value(&format!("SELECT count(*) FROM {table}")).await;
            assert_eq!(left.as_deref(), Some("0"), "{table}");
        }
    }
}

#[tokio::test]
async fn every_month_has_a_fillfactor_for_updates() {
    let app = quiet().await;
    next_month(&app).await;
    for (table, kept) in [("send_attempts", 45), ("recipients", 50)] {
        // More months than the migrations created.
        let storage = format!(
            "SELECT string_agg(DISTINCT coalesce(array_to_string(reloptions, ', '), 'none'), ' or ')
             FROM pg_inherits
             JOIN pg_class ON oid = inhrelid
             WHERE inhparent = '{table}'::regclass
             HAVING count(*) > 4"
        );
        let storage = app.value(&storage).await;
        assert_eq!(storage, Some(format!("fillfactor={kept}")), "{table}");
    }
}

#[tokio::test]
async fn a_dropped_month_may_be_created_and_dropped_again() {
    let app = quiet().await;
    for _ in 0..2 {
        add_old(&app, OLD, 5).await;
        assert_eq!(total(app.caller()).await, 5);
        assert_eq!(
            retention(&app, Some(30), None).drop_months().await.unwrap(),
            1
        );
        assert_eq!(total(app.caller()).await, 0);
        assert_counted(&app).await;
    }
}

#[tokio::test]
async fn a_month_too_large_to_move_stays_and_later_ones_are_created() {
    let app = quiet().await;
    app.execute(
        "CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_sleep(10); RETURN OLD; END';
         CREATE TRIGGER take_long BEFORE DELETE ON events_default
         FOR EACH ROW EXECUTE FUNCTION take_long();
         INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
         SELECT waypost_uuid_floor('2031-01-15Z'), gen_random_uuid(), id, 0, 'OPENED', now()
         FROM organizations",
    )
    .await;
    let now = "2031-01-20T00:00:00Z".parse().unwrap();
    partition::create_ahead(&app.pool, now, 2).await.unwrap();
    let made = "SELECT count(*) FROM waypost_partitions() WHERE parent = 'events' AND month >= '2031-01-01Z'";
    assert_eq!(app.value(made).await.as_deref(), Some("1"));
    let made = made.replace("events", "messages");
    assert_eq!(app.value(&made).await.as_deref(), Some("2"));
    let left = app.value("SELECT count(*) FROM events_default").await;
    assert_eq!(left.as_deref(), Some("1"));
}

#[tokio::test]
async fn expired_soft_bounces_are_deleted() {
    let app = quiet().await;
    let organization = app.organization_id();
    for (address, times) in [
        (
            "old",
            "ARRAY[now() - interval '31 days', now() - interval '40 days']",
        ),
        (
            "new",
            "ARRAY[now() - interval '29 days', now() - interval '40 days']",
        ),
    ] {
        app.execute(&format!(
            "INSERT INTO soft_bounces (organization_id, email_hash, bounced_at)
             VALUES ('{organization}', sha256('{address}'), {times})"
        ))
        .await;
    }
    retention(&app, None, None)
        .delete_expired(TURN)
        .await
        .unwrap();
    let left =
        app.value("SELECT string_agg((email_hash = sha256('new'))::text, ' ') FROM soft_bounces");
    assert_eq!(left.await.as_deref(), Some("true"));
}
