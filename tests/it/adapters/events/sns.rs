//! SNS: messages signed by AWS, messages signed for this project, and some that these tests
//! sign themselves.

mod signer;

use serde_json::json;
use waypost_core::provider::event_secrets::TopicArn;

use super::super::local_server::{Behaviour, LocalServer};
use super::*;
use signer::{Signer, answer};

const FOLDER: &str = "providers/fixtures/sns";
/// When the project's messages were signed.
const SIGNED_AT: i64 = 1_767_225_600;

fn topic(arn: &str) -> EventSecrets {
    EventSecrets::Ses {
        topic_arn: TopicArn::parse(arn).unwrap(),
    }
}

/// Receives a message for the topic that the message names.
async fn receive_at(
    message: &Value,
    now: Timestamp,
    fetcher: &SnsFetcher,
) -> Result<Received, InboundRefusal> {
    receive_for(text(message, "TopicArn"), message, now, fetcher).await
}

async fn receive_for(
    arn: &str,
    message: &Value,
    now: Timestamp,
    fetcher: &SnsFetcher,
) -> Result<Received, InboundRefusal> {
    let headers = headers_of(&[("x-amz-sns-message-type", text(message, "Type"))]);
    let body = message.to_string();
    let inbound = Inbound {
        headers: &headers,
        body: body.as_bytes(),
        now,
    };
    receive(ProviderType::Ses, &topic(arn), &inbound, fetcher).await
}

/// A server that always replies with this file of the shared folder.
async fn server_of(pem: &str) -> Option<LocalServer> {
    let pem = shared_bytes(&format!("{FOLDER}/{pem}"))?;
    let pem = String::from_utf8(pem).unwrap();
    Some(LocalServer::start(Behaviour::Say(answer(200, &pem))).await)
}

