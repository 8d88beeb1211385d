//! Calls that fail.

use serde_json::{Value, json};
use waypost::types::{ErrorCode, Recipients};
use waypost::{Error, Options, Waypost, serde_json};

use crate::support::{Proxied, always, answer, code, live, mail, need, reason, refusal};

#[tokio::test]
async fn c20_a_wrong_request_names_its_mistakes() {
    let wrong = mail().subject("Hello");
    let wrong = waypost::types::SendMessageRequest { to: Recipients::from(["ada@example.org", "nobody"]), ..wrong };
    let error = live().await.messages().send(&wrong).await.unwrap_err();
    let Error::Validation(answer) = &error else { panic!("{error}") };
    assert_eq!((answer.status, &answer.code), (400, &ErrorCode::ValidationError));
    assert_eq!(answer.issues[0].path, "to.1");
    assert!(answer.rate_limit.unwrap().limit > 0);
    let id = answer.request_id.as_ref().unwrap();
    assert_eq!(error.to_string(), format!("{} (400 VALIDATION_ERROR, request {id})", answer.message));
}

#[tokio::test]
async fn c21_a_wrong_key() {
    let error = Waypost::new("wp_live_wrong", need("WAYPOST_URL")).unwrap().settings().get().await.unwrap_err();
    assert!(matches!(&error, Error::Authentication(answer) if answer.status == 401), "{error}");
    assert_eq!(code(&error), "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn c22_an_unknown_id() {
    let error = live().await.messages().get("01a1fbfa-b12e-763c-a29e-ce02006ba540").await.unwrap_err();
    assert!(matches!(&error, Error::NotFound(answer) if answer.status == 404), "{error}");
    assert_eq!(code(&error), "NOT_FOUND");
}

#[tokio::test]
async fn c23_each_code_has_a_class() {
    let document: Value = serde_json::from_str(include_str!("../../../../openapi/waypost.v1.json")).unwrap();
    let codes = document["components"]["schemas"]["ErrorCode"]["enum"].as_array().unwrap();
    assert!(codes.len() >= 12);
    for expected in codes.iter().map(|code| code.as_str().unwrap()) {
        let rules = json!([refusal(422, expected, json!({ "reason": "SOME_REASON" }))]);
        let error = Proxied::new(rules).await.client.settings().get().await.unwrap_err();
        let words = expected.split('_').filter(|word| *word != "ERROR");
        let class: String = words.map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase())).collect();
        assert!(format!("{error:?}").starts_with(&format!("{class}(")), "{expected}: {error:?}");
        assert!(!matches!(error, Error::Other(_)), "{expected}");
        let answer = error.answer().unwrap();
        assert!(!matches!(answer.code, ErrorCode::Other(_)), "{expected}");
        assert_eq!(
            (code(&error), answer.message.as_str(), reason(&error)),
            (expected.to_owned(), "No.", "SOME_REASON".to_owned())
        );
        assert_eq!(answer.request_id.as_deref(), Some("request-1"));
    }
}

#[tokio::test]
async fn c24_an_unknown_code_keeps_its_text() {
    let rules = json!([refusal(418, "CODE_OF_TOMORROW", json!({ "reason": "NEW", "newDetail": 1 }))]);
    let error = Proxied::new(rules).await.client.settings().get().await.unwrap_err();
    let Error::Other(answer) = &error else { panic!("{error}") };
    assert_eq!((answer.status, code(&error), reason(&error)), (418, "CODE_OF_TOMORROW".to_owned(), "NEW".to_owned()));
    assert_eq!(answer.details.as_ref().unwrap().unknown_fields["newDetail"], 1);
}

#[tokio::test]
async fn c25_an_answer_that_is_not_waypost_s() {
    for status in [502, 200] {
        let rules = json!([always(answer(status, json!("<h1>Hello</h1>"), json!({})))]);
        let proxied = Proxied::with(rules, Options { max_retries: Some(0), ..Options::default() }).await;
        let error = proxied.client.settings().get().await.unwrap_err();
        assert!(matches!(&error, Error::Other(answer) if answer.status == status), "{error}");
        assert_eq!(code(&error), "UNEXPECTED_ANSWER");
        let text = error.to_string();
        assert!(text.contains("not one of Waypost's") && text.contains("base_url"), "{text}");
    }
}

#[tokio::test]
async fn c26_a_redirect_is_not_followed() {
    let rules = json!([answer(301, json!(""), json!({ "Location": "https://mail.example.com/v1/send" }))]);
    let proxied = Proxied::new(rules).await;
    let error = proxied.client.messages().send(&mail()).await.unwrap_err();
    assert_eq!(error.answer().unwrap().status, 301);
    assert!(error.to_string().contains("https://mail.example.com"), "{error}");
    assert_eq!(proxied.requests().await.len(), 1);
}

#[tokio::test]
async fn c27_nothing_listens() {
    let base_url = Some("http://127.0.0.1:9".to_owned());
    let client = Waypost::with(Options { base_url, max_retries: Some(0), ..Options::default() }).unwrap();
    let error = client.settings().get().await.unwrap_err();
    assert!(matches!(error, Error::Connection(_)) && error.is_connection() && error.answer().is_none());
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:9") && text.contains("refused"), "{text}");
}
