//! Who gets a mail, and what the message says of it.

use serde_json::{Value, json};
use waypost_tests::to_hash;

use super::{accepting, client, count, id_of};

/// The recipients of a message: kind, hash of the address, status.
async fn recipients(app: &waypost_tests::TestApp, id: &str) -> Value {
    let query = format!(
        "SELECT jsonb_agg(jsonb_build_array(coalesce(kind::text, 'TO'), encode(address_hash, 'hex'), status)
                          ORDER BY position)
         FROM recipients WHERE message_id = '{id}'"
    );
    serde_json::from_str(&app.value(&query).await.unwrap()).unwrap()
}

fn header(lines: &str) -> String {
    format!("From: news@example.com\nSubject: Hello\n{lines}\nHello\n")
}

#[tokio::test]
async fn the_envelope_says_who_and_the_header_how() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    for (lines, envelope, is_shared, expected) in [
        ("To: a@example.org\n", "a", false, "a:TO"),
        ("To: A@Example.ORG\n", "a", false, "a:TO"),
        ("", "a", false, "a:TO"),
        ("To: list@example.org\n", "a b", false, "a:TO b:TO"),
        ("To: undisclosed-recipients:;\n", "a b", false, "a:TO b:TO"),
        (
            "Bcc: a@example.org, b@example.org\n",
            "a b",
            false,
            "a:TO b:TO",
        ),
        (
            "To: a@example.org, b@example.org\n",
            "b a",
            true,
            "a:TO b:TO",
        ),
        (
            "To: a@example.org\nTo: b@example.org\n",
            "a b",
            true,
            "a:TO b:TO",
        ),
        (
            "To: Team: a@example.org, b@example.org;\n",
            "a b",
            true,
            "a:TO b:TO",
        ),
        (
            "To: a@example.org\nCc: b@example.org\n",
            "a b c",
            true,
            "a:TO b:CC c:BCC",
        ),
        ("To: a@example.org\n", "a c", true, "a:TO c:BCC"),
        // A server that sends one mail in two transactions.
        ("To: a@example.org\nCc: b@example.org\n", "a", false, "a:TO"),
        ("To: a@example.org\nCc: b@example.org\n", "b", false, "b:TO"),
        (
            "To: a@example.org\nCc: b@example.org, c@example.org\n",
            "c b d",
            true,
            "b:TO c:TO d:BCC",
        ),
        ("To: a@example.org\n", "a a a", false, "a:TO"),
    ] {
        let envelope: Vec<String> = envelope
            .split(' ')
            .map(|name| format!("{name}@example.org"))
            .collect();
        let envelope: Vec<&str> = envelope.iter().map(String::as_str).collect();
        let id = id_of(&client.mail(&envelope, &header(lines)).await);
        let rows = expected.split(' ').map(|one| {
            let (name, kind) = one.split_once(':').unwrap();
            json!([kind, to_hash(&format!("{name}@example.org")), "QUEUED"])
        });
        assert_eq!(
            recipients(&app, &id).await,
            rows.collect::<Value>(),
            "{lines}"
        );
        let query = format!("SELECT coalesce(is_shared, false) FROM messages WHERE id = '{id}'");
        let shared = app.value(&query).await.unwrap() == "true";
        assert_eq!(shared, is_shared, "{lines}");
    }
}

#[tokio::test]
async fn the_names_of_the_header_are_kept() {
    let app = waypost_tests::TestApp::start().await;
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let server = app.start_submission(&[]).await;
    let mut client = client(&app, &server).await;
    let lines =
        "To: \"Ada \\\"A\\\" L.\" <a@example.org>\nCc: =?utf-8?q?J=C3=BCrgen?= <b@example.org>\n";
    id_of(
        &client
            .mail(&["a@example.org", "b@example.org"], &header(lines))
            .await,
    );
    app.drain().await;
    let captured = app.captured_once("b@example.org");
    assert_eq!(captured.visible_cc, ["b@example.org"]);
    assert_eq!(captured.visible_recipients.len(), 2);
}

#[tokio::test]
async fn suppressed_recipients_get_nothing_and_the_reply_says_so() {
    let (app, server) = accepting().await;
    app.post("/v1/suppressions", &json!({ "email": "b@example.org" }))
        .await
        .data(201);
    let mut client = client(&app, &server).await;
    let list = header("To: list@example.org\n");
    let reply = client
        .mail(&["a@example.org", "b@example.org"], &list)
        .await;
    assert!(
        reply.ends_with("; 1 of 2 recipients are suppressed and get nothing"),
        "{reply}"
    );
    let id = id_of(&reply);
    let rows = recipients(&app, &id).await;
    assert_eq!(rows[1][2], "FAILED");
    let before = count(&app).await;
    let reply = client.mail(&["b@example.org"], &list).await;
    let expected = "250 2.0.0 Accepted, and not sent: all recipients are suppressed";
    assert_eq!(reply, expected);
    assert_eq!(count(&app).await, before);
}

#[tokio::test]
async fn a_thousand_recipients_are_accepted_and_the_next_one_is_for_another_mail() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    client.command("MAIL FROM:<>").await;
    let lines: String = (0..1_001)
        .map(|nth| format!("RCPT TO:<r{nth}@example.org>\r\n"))
        .collect();
    client.send(lines.as_bytes()).await;
    for _ in 0..1_000 {
        assert_eq!(client.reply().await, "250 2.1.5 Ok");
    }
    assert!(client.reply().await.starts_with("452 4.5.3 "));
    client.command("DATA").await;
    let content = waypost_tests::stuffed(&header("To: list@example.org\n"));
    client.send(content.as_bytes()).await;
    let id = id_of(&client.reply().await);
    assert_eq!(recipients(&app, &id).await.as_array().unwrap().len(), 1_000);
}
