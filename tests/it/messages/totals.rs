//! Long lists of messages: totals that are always exact, pages from both ends, and
//! searches in more messages than a scan covers.

use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::message::list;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, TestApp, message_to};

const PATH: &str = "/v1/messages";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn total(caller: &Caller, query: &[(&str, &str)]) -> i64 {
    let page = caller.query(PATH, query).await.expect(200);
    page["pagination"]["total"].as_i64().unwrap()
}

/// Inserts messages as rows, oldest first. `subject` and `status` are SQL expressions
/// over the number `n`, from 1.
async fn add(app: &TestApp, count: u32, subject: &str, status: &str) {
    add_from(app, "2020-01-01Z", count, subject, status).await;
}

/// The same from a time on, one per second.
async fn add_from(app: &TestApp, start: &str, count: u32, subject: &str, status: &str) {
    let organization = app.organization_id();
    app.execute(&format!(
        "INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status,
                               tags, recipient_count, created_at)
         SELECT (substr(waypost_uuid_floor('{start}'::timestamptz + n * interval '1 second')::text, 1, 14)
                     || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
                '{organization}', gen_random_uuid(), 'news@example.com', sha256('a'),
                {subject}, ({status})::message_status, '{{}}', 1, now()
         FROM generate_series(1, {count}) AS n"
    ))
    .await;
}

async fn subjects(caller: &Caller, query: &[(&str, &str)]) -> Vec<String> {
    let items = caller.query(PATH, query).await.data(200);
    let items = items.as_array().unwrap().iter();
    items
        .map(|item| item["subject"].as_str().unwrap().to_owned())
        .collect()
}

async fn counted(app: &TestApp) -> String {
    app.value(
        "SELECT coalesce(string_agg(status || ' ' || count, ', ' ORDER BY status), '')
         FROM (SELECT status, count(*) FROM messages GROUP BY status) c",
    )
    .await
    .unwrap()
}

async fn totals(app: &TestApp) -> String {
    let mut totals = Vec::new();
    for status in [
        "QUEUED",
        "SENDING",
        "SENT",
        "DELIVERED",
        "BOUNCED",
        "FAILED",
    ] {
        let total = total(app.caller(), &[("status", status)]).await;
        if total != 0 {
            totals.push(format!("{status} {total}"));
        }
    }
    totals.join(", ")
}

async fn send_many(app: &TestApp, count: usize, recipient: &str) {
    let sends = (0..count).map(|number| {
        let message = message_to(&format!("{recipient}+{number}@example.org"));
        async move { app.send(&message).await }
    });
    join_all(sends).await;
}

#[tokio::test]
async fn totals_are_exact_while_messages_are_sent_without_a_roll_up() {
    let app = TestApp::builder().without_scheduler().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other = app.tenant("Other").await;
    for round in 1..=4 {
        send_many(&app, 25, "fine").await;
        assert_eq!(total(app.caller(), &[]).await, round * 30 - 5);
        send_many(&app, 5, "refuse").await;
        assert_eq!(total(app.caller(), &[]).await, round * 30);
    }
    app.drain().await;
    assert_eq!(totals(&app).await, "SENT 100, FAILED 20");
    assert_eq!(totals(&app).await, counted(&app).await);
    assert_eq!(total(&other.caller, &[]).await, 0);
    app.fold_messages().await;
    assert_eq!(totals(&app).await, "SENT 100, FAILED 20");
    assert_eq!(total(app.caller(), &[]).await, 120);
}

#[tokio::test]
async fn totals_are_exact_while_messages_are_sent_and_rolled_up() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    for round in 1..=4 {
        send_many(&app, 30, "fine").await;
        assert_eq!(total(app.caller(), &[]).await, round * 30);
    }
    app.drain().await;
    assert_eq!(totals(&app).await, "SENT 120");
    // Every move and deletion is counted, whatever causes it.
    app.execute(
        "UPDATE messages SET status = 'BOUNCED' WHERE id IN (SELECT id FROM messages LIMIT 7)",
    )
    .await;
    app.execute(
        "DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE status = 'SENT' LIMIT 3)",
    )
    .await;
    assert_eq!(totals(&app).await, "SENT 110, BOUNCED 7");
    assert_eq!(totals(&app).await, counted(&app).await);
    assert_eq!(total(app.caller(), &[]).await, 117);
}

