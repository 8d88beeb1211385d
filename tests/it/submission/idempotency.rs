//! A mail that a client sends again, whatever became of its connection, is one message.

use waypost_tests::{SmtpClient, auth_plain, stuffed};

use super::{accepting, client, count, id_of, key, mail, mail_with};

#[tokio::test]
async fn a_key_means_the_same_as_over_http() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    let keyed =
        |text: &str| mail_with("X-Waypost-Idempotency-Key: order-7").replace("Hello\n", text);
    let first = id_of(&client.mail(&["a@example.org"], &keyed("Hello\n")).await);
    let again = id_of(&client.mail(&["a@example.org"], &keyed("Hello\n")).await);
    assert_eq!(first, again);
    let other = client.mail(&["a@example.org"], &keyed("Bye\n")).await;
    assert_eq!(
        other,
        "554 5.6.0 The idempotency key was used for another request"
    );
    let other = client.mail(&["b@example.org"], &keyed("Hello\n")).await;
    assert!(other.starts_with("554 5.6.0 "), "{other}");
    assert_eq!(count(&app).await, 1);
}

#[tokio::test]
async fn a_message_id_makes_the_same_mail_known_and_no_other() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    let with = |headers: &str| {
        mail_with(&format!(
            "Message-ID: <1@client.example>\n{headers}Date: now"
        ))
    };
    let first = id_of(&client.mail(&["a@example.org"], &with("")).await);
    let again = with("Received: from elsewhere\n").replace("Date: now", "Date: later");
    assert_eq!(id_of(&client.mail(&["a@example.org"], &again).await), first);
    let changed = with("").replace("\nHello\n", "\nBye\n");
    for (to, mail) in [
        (&["a@example.org"][..], changed),
        // A server that splits a mail sends each part.
        (&["b@example.org"], with("")),
        (&["a@example.org", "b@example.org"], with("")),
        (&["a@example.org"], with("X-A: 1\n")),
        (&["a@example.org"], mail("Hello")),
        (&["a@example.org"], super::mail("Hello")),
    ] {
        assert_ne!(id_of(&client.mail(to, &mail).await), first);
    }
    assert_eq!(count(&app).await, 7);
}

#[tokio::test]
async fn a_client_that_is_cut_off_at_any_byte_and_repeats_sends_one_mail() {
    let (app, server) = accepting().await;
    let key = key(&app).await;
    let content = stuffed(&mail_with("Message-ID: <1@client.example>"));
    let conversation = format!(
        "EHLO x\r\n{}\r\nMAIL FROM:<a@b.c>\r\nRCPT TO:<a@example.org>\r\nDATA\r\n{content}QUIT\r\n",
        auth_plain(&key)
    );
    for length in (0..=conversation.len())
        .step_by(3)
        .chain([conversation.len() - 6])
    {
        let mut client = SmtpClient::connect(server.address).await;
        client.send(&conversation.as_bytes()[..length]).await;
        drop(client);
    }
    let mut client = SmtpClient::log_in(server.address, &key).await;
    let mail = mail_with("Message-ID: <1@client.example>");
    id_of(&client.mail(&["a@example.org"], &mail).await);
    assert_eq!(count(&app).await, 1);
}
