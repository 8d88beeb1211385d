//! Mails that are refused, with the sentences of the API, and nothing is stored.

use tokio::sync::Mutex;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::{HEADER, accepting, accepting_with, client, count, mail, mail_with};

#[tokio::test]
async fn a_mail_with_mistakes_is_refused_with_all_of_them() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    let headers = "X-Waypost-Tag: a\nX-Waypost-Group: 7\nX-SES-Config: 1\nX-Waypost-Metadata: [1]\n\
                   X-A: 1\nx-a: 2\nX-Waypost-Scheduled-At: tomorrow\nX-Waypost-Tracking: some";
    let reply = client.mail(&["a@example.org"], &mail_with(headers)).await;
    let lines: Vec<&str> = reply.lines().collect();
    for (nth, line) in lines.iter().enumerate() {
        let separator = if nth + 1 == lines.len() { ' ' } else { '-' };
        assert!(
            line.starts_with(&format!("554{separator}5.6.0 ")),
            "{reply}"
        );
    }
    for sentence in [
        "X-Waypost-Tag is not a header of Waypost; did you mean `X-Waypost-Tags`?",
        "X-Waypost-Group must be a UUID",
        "X-SES-Config must not be given: Waypost or the provider sets it",
        "X-Waypost-Metadata must be a JSON object",
        "x-a must not be given twice",
        "X-Waypost-Scheduled-At must",
        "X-Waypost-Tracking must be opens, clicks",
    ] {
        assert!(reply.contains(sentence), "{sentence}: {reply}");
    }
    assert_eq!(lines.len(), 7, "{reply}");
    assert_eq!(count(&app).await, 0);
}

#[tokio::test]
async fn each_mistake_has_its_sentence() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    let without = |name: &str| {
        HEADER
            .lines()
            .filter(|line| !line.starts_with(name))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    for (mail, reply) in [
        (
            format!("{}\nx\n", without("From")),
            "554 5.6.0 From is required",
        ),
        (
            format!("{}\nx\n", without("Subject")),
            "554 5.6.0 Subject is required",
        ),
        (
            "From: a@example.com, b@example.com\nSubject: x\n\nx\n".to_owned(),
            "554 5.6.0 From must be one address",
        ),
        (
            "From: nobody\nSubject: x\n\nx\n".to_owned(),
            "554 5.6.0 From must be an email address",
        ),
        (
            "From: a@elsewhere.test\nSubject: x\n\nx\n".to_owned(),
            "554 5.7.1 From must have a domain that is verified",
        ),
        (
            format!("{HEADER}no header\n\nx\n"),
            "554 5.6.0 Line 4 of a header is not",
        ),
        (mail_with("X-A: Grüße"), "554 5.6.0 X-A must be ASCII"),
        (
            mail_with("Resent-To: a@b.c"),
            "554 5.6.0 Resent-To must not be given",
        ),
        (
            mail_with("X-Waypost-Template: 01a21f8a-2e07-75cd-968e-fe56e3174e0f"),
            "554 5.6.0 X-Waypost-Template must be the id of a template",
        ),
        (
            mail_with("X-Waypost-Test: perhaps"),
            "554 5.6.0 X-Waypost-Test must be true or false",
        ),
        (
            mail_with("X-Waypost-Tags:"),
            "554 5.6.0 X-Waypost-Tags must not be empty",
        ),
        (mail("a\0b"), "554 5.6.0 text must not contain NUL"),
        (
            format!("{HEADER}Content-Type: text/html\n\n<img src=\"cid:logo\">\n"),
            "554 5.6.0 html shows cid:logo",
        ),
    ] {
        let answer = client.mail(&["a@example.org"], &mail).await;
        assert!(answer.starts_with(reply), "{reply}: {answer}");
    }
    let many: Vec<String> = (0..60).map(|nth| format!("r{nth}@example.org")).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.push("a@example.org");
    let answer = client.mail(&many, &mail("x")).await;
    assert!(
        answer.starts_with("554 5.6.0 bcc must not have more than 50"),
        "{answer}"
    );
    assert_eq!(count(&app).await, 0);
}

#[tokio::test]
async fn without_an_account_nothing_is_accepted() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    let server = app.start_submission(&[]).await;
    let mut client = client(&app, &server).await;
    let reply = client.mail(&["a@example.org"], &mail("x")).await;
    assert_eq!(
        reply,
        "554 5.7.1 The organization has no active provider account"
    );
}

#[tokio::test]
async fn mails_over_the_organizations_limit_are_to_be_sent_again() {
    let (app, server) = accepting_with(&[("WAYPOST_RATE_LIMIT_SEND_MAX", "1")]).await;
    let mut client = client(&app, &server).await;
    let mut replies = Vec::new();
    for _ in 0..8 {
        replies.push(client.mail(&["a@example.org"], &mail("x")).await);
    }
    let is_limited =
        |reply: &&String| reply.starts_with("452 4.7.1 Too many requests; try again after");
    assert!(
        replies.iter().any(|reply| is_limited(&reply)),
        "{replies:?}"
    );
    assert!(replies[0].starts_with("250 "), "{replies:?}");
}

#[tokio::test]
async fn while_postgres_is_away_mails_are_to_be_sent_again() {
    let app = TestApp::builder()
        .private_postgres()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app.leave_work();
    let server = app.start_submission(&[]).await;
    let mut client = client(&app, &server).await;
    let postgres = app.postgres.as_ref().unwrap();
    client.command("MAIL FROM:<>").await;
    client.command("RCPT TO:<a@example.org>").await;
    client.command("DATA").await;
    postgres.stall();
    client
        .send(waypost_tests::stuffed(&mail("one")).as_bytes())
        .await;
    let reply = client.reply().await;
    assert!(
        reply.starts_with("451 4.3.0 The service is not available"),
        "{reply}"
    );
    let reply = client.command("MAIL FROM:<>").await;
    assert!(reply.starts_with("451 4.3.0 "), "{reply}");
    postgres.wake();
    let client = Mutex::new(client);
    wait_until("mail is accepted again", async || {
        let mut client = client.lock().await;
        client.command("RSET").await;
        let reply = client.mail(&["a@example.org"], &mail("two")).await;
        reply.starts_with("250 ")
    })
    .await;
}
