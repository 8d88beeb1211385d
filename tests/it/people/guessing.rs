//! Whoever guesses passwords is slowed down, by account and by address.

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::auth::Role;
use waypost_tests::{Caller, PASSWORD, Reply, TestApp};

use super::quiet;

async fn sign_in(caller: &Caller, email: &str, password: &str) -> Reply {
    let body = json!({ "email": email, "password": password });
    caller.post("/v1/session", &body).await
}

#[tokio::test]
async fn ten_wrong_passwords_lock_the_account_for_a_while() {
    let app = quiet().await;
    let organization = app.organization_id();
    for email in ["ada@example.com", "grace@example.com"] {
        app.user(email, &[(organization, Role::Owner)]).await;
    }
    let stranger = app.caller().anonymous().from_page();
    // An address that is no user's is treated alike.
    for email in ["ada@example.com", "nobody@example.com"] {
        for _ in 0..10 {
            sign_in(&stranger, email, "wrong password")
                .await
                .expect(401);
        }
        let reply = sign_in(&stranger, email, PASSWORD).await;
        reply.expect_error(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(reply.header("retry-after"), Some("900"), "{email}");
    }
    // Another process counts with this one, and Redis has no part in it.
    let elsewhere = app.start_another_api().await.anonymous().from_page();
    let reply = sign_in(&elsewhere, "ADA@example.com", PASSWORD).await;
    reply.expect_error(429, "RATE_LIMIT_EXCEEDED");
    sign_in(&stranger, "grace@example.com", PASSWORD)
        .await
        .expect(201);
    app.advance(TimeDelta::minutes(10));
    let reply = sign_in(&stranger, "ada@example.com", PASSWORD).await;
    reply.expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(reply.header("retry-after"), Some("300"));
    app.advance(TimeDelta::minutes(5));
    sign_in(&stranger, "ada@example.com", PASSWORD)
        .await
        .expect(201);
}

#[tokio::test]
async fn guesses_at_the_same_time_are_all_counted() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let stranger = app.caller().anonymous().from_page();
    let guesses = (0..25).map(|_| sign_in(&stranger, "ada@example.com", "wrong password"));
    let replies = futures_util::future::join_all(guesses).await;
    let count = |status| {
        replies
            .iter()
            .filter(|reply| reply.status == status)
            .count()
    };
    assert_eq!((count(401), count(429)), (10, 15));
}

#[tokio::test]
async fn a_session_does_not_help_to_guess_a_password() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let ada = app.sign_in("ada@example.com").await;
    for _ in 0..10 {
        let reply = ada
            .post("/v1/user/totp", &json!({ "password": "wrong" }))
            .await;
        reply.expect_issues(422, &["password"]);
    }
    let body = json!({ "password": "another good passphrase", "currentPassword": PASSWORD });
    let reply = ada.patch("/v1/user", &body).await;
    reply.expect_error(429, "RATE_LIMIT_EXCEEDED");
}

#[tokio::test]
async fn sign_ins_from_one_address_are_limited_even_with_a_session() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "5")
        .start()
        .await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    let mut statuses = Vec::new();
    for guess in 0..6 {
        let email = format!("user{guess}@example.com");
        statuses.push(sign_in(&ada, &email, "wrong password").await.status);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    // The session is not affected.
    ada.get("/v1/session").await.expect(200);
}
