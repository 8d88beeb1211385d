//! Postmark: HTTP Basic with a user name and password that Waypost generated.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use waypost_core::provider::event::BounceType;

use super::*;

fn secrets() -> EventSecrets {
    EventSecrets::Postmark {
        username: "waypost".to_owned(),
        password: Secret::from("s3cret:with:colons"),
    }
}

async fn with(authorization: &str, body: &[u8]) -> Result<Received, InboundRefusal> {
    posted(&secrets(), &[("authorization", authorization)], body, now()).await
}

fn basic(pair: &str) -> String {
    format!("Basic {}", BASE64.encode(pair))
}

async fn genuine(body: &[u8]) -> Result<Received, InboundRefusal> {
    with(&basic("waypost:s3cret:with:colons"), body).await
}

#[tokio::test]
async fn only_the_accounts_user_name_and_password_are_accepted() {
    let body = br#"{"RecordType":"Delivery","MessageID":"m","Recipient":"a@b.org"}"#;
    assert_eq!(genuine(body).await.unwrap().events.len(), 1);
    let lower = basic("waypost:s3cret:with:colons").replace("Basic", "basic");
    assert!(with(&lower, body).await.is_ok());
    for wrong in [
        "waypost:",
        "waypost:s3cret:with:colon",
        "waypost:s3cret:with:colons ",
        "waypost:s3cret:with:colonS",
        "Waypost:s3cret:with:colons",
        ":s3cret:with:colons",
        "waypost",
        "",
    ] {
        let why = unverified(with(&basic(wrong), body).await);
        assert_eq!(why, "the user name or the password is wrong", "{wrong}");
    }
    let pair = BASE64.encode("waypost:s3cret:with:colons");
    for wrong in [
        String::new(),
        pair.clone(),
        format!("Bearer {pair}"),
        format!("Basic{pair}"),
        "Basic".to_owned(),
        "Basic ".to_owned() + "!!!",
        "Basic waypost:s3cret:with:colons".to_owned(),
    ] {
        let why = unverified(with(&wrong, body).await);
        assert_eq!(why, "it carries no user name and password", "{wrong}");
    }
    unverified(posted(&secrets(), &[], body, now()).await);
    let right = basic("waypost:s3cret:with:colons");
    let twice = [("authorization", &*right), ("authorization", &*right)];
    unverified(posted(&secrets(), &twice, body, now()).await);
}

#[tokio::test]
async fn the_official_samples_are_read() {
    use ProviderEventKind::*;
    let Some(samples) = shared("providers/fixtures/postmark/events-official-samples.json") else {
        return;
    };
    let is_bot = false;
    let expected = [
        ("Delivery", Delivered),
        ("Bounce", Bounced(BounceType::Hard)),
        ("SpamComplaint", Complained),
        ("Open", Opened { is_bot }),
        ("Click", Clicked { is_bot }),
        ("SubscriptionChange", Unsubscribed),
    ];
    assert_eq!(samples.as_object().unwrap().len(), expected.len());
    for (name, kind) in expected {
        let received = genuine(samples[name].to_string().as_bytes()).await.unwrap();
        let [event] = &received.events[..] else {
            panic!("{name}: {received:?}");
        };
        assert_eq!(event.kind, kind);
        assert_eq!(event.occurred_at.timestamp_micros(), 1_743_870_834_907_025);
        assert_eq!(
            event.recipient.as_ref().unwrap().as_str(),
            "john@example.com"
        );
        assert_eq!(
            event.provider_message_id.as_deref(),
            Some("883953f4-6105-42a2-a16a-77a8eac79483")
        );
    }
}

#[tokio::test]
async fn the_samples_of_other_projects_are_read() {
    use ProviderEventKind::*;
    let is_bot = false;
    for (name, kind) in [
        ("bounce", Some(Bounced(BounceType::Hard))),
        ("delivery", Some(Delivered)),
        ("link-click", Some(Clicked { is_bot })),
        ("open", Some(Opened { is_bot })),
        ("spam-complaint", Some(Complained)),
        // A suppression after a hard bounce: reported by an event of its own.
        ("subscription-change", None),
    ] {
        let path = format!("providers/fixtures/postmark/event-{name}.json");
        let Some(body) = shared_bytes(&path) else {
            return;
        };
        let received = genuine(&body).await.unwrap();
        let expected: Vec<ProviderEventKind> = kind.into_iter().collect();
        assert_eq!(kinds(&received.events), expected, "{name}");
        assert_eq!(received.skipped, 1 - expected.len());
    }
}

#[tokio::test]
async fn a_genuine_post_without_an_event_is_unreadable() {
    for body in [&b""[..], b"[]", b"{}", b"{", b"\xff", b"{\"RecordType\":7}"] {
        let result = genuine(body).await;
        assert!(
            matches!(result, Err(InboundRefusal::Malformed { .. })),
            "{result:?}"
        );
    }
}
