//! Concurrent requests to two API processes, which share only Postgres and Redis.

use futures_util::future::join_all;
use futures_util::poll;
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::db;
use waypost_core::secret::Secret;
use waypost_tests::{Caller, Reply, TestApp};

/// Concurrent requests.
const RACERS: usize = 12;

/// An app and its callers, alternately at one API process and at the other.
async fn racers() -> (TestApp, Vec<Caller>) {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    let other = app.start_another_api().await;
    let callers = [app.caller().clone(), other];
    let callers = callers.iter().cycle().take(RACERS).cloned().collect();
    (app, callers)
}

async fn all_post(callers: &[Caller], path: &str, body: &Value) -> Vec<Reply> {
    join_all(callers.iter().map(|caller| caller.post(path, body))).await
}

fn statuses(replies: &[Reply]) -> Vec<u16> {
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    statuses
}

#[tokio::test]
async fn one_default_group_is_left() {
    let (app, callers) = racers().await;
    let group = json!({ "name": "Racing", "isDefault": true });
    for round in 1..=5 {
        let replies = all_post(&callers, "/v1/unsubscribe-groups", &group).await;
        assert_eq!(statuses(&replies), [201; RACERS]);
        let groups = app.get("/v1/unsubscribe-groups").await.data(200);
        let groups = groups.as_array().unwrap();
        let defaults = groups.iter().filter(|group| group["isDefault"] == true);
        assert_eq!(defaults.count(), 1);
        assert_eq!(groups.len(), round * RACERS);
    }
}

#[tokio::test]
async fn version_numbers_have_no_gap_and_no_duplicate() {
    let (app, callers) = racers().await;
    let template = app.post("/v1/templates", &json!({ "name": "T" })).await;
    let path = format!(
        "/v1/templates/{}/versions",
        template.data(201)["id"].as_str().unwrap()
    );
    let replies = all_post(&callers, &path, &json!({ "htmlContent": "x" })).await;
    let mut numbers: Vec<usize> = replies
        .iter()
        .map(|reply| usize::try_from(reply.data(201)["versionNumber"].as_u64().unwrap()).unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=RACERS).collect::<Vec<usize>>());
}

#[tokio::test]
async fn a_suppression_is_added_once() {
    let (app, callers) = racers().await;
    for number in 0..5 {
        let body = json!({ "email": format!("racer{number}@example.org") });
        let replies = all_post(&callers, "/v1/suppressions", &body).await;
        let mut expected = vec![409; RACERS];
        expected[0] = 201;
        assert_eq!(statuses(&replies), expected);
    }
    let list = app.get("/v1/suppressions").await.expect(200);
    assert_eq!(list["pagination"]["total"], 5);
}

#[tokio::test]
async fn imports_count_every_address_once() {
    let (app, callers) = racers().await;
    let emails: Vec<String> = (0..500).map(|n| format!("i{n}@example.org")).collect();
    let body = json!({ "emails": emails });
    let replies = all_post(&callers, "/v1/suppressions/import", &body).await;
    let imported: u64 = replies
        .iter()
        .map(|reply| reply.data(200)["imported"].as_u64().unwrap())
        .sum();
    assert_eq!(imported, 500);
    let list = app.get("/v1/suppressions").await.expect(200);
    assert_eq!(list["pagination"]["total"], 500);
}

#[tokio::test]
async fn a_record_is_removed_once() {
    let (app, callers) = racers().await;
    let nowhere = Uuid::nil();
    let suppression = app
        .post("/v1/suppressions", &json!({ "email": "a@example.org" }))
        .await
        .data(201);
    let template = app.post("/v1/templates", &json!({ "name": "T" })).await;
    let template = template.data(201);
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "G" }))
        .await
        .data(201);
    for (list, record) in [
        ("suppressions", suppression),
        ("templates", template),
        ("unsubscribe-groups", group),
    ] {
        let path = format!("/v1/{list}/{}", record["id"].as_str().unwrap());
        let replies = join_all(callers.iter().map(|caller| caller.delete(&path))).await;
        let mut expected = vec![404; RACERS];
        expected[0] = 200;
        assert_eq!(statuses(&replies), expected, "{path}");
        app.delete(&format!("/v1/{list}/{nowhere}"))
            .await
            .expect_error(404, "NOT_FOUND");
    }
}

/// A cancelled `begin` must leave no open transaction on its connection, so that later
/// writes are committed: see `db::begin`.
#[tokio::test]
async fn a_cancelled_begin_leaves_no_transaction_open() {
    let (app, _) = racers().await;
    let url = Secret::from(app.variables["DATABASE_URL"].clone());
    let pool = db::pool(&url, 1).unwrap();
    for polls in 0..20 {
        let mut begun = Box::pin(db::begin(&pool, "begin in a hurry"));
        for _ in 0..polls {
            if poll!(&mut begun).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(begun);
        let name = format!("after {polls} polls");
        sqlx::query("INSERT INTO organizations (id, name, created_at) VALUES (gen_random_uuid(), $1, now())")
            .bind(&name)
            .execute(&pool)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let seen = format!("SELECT name FROM organizations WHERE name = '{name}'");
        assert_eq!(app.value(&seen).await, Some(name));
    }
}

/// Moves a message from QUEUED to SENT and back again and again, each time in one
/// transaction that leaves as many events as its status requires.
#[tokio::test]
async fn a_message_is_read_at_one_moment() {
    let (app, callers) = racers().await;
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let id = app.send_to("ada@example.org").await;
    let (pool, message) = (app.pool.clone(), id.clone());
    let changing = tokio::spawn(async move {
        for round in 0_u32..400 {
            let mut transaction = db::begin(&pool, "change a message").await.unwrap();
            let (status, events) = if round % 2 == 0 {
                let sent = "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
                            SELECT id, gen_random_uuid(), organization_id, 0, 'SENT', created_at FROM messages
                            WHERE id = $1::uuid";
                ("SENT", sent)
            } else {
                let gone = "DELETE FROM events WHERE message_id = $1::uuid AND event_type = 'SENT'";
                ("QUEUED", gone)
            };
            for statement in [
                "UPDATE messages SET status = $2::text::message_status WHERE id = $1::uuid",
                "UPDATE recipients SET status = $2::text::message_status WHERE message_id = $1::uuid",
            ] {
                let changed = sqlx::query(statement).bind(&message).bind(status);
                changed.execute(&mut *transaction).await.unwrap();
            }
            let changed = sqlx::query(events).bind(&message);
            changed.execute(&mut *transaction).await.unwrap();
            transaction.commit().await.unwrap();
        }
    });
    let is_sent = |of: &Value| of["events"].as_array().unwrap().len() == 2;
    let mut shown = 0;
    while !changing.is_finished() || shown < 100 {
        let caller = &callers[shown % 2];
        let one = caller.get(&format!("/v1/messages/{id}")).await.data(200);
        assert_eq!(one["status"] == "SENT", is_sent(&one), "{one}");
        let path = format!("/v1/messages/{id}/recipients");
        let recipients = caller.get(&path).await.data(200);
        let recipient = &recipients[0];
        assert_eq!(
            recipient["status"] == "SENT",
            is_sent(recipient),
            "{recipient}"
        );
        shown += 1;
    }
    changing.await.unwrap();
    app.leave_work();
}
