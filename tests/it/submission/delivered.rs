//! Mails that reach the provider.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SmtpClient, TestApp};

use super::{id_of, key};

#[tokio::test]
async fn a_mail_is_delivered_as_it_was_sent() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let server = app.start_submission(&[]).await;
    let content: Vec<u8> = (0..200_000_u32).map(|nth| (nth % 251) as u8).collect();
    let base64: Vec<u8> = STANDARD.encode(&content).into_bytes();
    let lines: Vec<&str> = base64
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let mail = format!(
        "Received: from somewhere\n\
         From: =?utf-8?q?N=C3=ABws?= <news@example.com>\n\
         To: \"Lovelace, Ada\" <ada@example.org>\n\
         Reply-To: answers@example.com, more@example.com\n\
         Subject: =?utf-8?b?R3LDvMOfZQ==?=\n\
         Date: Fri, 27 Nov 2026 00:00:00 +0000\n\
         Message-ID: <one@client.example>\n\
         References: <1@example.com>\n <2@example.com>\n\
         X-Order: 1042\n\
         X-Waypost-Tags: receipts, orders\n\
         X-Waypost-Metadata: {{\"order\": 1042}}\n\
         X-Waypost-Tracking: off\n\
         MIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=outer\n\n\
         --outer\nContent-Type: multipart/alternative; boundary=inner\n\n\
         --inner\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n\
         Gr=FC=DFe\n\
         --inner\nContent-Type: text/html; charset=utf-8\n\n<p>Grüße</p>\n\
         --inner--\n\
         --outer\nContent-Type: application/x-thing\n\
         Content-Disposition: attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe.bin\n\
         Content-Transfer-Encoding: base64\n\n{}\n--outer--\n",
        lines.join("\n")
    );
    let mut client = SmtpClient::log_in(server.address, &key(&app).await).await;
    let id = id_of(&client.mail(&["ada@example.org"], &mail).await);
    app.drain().await;
    let captured = app.captured_once("ada@example.org");
    assert_eq!(captured.from, "Nëws <news@example.com>");
    assert_eq!(captured.subject, "Grüße");
    assert_eq!(captured.text.as_deref(), Some("Grüße"));
    assert_eq!(captured.html.as_deref(), Some("<p>Grüße</p>"));
    assert_eq!(captured.headers["X-Order"], "1042");
    assert_eq!(
        captured.headers["References"],
        "<1@example.com> <2@example.com>"
    );
    assert!(!captured.headers.contains_key("Received"));
    assert!(captured.tags.contains(&"receipts".to_owned()));
    let file = &captured.attachments[0];
    assert_eq!(file.filename, "Grüße.bin");
    assert_eq!(file.content_type, "application/x-thing");
    assert_eq!(file.content, content);
    let message = app.message(&id).await;
    assert_eq!(message["tags"], json!(["receipts", "orders"]));
    assert_eq!(message["metadata"], json!({ "order": 1042 }));
    let reply_to = captured.reply_to.unwrap_or_default();
    assert!(reply_to.contains("answers@example.com"), "{reply_to}");
}

#[tokio::test]
async fn a_template_is_rendered_with_the_variables_of_the_header() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let server = app.start_submission(&[]).await;
    let mut client = SmtpClient::log_in(server.address, &key(&app).await).await;
    let mail = "From: news@example.com\nTo: a@example.org\nSubject: Hello {{name}}\n\
                X-Waypost-Variables: {\"name\": \"J\\u00fcrgen\"}\n\nDear {{name}}\n";
    id_of(&client.mail(&["a@example.org"], mail).await);
    app.drain().await;
    let captured = app.captured_once("a@example.org");
    assert_eq!(captured.subject, "Hello Jürgen");
    assert_eq!(captured.text.as_deref(), Some("Dear Jürgen\n"));
}

#[tokio::test]
async fn what_a_test_key_sends_is_a_test() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let server = app.start_submission(&[]).await;
    let key = app.test_key(&[Permission::Send]).await;
    let mut client = SmtpClient::log_in(server.address, key.key()).await;
    let id = id_of(&client.mail(&["a@example.org"], &super::mail("Hello")).await);
    app.drain().await;
    assert!(app.captured("a@example.org").is_empty());
    assert_eq!(app.message(&id).await["test"], true);
}
