//! Suppressions: adding, listing, importing and removing them.

mod csv;
mod lists;
mod providers;
mod sending;

use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_tests::{TestApp, to_hash};

const PATH: &str = "/v1/suppressions";
const IMPORT: &str = "/v1/suppressions/import";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn group(app: &TestApp, name: &str) -> String {
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": name }))
        .await;
    group.data(201)["id"].as_str().unwrap().to_owned()
}

async fn suppress(app: &TestApp, email: &str) -> Value {
    app.post(PATH, &json!({ "email": email })).await.data(201)
}

async fn import(app: &TestApp, emails: &[String]) -> Value {
    app.post(IMPORT, &json!({ "emails": emails }))
        .await
        .data(200)
}

fn addresses(range: std::ops::Range<u32>) -> Vec<String> {
    range
        .map(|number| format!("r{number}@example.org"))
        .collect()
}

async fn total(app: &TestApp, query: &str) -> u64 {
    let page = app.get(&format!("{PATH}{query}")).await.expect(200);
    page["pagination"]["total"].as_u64().unwrap()
}

#[tokio::test]
async fn a_suppression_is_added_listed_and_removed() {
    let app = quiet().await;
    let added = suppress(&app, "  Ada@Example.org ").await;
    let id = added["id"].as_str().unwrap();
    let expected = json!({
        "id": id,
        "organizationId": app.organization_id().to_string(),
        "emailHash": to_hash("ada@example.org"),
        "unsubscribeGroupId": null,
        "source": "MANUAL",
        "createdAt": added["createdAt"],
        "messageId": null,
    });
    assert_eq!(added, expected);
    let page = app.get(PATH).await.expect(200);
    let pagination =
        json!({ "page": 1, "limit": 20, "total": 1, "totalPages": 1, "nextCursor": null });
    assert_eq!(page, json!({ "data": [added], "pagination": pagination }));
    let path = format!("{PATH}/{id}");
    assert_eq!(
        app.delete(&path).await.expect(200),
        json!({ "success": true })
    );
    app.delete(&path).await.expect_error(404, "NOT_FOUND");
    app.delete(&format!("{PATH}/no-id"))
        .await
        .expect_error(404, "NOT_FOUND");
    assert_eq!(total(&app, "").await, 0);
    // It can be added again.
    suppress(&app, "ada@example.org").await;
}

#[tokio::test]
async fn the_same_address_and_group_is_a_conflict_in_any_letter_case() {
    let app = quiet().await;
    let news = group(&app, "News").await;
    suppress(&app, "ada@example.org").await;
    for email in ["ada@example.org", "ADA@EXAMPLE.ORG", " Ada@Example.Org "] {
        let reply = app
            .post(PATH, &json!({ "email": email, "source": "BOUNCE" }))
            .await;
        reply.expect_error(409, "CONFLICT");
    }
    let grouped = json!({ "email": "Ada@example.org", "unsubscribeGroupId": news });
    assert_eq!(
        app.post(PATH, &grouped).await.data(201)["unsubscribeGroupId"],
        news
    );
    app.post(PATH, &grouped).await.expect_error(409, "CONFLICT");
    // Other organizations have their own suppressions.
    let other = app.tenant("Other").await;
    let _done = other
        .caller
        .post(PATH, &json!({ "email": "ada@example.org" }))
        .await
        .data(201);
    assert_eq!(total(&app, "").await, 2);
}

#[tokio::test]
async fn concurrent_requests_with_one_address_get_one_201_and_conflicts() {
    let app = quiet().await;
    for number in 0..10 {
        let body = json!({ "email": format!("racer{number}@example.org") });
        let replies = join_all((0..8).map(|_| app.caller().post(PATH, &body))).await;
        let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
    }
    assert_eq!(total(&app, "").await, 10);
}

