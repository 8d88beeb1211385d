//! What is repeated, and when it ends.

use std::time::{Duration, Instant};

use serde_json::json;
use waypost::types::{CreateTemplateRequest, UpdateTemplateRequest};
use waypost::{Error, Options, serde_json};

use crate::support::{Proxied, RUN, always, answer, count_with_tag, keys, live, mail, refusal, until};

#[tokio::test]
async fn c30_retry_after_is_waited_for() {
    let body = json!({ "error": { "code": "RATE_LIMIT_EXCEEDED", "message": "Slow down." } });
    let proxied = Proxied::new(json!([answer(429, body, json!({ "Retry-After": "1" }))])).await;
    proxied.client.messages().send(&mail()).await.unwrap();
    let requests = proxied.requests().await;
    assert_eq!((requests.len(), keys(&requests)), (2, 1));
    let waited = requests[1]["at"].as_f64().unwrap() - requests[0]["at"].as_f64().unwrap();
    assert!(waited >= 1.0, "it waited {waited} s");
}

#[tokio::test]
async fn c31_a_service_that_fails_twice() {
    let mut rule = refusal(503, "SERVICE_UNAVAILABLE", json!({}));
    rule["times"] = json!(2);
    let proxied = Proxied::new(json!([rule])).await;
    assert!(proxied.client.messages().send(&mail()).await.unwrap().message_id.is_some());
    assert_eq!(proxied.requests().await.len(), 3);
}

#[tokio::test]
async fn c32_a_service_that_fails_always() {
    let rules = json!([always(refusal(500, "INTERNAL_ERROR", json!({})))]);
    let proxied = Proxied::new(rules.clone()).await;
    assert!(matches!(proxied.client.settings().get().await, Err(Error::Internal(_))));
    assert_eq!(proxied.requests().await.len(), 3);
    assert!(matches!(proxied.client.settings().get().max_retries(0).await, Err(Error::Internal(_))));
    assert_eq!(proxied.requests().await.len(), 4);
    let once = Proxied::with(rules, Options { max_retries: Some(0), ..Options::default() }).await;
    assert!(once.client.settings().get().await.is_err());
    assert_eq!(once.requests().await.len(), 1);
}

#[tokio::test]
async fn c33_a_twin_that_still_runs() {
    let conflict = |reason| json!([refusal(409, "CONFLICT", json!({ "reason": reason }))]);
    let running = Proxied::new(conflict("IDEMPOTENCY_IN_PROGRESS")).await;
    assert!(running.client.messages().send(&mail()).await.unwrap().message_id.is_some());
    let other = Proxied::new(conflict("TEST_KEY")).await;
    assert!(matches!(other.client.messages().send(&mail()).await, Err(Error::Conflict(_))));
    assert_eq!(other.requests().await.len(), 1);
}

#[tokio::test]
async fn c34_a_refusal_is_not_repeated() {
    for status in [400, 401, 403, 404, 413, 422] {
        let proxied = Proxied::new(json!([refusal(status, "VALIDATION_ERROR", json!({}))])).await;
        let error = proxied.client.messages().send(&mail()).await.unwrap_err();
        assert_eq!(error.answer().unwrap().status, status);
        assert_eq!(proxied.requests().await.len(), 1);
    }
}

#[tokio::test]
async fn c35_after_a_lost_answer_only_what_is_safe_is_repeated() {
    let template = CreateTemplateRequest::new(format!("Lost {}", *RUN));
    let id = live().await.templates().create(&template).await.unwrap().id;
    let post = Proxied::new(json!([{ "drop": true }])).await;
    assert!(matches!(post.client.messages().retry(&id).await, Err(Error::Connection(_))));
    assert_eq!(post.requests().await.len(), 1);
    let preview = Proxied::new(json!([{ "drop": true }])).await;
    let refused = preview.client.templates().preview(&id, None).await;
    assert!(matches!(refused, Err(Error::Validation(_))), "there is no version");
    assert_eq!(preview.requests().await.len(), 2);
    let rules = ["GET", "PATCH", "DELETE"].map(|method| json!({ "method": method, "drop": true }));
    let safe = Proxied::new(json!(rules)).await;
    let templates = safe.client.templates();
    templates.get(&id).await.unwrap();
    templates.update(&id, &UpdateTemplateRequest::new().name(format!("Lost again {}", *RUN))).await.unwrap();
    templates.delete(&id).await.unwrap();
    assert_eq!(safe.requests().await.len(), 6);
}

#[tokio::test]
async fn c36_a_long_retry_after_is_left_to_the_caller() {
    let body = json!({ "error": { "code": "RATE_LIMIT_EXCEEDED", "message": "x" } });
    for (given, from, to) in [("3600", 3600, 3600), ("Fri, 01 Jan 2100 00:00:00 GMT", 1_000_000_000, u64::MAX)] {
        let proxied = Proxied::new(json!([answer(429, body.clone(), json!({ "Retry-After": given }))])).await;
        let error = proxied.client.settings().get().await.unwrap_err();
        let Error::RateLimitExceeded(answer) = &error else { panic!("{error}") };
        let wait = answer.retry_after.unwrap().as_secs();
        assert!((from..=to).contains(&wait), "{given}: {wait}");
        assert_eq!(proxied.requests().await.len(), 1);
    }
}

#[tokio::test]
async fn c70_cancellation() {
    let mut late = refusal(503, "SERVICE_UNAVAILABLE", json!({}));
    late["answer"]["headers"]["Retry-After"] = json!("5");
    for rule in [json!({ "wait": 3 }), late] {
        let proxied = Proxied::new(json!([rule])).await;
        let begun = Instant::now();
        let call = IntoFuture::into_future(proxied.client.settings().get());
        let outcome: Result<_, tokio::time::error::Elapsed> =
            tokio::time::timeout(Duration::from_millis(300), call).await;
        assert!(outcome.is_err());
        assert!(begun.elapsed() < Duration::from_millis(1500));
        assert_eq!(proxied.requests().await.len(), 1);
    }
    let proxied = Proxied::new(json!([{ "wait": 3 }])).await;
    let task = tokio::spawn(proxied.client.settings().get().into_future());
    tokio::time::sleep(Duration::from_millis(200)).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(proxied.requests().await.len(), 1);
    drop(proxied.client.settings().get().into_future());
    assert_eq!(proxied.requests().await.len(), 1, "a call that is not awaited sends nothing");
}

#[tokio::test]
async fn c71_a_timeout() {
    let options = Options { timeout: Some(Duration::from_millis(200)), max_retries: Some(0), ..Options::default() };
    let proxied = Proxied::with(json!([always(json!({ "wait": 2 }))]), options).await;
    let error = proxied.client.settings().get().await.unwrap_err();
    assert!(matches!(error, Error::Timeout(_)) && error.is_connection());
    let text = error.to_string();
    assert!(text.contains("200ms") && text.contains("option timeout"), "{text}");
}

#[tokio::test]
async fn c72_a_send_that_takes_too_long_at_first() {
    let tag = format!("late-{}", *RUN);
    let proxied = Proxied::new(json!([{ "wait": 1 }])).await;
    let call = proxied.client.messages().send(&mail().tags([&tag])).timeout(Duration::from_millis(700)).max_retries(5);
    assert!(call.await.unwrap().message_id.is_some());
    let requests = until("the late answer", async || {
        let found = proxied.requests().await;
        found.iter().all(|request| !request["status"].is_null()).then_some(found)
    });
    let requests = requests.await;
    assert!(requests.len() >= 2);
    assert_eq!(keys(&requests), 1);
    assert_eq!(count_with_tag(&tag).await, 1);
}