#[tokio::test]
async fn the_projects_messages_are_verified_as_labelled() {
    let Some(mut server) = server_of("synthetic-cert.pem").await else {
        return;
    };
    let document = shared(&format!("{FOLDER}/synthetic-signed-messages.json")).unwrap();
    let messages = document["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 23);
    let fetcher = fetcher_at(&server.url);
    let mut fetched_certificates = 0;
    for message in messages {
        let (name, body) = (text(message, "name"), &message["body"]);
        let headers = message["headers"].as_object().unwrap().iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let headers = headers_of(&headers);
        let bytes = body.to_string();
        let inbound = Inbound {
            headers: &headers,
            body: bytes.as_bytes(),
            now: at(SIGNED_AT),
        };
        let secrets = topic("arn:aws:sns:us-east-1:123456789012:ses-events");
        let result = receive(ProviderType::Ses, &secrets, &inbound, &fetcher).await;
        let requests = server.requests_so_far();
        let (certificates, others): (Vec<String>, Vec<String>) = requests
            .into_iter()
            .partition(|request| request.starts_with("GET /SimpleNotificationService-0"));
        fetched_certificates += certificates.len();
        if message["valid"] != true {
            unverified(result);
            assert!(others.is_empty(), "{name}: {others:?}");
            continue;
        }
        let received = result.unwrap_or_else(|refused| panic!("{name}: {refused}"));
        let counts = (received.events.len(), received.skipped);
        if name.starts_with("subscription") {
            assert_eq!(counts, (0, 0), "{name}");
            let path = text(body, "SubscribeURL");
            let path = path
                .strip_prefix("https://sns.us-east-1.amazonaws.com")
                .unwrap();
            assert_eq!(others.len(), 1);
            assert!(
                others[0].starts_with(&format!("GET {path} HTTP/1.1")),
                "{others:?}"
            );
        } else {
            let is_event = name.starts_with("ses ") && !name.contains("not JSON");
            assert_eq!(counts, if is_event { (1, 0) } else { (0, 1) }, "{name}");
            assert!(others.is_empty(), "{name}: {others:?}");
        }
    }
    // Fetched once for all of them.
    assert_eq!(fetched_certificates, 1);
}

#[tokio::test]
async fn a_message_signed_by_aws_is_verified_while_its_certificate_was_valid() {
    let Some(server) = server_of("sns-signing-cert-2022.pem").await else {
        return;
    };
    let messages = shared(&format!("{FOLDER}/signed-notifications.json")).unwrap();
    let messages = messages.as_array().unwrap();
    assert_eq!(messages.len(), 4);
    let fetcher = fetcher_at(&server.url);
    // 2022-07-28 23:00 UTC.
    let then = at(1_659_049_200);
    for message in messages {
        let received = receive_at(message, then, &fetcher).await.unwrap();
        assert_eq!((received.events.len(), received.skipped), (0, 1));
        let why = unverified(receive_at(message, then + TimeDelta::hours(24), &fetcher).await);
        assert_eq!(why, "its signature is too old");
        for now in [at(1_660_780_800), at(1_630_972_799)] {
            let why = unverified(receive_at(message, now, &fetcher).await);
            assert_eq!(why, "its certificate is not valid now");
        }
        let other = "arn:aws:sns:us-east-2:295079676684:another";
        let why = unverified(receive_for(other, message, then, &fetcher).await);
        assert_eq!(why, "it belongs to another topic");
        for (name, value) in [
            ("Message", json!("Hello World")),
            ("MessageId", json!("792cda85")),
            ("Subject", json!("")),
            ("Timestamp", json!("2022-07-28T22:00:00.000Z")),
            ("Signature", json!("AAAA")),
            ("Signature", json!("!")),
            ("SignatureVersion", json!("3")),
            ("SignatureVersion", json!("0")),
        ] {
            let mut changed = message.clone();
            changed[name] = value;
            unverified(receive_at(&changed, then, &fetcher).await);
        }
        let mut swapped = message.clone();
        let is_first = text(message, "SignatureVersion") == "1";
        swapped["SignatureVersion"] = json!(if is_first { "2" } else { "1" });
        unverified(receive_at(&swapped, then, &fetcher).await);
    }
}

#[tokio::test]
async fn only_the_type_that_the_header_names_is_read() {
    let Some(server) = server_of("sns-signing-cert-2022.pem").await else {
        return;
    };
    let fetcher = fetcher_at(&server.url);
    let messages = shared(&format!("{FOLDER}/signed-notifications.json")).unwrap();
    let (message, then) = (&messages[0], at(1_659_049_200));
    let secrets = topic(text(message, "TopicArn"));
    let bytes = message.to_string();
    let name = "x-amz-sns-message-type";
    for headers in [
        &[][..],
        &[(name, "SubscriptionConfirmation")],
        &[(name, "notification")],
        &[(name, "Notification"), (name, "Notification")],
    ] {
        let headers = headers_of(headers);
        let inbound = Inbound {
            headers: &headers,
            body: bytes.as_bytes(),
            now: then,
        };
        unverified(receive(ProviderType::Ses, &secrets, &inbound, &fetcher).await);
    }
    let headers = headers_of(&[(name, "Notification")]);
    for body in [
        &b""[..],
        b"{}",
        b"[]",
        b"\xff",
        br#"{"Type":"Notification"}"#,
    ] {
        let inbound = Inbound {
            headers: &headers,
            body,
            now: then,
        };
        unverified(receive(ProviderType::Ses, &secrets, &inbound, &fetcher).await);
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_fetched_is_requested_again() {
    let signer = Signer::new();
    let message = signer.notification("plain text", now());
    for manner in [
        Behaviour::Close,
        Behaviour::ReadAndClose,
        Behaviour::Say(answer(500, "")),
        Behaviour::Say(answer(429, "")),
        Behaviour::Say(answer(200, "")),
        Behaviour::Say(answer(200, "<html></html>")),
        Behaviour::Say("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"),
        Behaviour::Flood(100_000),
        Behaviour::Flood(2_000_000),
    ] {
        let server = LocalServer::start(manner).await;
        let fetcher = fetcher_at(&server.url);
        let result = receive_at(&message, now(), &fetcher).await;
        assert!(
            matches!(result, Err(InboundRefusal::Unavailable { .. })),
            "{result:?}"
        );
    }
    let mut server = LocalServer::start(Behaviour::SayInTurn(Box::leak(Box::new([
        answer(503, ""),
        "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
        answer(200, &signer.pem),
    ]))))
    .await;
    let fetcher = fetcher_at(&server.url);
    for is_there in [false, false, true, true] {
        let result = receive_at(&message, now(), &fetcher).await;
        assert_eq!(result.is_ok(), is_there, "{result:?}");
    }
    // No redirect was followed, and a fetched certificate is cached.
    let requests = server.requests_so_far();
    assert_eq!(requests.len(), 3);
    let is_certificate = |request: &String| request.starts_with("GET /made.pem HTTP/1.1");
    assert!(requests.iter().all(is_certificate), "{requests:?}");
    let server = LocalServer::start(Behaviour::Say(answer(404, ""))).await;
    unverified(receive_at(&message, now(), &fetcher_at(&server.url)).await);
}

#[tokio::test]
async fn a_key_that_is_not_from_sns_signs_nothing() {
    let (signer, other) = (Signer::new(), Signer::new());
    let server = LocalServer::start(Behaviour::Say(answer(200, &other.pem))).await;
    let message = signer.notification("plain text", now());
    let why = unverified(receive_at(&message, now(), &fetcher_at(&server.url)).await);
    assert_eq!(why, "the signature is not that of SNS");
}

#[tokio::test]
async fn a_confirmation_is_followed_if_it_confirms_our_topic() {
    let signer = Signer::new();
    let certificate = answer(200, &signer.pem);
    let query = format!(
        "Action=ConfirmSubscription&TopicArn={}&Token=t0k",
        signer::TOPIC
    );
    let good = format!("https://sns.eu-west-1.amazonaws.com/?{query}");
    for (url, is_followed) in [
        (good.clone(), true),
        (
            format!("https://sns.us-east-1.amazonaws.com/?{query}"),
            false,
        ),
        (format!("https://evil.example/?{query}"), false),
        (
            format!("http://sns.eu-west-1.amazonaws.com/?{query}"),
            false,
        ),
        (good.replace("Confirm", "Delete"), false),
        (good.replace("events", "others"), false),
        (good.replace("t0k", "other"), false),
    ] {
        let mut server = LocalServer::start(Behaviour::Say(certificate)).await;
        let message = signer.confirmation(&url, now());
        let result = receive_at(&message, now(), &fetcher_at(&server.url)).await;
        let requests = server.requests_so_far();
        if is_followed {
            assert_eq!(result.unwrap().events.len(), 0);
            assert!(requests[1].starts_with(&format!("GET /?{query} HTTP/1.1")));
            assert_eq!(requests.len(), 2);
        } else {
            unverified(result);
            assert_eq!(requests.len(), 1, "{requests:?}");
        }
    }
    for refused in [answer(403, ""), answer(500, "")] {
        let turns = Box::leak(Box::new([certificate, refused]));
        let server = LocalServer::start(Behaviour::SayInTurn(turns)).await;
        let message = signer.confirmation(&good, now());
        let result = receive_at(&message, now(), &fetcher_at(&server.url)).await;
        assert!(
            matches!(result, Err(InboundRefusal::Unavailable { .. })),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn every_documented_event_is_read() {
    let files = ["event-publishing-samples", "identity-notification-samples"];
    let signer = Signer::new();
    let server = LocalServer::start(Behaviour::Say(answer(200, &signer.pem))).await;
    let fetcher = fetcher_at(&server.url);
    let mut kinds = Vec::new();
    for file in files {
        let Some(samples) = shared(&format!("providers/fixtures/ses/{file}.json")) else {
            return;
        };
        for (name, sample) in samples.as_object().unwrap() {
            let message = signer.notification(&sample.to_string(), now());
            let received = receive_at(&message, now(), &fetcher).await.unwrap();
            assert_eq!((received.skipped, received.unreadable), (0, 0), "{name}");
            let count = received.events.len();
            let kind = received.events[0].kind;
            assert!(
                received.events.iter().all(|event| {
                    event.recipient.is_some() && event.provider_message_id.is_some()
                })
            );
            kinds.push(format!("{name}: {count} {kind:?}"));
        }
    }
    kinds.sort();
    let expected = [
        "Bounce-0: 1 Bounced(Hard)",
        "Bounce-1: 2 Bounced(Hard)",
        "Bounce: 1 Bounced(Hard)",
        "Click: 1 Clicked { is_bot: false }",
        "Complaint-2: 1 Complained",
        "Complaint-3: 1 Complained",
        "Complaint: 1 Complained",
        "Delivery-4: 1 Delivered",
        "Delivery: 1 Delivered",
        "DeliveryDelay: 1 Deferred",
        "Open: 1 Opened { is_bot: false }",
        "Reject: 1 Dropped",
        "Rendering Failure: 1 Dropped",
        "Send: 1 Sent",
        "Subscription: 1 Unsubscribed",
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn invalid_utf_8_in_a_signed_message_is_repaired_and_read() {
    let signer = Signer::new();
    let server = LocalServer::start(Behaviour::Say(answer(200, &signer.pem))).await;
    let fetcher = fetcher_at(&server.url);
    let event = |diagnostic: &[u8]| {
        [
            &br#"{"eventType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"General","bouncedRecipients":[{"emailAddress":"ada@example.com","status":"5.1.1","diagnosticCode":""#[..],
            diagnostic,
            br#""}]},"mail":{"messageId":"m","destination":["ada@example.com"]}}"#,
        ]
        .concat()
    };
    for (diagnostic, reason) in [
        (&b"550 caf\xe9"[..], "550 caf\u{fffd}"),
        (br"550 a\ud800b", "550 a\u{fffd}b"),
        (br"550 a\u0000b", "550 a\u{fffd}b"),
    ] {
        let body = signer.notification_of_bytes(&event(diagnostic), now());
        let headers = headers_of(&[("x-amz-sns-message-type", "Notification")]);
        let inbound = Inbound {
            headers: &headers,
            body: &body,
            now: now(),
        };
        let received = receive(ProviderType::Ses, &topic(signer::TOPIC), &inbound, &fetcher).await;
        let received = received.unwrap();
        assert_eq!(received.events.len(), 1, "{reason}");
        assert_eq!(received.events[0].details["reason"], reason);
        // The signature covers the bytes.
        let mut changed = body.clone();
        let at = changed
            .windows(3)
            .position(|bytes| bytes == b"550")
            .unwrap();
        changed[at] = b'4';
        let inbound = Inbound {
            body: &changed,
            ..inbound
        };
        let received = receive(ProviderType::Ses, &topic(signer::TOPIC), &inbound, &fetcher).await;
        unverified(received);
    }
}