#[tokio::test]
async fn an_aborted_roll_up_leaves_the_totals_unchanged() {
    let app = quiet().await;
    add(&app, 30, "'Hello'", "'SENT'").await;
    let mut transaction = app.pool.begin().await.unwrap();
    assert!(
        list::store::roll_up(&mut transaction, OrganizationShard::WHOLE, 1_000)
            .await
            .unwrap()
            > 0
    );
    assert_eq!(totals(&app).await, "SENT 30");
    assert_eq!(total(app.caller(), &[("search", "hell")]).await, 30);
    transaction.rollback().await.unwrap();
    app.fold_messages().await;
    assert_eq!(totals(&app).await, "SENT 30");
    assert_eq!(total(app.caller(), &[("search", "hell")]).await, 30);
    assert_eq!(total(app.caller(), &[("search", "he")]).await, 30);
}

#[tokio::test]
async fn every_page_of_a_list_is_read_once_from_either_end() {
    let app = quiet().await;
    add(
        &app,
        103,
        "'Number ' || n",
        "CASE n % 3 WHEN 0 THEN 'FAILED' ELSE 'SENT' END",
    )
    .await;
    let all: Vec<u32> = (1..=103).rev().collect();
    for (status, expected) in [
        (None, all.clone()),
        (
            Some("FAILED"),
            all.iter().copied().filter(|n| n % 3 == 0).collect(),
        ),
        (
            Some("SENT"),
            all.iter().copied().filter(|n| n % 3 != 0).collect(),
        ),
        (Some("QUEUED"), Vec::new()),
    ] {
        for limit in ["1", "7", "50", "100"] {
            let mut found = Vec::new();
            for page in 1..=110 {
                let page = page.to_string();
                let mut query = vec![("limit", limit), ("page", page.as_str())];
                query.extend(status.map(|status| ("status", status)));
                let body = app.caller().query(PATH, &query).await.expect(200);
                assert_eq!(body["pagination"]["total"], expected.len());
                let rows = body["data"].as_array().unwrap();
                if rows.is_empty() {
                    break;
                }
                found.extend(rows.iter().map(|row| row["subject"].clone()));
            }
            let expected: Vec<Value> = expected
                .iter()
                .map(|n| json!(format!("Number {n}")))
                .collect();
            assert_eq!(found, expected, "{status:?} by {limit}");
        }
    }
    for page in ["104", "50000", "10000000"] {
        let body = app
            .caller()
            .query(PATH, &[("page", page), ("limit", "100")])
            .await
            .expect(200);
        assert_eq!(
            (&body["data"], &body["pagination"]["total"]),
            (&json!([]), &json!(103))
        );
    }
}

/// Compares pages all over a list of one status, or of all, with a plain OFFSET in
/// Postgres.
async fn assert_pages(app: &TestApp, status: Option<&str>) {
    let condition = status.map_or("true".to_owned(), |status| format!("status = '{status}'"));
    let mut query: Vec<_> = status
        .map(|status| ("status", status))
        .into_iter()
        .collect();
    let length = total(app.caller(), &query).await;
    query.push(("limit", "100"));
    for page in (1..=length / 100 + 1).step_by(29) {
        let skip = (page - 1) * 100;
        let ids = format!(
            "SELECT string_agg(id::text, ' ' ORDER BY id DESC)
             FROM (SELECT id FROM messages WHERE {condition} ORDER BY id DESC OFFSET {skip} LIMIT 100) m"
        );
        let expected = app.value(&ids).await.unwrap_or_default();
        let page = page.to_string();
        let query = [&query[..], &[("page", page.as_str())]].concat();
        let rows = app.caller().query(PATH, &query).await.data(200);
        let rows = rows.as_array().unwrap().iter();
        let found: Vec<&str> = rows.map(|row| row["id"].as_str().unwrap()).collect();
        assert_eq!(found.join(" "), expected, "{status:?}, page {page}");
    }
}

