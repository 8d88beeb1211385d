//! Logins: which keys, how, and how often.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use tokio::sync::Mutex;
use waypost_core::auth::Permission;
use waypost_tests::{SmtpClient, auth_plain, wait_until};

use super::{accepting, accepting_with, client, id_of, key, mail};

#[tokio::test]
async fn both_mechanisms_take_the_key_as_the_password() {
    let (app, server) = accepting().await;
    let key = key(&app).await;
    let response = STANDARD.encode(format!("\0anything\0{key}"));
    let (user, password) = (STANDARD.encode("anything"), STANDARD.encode(&key));
    for lines in [
        vec![format!("AUTH PLAIN {response}")],
        vec!["auth plain".to_owned(), response.clone()],
        vec![format!("AUTH LOGIN {user}"), password.clone()],
        vec!["AUTH LOGIN".to_owned(), user.clone(), password.clone()],
    ] {
        let mut client = SmtpClient::connect(server.address).await;
        client.command("EHLO x").await;
        let (last, first) = lines.split_last().unwrap();
        for line in first {
            assert!(client.command(line).await.starts_with("334"), "{line}");
        }
        assert_eq!(client.command(last).await, "235 2.7.0 Logged in");
        id_of(&client.mail(&["a@example.org"], &mail("Hello")).await);
    }
}

#[tokio::test]
async fn keys_that_may_not_send_are_refused() {
    let (app, server) = accepting().await;
    let organization = app.organization_id();
    let other = app.key(organization, &[Permission::MetricsRead]).await;
    let now = app.clock.now();
    let expired = Some(now - TimeDelta::seconds(1));
    let expired = app.key_until(organization, &[Permission::Send], expired);
    let unknown = format!("wp_live_{}", "x".repeat(32));
    for (key, text) in [
        (other, "lacks the permission SEND"),
        (expired.await, "is not a valid API key"),
        (unknown, "is not a valid API key"),
        ("secret".to_owned(), "is not a valid API key"),
    ] {
        let mut client = SmtpClient::connect(server.address).await;
        client.command("EHLO x").await;
        let reply = client.command(&auth_plain(&key)).await;
        assert!(
            reply.starts_with("535 5.7.8 ") && reply.contains(text),
            "{reply}"
        );
        let reply = client.command("MAIL FROM:<a@b.c>").await;
        assert!(reply.starts_with("530 5.7.0 "), "{reply}");
    }
}

#[tokio::test]
async fn a_response_that_is_not_of_the_mechanism_is_refused() {
    let (_app, server) = accepting().await;
    let mut client = SmtpClient::connect(server.address).await;
    client.command("EHLO x").await;
    for (line, reply) in [
        ("AUTH CRAM-MD5", "504 5.5.4 "),
        ("AUTH PLAIN !", "501 5.5.2 "),
        ("AUTH PLAIN AAAA", "501 5.5.2 "),
    ] {
        let answer = client.command(line).await;
        assert!(answer.starts_with(reply), "{line}: {answer}");
    }
    client.command("AUTH LOGIN").await;
    assert!(client.command("*").await.starts_with("501 5.5.2 "));
}

#[tokio::test]
async fn failed_logins_end_the_session_and_count_against_the_address() {
    let (app, server) = accepting_with(&[("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "4")]).await;
    let wrong = auth_plain("wp_live_wrong");
    let mut client = SmtpClient::connect(server.address).await;
    client.command("EHLO x").await;
    for _ in 0..3 {
        assert!(client.command(&wrong).await.starts_with("535 5.7.8 "));
    }
    assert_eq!(client.reply().await, "");
    let mut client = SmtpClient::connect(server.address).await;
    client.command("EHLO x").await;
    assert!(client.command(&wrong).await.starts_with("535 5.7.8 "));
    let reply = client.command(&wrong).await;
    assert!(reply.starts_with("421 4.7.0 Too many requests"), "{reply}");
    assert_eq!(client.reply().await, "");
    // A valid key still works from there.
    SmtpClient::log_in(server.address, &key(&app).await).await;
}

#[tokio::test]
async fn a_key_that_is_revoked_ends_with_the_next_mail() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    id_of(&client.mail(&["a@example.org"], &mail("Hello")).await);
    app.execute("UPDATE api_keys SET revoked_at = now() - interval '1 minute'")
        .await;
    let client = Mutex::new(client);
    wait_until("the key is refused", async || {
        let mut client = client.lock().await;
        let reply = client.mail(&["a@example.org"], &mail("Hello")).await;
        reply.starts_with("421 4.7.0 The API key is not valid any more")
    })
    .await;
    assert_eq!(client.lock().await.reply().await, "");
}
