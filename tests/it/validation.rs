//! Validation of POST /v1/send: every documented rule, every mistake at once, each with
//! its path. Whatever is sent, the response is a 400 that names the field and never a
//! 500.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, decoded, message_to};

/// A valid message with one field replaced; `Value::Null` also stands for absent.
fn with(field: &str, value: Value) -> Value {
    let mut message = message_to("ada@example.org");
    message[field] = value;
    message
}

fn without(field: &str) -> Value {
    let mut message = message_to("ada@example.org");
    message.as_object_mut().unwrap().remove(field);
    message
}

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn assert_rejected(app: &TestApp, message: &Value, paths: &[&str]) {
    app.post("/v1/send", message)
        .await
        .expect_issues(400, paths);
}

/// Without a provider account a valid message gets as far as routing.
async fn assert_accepted(app: &TestApp, message: &Value) {
    let error = app
        .post("/v1/send", message)
        .await
        .expect_error(422, "VALIDATION_ERROR");
    assert!(
        error["message"].as_str().unwrap().contains("provider"),
        "{error}"
    );
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_rejected() {
    let app = quiet().await;
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b" ".to_vec(),
        b"{".to_vec(),
        b"{\"to\":}".to_vec(),
        b"{'to': 'a'}".to_vec(),
        b"{} {}".to_vec(),
        b"null".to_vec(),
        b"true".to_vec(),
        b"1".to_vec(),
        b"1e999999".to_vec(),
        b"\"text\"".to_vec(),
        b"[]".to_vec(),
        b"NaN".to_vec(),
        b"\xff\xfe{}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"{\"to\": \"\xc3\x28\"}".to_vec(),
        b"{\"to\": \"\\ud800\"}".to_vec(),
        b"{\"to\": \"a\nb\"}".to_vec(),
        nested(100_000).into_bytes(),
        "{\"a\":".repeat(100_000).into_bytes(),
    ];
    for path in ["/v1/send", "/v1/emails/batch", "/v1/providers"] {
        for body in &bodies {
            let reply = app
                .caller()
                .post_raw(path, Some("application/json"), body.clone())
                .await;
            reply.expect_issues(400, &[""]);
        }
    }
}

#[tokio::test]
async fn an_empty_object_lacks_every_required_field_at_once() {
    let app = quiet().await;
    assert_rejected(&app, &json!({}), &["to", "from", "subject", "html"]).await;
    for field in ["to", "from", "subject"] {
        assert_rejected(&app, &without(field), &[field]).await;
        assert_rejected(&app, &with(field, Value::Null), &[field]).await;
    }
    let error = app
        .post("/v1/send", &json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(error["details"]["issues"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_rejected_for_every_field() {
    let app = quiet().await;
    let strings = ["from", "subject", "html", "text"];
    for field in strings {
        for value in [
            json!(1),
            json!(true),
            json!([]),
            json!({}),
            json!(["x"]),
            json!(1e300),
            json!(-0.0),
        ] {
            assert_rejected(&app, &with(field, value), &[field]).await;
        }
    }
    for field in ["to", "cc", "bcc", "replyTo"] {
        for value in [json!(1), json!(true), json!({}), json!({ "0": "a@b.org" })] {
            assert_rejected(&app, &with(field, value), &[field]).await;
        }
    }
    for value in [json!("tag"), json!(1), json!({}), json!(false)] {
        assert_rejected(&app, &with("tags", value), &["tags"]).await;
    }
    for value in [json!("text"), json!([]), json!(1), json!(true)] {
        assert_rejected(&app, &with("metadata", value), &["metadata"]).await;
    }
    let items = json!([1, null, "ok@example.org", [], {}, true]);
    assert_rejected(
        &app,
        &with("to", items.clone()),
        &["to.0", "to.1", "to.3", "to.4.email", "to.5"],
    )
    .await;
    let tags = json!([1, null, "ok", [], {}, true]);
    assert_rejected(
        &app,
        &with("tags", tags),
        &["tags.0", "tags.1", "tags.3", "tags.4", "tags.5"],
    )
    .await;
}

#[tokio::test]
async fn every_mistake_of_a_message_is_reported_at_once() {
    let app = quiet().await;
    let message = json!({
        "to": ["ok@example.org", "nobody", "", "a@b@c"],
        "from": "news@localhost",
        "subject": "line\r\nbreak",
        "html": "",
        "text": 7,
        "replyTo": "not an address",
        "tags": ["", "ok", "x".repeat(101), "a\nb"],
        "metadata": [],
        "templateId": "no id",
        "variables": [],
    });
    let paths = [
        "to.1",
        "to.2",
        "to.3",
        "from",
        "subject",
        "html",
        "text",
        "replyTo",
        "tags.0",
        "tags.2",
        "tags.3",
        "metadata",
        "templateId",
        "variables",
    ];
    assert_rejected(&app, &message, &paths).await;
}

#[tokio::test]
async fn empty_texts_are_rejected() {
    let app = quiet().await;
    for field in ["to", "from", "subject", "html", "text", "replyTo"] {
        assert_rejected(&app, &with(field, json!("")), &[field]).await;
    }
    for field in ["to", "from", "replyTo"] {
        assert_rejected(&app, &with(field, json!("  ")), &[field]).await;
    }
    assert_rejected(&app, &with("to", json!([])), &["to"]).await;
    assert_rejected(&app, &with("to", json!(["a@example.org", ""])), &["to.1"]).await;
    assert_accepted(&app, &with("tags", json!([]))).await;
    assert_accepted(&app, &with("metadata", json!({}))).await;
}

#[tokio::test]
async fn at_least_one_body_must_be_there() {
    let app = quiet().await;
    let mut message = without("html");
    message.as_object_mut().unwrap().remove("text");
    assert_rejected(&app, &message, &["html"]).await;
    message["html"] = Value::Null;
    message["text"] = Value::Null;
    assert_rejected(&app, &message, &["html"]).await;
    assert_accepted(&app, &without("html")).await;
    assert_accepted(&app, &without("text")).await;
}

#[tokio::test]
async fn a_message_has_up_to_a_thousand_recipients() {
    let app = quiet().await;
    let mut to: Vec<String> = (0..1_001)
        .map(|number| format!("r{number}@example.org"))
        .collect();
    assert_rejected(&app, &with("to", json!(to)), &["to"]).await;
    to.pop();
    assert_accepted(&app, &with("to", json!(to))).await;
    // The limit counts the given recipients, not those left without duplicates.
    assert_rejected(
        &app,
        &with("to", json!(vec!["same@example.org"; 1_001])),
        &["to"],
    )
    .await;
}

#[tokio::test]
async fn lengths_are_bounded_in_characters() {
    let app = quiet().await;
    for unit in ["x", "é", "📬"] {
        assert_accepted(&app, &with("subject", json!(unit.repeat(998)))).await;
        assert_rejected(
            &app,
            &with("subject", json!(unit.repeat(999))),
            &["subject"],
        )
        .await;
        assert_accepted(&app, &with("tags", json!([unit.repeat(100)]))).await;
        assert_rejected(
            &app,
            &with("tags", json!(["ok", unit.repeat(101)])),
            &["tags.1"],
        )
        .await;
    }
    let tags: Vec<String> = (0..11).map(|number| format!("t{number}")).collect();
    assert_accepted(&app, &with("tags", json!(tags[..10]))).await;
    assert_rejected(&app, &with("tags", json!(tags)), &["tags"]).await;
    let long = format!("{}@example.org", "a".repeat(300));
    for field in ["to", "from", "replyTo"] {
        assert_rejected(&app, &with(field, json!(long)), &[field]).await;
    }
    let name = format!("{} <a@example.org>", "n".repeat(100_000));
    assert_rejected(&app, &with("from", json!(name)), &["from"]).await;
}

#[tokio::test]
async fn line_breaks_and_nul_characters_never_reach_a_header() {
    let app = quiet().await;
    for bad in ["\r\n", "\n", "\r", "\0", "\u{1b}", "\u{85}"] {
        assert_rejected(
            &app,
            &with("subject", json!(format!("a{bad}Bcc: x@example.org"))),
            &["subject"],
        )
        .await;
        let address = format!("a@example.org{bad}Bcc: x@example.org");
        for field in ["to", "from", "replyTo"] {
            assert_rejected(&app, &with(field, json!(address)), &[field]).await;
        }
        let named = format!("A{bad}B <a@example.org>");
        for field in ["to", "from", "replyTo"] {
            assert_rejected(&app, &with(field, json!(named)), &[field]).await;
        }
        assert_rejected(
            &app,
            &with("to", json!(["ok@example.org", address])),
            &["to.1"],
        )
        .await;
        assert_rejected(
            &app,
            &with("tags", json!(["ok", format!("a{bad}b")])),
            &["tags.1"],
        )
        .await;
    }
}

#[tokio::test]
async fn nul_characters_are_rejected_anywhere() {
    let app = quiet().await;
    for field in ["html", "text", "subject", "from", "to", "replyTo"] {
        assert_rejected(&app, &with(field, json!("a\0b")), &[field]).await;
    }
    for metadata in [
        json!({ "key": "a\0b" }),
        json!({ "k\0y": 1 }),
        json!({ "list": [1, { "deep": ["\0"] }] }),
        json!({ "list": [1, { "de\0ep": [] }] }),
    ] {
        assert_rejected(&app, &with("metadata", metadata), &["metadata"]).await;
    }
    // A backslash and a zero in the text are no NUL.
    assert_accepted(&app, &with("metadata", json!({ "key": "\\u0000 \\0" }))).await;
}

#[tokio::test]
async fn the_size_of_metadata_is_limited() {
    let app = quiet().await;
    let of = |bytes: usize| json!({ "key": "x".repeat(bytes - r#"{"key":""}"#.len()) });
    assert_accepted(&app, &with("metadata", of(64 << 10))).await;
    assert_rejected(&app, &with("metadata", of((64 << 10) + 1)), &["metadata"]).await;
}

#[tokio::test]
async fn an_invalid_address_is_rejected() {
    let app = quiet().await;
    for bad in [
        "plain",
        "@example.org",
        "a@",
        "a@localhost",
        "a@127.0.0.1",
        "a@[127.0.0.1]",
        "a@-x.org",
        "a@x..org",
        "a b@example.org",
        "a@b@example.org",
        "a@example.org, b@example.org",
        "a@example.org; b@example.org",
        "<a@example.org",
        "a@example.org>",
        "Ada <>",
        "Ada <a@example.org> x",
        "jörg@example.org",
        "a@exa mple.org",
        "mailto:a@",
        "a@example.org.",
        "a.@example..org",
        "a@ex_ample.org",
        "\"a",
        "a@\u{202e}example.org",
    ] {
        for field in ["to", "from", "replyTo"] {
            assert_rejected(&app, &with(field, json!(bad)), &[field]).await;
        }
    }
}

#[tokio::test]
async fn huge_numbers_deep_metadata_and_repeated_keys_are_harmless() {
    let app = quiet().await;
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({ "d": deep });
    }
    assert_accepted(&app, &with("metadata", deep)).await;
    let raw = |metadata: &str| {
        format!(
            r#"{{"to":"a@example.org","from":"a@example.com","subject":"s","text":"t","metadata":{metadata}}}"#
        )
    };
    for metadata in [
        r#"{"n":1e308}"#,
        r#"{"n":-123456789012345678901234567890}"#,
        r#"{"n":0.1e-400}"#,
    ] {
        let reply = app
            .caller()
            .post_raw("/v1/send", Some("application/json"), raw(metadata))
            .await;
        reply.expect_error(422, "VALIDATION_ERROR");
    }
    let twice =
        r#"{"to":"nobody","to":"a@example.org","from":"a@example.com","subject":"s","text":"t"}"#;
    for refused in [raw(r#"{"n":1e999}"#), raw(r#"{"a":1,"a":2}"#), twice.into()] {
        let reply = app
            .caller()
            .post_raw("/v1/send", Some("application/json"), refused)
            .await;
        reply.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn numbers_beyond_a_double_are_kept_or_rejected_and_never_a_500() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    for number in [
        "1e308",
        "-123456789012345678901234567890",
        "1e-400",
        "18446744073709551616",
        "1E+100",
    ] {
        let body = format!(
            r#"{{"to":"a@example.org","from":"a@example.com","subject":"s","text":"t","metadata":{{"n":{number}}}}}"#
        );
        app.caller()
            .post_raw("/v1/send", Some("application/json"), body)
            .await
            .expect(202);
    }
    app.drain().await;
}

#[tokio::test]
async fn null_counts_as_absent() {
    let app = quiet().await;
    for field in ["templateId", "unsubscribeGroupId", "variables"] {
        assert_accepted(&app, &with(field, Value::Null)).await;
    }
}

#[tokio::test]
async fn names_with_quotes_and_unicode_and_international_domains_arrive() {
    for kind in ProviderType::ALL {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let message = json!({
            "from": "\"Zoë, \\\"the\\\" 📬\" <news@example.com>",
            "to": ["Jürgen \"JJ\" Müller <plain@example.org>", "info@Bücher.example", "\"x, y\" <Ux@例え.テスト>", "o'hara+tag@example.org"],
            "replyTo": "postmaster@Bücher.example",
            "subject": "s",
            "text": "t",
        });
        app.send(&message).await;
        app.drain().await;
        app.captured_once("plain@example.org");
        app.captured_once("o'hara+tag@example.org");
        app.captured_once("ux@xn--r8jz45g.xn--zckzah");
        let copy = app.captured_once("info@xn--bcher-kva.example");
        assert!(
            decoded(&copy.from).contains("Zoë, "),
            "{kind}: {}",
            copy.from
        );
        assert!(
            copy.reply_to
                .as_ref()
                .unwrap()
                .contains("postmaster@xn--bcher-kva.example"),
            "{kind}: {:?}",
            copy.reply_to
        );
    }
}

#[tokio::test]
async fn a_rejected_message_leaves_no_rows() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    assert_rejected(
        &app,
        &with("to", json!(["good@example.org", "bad"])),
        &["to.1"],
    )
    .await;
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 0);
    assert_eq!(
        app.get("/v1/messages").await.expect(200)["pagination"]["total"],
        0
    );
}