#[tokio::test]
async fn pages_far_from_both_ends_are_found_by_the_counters_per_hour() {
    let app = quiet().await;
    app.execute("SELECT waypost_create_partitions('2040-01-01Z', 1)")
        .await;
    let status = "CASE WHEN n % 2 = 0 THEN 'FAILED' ELSE 'SENT' END";
    // One message per second. The old ones are in the default partition, the new ones in
    // that and in their own partition.
    add(&app, 14_000, "'Old'", status).await;
    add_from(&app, "2039-12-31T20:00Z", 36_000, "'New'", status).await;
    let of = list::MessageList {
        organization_id: app.organization_id(),
        is_test: false,
    };
    let skip = async |before| {
        let mut connection = app.pool.acquire().await.unwrap();
        let place = list::store::find_offset(&mut connection, of, &[], before);
        place.await.unwrap().map(|place| place.skip)
    };
    let assert_all = async || {
        for status in [None, Some("SENT"), Some("FAILED")] {
            assert_pages(&app, status).await;
        }
    };
    for is_folded in [false, true] {
        if is_folded {
            tokio::join!(app.fold_messages(), app.fold_messages());
        }
        // The newest hour has only one message, in its first second.
        assert_eq!(skip(0).await, Some(0));
        assert_eq!(skip(1).await, Some(0));
        assert_eq!(skip(3_600).await, Some(3_599));
        assert_eq!(skip(20_000).await, Some(19_999 % 3_600));
        assert_eq!(skip(35_999).await, Some(35_998 % 3_600));
        assert_eq!(skip(36_000).await, Some(0));
        assert_eq!(skip(49_999).await, Some(3_598));
        assert_eq!(skip(50_000).await, None);
        assert_all().await;
    }
    // Every move and deletion is counted in its hour.
    app.execute(
        "UPDATE messages SET status = 'FAILED'
         WHERE id BETWEEN waypost_uuid_floor('2040-01-01T00:30Z') AND waypost_uuid_floor('2040-01-01T02:30Z')",
    )
    .await;
    app.execute("DELETE FROM messages WHERE id > waypost_uuid_floor('2040-01-01T04:30Z') AND status = 'SENT'")
        .await;
    for is_folded in [false, true] {
        if is_folded {
            tokio::join!(app.fold_messages(), app.fold_messages());
        }
        assert_all().await;
    }
    // Without counters by hour, a page is found in another way.
    app.execute("DELETE FROM message_hours WHERE hour < '2039-01-01Z'")
        .await;
    assert_eq!(skip(36_000).await, None);
    assert_all().await;
    // A month whose messages were deleted has no pages, though its counters remain.
    assert!(skip(20_000).await.is_some());
    app.execute("INSERT INTO partition_drops (month, detached_at) VALUES ('2040-01-01Z', now())")
        .await;
    let of_december = skip(0).await;
    assert_eq!(
        (of_december, skip(14_398).await, skip(20_000).await),
        (Some(0), Some(3_598), None)
    );
}

#[tokio::test]
async fn a_search_finds_a_common_text_that_is_not_among_the_newest() {
    let app = quiet().await;
    let subject = "CASE WHEN n <= 26000 THEN 'Weekly news #' || n ELSE 'Receipt' END";
    add(&app, 32_000, subject, "'SENT'").await;
    app.fold_messages().await;
    let query = [("search", "weekly news"), ("limit", "2")];
    assert_eq!(total(app.caller(), &query).await, 2_000);
    let newest = ["Weekly news #26000", "Weekly news #25999"];
    assert_eq!(subjects(app.caller(), &query).await, newest);
}

#[tokio::test]
async fn a_search_finds_indexed_and_new_messages() {
    let app = quiet().await;
    add(&app, 12_000, "CASE WHEN n = 5 THEN 'Needle ÄÖ 100%' WHEN n % 2 = 0 THEN 'Your order #' || n ELSE 'Digest' END",
        "CASE WHEN n % 4 = 0 THEN 'BOUNCED' WHEN n <= 10 THEN 'FAILED' ELSE 'SENT' END").await;
    for is_folded in [false, true] {
        if is_folded {
            app.fold_messages().await;
            // A new message is not indexed yet.
            app.execute(&format!(
                "INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status,
                                       tags, recipient_count, created_at)
                 VALUES ('{}', '{}', gen_random_uuid(), 'news@example.com', sha256('a'), 'Another needle', 'SENT', '{{}}', 1, now())",
                uuid::Uuid::max(),
                app.organization_id(),
            ))
            .await;
        }
        let search = async |text: &str| total(app.caller(), &[("search", text)]).await;
        let with = async |text: &str, status: &str| {
            total(app.caller(), &[("search", text), ("status", status)]).await
        };
        let new = i64::from(is_folded);
        // Older than the sample, so found by the index.
        assert_eq!(search("NEEDLE").await, 1 + new);
        assert_eq!(search("le äö 100%").await, 1);
        assert_eq!(search("#11998").await, 1);
        assert_eq!(search("order #1199").await, 5);
        assert_eq!(search("nothing like it").await, 0);
        assert_eq!(search("%").await, 1);
        assert_eq!(search("äö").await, 1);
        // More than a search lists.
        assert_eq!(search("order").await, 2_000);
        assert_eq!(search("es").await, 2_000);
        assert_eq!(with("order", "BOUNCED").await, 2_000);
        assert_eq!(with("order", "SENT").await, 2_000);
        assert_eq!(with("needle", "FAILED").await, 1);
        assert_eq!(with("needle", "SENT").await, new);
        assert_eq!(with("äö", "FAILED").await, 1);
        assert_eq!(with("order", "FAILED").await, 3);
        assert_eq!(with("#11998", "SENT").await, 1);
        assert_eq!(with("#11998", "BOUNCED").await, 0);
        assert_eq!(with("order", "QUEUED").await, 0);
        let newest = subjects(
            app.caller(),
            &[("search", "oRDEr"), ("limit", "2"), ("page", "2")],
        )
        .await;
        assert_eq!(newest, ["Your order #11996", "Your order #11994"]);
        let last = subjects(
            app.caller(),
            &[("search", "order"), ("limit", "100"), ("page", "20")],
        )
        .await;
        assert_eq!((last.len(), last[99].as_str()), (100, "Your order #8002"));
        assert!(
            subjects(
                app.caller(),
                &[("search", "order"), ("limit", "100"), ("page", "21")]
            )
            .await
            .is_empty()
        );
    }
    let other = app.tenant("Other").await;
    assert_eq!(total(&other.caller, &[("search", "order")]).await, 0);
    assert_eq!(
        total(&other.caller, &[("search", "or"), ("status", "SENT")]).await,
        0
    );
}

