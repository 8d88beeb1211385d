//! Resend's `POST /emails/batch`.

use serde_json::{Value, json};

use super::resend::email_to;
use super::{EMAILS, post_with, quiet, refused};

fn batch() -> String {
    format!("{EMAILS}/batch")
}

const PERMISSIVE: (&str, &str) = ("x-batch-validation", "permissive");

fn ids(answer: &Value) -> Vec<String> {
    let items = answer["data"].as_array().unwrap().iter();
    items
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn each_email_of_a_batch_has_an_id() {
    let app = quiet().await;
    let emails = json!([email_to("a@example.org"), email_to("b@example.org")]);
    let answer = app.post(&batch(), &emails).await.expect(200);
    let ids = ids(&answer);
    assert_eq!(
        answer,
        json!({ "data": [{ "id": ids[0] }, { "id": ids[1] }] })
    );
    app.drain().await;
    for (id, to) in ids.iter().zip(["a@example.org", "b@example.org"]) {
        assert_eq!(&app.captured_once(to).metadata["waypost_message"], id);
    }
}

#[tokio::test]
async fn one_refused_email_refuses_a_strict_batch() {
    let app = quiet().await;
    app.post("/v1/suppressions", &json!({ "email": "no@example.org" }))
        .await
        .expect(201);
    let valid = email_to("a@example.org");
    let mut wrong = valid.clone();
    wrong["to"] = json!("nobody");
    // Shows only at acceptance.
    let mut unverified = valid.clone();
    unverified["from"] = json!("news@elsewhere.example");
    for (bad, status, begin) in [
        (wrong, 422, "1.to must be"),
        (unverified, 403, "1.from must have a domain"),
        (email_to("no@example.org"), 422, "1.to must have an address"),
    ] {
        let emails = json!([valid, bad, valid]);
        let key = [("Idempotency-Key", begin)];
        let reply = post_with(&app, &batch(), &key, &emails).await;
        let message = refused(&reply, status, "validation_error");
        assert!(message.starts_with(begin), "{message}");
    }
    app.drain().await;
    assert!(app.captured("a@example.org").is_empty());
    assert_eq!(
        app.value("SELECT count(*) FROM messages").await.unwrap(),
        "0"
    );
}

#[tokio::test]
async fn a_permissive_batch_names_what_it_refused() {
    let app = quiet().await;
    app.post("/v1/suppressions", &json!({ "email": "no@example.org" }))
        .await
        .expect(201);
    let mut unverified = email_to("b@example.org");
    unverified["from"] = json!("news@elsewhere.example");
    let emails = json!([
        { "to": "x" },
        email_to("a@example.org"),
        unverified,
        email_to("no@example.org"),
        email_to("c@example.org"),
    ]);
    let reply = post_with(&app, &batch(), &[PERMISSIVE], &emails).await;
    let answer = reply.expect(200);
    assert_eq!(ids(&answer).len(), 2);
    let errors = answer["errors"].as_array().unwrap();
    let refused: Vec<u64> = errors
        .iter()
        .map(|error| error["index"].as_u64().unwrap())
        .collect();
    assert_eq!(refused, [0, 2, 3]);
    let message = |index: usize| errors[index]["message"].as_str().unwrap();
    assert!(message(0).contains("from is required"), "{}", message(0));
    assert!(
        message(1).starts_with("from must have a domain"),
        "{}",
        message(1)
    );
    app.drain().await;
    app.captured_once("a@example.org");
    app.captured_once("c@example.org");
}

#[tokio::test]
async fn a_repeated_batch_sends_nothing_twice() {
    let app = quiet().await;
    for (key, mode) in [("strict", "strict"), ("permissive", "permissive")] {
        let to = format!("{key}@example.org");
        let emails = json!([email_to(&to), email_to(&format!("2{to}"))]);
        let headers = [("Idempotency-Key", key), ("x-batch-validation", mode)];
        let first = post_with(&app, &batch(), &headers, &emails)
            .await
            .expect(200);
        let again = post_with(&app, &batch(), &headers, &emails).await;
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.expect(200), first);
        let other = json!([email_to(&to)]);
        let other = post_with(&app, &batch(), &headers, &other).await;
        refused(&other, 409, "invalid_idempotent_request");
        app.drain().await;
        app.captured_once(&to);
    }
}

#[tokio::test]
async fn a_batch_has_one_to_a_hundred_emails() {
    let app = quiet().await;
    let email = email_to("a@example.org");
    let many: Vec<Value> = vec![email.clone(); 101];
    for body in [json!([]), json!(many), email] {
        refused(&app.post(&batch(), &body).await, 422, "validation_error");
    }
    let headers = [("x-batch-validation", "lenient")];
    let reply = post_with(
        &app,
        &batch(),
        &headers,
        &json!([email_to("a@example.org")]),
    )
    .await;
    refused(&reply, 422, "invalid_parameter");
}
