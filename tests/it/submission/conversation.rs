//! What the server offers and how it answers commands, in order and out of order.

use waypost_tests::SmtpClient;

use super::{accepting, accepting_with, client, id_of, mail};

#[tokio::test]
async fn the_extensions_are_offered_that_the_server_has() {
    let (app, server) = accepting().await;
    let mut client = SmtpClient::connect(server.address).await;
    let reply = client.command("EHLO client.example").await;
    let host = app.variables["WAYPOST_LISTEN"].split(':').next().unwrap();
    let expected = format!(
        "250-[{host}]\r\n250-SIZE 36700160\r\n250-8BITMIME\r\n250-PIPELINING\r\n\
         250-ENHANCEDSTATUSCODES\r\n250 AUTH PLAIN LOGIN"
    );
    assert_eq!(reply, expected);
}

#[tokio::test]
async fn commands_out_of_order_are_refused_and_change_nothing() {
    let (app, server) = accepting().await;
    let mut fresh = SmtpClient::connect(server.address).await;
    for (line, reply) in [
        ("MAIL FROM:<a@b.c>", "503 5.5.1 "),
        ("AUTH PLAIN", "503 5.5.1 "),
        ("RCPT TO:<a@example.org>", "503 5.5.1 "),
        ("DATA", "503 5.5.1 "),
        ("STARTTLS", "503 5.5.1 "),
        ("EHLO x", "250-"),
        ("MAIL FROM:<a@b.c>", "530 5.7.0 "),
        ("HELO x", "250 "),
        ("NOOP", "250 2.0.0 "),
        ("VRFY a", "252 "),
        ("EXPN a", "502 5.5.1 "),
        ("BDAT 3", "502 5.5.1 "),
        ("SAY", "500 5.5.2 "),
        ("MAIL FROM:a", "501 5.5.4 "),
        ("QUIT", "221 2.0.0 "),
    ] {
        let answer = fresh.command(line).await;
        assert!(answer.starts_with(reply), "{line}: {answer}");
    }
    assert_eq!(fresh.reply().await, "");
    let mut client = client(&app, &server).await;
    for (line, reply) in [
        ("AUTH PLAIN", "503 5.5.1 You have logged in"),
        ("MAIL FROM:<>", "250 2.1.0 "),
        ("MAIL FROM:<>", "503 5.5.1 "),
        ("DATA", "554 5.5.1 "),
        ("MAIL FROM:<> SMTPUTF8", "555 5.5.4 "),
        ("MAIL FROM:<> BODY=8BITMIME SIZE=10", "250 2.1.0 "),
        ("RCPT TO:<a@example.org> NOTIFY=NEVER", "555 5.5.4 "),
        ("RCPT TO:<nobody>", "553 5.1.3 "),
        ("RCPT TO:<a@example.org>", "250 2.1.5 "),
        ("RSET", "250 2.0.0 "),
        ("RCPT TO:<a@example.org>", "503 5.5.1 "),
        ("MAIL FROM:<> SIZE=999999999", "552 5.3.4 "),
    ] {
        let answer = client.command(line).await;
        assert!(answer.starts_with(reply), "{line}: {answer}");
    }
    id_of(&client.mail(&["a@example.org"], &mail("Hello")).await);
}

#[tokio::test]
async fn commands_that_arrive_together_are_answered_in_order() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    client
        .send(b"MAIL FROM:<a@b.c>\r\nRCPT TO:<a@example.org>\r\nRCPT TO:<bad>\r\nDATA\r\n")
        .await;
    for reply in ["250 2.1.0 ", "250 2.1.5 ", "553 5.1.3 ", "354 "] {
        assert!(client.reply().await.starts_with(reply));
    }
    let content = waypost_tests::stuffed(&mail("Hello\n.\n..two"));
    let rest = format!("{content}NOOP\r\nQUIT\r\n");
    client.send(rest.as_bytes()).await;
    let id = id_of(&client.reply().await);
    for reply in ["250 2.0.0 Ok", "221 2.0.0 Bye", ""] {
        assert_eq!(client.reply().await, reply);
    }
    let content = app.get(&format!("/v1/messages/{id}/content")).await;
    assert_eq!(content.data(200)["text"], "Hello\n.\n..two\n");
}

#[tokio::test]
async fn a_mail_that_is_too_large_is_read_to_its_end_and_refused() {
    let limit = [("WAYPOST_SUBMISSION_MESSAGE_BYTES_MAX", "65536")];
    let (app, server) = accepting_with(&limit).await;
    let mut client = client(&app, &server).await;
    let large = mail(&"0123456789abcde\n".repeat(5_000));
    let reply = client.mail(&["a@example.org"], &large).await;
    assert!(reply.starts_with("552 5.3.4 "), "{reply}");
    id_of(&client.mail(&["a@example.org"], &mail("Hello")).await);
}

#[tokio::test]
async fn mails_beyond_the_memory_of_the_process_are_to_be_sent_again() {
    let (app, server) = accepting_with(&[
        ("WAYPOST_LARGE_REQUESTS_MAX_BYTES", "52428800"),
        ("WAYPOST_SUBMISSION_MESSAGE_BYTES_MAX", "104857600"),
    ])
    .await;
    let mut client = client(&app, &server).await;
    let large = mail(&"0123456789abcde\n".repeat(4 << 20));
    let reply = client.mail(&["a@example.org"], &large).await;
    assert!(reply.starts_with("452 4.3.1 "), "{reply}");
    id_of(&client.mail(&["a@example.org"], &mail("Hello")).await);
}
