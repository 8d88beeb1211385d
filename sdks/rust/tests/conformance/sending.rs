//! Calls that succeed.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use waypost::chrono::{DateTime, TimeDelta, Utc};
use waypost::types::{
    CreateTemplateRequest, CreateTemplateVersionRequest, ErrorReason, MessageAttachment, MessageRecipient,
    PreviewTemplateRequest, RecipientKind, Recipients, SendBatchRequest, SendStatus, Tracking, UpdateMessageRequest,
    UpdateTemplateRequest,
};
use waypost::{Error, serde_json};

use crate::support::{Proxied, RUN, captured_to, count_with_tag, delivered, keys, live, mail, mail_to, send};

#[tokio::test]
async fn c04_a_message_is_sent_and_delivered() {
    let (waypost, to) = (live().await, format!("c04-{}@example.org", *RUN));
    let sent = waypost.messages().send(&mail_to(&to)).await.unwrap();
    assert_eq!(sent.status, SendStatus::Queued);
    let id = sent.message_id.unwrap();
    delivered(&id).await;
    assert_eq!(waypost.messages().get(&id).await.unwrap().subject, "Hello");
    let recipients = waypost.messages().recipients().list(&id).await.unwrap().data;
    assert_eq!((recipients.len(), &recipients[0].kind), (1, &RecipientKind::To));
    assert_eq!(recipients[0].status.as_str(), "DELIVERED");
    assert_eq!(captured_to(&to).await, 1);
}

#[tokio::test]
async fn c05_a_batch_has_a_result_for_each_message() {
    let message = |to: &str| batch_message(to, "batch");
    let batch = SendBatchRequest::new([message("ada@example.org"), message("nobody"), message("bob@example.org")]);
    let results = live().await.messages().send_batch(&batch).await.unwrap().results;
    assert_eq!(results.len(), 3);
    assert!(results[0].message_id.is_some() && results[2].message_id.is_some());
    assert!(results[1].error.as_ref().unwrap().contains("email address"));
}

pub(crate) fn batch_message(to: &str, tag: &str) -> waypost::types::BatchMessage {
    waypost::types::BatchMessage::new(to).from("shop@example.com").subject("Hello").text("Hello").tags([tag])
}

#[tokio::test]
async fn c06_a_scheduled_message_is_read_moved_and_cancelled() {
    let waypost = live().await;
    let day = |days| to_milliseconds(Utc::now() + TimeDelta::days(days));
    let (tomorrow, later) = (day(1), day(2));
    let id = send(&waypost, &mail().scheduled_at(tomorrow)).await;
    assert_eq!(waypost.messages().get(&id).await.unwrap().scheduled_at, Some(tomorrow));
    let moved = UpdateMessageRequest::new().scheduled_at(later);
    assert_eq!(waypost.messages().update(&id, &moved).await.unwrap().scheduled_at, Some(later));
    assert_eq!(waypost.messages().cancel(&id).await.unwrap().cancelled_count, 1);
    let now = UpdateMessageRequest::new().clear_scheduled_at();
    let error = waypost.messages().update(&id, &now).await.unwrap_err();
    assert!(matches!(&error, Error::Conflict(answer) if answer.reason.is_some()), "{error}");
}

fn to_milliseconds(time: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(time.timestamp_millis()).unwrap()
}

