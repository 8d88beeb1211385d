//! The second factor: codes, recovery codes, and its storage.

use aws_lc_rs::hmac;
use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::auth::Role;
use waypost_core::crypto::seal::Sealer;
use waypost_core::ids::Ids;
use waypost_core::reencrypt::{self, SecretColumn};
use waypost_tests::{Caller, PASSWORD, Reply, TestApp};

use super::{actions, quiet};

/// The code of a secret now, as an authenticator computes it (RFC 6238), without our code.
fn code(app: &TestApp, secret: &str) -> String {
    let step = u64::try_from(app.clock.now().timestamp() / 30).unwrap();
    let algorithm = hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY;
    let key = hmac::Key::new(algorithm, &from_base32(secret));
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let digest = tag.as_ref();
    let offset = usize::from(digest[19] & 15);
    let bytes: [u8; 4] = digest[offset..offset + 4].try_into().unwrap();
    format!(
        "{:06}",
        (u32::from_be_bytes(bytes) & 0x7fff_ffff) % 1_000_000
    )
}

fn from_base32(text: &str) -> Vec<u8> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: String = text
        .chars()
        .map(|letter| format!("{:05b}", alphabet.find(letter).unwrap()))
        .collect();
    let bytes = bits.as_bytes().chunks_exact(8);
    bytes
        .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
        .collect()
}

async fn sign_in(caller: &Caller, code: Option<&str>) -> Reply {
    let mut body = json!({ "email": "ada@example.com", "password": PASSWORD });
    if let Some(code) = code {
        body["code"] = json!(code);
    }
    caller.post("/v1/session", &body).await
}

/// Ada with a second factor: her session, the secret and the recovery codes.
async fn enrolled(app: &TestApp) -> (Caller, String, Vec<String>) {
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let ada = app.sign_in("ada@example.com").await;
    let body = json!({ "password": PASSWORD });
    let started = ada.post("/v1/user/totp", &body).await.data(200);
    let secret = started["secret"].as_str().unwrap().to_owned();
    let uri = started["uri"].as_str().unwrap();
    assert!(uri.starts_with("otpauth://totp/Waypost"), "{uri}");
    let body = json!({ "code": code(app, &secret) });
    let confirmed = ada.post("/v1/user/totp/confirm", &body).await.data(200);
    let codes: Vec<String> = serde_json::from_value(confirmed["recoveryCodes"].clone()).unwrap();
    assert_eq!(codes.len(), 10);
    (ada, secret, codes)
}

fn reason(reply: &Reply, status: u16, code: &str) -> Value {
    reply.expect_error(status, code)["details"]["reason"].clone()
}

#[tokio::test]
async fn a_second_factor_is_asked_for_after_the_password() {
    let app = quiet().await;
    let (ada, secret, _) = enrolled(&app).await;
    let session = ada.get("/v1/session").await.data(200);
    assert_eq!(session["user"]["totpEnabled"], true);
    let stranger = app.caller().anonymous().from_page();
    let reply = sign_in(&stranger, None).await;
    let wanted = "SECOND_FACTOR_REQUIRED";
    assert_eq!(reason(&reply, 401, "AUTHENTICATION_ERROR"), wanted);
    // The code that confirmed the factor is used up.
    let reply = sign_in(&stranger, Some(&code(&app, &secret))).await;
    let wanted = "SECOND_FACTOR_WRONG";
    assert_eq!(reason(&reply, 401, "AUTHENTICATION_ERROR"), wanted);
    app.advance(TimeDelta::seconds(30));
    let right = code(&app, &secret);
    sign_in(&stranger, Some(&right)).await.expect(201);
    let reply = sign_in(&stranger, Some(&right)).await;
    assert_eq!(reason(&reply, 401, "AUTHENTICATION_ERROR"), wanted);
    // With a wrong password the code does not matter.
    let body = json!({ "email": "ada@example.com", "password": "wrong", "code": right });
    let reply = stranger.post("/v1/session", &body).await;
    let error = reply.expect_error(401, "AUTHENTICATION_ERROR");
    assert!(error.get("details").is_none(), "{error}");
    let log = actions(&app).await;
    assert!(
        log.contains(&"user.totp_enabled user".to_owned()),
        "{log:?}"
    );
}

#[tokio::test]
async fn one_code_signs_in_once_under_concurrency() {
    let app = quiet().await;
    let (_, secret, codes) = enrolled(&app).await;
    app.advance(TimeDelta::seconds(30));
    let stranger = app.caller().anonymous().from_page();
    for right in [code(&app, &secret), codes[0].clone()] {
        let tries = (0..4).map(|_| sign_in(&stranger, Some(&right)));
        let replies = futures_util::future::join_all(tries).await;
        let accepted = replies.iter().filter(|reply| reply.status == 201).count();
        assert_eq!(accepted, 1, "{replies:?}");
    }
}

