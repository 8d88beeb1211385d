//! What an SMTP server receives: lines with valid ends, texts that decode to what was
//! written, and unchanged addresses in the envelope.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Captured;
use waypost_tests::{TestApp, message_to};

async fn with_a_server() -> TestApp {
    let app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    app
}

async fn arrived(app: &TestApp, message: &Value) -> Captured {
    let id = app.send(message).await;
    app.drain().await;
    let to = message["to"].as_str().unwrap();
    assert_eq!(app.status(&id).await, "SENT", "{message}");
    app.captured_once(to)
}

/// A text without its line ends.
fn lines(text: &str) -> Vec<&str> {
    text.split("\r\n")
        .flat_map(|part| part.split(['\r', '\n']))
        .collect()
}

#[tokio::test]
async fn every_line_end_becomes_cr_lf_and_ends_no_message() {
    let app = with_a_server().await;
    let forms = [
        "line one\rline two",
        "line one\nline two",
        "one\r\rtwo",
        "one\n\rtwo",
        "\r\n.\r\nMAIL FROM:<x@example.com>\r\nRCPT TO:<y@example.org>\r\nDATA\r\nhello",
        "one\n.\ntwo",
        "one\r.\rtwo",
        "one\r.\r\ntwo",
        "one\n.\r\ntwo",
        "one\r\n.\rtwo",
        "one\r\n.\ntwo",
        ".\r\n..\r\n.hidden",
        "ends with CR\r",
        ".",
    ];
    for (nth, form) in forms.iter().enumerate() {
        for part in ["text", "html"] {
            let to = format!("{part}{nth}@example.org");
            let mut message = message_to(&to);
            message.as_object_mut().unwrap().remove("text");
            message[part] = json!(form);
            let copy = arrived(&app, &message).await;
            let raw = copy.raw.unwrap();
            let unpaired = raw.replace("\r\n", "").contains(['\r', '\n']);
            assert!(!unpaired, "{form:?} as {part}: {raw:?}");
            let got = if part == "text" { copy.text } else { copy.html };
            let got = got.unwrap();
            let (got, given) = (lines(got.trim_end()), lines(form.trim_end()));
            assert_eq!(got, given, "{part}");
        }
    }
    let all = 2 * u64::try_from(forms.len()).unwrap();
    assert_eq!(
        app.simulator().captured_count(),
        all,
        "nothing was smuggled in"
    );
}

#[tokio::test]
async fn subjects_and_names_decode_to_what_was_written() {
    let app = with_a_server().await;
    let texts = [
        "Grüße  äus",
        "日本語  テスト",
        "Preis:  5 €  für  dich",
        "two  spaces in ASCII",
        "How to write =?utf-8?q?caf=C3=A9?= in a header",
        "=?utf-8?B?4pyT?=",
        "👩‍👩‍👧‍👦 family   🎉",
        "e\u{301}a\u{308}  combining",
        "שלום  עולם",
        "a (comment) \"quoted\" <angle> back\\slash, comma; semicolon: colon @ at",
        "Wörd  =?utf-8?q?x?=  wörd",
    ];
    let long = ["ä  ".repeat(300), "word ".repeat(150), "x".repeat(900)];
    let texts = texts.iter().map(|text| (*text).to_owned());
    for (nth, text) in texts.chain(long).enumerate() {
        let text = text.trim_end();
        let to = format!("r{nth}@example.org");
        let mut message = message_to(&to);
        message["subject"] = json!(text);
        let copy = arrived(&app, &message).await;
        assert_eq!(copy.subject, text);
        let raw = copy.raw.unwrap();
        let longest = raw.split("\r\n").map(str::len).max().unwrap();
        assert!(longest <= 998, "{longest} bytes on a line");
    }
}

#[tokio::test]
async fn quoted_local_parts_are_delivered_to_and_sent_from() {
    let app = with_a_server().await;
    for address in [
        "\"j doe\"@example.org",
        "\"a..b\"@example.org",
        "\"a@b\"@example.org",
        "\"a\\\"b\"@example.org",
        "\"a<b>,c\"@example.org",
    ] {
        let copy = arrived(&app, &message_to(address)).await;
        assert_eq!(copy.to, address);
        let mut message = message_to("reader@example.org");
        message["from"] = json!(address.replace("example.org", "example.com"));
        app.simulator().clear_captured();
        let copy = arrived(&app, &message).await;
        let from = copy.mail_from.unwrap();
        assert_eq!(from, address.replace("example.org", "example.com"));
    }
}

#[tokio::test]
async fn a_server_without_ehlo_gets_helo() {
    let app = with_a_server().await;
    app.simulator().set_smtp_ehlo(false);
    let account = json!({ "host": "localhost", "port": 25, "tls": "none" });
    let connected = app.connect_with(ProviderType::Smtp, &account).await;
    let rule = json!({ "name": "Old server", "providerAccountId": connected });
    app.post("/v1/routing-rules", &rule).await.data(201);
    arrived(&app, &message_to("old@example.org")).await;
}

#[tokio::test]
async fn a_greylisted_recipient_delays_no_other() {
    let app = with_a_server().await;
    let mut ids = Vec::new();
    for nth in 0..10 {
        ids.push(app.send_to(&format!("greylist+{nth}@example.org")).await);
    }
    for nth in 0..10 {
        ids.push(app.send_to(&format!("r{nth}@example.org")).await);
    }
    app.drain().await;
    for (nth, id) in ids.iter().enumerate() {
        let expected = if nth < 10 { "QUEUED" } else { "SENT" };
        assert_eq!(app.status(id).await, expected, "{nth}");
    }
    app.advance_and_drain(TimeDelta::minutes(1)).await;
    for id in &ids {
        assert_eq!(app.status(id).await, "SENT");
    }
}

#[tokio::test]
async fn a_server_that_denies_relaying_is_an_account_problem() {
    let app = with_a_server().await;
    let id = app.send_to("relay-denied@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(app.outcomes(&id).await, ["REJECTED"]);
    app.advance_and_drain(TimeDelta::hours(25)).await;
    assert_eq!(app.status(&id).await, "FAILED");
}