#[tokio::test]
async fn a_text_that_has_become_rare_is_found_among_old_messages() {
    let app = quiet().await;
    // Common among the newest messages, but in fewer than two thousand of all.
    add(
        &app,
        11_500,
        "CASE WHEN n > 11100 OR n <= 300 THEN 'Invoice' ELSE 'Digest' END",
        "'SENT'",
    )
    .await;
    app.fold_messages().await;
    assert_eq!(total(app.caller(), &[("search", "invoice")]).await, 700);
    assert_eq!(
        total(app.caller(), &[("search", "invoice"), ("status", "SENT")]).await,
        700
    );
}

#[tokio::test]
async fn short_texts_are_searched_in_the_newest_thirty_thousand() {
    let app = quiet().await;
    add(
        &app,
        100_010,
        "CASE WHEN n <= 20 THEN 'zq ' || n WHEN n BETWEEN 70001 AND 70020 THEN 'jx ' || n ELSE 'Digest' END",
        "CASE WHEN n % 2 = 0 THEN 'BOUNCED' ELSE 'SENT' END",
    )
    .await;
    assert_eq!(total(app.caller(), &[]).await, 100_010);
    assert_eq!(total(app.caller(), &[("search", "jx")]).await, 10);
    assert_eq!(total(app.caller(), &[("search", "zq")]).await, 0);
    let found = subjects(app.caller(), &[("search", "J"), ("limit", "1")]).await;
    assert_eq!(found, ["jx 70020"]);
    // With a status that half of the newest thirty thousand messages have.
    assert_eq!(
        total(app.caller(), &[("search", "zq"), ("status", "SENT")]).await,
        0
    );
    assert_eq!(
        total(app.caller(), &[("search", "Di"), ("status", "SENT")]).await,
        2_000
    );
    // A longer text has no such limit.
    assert_eq!(total(app.caller(), &[("search", "zq 1")]).await, 11);
    assert_eq!(
        total(app.caller(), &[("search", "zq 1"), ("status", "SENT")]).await,
        6
    );
}

#[tokio::test]
async fn a_month_whose_partitions_are_created_late_keeps_its_totals_and_subjects() {
    let app = quiet().await;
    // A month without partitions: the rows are in the default partitions.
    add(&app, 12, "'Your order #' || n", "'SENT'").await;
    app.fold_messages().await;
    let place = "SELECT string_agg(DISTINCT tableoid::regclass::text, ' ') FROM";
    let places = async || {
        let messages = app.value(&format!("{place} messages")).await.unwrap();
        let subjects = app.value(&format!("{place} message_subjects")).await;
        (messages, subjects.unwrap())
    };
    let expected = ("messages_default", "message_subjects_default");
    assert_eq!(places().await, (expected.0.into(), expected.1.into()));
    app.execute("SELECT waypost_create_partitions('2020-01-01Z', 1)")
        .await;
    let expected = ("messages_y2020m01", "message_subjects_y2020m01");
    assert_eq!(places().await, (expected.0.into(), expected.1.into()));
    let again = app.value("SELECT waypost_create_partitions('2020-01-01Z', 1)");
    assert_eq!(again.await.as_deref(), Some("0"));
    assert_eq!(totals(&app).await, "SENT 12");
    assert_eq!(total(app.caller(), &[("search", "order #1")]).await, 4);
}