#[tokio::test]
async fn sources_and_groups_are_stored_and_can_be_filtered_by() {
    let app = quiet().await;
    let news = group(&app, "News").await;
    let sources = ["BOUNCE", "COMPLAINT", "MANUAL", "IMPORT", "UNSUBSCRIBE"];
    for source in sources {
        let email = format!("{}@example.org", source.to_lowercase());
        let _done = app
            .post(PATH, &json!({ "email": email, "source": source }))
            .await
            .data(201);
        let body = json!({ "email": email, "source": source, "unsubscribeGroupId": news });
        let _done = app.post(PATH, &body).await.data(201);
    }
    assert_eq!(total(&app, "").await, 10);
    for source in sources {
        let page = app
            .get(&format!("{PATH}?source={source}"))
            .await
            .expect(200);
        assert_eq!(page["pagination"]["total"], 2);
        let rows = page["data"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["source"] == source), "{page}");
        assert_eq!(
            total(&app, &format!("?source={source}&groupId={news}")).await,
            1
        );
    }
    assert_eq!(total(&app, &format!("?groupId={news}")).await, 5);
    let nowhere = "?groupId=0193a1b2-0000-7000-8000-000000000000";
    assert_eq!(total(&app, nowhere).await, 0);
    let bad = app
        .get(&format!("{PATH}?source=manual&groupId=x&page=0&limit=101"))
        .await;
    bad.expect_issues(400, &["source", "groupId", "page", "limit"]);
}

#[tokio::test]
async fn the_list_is_paged_newest_first() {
    let app = quiet().await;
    let mut ids = Vec::new();
    for email in addresses(0..7) {
        ids.push(suppress(&app, &email).await["id"].clone());
    }
    ids.reverse();
    let page = app.get(&format!("{PATH}?page=2&limit=3")).await.expect(200);
    let rows = page["data"].as_array().unwrap();
    let found: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
    assert_eq!(found, ids[3..6].iter().collect::<Vec<_>>());
    let pagination = json!({ "page": 2, "limit": 3, "total": 7, "totalPages": 3, "nextCursor": page["pagination"]["nextCursor"] });
    assert_eq!(page["pagination"], pagination);
    let all = app.get(&format!("{PATH}?limit=100")).await.data(200);
    assert_eq!(all.as_array().unwrap().len(), 7);
    app.get(&format!("{PATH}?limit=101"))
        .await
        .expect_issues(400, &["limit"]);
}

#[tokio::test]
async fn all_issues_are_reported_and_nothing_is_stored() {
    let app = quiet().await;
    for (body, paths) in [
        (json!({}), vec!["email"]),
        (json!({ "email": "nobody" }), vec!["email"]),
        (json!({ "email": "Ada <ada@example.org>" }), vec!["email"]),
        (
            json!({ "email": 7, "source": "OTHER", "unsubscribeGroupId": "x" }),
            vec!["email", "source", "unsubscribeGroupId"],
        ),
    ] {
        app.post(PATH, &body).await.expect_issues(400, &paths);
    }
    let unknown = "0193a1b2-0000-7000-8000-000000000000";
    let other = app.tenant("Other").await;
    let theirs = other
        .caller
        .post("/v1/unsubscribe-groups", &json!({ "name": "Theirs" }))
        .await
        .data(201);
    for id in [&json!(unknown), &theirs["id"]] {
        let body = json!({ "email": "a@example.org", "unsubscribeGroupId": id });
        app.post(PATH, &body)
            .await
            .expect_issues(422, &["unsubscribeGroupId"]);
        let body = json!({ "emails": ["a@example.org"], "unsubscribeGroupId": id });
        app.post(IMPORT, &body)
            .await
            .expect_issues(422, &["unsubscribeGroupId"]);
    }
    assert_eq!(
        app.value("SELECT count(*) FROM suppressions")
            .await
            .as_deref(),
        Some("0")
    );
    assert_eq!(total(&app, "").await, 0);
}

#[tokio::test]
async fn an_import_counts_existing_and_repeated_addresses_exactly() {
    let app = quiet().await;
    suppress(&app, "there@example.org").await;
    let emails = [
        "THERE@example.org",
        "new@example.org",
        "New@Example.org",
        " new@example.org ",
        "other@example.org",
    ];
    let result = import(&app, &emails.map(str::to_owned)).await;
    assert_eq!(result, json!({ "imported": 2, "skipped": 3, "total": 5 }));
    let again = import(&app, &emails.map(str::to_owned)).await;
    assert_eq!(again, json!({ "imported": 0, "skipped": 5, "total": 5 }));
    assert_eq!(total(&app, "").await, 3);
    assert_eq!(total(&app, "?source=IMPORT").await, 2);
    let news = group(&app, "News").await;
    let body = json!({ "emails": emails, "unsubscribeGroupId": news });
    let grouped = app.post(IMPORT, &body).await.data(200);
    assert_eq!(grouped, json!({ "imported": 3, "skipped": 2, "total": 5 }));
    assert_eq!(total(&app, &format!("?groupId={news}")).await, 3);
}

