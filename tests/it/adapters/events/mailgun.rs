//! Mailgun: HMAC over a time and a token in the body.

use waypost_core::provider::event::BounceType;

use super::*;

const FOLDER: &str = "providers/fixtures/mailgun";

fn secrets(signing_key: &str) -> EventSecrets {
    EventSecrets::Mailgun {
        signing_key: Secret::from(signing_key),
    }
}

async fn receive_at(key: &str, body: &Value, now: Timestamp) -> Result<Received, InboundRefusal> {
    posted(&secrets(key), &[], body.to_string().as_bytes(), now).await
}

fn signed_at(body: &Value) -> Timestamp {
    at(text(&body["signature"], "timestamp").parse().unwrap())
}

/// The published vectors: key, body, and the vector.
fn vectors() -> Vec<(String, Value, Value)> {
    let Some(document) = shared(&format!("{FOLDER}/signature.vectors.json")) else {
        return Vec::new();
    };
    let vectors = document["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 13);
    let body = |vector: &Value| match vector["body_file"].as_str() {
        Some(file) => shared(&format!("{FOLDER}/{file}")).unwrap(),
        None => serde_json::json!({
            "signature": {
                "timestamp": vector["timestamp"],
                "token": vector["token"],
                "signature": vector["signature"],
            },
            "event-data": { "event": "delivered" },
        }),
    };
    vectors
        .iter()
        .map(|vector| {
            let key = text(vector, "signing_key").to_owned();
            (key, body(vector), vector.clone())
        })
        .collect()
}

/// The first genuine vector.
fn genuine() -> Option<(String, Value)> {
    let (key, body, _) = vectors().into_iter().next()?;
    Some((key, body))
}

#[tokio::test]
async fn the_published_signatures_are_verified_as_labelled() {
    use ProviderEventKind::*;
    let is_bot = false;
    for (key, body, vector) in vectors() {
        let result = receive_at(&key, &body, signed_at(&body)).await;
        if vector["valid"] != true {
            assert_eq!(unverified(result), "the signature is not the account's");
            continue;
        }
        let received = result.unwrap();
        let expected = match (vector["event"].as_str(), vector["reason"].as_str()) {
            (Some("accepted"), _) => Sent,
            (Some("clicked"), _) => Clicked { is_bot },
            (Some("opened"), _) => Opened { is_bot },
            (Some("complained"), _) => Complained,
            (Some("unsubscribed"), _) => Unsubscribed,
            (Some("failed"), Some("bounce")) => Bounced(BounceType::Hard),
            (Some("failed"), Some("suppress-bounce")) => Dropped,
            (Some("failed"), Some("generic")) => Deferred,
            (Some("delivered") | None, _) => Delivered,
            other => panic!("{other:?}"),
        };
        assert_eq!(kinds(&received.events), [expected], "{vector}");
        let guard = received.replay_guard.unwrap();
        assert_eq!(guard.token, text(&body["signature"], "token"));
        assert_eq!(guard.until, signed_at(&body) + TimeDelta::hours(12));
    }
}

#[tokio::test]
async fn another_time_token_or_key_breaks_the_signature() {
    let Some((key, body)) = genuine() else {
        return;
    };
    let now = signed_at(&body);
    let later = (now.timestamp() + 1).to_string();
    let token = text(&body["signature"], "token");
    let (longer, signature) = (format!("{token}0"), text(&body["signature"], "signature"));
    for (name, changed) in [
        ("timestamp", later.as_str()),
        ("timestamp", ""),
        ("token", longer.as_str()),
        ("token", ""),
        ("token", "a token"),
        ("signature", ""),
        ("signature", "zz"),
        ("signature", &signature[..62]),
        ("signature", &"0".repeat(64)),
    ] {
        let mut body = body.clone();
        body["signature"][name] = changed.into();
        unverified(receive_at(&key, &body, now).await);
    }
    unverified(receive_at("another", &body, now).await);
    unverified(receive_at("", &body, now).await);
    // Time and token have no separator, so a digit can move from one to the other; the
    // time is then far from the present.
    let time = text(&body["signature"], "timestamp");
    for (time, token) in [
        (time[..9].to_owned(), format!("{}{token}", &time[9..])),
        (format!("{time}{}", &token[..1]), token[1..].to_owned()),
    ] {
        let mut moved = body.clone();
        moved["signature"]["timestamp"] = time.into();
        moved["signature"]["token"] = token.into();
        let why = unverified(receive_at(&key, &moved, now).await);
        assert!(why.contains("too old") || why.contains("future"), "{why}");
    }
    for not_signed in ["", "{}", "[]", "signature=x&token=y", "{\"signature\":7}"] {
        let result = posted(&secrets(&key), &[], not_signed.as_bytes(), now).await;
        assert_eq!(unverified(result), "it holds no signature");
    }
}

#[tokio::test]
async fn a_post_repeated_for_eight_hours_is_verified_and_an_old_one_is_not() {
    let Some((key, body)) = genuine() else {
        return;
    };
    for hours in [-23, 0, 8, 12] {
        let now = signed_at(&body) + TimeDelta::hours(hours);
        assert!(receive_at(&key, &body, now).await.is_ok(), "{hours}");
    }
    for hours in [-25, 13] {
        let now = signed_at(&body) + TimeDelta::hours(hours);
        unverified(receive_at(&key, &body, now).await);
    }
}

/// The signature does not cover the event: the guard tells another event under the same
/// token from a repetition.
#[tokio::test]
async fn a_token_belongs_to_one_event() {
    let Some((key, body)) = genuine() else {
        return;
    };
    let guard = async |body: &[u8]| {
        let now = signed_at(&serde_json::from_slice(body).unwrap());
        let received = posted(&secrets(&key), &[], body, now).await.unwrap();
        received.replay_guard.unwrap()
    };
    let first = guard(body.to_string().as_bytes()).await;
    let in_other_words = serde_json::to_vec_pretty(&body).unwrap();
    assert_eq!(guard(&in_other_words).await, first);
    let mut forged = body.clone();
    forged["event-data"]["event"] = "complained".into();
    let forged = guard(forged.to_string().as_bytes()).await;
    assert_eq!(forged.token, first.token);
    assert_ne!(forged.content, first.content);
}

#[tokio::test]
async fn every_documented_event_is_read() {
    use ProviderEventKind::*;
    let samples = shared(&format!("{FOLDER}/event-data-samples.json"));
    let (Some(samples), Some((key, body))) = (samples, genuine()) else {
        return;
    };
    let is_bot = false;
    let expected = [
        ("Accepted", Some(Sent)),
        ("Accepted (Routed)", Some(Sent)),
        ("Delivered", Some(Delivered)),
        ("Failed (Permanent)", Some(Dropped)),
        (
            "Failed (Permanent, Delayed Bounce)",
            Some(Bounced(BounceType::Hard)),
        ),
        ("Failed (Temporary)", Some(Deferred)),
        ("Opened", Some(Opened { is_bot })),
        ("Clicked", Some(Clicked { is_bot })),
        ("Unsubscribed", Some(Unsubscribed)),
        ("Complained", Some(Complained)),
        ("Stored", None),
        ("Rejected", Some(Dropped)),
        ("List Member Uploaded", None),
        ("List Member Upload Error", None),
        ("List Uploaded", None),
    ];
    assert_eq!(samples.as_object().unwrap().len(), expected.len());
    for (name, kind) in expected {
        let mut body = body.clone();
        body["event-data"] = samples[name].clone();
        let received = receive_at(&key, &body, signed_at(&body)).await.unwrap();
        let kind: Vec<ProviderEventKind> = kind.into_iter().collect();
        assert_eq!(kinds(&received.events), kind, "{name}");
        assert_eq!(received.skipped, 1 - kind.len(), "{name}");
    }
}
