//! Unsubscribe groups: adding, changing and removing them, and the default group.

use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_tests::{Reply, TestApp};

const PATH: &str = "/v1/unsubscribe-groups";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn create(app: &TestApp, name: &str, is_default: bool) -> String {
    let body = json!({ "name": name, "isDefault": is_default });
    let group = app.post(PATH, &body).await.data(201);
    group["id"].as_str().unwrap().to_owned()
}

async fn groups(app: &TestApp) -> Vec<Value> {
    app.get(PATH).await.data(200).as_array().unwrap().clone()
}

async fn defaults(app: &TestApp) -> Vec<String> {
    let groups = groups(app).await;
    let defaults = groups.iter().filter(|group| group["isDefault"] == true);
    defaults
        .map(|group| group["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_group_is_added_listed_changed_and_removed() {
    let app = quiet().await;
    let body = json!({ "name": "News", "description": "Once\na week", "isDefault": true });
    let group = app.post(PATH, &body).await.data(201);
    let id = group["id"].as_str().unwrap();
    let expected = json!({
        "id": id,
        "organizationId": app.organization_id().to_string(),
        "name": "News",
        "description": "Once\na week",
        "isDefault": true,
        "createdAt": group["createdAt"],
    });
    assert_eq!(group, expected);
    let plain = app.post(PATH, &json!({ "name": "Offers" })).await.data(201);
    assert_eq!(
        (&plain["description"], &plain["isDefault"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(
        app.get(PATH).await.expect(200),
        json!({ "data": [group, plain] })
    );

    let path = format!("{PATH}/{id}");
    assert_eq!(app.get(&path).await.data(200), expected);
    let change = json!({ "name": "Newsletter", "isDefault": false });
    let changed = app.patch(&path, &change).await.data(200);
    let mut wanted = expected;
    wanted["name"] = json!("Newsletter");
    wanted["isDefault"] = json!(false);
    assert_eq!(changed, wanted);
    assert_eq!(app.patch(&path, &json!({})).await.data(200), wanted);
    let emptied = app
        .patch(&path, &json!({ "description": "" }))
        .await
        .data(200);
    assert_eq!(emptied["description"], "");

    assert_eq!(
        app.delete(&path).await.expect(200),
        json!({ "success": true })
    );
    app.delete(&path).await.expect_error(404, "NOT_FOUND");
    app.patch(&path, &json!({ "name": "x" }))
        .await
        .expect_error(404, "NOT_FOUND");
    assert_eq!(app.get(PATH).await.data(200), json!([plain]));
}

#[tokio::test]
async fn names_and_descriptions_have_limits() {
    let app = quiet().await;
    let id = create(&app, "Bounds", false).await;
    let path = format!("{PATH}/{id}");
    for (field, length, fits) in [
        ("name", 255, true),
        ("name", 256, false),
        ("name", 0, false),
        ("description", 2_000, true),
        ("description", 2_001, false),
    ] {
        // Two bytes each, because the limits count characters.
        let mut body = json!({ "name": "n" });
        body[field] = json!("é".repeat(length));
        let (added, changed) = (app.post(PATH, &body).await, app.patch(&path, &body).await);
        if fits {
            assert_eq!(added.data(201)[field], body[field]);
            assert_eq!(changed.data(200)[field], body[field]);
        } else {
            added.expect_issues(400, &[field]);
            changed.expect_issues(400, &[field]);
        }
    }
}

#[tokio::test]
async fn all_issues_are_reported() {
    let app = quiet().await;
    let id = create(&app, "Fine", false).await;
    app.post(PATH, &json!({}))
        .await
        .expect_issues(400, &["name"]);
    let all = json!({ "name": 7, "description": "a\0b", "isDefault": "yes" });
    let paths = ["name", "description", "isDefault"];
    app.post(PATH, &all).await.expect_issues(400, &paths);
    app.patch(&format!("{PATH}/{id}"), &all)
        .await
        .expect_issues(400, &paths);
    app.post(PATH, &json!({ "name": "a\nb" }))
        .await
        .expect_issues(400, &["name"]);
    assert_eq!(groups(&app).await.len(), 1);
}

#[tokio::test]
async fn a_new_default_unsets_the_previous_one() {
    let app = quiet().await;
    let first = create(&app, "First", true).await;
    let second = create(&app, "Second", true).await;
    assert_eq!(defaults(&app).await, [second.as_str()]);
    let path = format!("{PATH}/{first}");
    let _done = app
        .patch(&path, &json!({ "isDefault": true }))
        .await
        .data(200);
    assert_eq!(defaults(&app).await, [first.as_str()]);
    let _done = app
        .patch(&path, &json!({ "isDefault": true }))
        .await
        .data(200);
    assert_eq!(defaults(&app).await, [first]);
    let _done = app.delete(&path).await.expect(200);
    assert!(defaults(&app).await.is_empty());
    // The default of another organization stays.
    let other = app.tenant("Other").await;
    let body = json!({ "name": "Theirs", "isDefault": true });
    let _done = other.caller.post(PATH, &body).await.data(201);
    let _done = app
        .patch(&format!("{PATH}/{second}"), &json!({ "isDefault": true }))
        .await
        .data(200);
    assert_eq!(other.caller.get(PATH).await.data(200)[0]["isDefault"], true);
}

#[tokio::test]
async fn concurrent_defaults_all_succeed_and_one_remains() {
    let app = quiet().await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(create(&app, &format!("Group {number}"), false).await);
    }
    for _ in 0..5 {
        let body = json!({ "name": "Racing", "isDefault": true });
        let added = (0..8).map(|_| app.caller().post(PATH, &body));
        let change = json!({ "isDefault": true });
        let paths: Vec<String> = ids.iter().map(|id| format!("{PATH}/{id}")).collect();
        let changed = paths.iter().map(|path| app.caller().patch(path, &change));
        let (added, changed) = tokio::join!(
            futures_util::future::join_all(added),
            futures_util::future::join_all(changed)
        );
        let _added: Vec<Value> = added.iter().map(|reply: &Reply| reply.data(201)).collect();
        let _changed: Vec<Value> = changed
            .iter()
            .map(|reply: &Reply| reply.data(200))
            .collect();
        assert_eq!(defaults(&app).await.len(), 1);
    }
}

#[tokio::test]
async fn removing_a_group_removes_only_its_suppressions() {
    let app = quiet().await;
    let group = create(&app, "Going", false).await;
    let other = create(&app, "Staying", false).await;
    let suppress = async |body: Value| app.post("/v1/suppressions", &body).await.data(201);
    let emails =
        json!({ "emails": ["a@example.org", "b@example.org"], "unsubscribeGroupId": group });
    let _done = app.post("/v1/suppressions/import", &emails).await.data(200);
    suppress(json!({ "email": "a@example.org", "unsubscribeGroupId": other })).await;
    suppress(json!({ "email": "a@example.org" })).await;
    let total =
        async || app.get("/v1/suppressions").await.expect(200)["pagination"]["total"].clone();
    assert_eq!(total().await, 4);
    let _done = app.delete(&format!("{PATH}/{group}")).await.expect(200);
    assert_eq!(total().await, 2);
    let count = app.value("SELECT count(*) FROM suppressions").await;
    assert_eq!(count.as_deref(), Some("2"));
    let gone = json!({ "email": "c@example.org", "unsubscribeGroupId": group });
    let reply = app.post("/v1/suppressions", &gone).await;
    reply.expect_issues(422, &["unsubscribeGroupId"]);
}

#[tokio::test]
async fn every_change_of_a_group_is_audited() {
    let app = quiet().await;
    let id = create(&app, "Watched", true).await;
    let _done = app
        .patch(&format!("{PATH}/{id}"), &json!({ "name": "Renamed" }))
        .await
        .data(200);
    let _done = app.delete(&format!("{PATH}/{id}")).await.expect(200);
    let entries = "SELECT string_agg(action || ' ' || target_id, ', ' ORDER BY id) FROM audit_logs";
    let expected =
        ["created", "updated", "deleted"].map(|verb| format!("unsubscribe_group.{verb} {id}"));
    assert_eq!(app.value(entries).await, Some(expected.join(", ")));
}

#[tokio::test]
async fn groups_need_the_permission_and_are_isolated_by_organization() {
    let app = quiet().await;
    let id = create(&app, "Ours", true).await;
    let path = format!("{PATH}/{id}");
    let weak = app
        .key(
            app.organization_id(),
            &[Permission::Send, Permission::MetricsRead],
        )
        .await;
    let weak = app.caller().with_key(&weak);
    let body = json!({ "name": "x" });
    for reply in [
        weak.get(PATH).await,
        weak.post(PATH, &body).await,
        weak.patch(&path, &body).await,
        weak.delete(&path).await,
    ] {
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(error["details"]["requiredPermission"], "SETTINGS_WRITE");
    }
    let other = app.tenant("Other").await.caller;
    assert_eq!(other.get(PATH).await.data(200), json!([]));
    for reply in [other.patch(&path, &body).await, other.delete(&path).await] {
        reply.expect_error(404, "NOT_FOUND");
    }
    assert_eq!(groups(&app).await[0]["name"], "Ours");
}
