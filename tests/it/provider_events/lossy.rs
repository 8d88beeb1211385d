//! Requests that are not quite JSON or not quite text: everything that can be read is
//! recorded.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

use super::{Account, connect, event, ids_of, unrecorded};

/// The answer of a receiving server in an event: invalid UTF-8, halves of a surrogate
/// pair, a NUL, a line break, an unknown escape.
const ANSWERS: [&[u8]; 7] = [
    b"250 caf\xe9",
    br"250 \ud800 taken",
    br"250 taken \udc00",
    br"250 \udbff\ud800",
    br"250 a\u0000b",
    b"250 taken\r\nby me",
    br"250 \x41",
];

/// A message to so many addresses, sent.
async fn sent(app: &TestApp, count: usize) -> String {
    let to: Vec<String> = (0..count)
        .map(|nth| format!("r{nth}@example.org"))
        .collect();
    let mut message = message_to("");
    message["to"] = json!(to);
    let id = app.send(&message).await;
    app.drain().await;
    id
}

/// The bytes of an event with this in place of `ANSWER`.
fn with_answer(event: &Value, answer: &[u8]) -> Vec<u8> {
    let text = event.to_string();
    let (before, after) = text.split_once("ANSWER").unwrap();
    [before.as_bytes(), answer, after.as_bytes()].concat()
}

async fn assert_all_delivered(app: &TestApp, account: &Account, id: &str, unreadable: i64) {
    for (nth, recipient) in app.recipients(id).await.iter().enumerate() {
        assert_eq!(recipient["status"], "DELIVERED", "{nth}");
    }
    assert_eq!(unrecorded(app, account).await, (0, unreadable));
}

#[tokio::test]
async fn one_broken_event_does_not_hide_the_others_of_its_request() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = sent(&app, ANSWERS.len()).await;
    let mut body = b"[".to_vec();
    for (nth, answer) in ANSWERS.iter().enumerate() {
        let ids = ids_of(&app, &id, i32::try_from(nth).unwrap()).await;
        let mut delivered = event(&app, &ids, "delivered", &format!("e{nth}"), 0);
        delivered["response"] = json!("ANSWER");
        body.extend_from_slice(&with_answer(&delivered, answer));
        body.extend_from_slice(b",\r\n");
        if nth == 2 {
            // Not even an object.
            body.extend_from_slice(b"{\"event\":\"delivered\",\"response\":oops},\r\n");
        }
    }
    body.extend_from_slice(b"{\"event\":\"cut o");
    let reply = account.post_bytes(app.caller(), &app, &body).await;
    assert_eq!(reply.expect(200), json!({ "success": true }));
    assert_all_delivered(&app, &account, &id, 2).await;
}

#[tokio::test]
async fn a_request_of_one_event_is_read_as_far_as_possible() {
    for kind in [ProviderType::Postmark, ProviderType::Mailgun] {
        let app = TestApp::start().await;
        let account = connect(&app, app.caller(), kind).await;
        let id = sent(&app, ANSWERS.len()).await;
        for (nth, answer) in ANSWERS.iter().enumerate() {
            let ids = ids_of(&app, &id, i32::try_from(nth).unwrap()).await;
            let event = if kind == ProviderType::Postmark {
                json!({
                    "RecordType": "Delivery", "Details": "ANSWER", "MessageID": format!("m{nth}"),
                    "Recipient": format!("r{nth}@example.org"), "Metadata": ids,
                })
            } else {
                json!({
                    "event": "delivered", "id": format!("e{nth}"),
                    "timestamp": app.clock.now().timestamp(), "user-variables": ids,
                    "delivery-status": { "code": 250, "message": "ANSWER" },
                })
            };
            let body = with_answer(&event, answer);
            let reply = account.post_bytes(app.caller(), &app, &body).await;
            assert_eq!(
                reply.expect(200),
                json!({ "success": true }),
                "{kind} {nth}"
            );
        }
        assert_all_delivered(&app, &account, &id, 0).await;
    }
}
