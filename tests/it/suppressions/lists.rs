//! Finding, removing and exporting suppressions.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_tests::{Reply, TestApp, to_hash};

use super::{PATH, addresses, group, import, quiet, suppress, total};

const REMOVE: &str = "/v1/suppressions/remove";
const EXPORT: &str = "/v1/suppressions/export";

async fn found(app: &TestApp, parameters: &[(&str, &str)]) -> Vec<Value> {
    let page = app.caller().query(PATH, parameters).await.expect(200);
    let rows = page["data"].as_array().unwrap().clone();
    assert_eq!(page["pagination"]["total"], rows.len(), "{page}");
    rows
}

fn lines(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let lines = reply.text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn an_address_is_found_exactly_in_any_spelling_and_with_other_filters() {
    let app = quiet().await;
    let news = group(&app, "News").await;
    for email in ["ada@example.org", "ada@example.com", "bada@example.org"] {
        suppress(&app, email).await;
    }
    let grouped =
        json!({ "email": "ada@example.org", "unsubscribeGroupId": news, "source": "UNSUBSCRIBE" });
    let grouped = app.post(PATH, &grouped).await.data(201);
    let other = app.tenant("Other").await.caller;
    other
        .post(PATH, &json!({ "email": "eve@example.org" }))
        .await
        .data(201);
    for email in ["ada@example.org", " ADA@Example.Org ", "Ada@EXAMPLE.ORG"] {
        let rows = found(&app, &[("email", email)]).await;
        assert_eq!(rows.len(), 2, "{email}");
        let hash = to_hash("ada@example.org");
        assert!(rows.iter().all(|row| row["emailHash"] == hash), "{rows:?}");
        // The newest comes first.
        assert_eq!(rows[0], grouped);
    }
    let ada = ("email", "ada@example.org");
    for (filters, expected) in [
        (vec![ada, ("source", "MANUAL")], 1),
        (vec![ada, ("source", "UNSUBSCRIBE")], 1),
        (vec![ada, ("source", "BOUNCE")], 0),
        (vec![ada, ("groupId", &news)], 1),
        (vec![ada, ("groupId", &news), ("source", "UNSUBSCRIBE")], 1),
        (vec![ada, ("groupId", &news), ("source", "MANUAL")], 0),
        (vec![("email", "nobody@example.org")], 0),
        (vec![("email", "eve@example.org")], 0),
    ] {
        assert_eq!(found(&app, &filters).await.len(), expected, "{filters:?}");
    }
    // The pages of a filtered list follow each other.
    let first = app
        .caller()
        .query(PATH, &[ada, ("limit", "1")])
        .await
        .expect(200);
    let cursor = first["pagination"]["nextCursor"].as_str().unwrap();
    let second = app
        .caller()
        .query(PATH, &[ada, ("limit", "1"), ("cursor", cursor)])
        .await
        .expect(200);
    assert_eq!(second["data"][0]["source"], "MANUAL");
    assert_eq!(second["pagination"]["nextCursor"], Value::Null);
    for wrong in [
        "",
        "ada",
        "Ada <ada@example.org>",
        "a@b@c",
        "%",
        "ada@example.org,",
    ] {
        app.caller()
            .query(PATH, &[("email", wrong)])
            .await
            .expect_issues(400, &["email"]);
    }
}

#[tokio::test]
async fn many_are_removed_at_once_and_counted_exactly() {
    let app = quiet().await;
    let news = group(&app, "News").await;
    import(&app, &addresses(0..5)).await;
    let grouped = json!({ "emails": addresses(0..3), "unsubscribeGroupId": news });
    app.post("/v1/suppressions/import", &grouped)
        .await
        .data(200);
    let body = json!({ "emails": ["R0@Example.org", " r1@example.org", "r1@example.org", "x@example.org"] });
    let removed = app.post(REMOVE, &body).await.data(200);
    assert_eq!(removed, json!({ "removed": 2, "notFound": 2, "total": 4 }));
    let again = app.post(REMOVE, &body).await.data(200);
    assert_eq!(again, json!({ "removed": 0, "notFound": 4, "total": 4 }));
    // Those in groups stay, until they are named.
    assert_eq!(total(&app, "").await, 6);
    assert_eq!(total(&app, &format!("?groupId={news}")).await, 3);
    let grouped = json!({ "emails": addresses(0..9), "unsubscribeGroupId": news });
    let removed = app.post(REMOVE, &grouped).await.data(200);
    assert_eq!(removed, json!({ "removed": 3, "notFound": 6, "total": 9 }));
    assert_eq!(total(&app, "").await, 3);
    let counts = app
        .value("SELECT string_agg(metadata->>'removed', ' ' ORDER BY id) FROM audit_logs WHERE action = 'suppression.removed'")
        .await;
    assert_eq!(counts.as_deref(), Some("2 0 3"));
    // They can be added again.
    assert_eq!(import(&app, &addresses(0..5)).await["imported"], 2);
}

#[tokio::test]
async fn a_removal_has_one_to_ten_thousand_addresses_of_the_own_organization() {
    let app = quiet().await;
    let many = addresses(0..10_001);
    import(&app, &many[..10_000]).await;
    for (body, paths) in [
        (json!({}), vec!["emails"]),
        (json!({ "emails": [] }), vec!["emails"]),
        (json!({ "emails": "a@example.org" }), vec!["emails"]),
        (json!({ "emails": many }), vec!["emails"]),
        (
            json!({ "emails": ["a@example.org", "nobody"] }),
            vec!["emails.1"],
        ),
        (
            json!({ "emails": ["a@example.org"], "unsubscribeGroupId": "x" }),
            vec!["unsubscribeGroupId"],
        ),
        (
            json!({ "emails": ["a@example.org"], "email": "b@example.org" }),
            vec!["email"],
        ),
    ] {
        app.post(REMOVE, &body).await.expect_issues(400, &paths);
    }
    let unknown = json!({
        "emails": ["r1@example.org"], "unsubscribeGroupId": "0193a1b2-0000-7000-8000-000000000000",
    });
    app.post(REMOVE, &unknown)
        .await
        .expect_issues(422, &["unsubscribeGroupId"]);
    let other = app.tenant("Other").await.caller;
    let theirs = json!({ "emails": &many[..100] });
    let theirs = other.post(REMOVE, &theirs).await.data(200);
    assert_eq!(theirs["removed"], 0);
    assert_eq!(total(&app, "").await, 10_000);
    let all = json!({ "emails": &many[..10_000] });
    assert_eq!(app.post(REMOVE, &all).await.data(200)["removed"], 10_000);
    assert_eq!(total(&app, "").await, 0);
}

#[tokio::test]
async fn removals_and_imports_of_the_same_addresses_may_meet() {
    let app = quiet().await;
    let forward = json!({ "emails": addresses(0..500) });
    let mut backward = addresses(0..500);
    backward.reverse();
    let backward = json!({ "emails": backward });
    import(&app, &addresses(0..500)).await;
    let calls = (0..12).map(|nth| {
        let path = if nth % 3 == 0 {
            "/v1/suppressions/import"
        } else {
            REMOVE
        };
        let body = if nth % 2 == 0 { &forward } else { &backward };
        app.caller().post(path, body)
    });
    for reply in futures_util::future::join_all(calls).await {
        reply.data(200);
    }
    let stored = app
        .value("SELECT count(*) FROM suppressions")
        .await
        .unwrap();
    assert_eq!(total(&app, "").await.to_string(), stored);
}

#[tokio::test]
async fn an_export_holds_every_suppression_once_and_no_address() {
    let app = quiet().await;
    assert_eq!(lines(&app.get(EXPORT).await), Vec::<Value>::new());
    let news = group(&app, "News").await;
    import(&app, &addresses(0..2_500)).await;
    let grouped = json!({ "email": "r1@example.org", "unsubscribeGroupId": news });
    let grouped = app.post(PATH, &grouped).await.data(201);
    let other = app.tenant("Other").await.caller;
    other
        .post(PATH, &json!({ "email": "eve@example.org" }))
        .await
        .data(201);
    let reply = app.get(EXPORT).await;
    let rows = lines(&reply);
    assert_eq!(rows.len(), 2_501);
    assert_eq!(rows[0], grouped);
    let mut hashes: Vec<&str> = rows[1..]
        .iter()
        .map(|row| row["emailHash"].as_str().unwrap())
        .collect();
    let mut expected: Vec<String> = addresses(0..2_500)
        .iter()
        .map(|email| to_hash(email))
        .collect();
    hashes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(hashes, expected);
    assert!(!reply.text.contains("example.org"));
    for (query, expected) in [
        (format!("?groupId={news}"), 1),
        ("?source=IMPORT".to_owned(), 2_500),
        ("?source=BOUNCE".to_owned(), 0),
    ] {
        let rows = lines(&app.get(&format!("{EXPORT}{query}")).await);
        assert_eq!(rows.len(), expected, "{query}");
    }
    app.get(&format!("{EXPORT}?source=bounce&groupId=x&page=1"))
        .await
        .expect_issues(400, &["source", "groupId", "page"]);
}

#[tokio::test]
async fn an_export_can_be_imported_elsewhere() {
    let app = quiet().await;
    let given = [("a@example.org", "BOUNCE"), ("b@example.org", "COMPLAINT")];
    for (email, source) in given {
        let body = json!({ "email": email, "source": source });
        app.post(PATH, &body).await.data(201);
    }
    let own = lines(&app.get(EXPORT).await);
    let mut file = "emailHash,source,createdAt\n".to_owned();
    for row in &own {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        file += &format!(
            "{},{},{}\n",
            text("emailHash"),
            text("source"),
            text("createdAt")
        );
    }
    let other = app.tenant("Other").await.caller;
    let imported = other
        .post_raw("/v1/suppressions/import", Some("text/csv"), file)
        .await;
    assert_eq!(imported.data(200)["imported"], 2);
    let mut theirs = lines(&other.get(EXPORT).await);
    let mut own = own;
    for rows in [&mut own, &mut theirs] {
        for row in rows.iter_mut() {
            row.as_object_mut()
                .unwrap()
                .retain(|name, _| ["emailHash", "source", "createdAt"].contains(&name.as_str()));
        }
        rows.sort_by_key(|row| row["emailHash"].to_string());
    }
    assert_eq!(own, theirs);
}

#[tokio::test]
async fn suppressions_since_a_time_are_found_by_when_they_were_created() {
    let app = quiet().await;
    let news = group(&app, "News").await;
    suppress(&app, "old@example.org").await;
    app.advance(TimeDelta::hours(1));
    let edge =
        json!({ "email": "edge@example.org", "unsubscribeGroupId": news, "source": "BOUNCE" });
    let edge = app.post(PATH, &edge).await.data(201);
    let since = edge["createdAt"].as_str().unwrap();
    app.advance(TimeDelta::hours(1));
    suppress(&app, "new@example.org").await;
    // An import may bring the time of a suppression.
    let file = "email,createdAt\nimported@example.org,2020-01-01T00:00:00Z\nfresh@example.org,\n";
    let reply = app
        .caller()
        .post_raw(&format!("{PATH}/import"), Some("text/csv"), file)
        .await;
    assert_eq!(reply.data(200)["imported"], 2);
    for (filters, expected) in [
        (vec![], 3),
        (vec![("source", "BOUNCE")], 1),
        (vec![("source", "IMPORT")], 1),
        (vec![("groupId", news.as_str())], 1),
        (vec![("groupId", &news), ("source", "MANUAL")], 0),
        (vec![("email", "edge@example.org")], 1),
        (vec![("email", "old@example.org")], 0),
        (vec![("email", "imported@example.org")], 0),
    ] {
        let filters = [filters, vec![("since", since)]].concat();
        assert_eq!(found(&app, &filters).await.len(), expected, "{filters:?}");
    }
    app.caller()
        .query(PATH, &[("since", "yesterday")])
        .await
        .expect_issues(400, &["since"]);
}
