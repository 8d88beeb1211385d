//! Clients that smuggle, flood and stall.

use waypost_tests::{SmtpClient, auth_plain, wait_until};

use super::{HEADER, accepting, accepting_with, client, count, id_of, key, mail};

#[tokio::test]
async fn mails_that_smuggle_another_one_are_refused_and_the_session_ends() {
    let (app, server) = accepting().await;
    let smuggled = "MAIL FROM:<x@y.z>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n\
                    From: news@example.com\r\nSubject: Smuggled\r\n\r\nx\r\n.\r\n";
    let header = HEADER.replace('\n', "\r\n");
    for end in [
        "\n.\n",
        "\r\n.\n",
        "\n.\r\n",
        "\r.\r",
        "\r\n.\r",
        "\r.\r\n",
        "\r\r\n.\r\r\n",
    ] {
        let mut client = client(&app, &server).await;
        client.command("MAIL FROM:<a@b.c>").await;
        client.command("RCPT TO:<a@example.org>").await;
        client.command("DATA").await;
        let bytes = format!("{header}\r\nHello{end}{smuggled}");
        client.send(bytes.as_bytes()).await;
        let reply = client.reply().await;
        assert!(
            reply.starts_with("554 5.6.0 Lines must end in CR LF"),
            "{end:?}: {reply}"
        );
        assert_eq!(client.reply().await, "", "{end:?}");
    }
    assert_eq!(count(&app).await, 0);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped() {
    let (_app, server) = accepting().await;
    let mut client = SmtpClient::connect(server.address).await;
    for length in [1_001, 100_000] {
        let reply = client.command(&"x".repeat(length)).await;
        assert_eq!(reply, "500 5.5.2 The line is too long", "{length}");
    }
    let longest = format!("NOOP {}", "x".repeat(995));
    assert_eq!(client.command(&longest).await, "250 2.0.0 Ok");
}

#[tokio::test]
async fn browsers_and_clients_without_a_mail_are_sent_away() {
    let (app, server) = accepting().await;
    let mut browser = SmtpClient::connect(server.address).await;
    let reply = browser.command("POST / HTTP/1.1").await;
    assert!(reply.starts_with("421 4.7.0 "), "{reply}");
    assert_eq!(browser.reply().await, "");
    let mut idle = client(&app, &server).await;
    let lines = "NOOP\r\n".repeat(300);
    idle.send(lines.as_bytes()).await;
    let mut count = 0;
    let last = loop {
        let reply = idle.reply().await;
        match reply.starts_with("250 ") {
            true => count += 1,
            false => break reply,
        }
    };
    assert!(last.starts_with("421 4.7.0 Too many commands"), "{last}");
    assert!((190..=200).contains(&count), "{count}");
}

#[tokio::test]
async fn sessions_are_bounded_in_all_and_per_address() {
    for (setting, words) in [
        ("WAYPOST_SUBMISSION_SESSIONS_MAX", "Too many sessions; try"),
        (
            "WAYPOST_SUBMISSION_SESSIONS_PER_ADDRESS_MAX",
            "Too many sessions from your address",
        ),
    ] {
        let (app, server) = accepting_with(&[(setting, "2")]).await;
        let first = SmtpClient::connect(server.address).await;
        let mut second = client(&app, &server).await;
        let mut third = SmtpClient::connect_silently(server.address).await;
        let reply = third.reply().await;
        assert!(
            reply.starts_with("421 4.7.0 ") && reply.contains(words),
            "{reply}"
        );
        assert_eq!(third.reply().await, "");
        id_of(&second.mail(&["a@example.org"], &mail("Hello")).await);
        drop(first);
        wait_until("a place is free again", async || {
            let mut next = SmtpClient::connect_silently(server.address).await;
            next.reply().await.starts_with("220 ")
        })
        .await;
    }
}

#[tokio::test]
async fn sessions_that_are_left_open_take_no_mail_with_them() {
    let (app, server) = accepting().await;
    let key = key(&app).await;
    let mut open = Vec::new();
    for nth in 0..150 {
        let mut left = SmtpClient::connect(server.address).await;
        if nth % 2 == 0 {
            left.command("EHLO x").await;
            left.command(&auth_plain(&key)).await;
            left.command("MAIL FROM:<a@b.c>").await;
            left.command("RCPT TO:<a@example.org>").await;
            left.command("DATA").await;
            left.send(b"Subject: never ends\r\n").await;
        }
        open.push(left);
    }
    let mut client = SmtpClient::log_in(server.address, &key).await;
    id_of(&client.mail(&["a@example.org"], &mail("Hello")).await);
    drop(open);
    assert_eq!(count(&app).await, 1);
}
