//! Versions and parts that change at the same time: whatever the order, every current version
//! holds the current versions of its parts.

use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_tests::TestApp;

use super::parts::partial;
use super::{add_version, quiet, template};

/// Current versions that hold another version of a part than the current one.
const STALE: &str = "SELECT count(*) FROM template_uses u
    JOIN templates t ON t.current_version_id = u.version_id
    JOIN templates p ON p.id = u.part_id
    WHERE p.current_version_id <> u.part_version_id";

async fn assert_fresh(app: &TestApp, ids: &[String]) {
    assert_eq!(app.value(STALE).await.as_deref(), Some("0"));
    for id in ids {
        let query = format!(
            "SELECT v.html_content FROM templates t JOIN template_versions v ON v.id = t.current_version_id WHERE t.id = '{id}'"
        );
        let html = app.value(&query).await.unwrap();
        let query = "SELECT string_agg(v.html_content, '' ORDER BY t.name) FROM templates t
             JOIN template_versions v ON v.id = t.current_version_id WHERE t.type = 'PARTIAL' AND t.name IN ('a', 'b')";
        assert_eq!(html, app.value(query).await.unwrap());
    }
}

#[tokio::test]
async fn versions_and_parts_added_at_once_leave_nothing_stale() {
    let app = quiet().await;
    let (a, b) = (
        partial(&app, "a", "a0").await,
        partial(&app, "b", "b0").await,
    );
    let content = json!({ "htmlContent": "{{> a}}{{> b}}" });
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = template(&app).await;
        add_version(&app, &id, &content).await.data(201);
        ids.push(id);
    }
    let other = app.start_another_api().await;
    for round in 1..=4 {
        let mut changes: Vec<(String, Value)> = Vec::new();
        for (number, id) in ids.iter().enumerate() {
            changes.push((
                a.clone(),
                json!({ "htmlContent": format!("a{round}.{number}") }),
            ));
            changes.push((
                b.clone(),
                json!({ "htmlContent": format!("b{round}.{number}") }),
            ));
            changes.push((id.clone(), content.clone()));
        }
        let changes = changes.iter().enumerate().map(|(index, (id, content))| {
            let caller = if index % 2 == 0 { app.caller() } else { &other };
            let path = format!("/v1/templates/{id}/versions");
            async move { caller.post(&path, content).await }
        });
        for reply in join_all(changes).await {
            reply.data(201);
        }
        assert_fresh(&app, &ids).await;
    }
    // Rollbacks of parts and of templates, too.
    let app = &app;
    let firsts = join_all([&a, &b, &ids[0], &ids[1]].map(|id| async move {
        let path = format!("/v1/templates/{id}/versions");
        let list = app.caller().get(&path).await.data(200);
        let first = list.as_array().unwrap().last().unwrap()["id"].clone();
        format!("/v1/templates/{id}/rollback/{}", first.as_str().unwrap())
    }))
    .await;
    for reply in join_all(firsts.iter().map(|path| other.post_empty(path))).await {
        reply.data(200);
    }
    assert_fresh(app, &ids).await;
}

#[tokio::test]
async fn a_part_is_removed_or_used_never_both() {
    let app = quiet().await;
    for round in 0..6 {
        let name = format!("p{round}");
        let part = partial(&app, &name, "x").await;
        let id = template(&app).await;
        let content = json!({ "htmlContent": format!("{{{{> {name}}}}}") });
        let path = format!("/v1/templates/{part}");
        let (removed, added) = tokio::join!(app.delete(&path), add_version(&app, &id, &content));
        match (removed.status, added.status) {
            (200, 400) | (409, 201) => {}
            (removed, added) => panic!("{removed} {added}"),
        }
    }
    assert_eq!(app.value(STALE).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn a_template_may_be_removed_while_its_part_changes() {
    let app = quiet().await;
    let a = partial(&app, "a", "0").await;
    for round in 0..6 {
        let id = template(&app).await;
        add_version(&app, &id, &json!({ "htmlContent": "{{> a}}" }))
            .await
            .data(201);
        let path = format!("/v1/templates/{id}");
        let content = json!({ "htmlContent": round.to_string() });
        let (removed, changed) = tokio::join!(app.delete(&path), add_version(&app, &a, &content));
        removed.expect(200);
        changed.data(201);
    }
}