#[tokio::test]
async fn wrong_codes_lock_the_account_even_with_the_right_password() {
    let app = quiet().await;
    let (_, secret, _) = enrolled(&app).await;
    app.advance(TimeDelta::seconds(60));
    let stranger = app.caller().anonymous().from_page();
    let right = code(&app, &secret);
    let wrong = if right == "000000" {
        "000001"
    } else {
        "000000"
    };
    for _ in 0..10 {
        // A sign-in without a code does not reset the count.
        sign_in(&stranger, None).await.expect(401);
        sign_in(&stranger, Some(wrong)).await.expect(401);
    }
    let reply = sign_in(&stranger, Some(&right)).await;
    reply.expect_error(429, "RATE_LIMIT_EXCEEDED");
}

#[tokio::test]
async fn a_recovery_code_works_once() {
    let app = quiet().await;
    let (_, _, codes) = enrolled(&app).await;
    let stranger = app.caller().anonymous().from_page();
    let typed = codes[3].to_uppercase().replace('-', " ");
    sign_in(&stranger, Some(&typed)).await.expect(201);
    sign_in(&stranger, Some(&codes[3])).await.expect(401);
    sign_in(&stranger, Some(&codes[4])).await.expect(201);
    let stored = "SELECT count(*)::text FROM user_recovery_codes";
    assert_eq!(app.value(stored).await.as_deref(), Some("8"));
}

#[tokio::test]
async fn a_second_factor_is_removed_with_password_and_code() {
    let app = quiet().await;
    let (ada, secret, _) = enrolled(&app).await;
    app.advance(TimeDelta::seconds(30));
    let right = code(&app, &secret);
    let path = "/v1/user/totp/disable";
    for (password, code, wanted) in [
        ("wrong", right.as_str(), "WRONG_PASSWORD"),
        (PASSWORD, "nonsense", "SECOND_FACTOR_WRONG"),
    ] {
        let body = json!({ "password": password, "code": code });
        let reply = ada.post(path, &body).await;
        assert_eq!(reason(&reply, 422, "VALIDATION_ERROR"), wanted);
    }
    let reply = ada
        .post("/v1/user/totp", &json!({ "password": PASSWORD }))
        .await;
    assert_eq!(reason(&reply, 409, "CONFLICT"), "SECOND_FACTOR_ENABLED");
    let body = json!({ "password": PASSWORD, "code": right });
    let user = ada.post(path, &body).await.data(200);
    assert_eq!(user["totpEnabled"], false);
    let reply = ada.post(path, &body).await;
    assert_eq!(reason(&reply, 409, "CONFLICT"), "SECOND_FACTOR_NOT_STARTED");
    sign_in(&app.caller().anonymous().from_page(), None)
        .await
        .expect(201);
}

#[tokio::test]
async fn a_second_factor_that_is_not_confirmed_has_no_effect() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let ada = app.sign_in("ada@example.com").await;
    let confirm = "/v1/user/totp/confirm";
    let reply = ada.post(confirm, &json!({ "code": "123456" })).await;
    assert_eq!(reason(&reply, 409, "CONFLICT"), "SECOND_FACTOR_NOT_STARTED");
    let body = json!({ "password": PASSWORD });
    ada.post("/v1/user/totp", &body).await.expect(200);
    let reply = ada.post(confirm, &json!({ "code": "nonsense" })).await;
    assert_eq!(
        reason(&reply, 422, "VALIDATION_ERROR"),
        "SECOND_FACTOR_WRONG"
    );
    sign_in(&app.caller().anonymous().from_page(), None)
        .await
        .expect(201);
}

#[tokio::test]
async fn the_secret_is_sealed_and_follows_a_rotation_of_keys() {
    let app = quiet().await;
    let (_, secret, _) = enrolled(&app).await;
    let plain = hex::encode(from_base32(&secret));
    let query = format!(
        "SELECT count(*)::text FROM users WHERE encode(totp_secret_sealed, 'hex') LIKE '%{plain}%'"
    );
    assert_eq!(app.value(&query).await.as_deref(), Some("0"));
    let new = format!(
        "9:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,{}",
        waypost_core::crypto::seal::EXAMPLE_KEYS
    );
    let sealer = Sealer::parse(&new, Ids::new(app.clock.clone())).unwrap();
    let column = SecretColumn::TotpSecrets;
    let done = reencrypt::reencrypt(&app.pool, &sealer, column)
        .await
        .unwrap();
    assert_eq!((done.done, done.unreadable), (1, 0));
    let again = reencrypt::reencrypt(&app.pool, &sealer, column)
        .await
        .unwrap();
    assert_eq!(again.done, 0);
}
