//! Rows that are deleted one by one, because no dropped month contains them.

use chrono::TimeDelta;
use serde_json::json;
use waypost_tests::TestApp;

use super::{
    OLD, TURN, add_old, assert_counted, next_month, quiet, retention, sent, total, with_account,
};

/// As if no scheduler had created the month of these messages.
async fn add_stray(app: &TestApp, count: u32) {
    add_old(app, OLD, count).await;
    for table in [
        "messages",
        "message_bodies",
        "recipient_contents",
        "attachment_contents",
        "recipients",
        "events",
    ] {
        app.execute(&format!(
            "ALTER TABLE {table} DETACH PARTITION {table}_y2020m01;
             ALTER TABLE {table}_y2020m01 RENAME TO stray_{table};
             INSERT INTO {table}_default SELECT * FROM stray_{table};
             DROP TABLE stray_{table}"
        ))
        .await;
    }
}

#[tokio::test]
async fn an_undeletable_message_blocks_no_others() {
    let app = quiet().await;
    let other = with_account(&app).await;
    let stuck = sent(&app, &other, "stuck@example.org").await;
    other
        .patch("/v1/settings", &json!({ "retentionDays": 10 }))
        .await
        .expect(200);
    app.advance(TimeDelta::days(11));
    // It comes after all organizations with their own days.
    add_stray(&app, 2).await;
    let keeper = retention(&app, Some(30), Some(10));
    let left = "SELECT string_agg(id::text, ' ') FROM messages";
    let bodies = "SELECT count(*)::text FROM message_bodies_default";
    for refusal in ["RAISE ''not this one''", "PERFORM pg_sleep(60)"] {
        app.execute(&format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN {refusal}; RETURN OLD; END';
             CREATE TRIGGER refuse BEFORE DELETE ON messages
             FOR EACH ROW WHEN (OLD.id = '{stuck}') EXECUTE FUNCTION refuse()"
        ))
        .await;
        keeper.delete_expired(TURN).await.unwrap_err();
        assert_eq!(app.value(left).await.as_ref(), Some(&stuck), "{refusal}");
        assert_eq!(app.value(bodies).await.as_deref(), Some("0"), "{refusal}");
        app.execute("DROP FUNCTION refuse() CASCADE").await;
        add_stray(&app, 2).await;
    }
    assert_eq!(keeper.delete_expired(TURN).await.unwrap(), 3);
}

#[tokio::test]
async fn messages_without_a_month_are_deleted_too() {
    let app = quiet().await;
    add_stray(&app, 5).await;
    assert_eq!(total(app.caller()).await, 5);
    assert_eq!(
        retention(&app, None, None)
            .delete_expired(TURN)
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        retention(&app, Some(30), None)
            .delete_expired(TURN)
            .await
            .unwrap(),
        5
    );
    for table in ["messages", "message_bodies", "recipients", "events"] {
        let left = app
            .value(&format!("SELECT count(*) FROM {table}_default"))
            .await;
        assert_eq!(left.as_deref(), Some("0"), "{table}");
    }
    assert_eq!(total(app.caller()).await, 0);
    assert_counted(&app).await;
}

#[tokio::test]
async fn bodies_are_deleted_in_kept_months_and_without_a_month_too() {
    let app = quiet().await;
    let waits = app.send_to("waits@example.org").await;
    let done = sent(&app, app.caller(), "done@example.org").await;
    add_stray(&app, 3).await;
    next_month(&app).await;
    let young = sent(&app, app.caller(), "young@example.org").await;
    app.advance(TimeDelta::days(10));
    let keeper = retention(&app, None, Some(10));
    assert_eq!(keeper.drop_months().await.unwrap(), 0);
    assert_eq!(keeper.delete_expired(TURN).await.unwrap(), 0);
    let left = "SELECT string_agg(message_id::text, ' ' ORDER BY message_id) FROM message_bodies";
    assert_eq!(app.value(left).await, Some(format!("{waits} {young}")));
    assert_eq!(total(app.caller()).await, 6);
    assert_eq!(app.status(&done).await, "SENT");
    app.leave_work();
}

#[tokio::test]
async fn a_large_message_is_deleted_in_steps() {
    let app = quiet().await;
    let id = sent(&app, app.caller(), "ada@example.org").await;
    app.execute(&format!(
        "INSERT INTO webhook_deliveries (message_id, id, organization_id, webhook_endpoint_id, event_id, event_type,
                                         position, status, created_at)
         SELECT id, gen_random_uuid(), organization_id, gen_random_uuid(), gen_random_uuid(), 'SENT', 0, 'DELIVERED',
                now()
         FROM messages, generate_series(1, 6000)
         WHERE id = '{id}';
         CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_sleep(0.0005); RETURN OLD; END';
         CREATE TRIGGER slowly BEFORE DELETE ON webhook_deliveries
         FOR EACH ROW EXECUTE FUNCTION slowly()"
    ))
    .await;
    app.patch("/v1/settings", &json!({ "retentionDays": 30 }))
        .await
        .expect(200);
    app.advance(TimeDelta::days(31));
    let keeper = retention(&app, None, None);
    assert_eq!(keeper.delete_expired(TURN).await.unwrap(), 1);
    for table in ["messages", "events", "webhook_deliveries"] {
        let left = format!("SELECT count(*)::text FROM {table}");
        assert_eq!(app.value(&left).await.as_deref(), Some("0"), "{table}");
    }
}