#[tokio::test]
async fn c07_sub_resources() {
    let templates = live().await.templates();
    let template = CreateTemplateRequest::new(format!("Receipt {}", *RUN)).description("A receipt");
    let id = templates.create(&template).await.unwrap().id;
    let version = CreateTemplateVersionRequest::new("<p>{{name}}</p>").subject("Hello {{name}}");
    let version = version.variables_schema(json!({ "type": "object" }));
    let version = templates.versions().create(&id, &version).await.unwrap();
    assert_eq!(templates.versions().get(&id, &version.id).await.unwrap().id, version.id);
    assert_eq!(templates.versions().list(&id).await.unwrap().data.len(), 1);
    let ada = PreviewTemplateRequest::new().variables(json!({ "name": "Ada" }));
    assert_eq!(templates.preview(&id, Some(&ada)).await.unwrap().subject.unwrap(), "Hello Ada");
    assert!(templates.preview(&id, None).await.is_ok());
    let renamed = UpdateTemplateRequest::new().name(format!("Renamed {}", *RUN));
    let renamed = templates.update(&id, &renamed).await.unwrap();
    assert_eq!((renamed.name, renamed.description), (format!("Renamed {}", *RUN), Some("A receipt".to_owned())));
    let cleared = templates.update(&id, &UpdateTemplateRequest::new().clear_description()).await.unwrap();
    assert_eq!(cleared.description, None);
    assert!(templates.delete(&id).await.unwrap().success);
    assert!(matches!(templates.get(&id).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn c08_a_file_comes_as_it_was_sent() {
    let (waypost, content) = (live().await, [0, 255, 10, 13, 128]);
    let attachment = MessageAttachment::new("data.bin").content(BASE64_STANDARD.encode(content));
    let id = send(&waypost, &mail().attachments([attachment])).await;
    let attachments = waypost.messages().attachments();
    assert_eq!(attachments.list(&id).await.unwrap().data[0].size, 5);
    let file = attachments.download(&id, "0").await.unwrap();
    assert!(file.response.headers().contains_key("content-type"));
    assert_eq!(file.bytes().await.unwrap(), content);
    let mut file = attachments.download(&id, "0").await.unwrap();
    assert_eq!(file.response.chunk().await.unwrap().unwrap(), content.as_slice());
    assert!(matches!(attachments.download(&id, "7").await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn c09_an_id_that_is_none_is_refused_before_anything_is_sent() {
    let proxied = Proxied::new(json!([])).await;
    for id in ["", "..", "."] {
        assert!(matches!(proxied.client.messages().get(id).await, Err(Error::Usage(text)) if text.contains("{id}")));
    }
    assert_eq!(proxied.requests().await.len(), 0);
    for (id, path) in
        [("a/../b", "/v1/messages/a%2F..%2Fb"), ("%2e%2e", "/v1/messages/%252e%252e"), ("a?b", "/v1/messages/a%3Fb")]
    {
        assert!(proxied.client.messages().get(id).await.is_err());
        assert_eq!(proxied.requests().await.last().unwrap()["path"], path);
    }
}

async fn done_once(id: &str, how: &str) {
    let (tag, to) = (format!("{id}-{}", *RUN), format!("{id}-{}@example.org", *RUN));
    let proxied = Proxied::new(json!([{ "path": "/v1/send", how: true }])).await;
    let message = send(&proxied.client, &mail_to(&to).tags([&tag])).await;
    let requests = proxied.requests().await;
    assert_eq!((requests.len(), keys(&requests)), (2, 1));
    assert_eq!(count_with_tag(&tag).await, 1);
    delivered(&message).await;
    assert_eq!(captured_to(&to).await, 1);
}

#[tokio::test]
async fn c10_a_send_whose_answer_is_lost_is_done_once() {
    done_once("c10", "lose").await;
}

#[tokio::test]
async fn c11_a_send_whose_answer_breaks_off_is_done_once() {
    done_once("c11", "cut").await;
}

#[tokio::test]
async fn c12_two_sends_have_two_keys() {
    let proxied = Proxied::new(json!([])).await;
    let (one, two) = (send(&proxied.client, &mail()).await, send(&proxied.client, &mail()).await);
    assert_ne!(one, two);
    let requests = proxied.requests().await;
    assert_eq!(keys(&requests), 2);
    let document: Value = serde_json::from_str(include_str!("../../../../openapi/waypost.v1.json")).unwrap();
    let version = document["info"]["version"].as_str().unwrap();
    assert_eq!(requests[0]["userAgent"], format!("waypost-rust/{version}"), "the package has the API's version");
}

#[tokio::test]
async fn c13_one_key_of_the_callers_is_one_message() {
    let (waypost, key) = (live().await, format!("order-{}", *RUN));
    let one = waypost.messages().send(&mail()).idempotency_key(&key).await.unwrap();
    let two = waypost.messages().send(&mail()).idempotency_key(&key).await.unwrap();
    assert_eq!(one.message_id, two.message_id);
    let error = waypost.messages().send(&mail().subject("Another")).idempotency_key(&key).await.unwrap_err();
    let Error::Conflict(answer) = &error else { panic!("{error}") };
    assert_eq!(answer.reason, Some(ErrorReason::IdempotencyKeyReused));
    assert_eq!(answer.reason.as_ref().unwrap().as_str(), "IDEMPOTENCY_KEY_REUSED");
    let error = waypost.messages().send(&mail()).idempotency_key("a\nb").await.unwrap_err();
    assert!(matches!(error, Error::Usage(_)));
}

#[tokio::test]
async fn c50_unknown_values_and_fields_pass_through() {
    let id = send(&live().await, &mail()).await;
    let set = json!([
        [["data", "status"], "OF_TOMORROW"],
        [["data", "newField"], { "deep": [1] }],
        [["data", "events", "*", "eventType"], "NEW"]
    ]);
    let proxied = Proxied::new(json!([{ "set": set }])).await;
    let message = proxied.client.messages().get(&id).await.unwrap();
    assert_eq!(message.status.as_str(), "OF_TOMORROW");
    assert_eq!(message.unknown_fields["newField"], json!({ "deep": [1] }));
    assert_eq!(message.events[0].event_type.as_str(), "NEW");
    let again = serde_json::to_value(&message).unwrap();
    assert_eq!((&again["status"], &again["newField"]), (&json!("OF_TOMORROW"), &json!({ "deep": [1] })));
    assert_eq!(again["events"][0]["eventType"], "NEW");
}

/// What has no case of its own, since it is about Rust: what a request says, and what it leaves out.
#[test]
fn requests_say_what_was_set_and_nothing_else() {
    let plain = mail_to("ada@example.org");
    let expected =
        json!({ "to": "ada@example.org", "from": "Shop <shop@example.com>", "subject": "Hello", "text": "Hello, Ada" });
    assert_eq!(serde_json::to_value(&plain).unwrap(), expected);
    let ada = MessageRecipient::new("ada@example.org").variables(json!({ "name": "Ada" }));
    let to = [
        (Recipients::from("a@b.c"), json!("a@b.c")),
        (["a@b.c", "d@e.f"].into(), json!(["a@b.c", "d@e.f"])),
        (vec![String::from("a@b.c")].into(), json!(["a@b.c"])),
        (ada.clone().into(), json!([{ "email": "ada@example.org", "variables": { "name": "Ada" } }])),
        (
            [ada.into(), "b@c.d".into()].into_iter().collect::<Vec<waypost::types::RecipientsItem>>().into(),
            json!([{ "email": "ada@example.org", "variables": { "name": "Ada" } }, "b@c.d"]),
        ),
    ];
    for (to, expected) in to {
        assert_eq!(serde_json::to_value(&to).unwrap(), expected);
    }
    let update = UpdateTemplateRequest { description: Some(None), ..Default::default() };
    assert_eq!(serde_json::to_value(&update).unwrap(), json!({ "description": null }));
    assert_eq!(serde_json::to_value(UpdateTemplateRequest::new()).unwrap(), json!({}));
    let whole =
        mail().headers([("X-Ticket", "7")]).tracking(Tracking::new().opens(false)).scheduled_at(DateTime::UNIX_EPOCH);
    let whole = serde_json::to_value(&whole).unwrap();
    assert_eq!(whole["headers"], json!({ "X-Ticket": "7" }));
    assert_eq!(whole["tracking"], json!({ "opens": false }));
    assert_eq!(whole["scheduledAt"], "1970-01-01T00:00:00Z");
}
