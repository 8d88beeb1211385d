//! The program stops: a mail that is being received is answered, and the clients are told.

use waypost_tests::stuffed;

use super::{accepting, client, count, id_of, mail};

#[tokio::test]
async fn a_mail_whose_content_has_begun_is_accepted_before_the_end() {
    let (app, server) = accepting().await;
    let mut idle = client(&app, &server).await;
    let mut begun = client(&app, &server).await;
    begun.command("MAIL FROM:<a@b.c>").await;
    begun.command("RCPT TO:<a@example.org>").await;
    begun.command("DATA").await;
    let content = stuffed(&mail("Hello"));
    let (first, rest) = content.split_at(content.len() / 2);
    begun.send(first.as_bytes()).await;
    server.begin_stop();
    let reply = idle.reply().await;
    assert!(reply.starts_with("421 4.3.2 "), "{reply}");
    assert_eq!(idle.reply().await, "");
    begun.send(rest.as_bytes()).await;
    id_of(&begun.reply().await);
    assert!(begun.reply().await.starts_with("421 4.3.2 "));
    let address = server.address;
    drop((idle, begun));
    server.ended().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert_eq!(count(&app).await, 1);
}
