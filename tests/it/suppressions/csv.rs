//! Imports of CSV files.

use serde_json::json;
use waypost_tests::{Reply, TestApp, to_hash};

use super::{IMPORT, PATH, addresses, group, quiet, total};

async fn import_csv(app: &TestApp, query: &str, file: impl Into<String>) -> Reply {
    let path = format!("{IMPORT}{query}");
    let media = Some("text/csv; charset=utf-8");
    app.caller().post_raw(&path, media, file.into()).await
}

#[tokio::test]
async fn a_file_is_imported_with_its_sources_and_times() {
    let app = quiet().await;
    let file = "\u{feff}Email,Reason,createdAt,\"note, ignored\"\r\n\
                ada@example.org,BOUNCE,2024-02-01T10:00:00Z,\"said \"\"no\"\"\r\ntwice\"\r\n\
                \" ADA@example.org\",COMPLAINT,,\r\n\
                bob@example.org,550 no such user,1443651125,\r\n";
    let result = import_csv(&app, "", file).await.data(200);
    assert_eq!(result, json!({ "imported": 2, "skipped": 1, "total": 3 }));
    for (email, source, created_at) in [
        ("ada@example.org", "BOUNCE", "2024-02-01T10:00:00.000Z"),
        ("bob@example.org", "IMPORT", "2015-09-30T22:12:05.000Z"),
    ] {
        let rows = app
            .caller()
            .query(PATH, &[("email", email)])
            .await
            .data(200);
        assert_eq!(rows[0]["emailHash"], to_hash(email));
        assert_eq!(
            (&rows[0]["source"], &rows[0]["createdAt"]),
            (&json!(source), &json!(created_at))
        );
    }
    let again = import_csv(&app, "", file).await.data(200);
    assert_eq!(again["imported"], 0);
    // JSON goes on as before.
    let body = json!({ "emails": ["eve@example.org"] });
    assert_eq!(app.post(IMPORT, &body).await.data(200)["imported"], 1);
}

#[tokio::test]
async fn a_file_may_go_into_a_group() {
    let app = quiet().await;
    let news = group(&app, "News").await;
    let query = format!("?unsubscribeGroupId={news}");
    let file = "email\nada@example.org\n";
    assert_eq!(
        import_csv(&app, &query, file).await.data(200)["imported"],
        1
    );
    assert_eq!(total(&app, &format!("?groupId={news}")).await, 1);
    let unknown = "?unsubscribeGroupId=0193a1b2-0000-7000-8000-000000000000";
    import_csv(&app, unknown, file)
        .await
        .expect_issues(422, &["unsubscribeGroupId"]);
    import_csv(&app, "?unsubscribeGroupId=x&colour=red", "email\nnobody\n")
        .await
        .expect_issues(400, &["unsubscribeGroupId", "colour", "lines.2.email"]);
    // In JSON it belongs into the body.
    app.post(
        &format!("{IMPORT}{query}"),
        &json!({ "emails": ["a@example.org"] }),
    )
    .await
    .expect_issues(400, &["unsubscribeGroupId"]);
    assert_eq!(total(&app, "").await, 1);
}

#[tokio::test]
async fn a_wrong_row_is_named_by_its_line_and_nothing_is_imported() {
    let app = quiet().await;
    for (file, paths) in [
        (String::new(), vec![""]),
        ("email\n".to_owned(), vec![""]),
        ("ada@example.org\n".to_owned(), vec!["lines.1"]),
        (
            "email,source\r\n\r\nada@example.org,BOUNCE\r\nnobody,BOUNCE\r\nbob@example.org,SPAM\r\n".to_owned(),
            vec!["lines.4.email", "lines.5.source"],
        ),
        ("email\nada@example.org,x\n".to_owned(), vec!["lines.2"]),
        ("email\n\"ada@example.org\nbob@example.org\n".to_owned(), vec!["lines.2.email"]),
        (
            format!("email\n{}", addresses(0..10_001).join("\n")),
            vec![""],
        ),
    ] {
        let start: String = file.chars().take(80).collect();
        let reply = import_csv(&app, "", file).await;
        assert_eq!(reply.status, 400, "{start}");
        reply.expect_issues(400, &paths);
    }
    assert_eq!(total(&app, "").await, 0);
    let many = format!("email\n{}", addresses(0..10_000).join("\n"));
    assert_eq!(
        import_csv(&app, "", many).await.data(200)["imported"],
        10_000
    );
}

#[tokio::test]
async fn files_of_other_kinds_and_sizes_are_rejected() {
    let app = quiet().await;
    let caller = app.caller();
    let file = "email\nada@example.org\n";
    for media in [
        "text/csv; charset=iso-8859-1",
        "text/plain",
        "application/vnd.ms-excel",
        "text/csvx",
    ] {
        let reply = caller.post_raw(IMPORT, Some(media), file.to_owned()).await;
        reply.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    let zipped = caller.call(http::Method::POST, IMPORT, |request| {
        request
            .header("content-type", "text/csv")
            .header("content-encoding", "gzip")
            .body(file)
    });
    zipped.await.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
    let latin = caller.call(http::Method::POST, IMPORT, |request| {
        let bytes = b"email,name\nada@example.org,M\xfcller\n".to_vec();
        request.header("content-type", "text/csv").body(bytes)
    });
    let error = latin.await.expect_issues(400, &[""]);
    assert!(
        error["message"].as_str().unwrap().contains("(line 2)"),
        "{error}"
    );
    let padded = |bytes: usize| format!("email\nada@example.org\n{}", "\n".repeat(bytes - 22));
    let fits = import_csv(&app, "", padded(5 << 20)).await;
    assert_eq!(fits.data(200)["imported"], 1);
    import_csv(&app, "", padded((5 << 20) + 1))
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
    // One row of five million fields.
    let wide = format!("email\n{}\n", ",".repeat((5 << 20) - 10));
    import_csv(&app, "", wide)
        .await
        .expect_issues(400, &["lines.2"]);
}

#[tokio::test]
async fn a_repeated_file_with_its_key_is_answered_as_before() {
    let app = quiet().await;
    let keyed = async |path: &str, file: &'static str| {
        app.caller()
            .call(http::Method::POST, path, |request| {
                request
                    .header("content-type", "text/csv")
                    .header("Idempotency-Key", "one")
                    .body(file)
            })
            .await
    };
    let file = "email\nada@example.org\n";
    let first = keyed(IMPORT, file).await;
    assert_eq!(first.data(200)["imported"], 1);
    let second = keyed(IMPORT, file).await;
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(second.data(200), first.data(200));
    keyed(IMPORT, "email\nbob@example.org\n")
        .await
        .expect_error(409, "CONFLICT");
    let news = group(&app, "News").await;
    keyed(&format!("{IMPORT}?unsubscribeGroupId={news}"), file)
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(total(&app, "").await, 1);
}