#[tokio::test]
async fn an_import_has_one_to_ten_thousand_addresses() {
    let app = quiet().await;
    app.post(IMPORT, &json!({ "emails": [] }))
        .await
        .expect_issues(400, &["emails"]);
    app.post(IMPORT, &json!({}))
        .await
        .expect_issues(400, &["emails"]);
    app.post(IMPORT, &json!({ "emails": "a@example.org" }))
        .await
        .expect_issues(400, &["emails"]);
    let many = addresses(0..10_001);
    app.post(IMPORT, &json!({ "emails": many }))
        .await
        .expect_issues(400, &["emails"]);
    assert_eq!(total(&app, "").await, 0);
    let result = import(&app, &many[..10_000]).await;
    assert_eq!(
        result,
        json!({ "imported": 10_000, "skipped": 0, "total": 10_000 })
    );
    assert_eq!(total(&app, "").await, 10_000);
    let mut bad = addresses(0..20);
    bad[3] = "nobody".to_owned();
    bad[17] = "a@b@c".to_owned();
    app.post(IMPORT, &json!({ "emails": bad }))
        .await
        .expect_issues(400, &["emails.3", "emails.17"]);
}

#[tokio::test]
async fn an_import_has_at_most_five_mebibytes() {
    let app = quiet().await;
    let padded = |bytes: usize| {
        let mut body = json!({ "emails": ["a@example.org"] }).to_string();
        body.push_str(&" ".repeat(bytes - body.len()));
        body
    };
    let json_type = Some("application/json");
    let fits = app
        .caller()
        .post_raw(IMPORT, json_type, padded(5 << 20))
        .await;
    assert_eq!(fits.data(200)["imported"], 1);
    let over = app
        .caller()
        .post_raw(IMPORT, json_type, padded((5 << 20) + 1))
        .await;
    over.expect_error(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn concurrent_imports_count_every_address_once() {
    let app = quiet().await;
    let forward = json!({ "emails": addresses(0..1_000) });
    let mut backward = addresses(0..1_000);
    backward.reverse();
    let backward = json!({ "emails": backward });
    let bodies = [&forward, &backward, &forward, &backward];
    let results = join_all(bodies.map(|body| app.caller().post(IMPORT, body))).await;
    let imported: u64 = results
        .iter()
        .map(|reply| reply.data(200)["imported"].as_u64().unwrap())
        .sum();
    assert_eq!(imported, 1_000);
    assert_eq!(total(&app, "").await, 1_000);
}

#[tokio::test]
async fn no_address_is_stored_and_every_change_is_audited_once() {
    let app = quiet().await;
    let added = suppress(&app, "secret.person@example.org").await;
    import(&app, &["secret.other@example.org".to_owned()]).await;
    let _done = app
        .delete(&format!("{PATH}/{}", added["id"].as_str().unwrap()))
        .await
        .expect(200);
    let audited = "SELECT string_agg(action, ', ' ORDER BY id) FROM audit_logs";
    let expected = "suppression.created, suppression.imported, suppression.deleted";
    assert_eq!(app.value(audited).await.as_deref(), Some(expected));
    let counts =
        "SELECT metadata->>'imported' FROM audit_logs WHERE action = 'suppression.imported'";
    assert_eq!(app.value(counts).await.as_deref(), Some("1"));
    for table in ["suppressions", "audit_logs"] {
        let stored = app
            .value(&format!("SELECT string_agg(t::text, ' ') FROM {table} t"))
            .await
            .unwrap();
        let hex: String = "secret".bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(
            !stored.contains("secret") && !stored.contains(&hex),
            "{stored}"
        );
    }
}

#[tokio::test]
async fn suppressions_need_the_permission_and_are_isolated_by_organization() {
    let app = quiet().await;
    let ours = suppress(&app, "a@example.org").await;
    let path = format!("{PATH}/{}", ours["id"].as_str().unwrap());
    let weak = app
        .key(
            app.organization_id(),
            &[Permission::Send, Permission::MetricsRead],
        )
        .await;
    let weak = app.caller().with_key(&weak);
    for reply in [
        weak.get(PATH).await,
        weak.post(PATH, &json!({})).await,
        weak.post(IMPORT, &json!({})).await,
        weak.delete(&path).await,
    ] {
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(error["details"]["requiredPermission"], "SETTINGS_WRITE");
    }
    let other = app.tenant("Other").await.caller;
    assert_eq!(other.get(PATH).await.data(200), json!([]));
    other.delete(&path).await.expect_error(404, "NOT_FOUND");
    assert_eq!(total(&app, "").await, 1);
}
