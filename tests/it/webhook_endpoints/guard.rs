//! Which addresses webhooks may call: the client with names that resolve as the test
//! wants.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use url::Url;
use waypost_core::clock::Clock;
use waypost_core::config::WebhookSettings;
use waypost_core::http::guarded::Resolver;
use waypost_core::webhook::client::{WebhookClient, WebhookFailure, WebhookReply};

use super::receiver::{Manner, Receiver};

/// Returns the given answers in order, and the last one from then on.
struct Script(Mutex<VecDeque<Vec<IpAddr>>>);

impl Script {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }
}

impl Resolver for Script {
    fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let answer = match answers.len() {
            1 => answers.front().cloned(),
            _ => answers.pop_front(),
        };
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

fn client(allowed: &str, answers: &[&[&str]]) -> WebhookClient {
    let settings = WebhookSettings {
        allowed: allowed.parse().unwrap(),
        call_timeout: Duration::from_millis(500),
    };
    // Sat, 21 Nov 2026 08:00:00 GMT
    let now = DateTime::from_timestamp(1_795_248_000, 0).unwrap();
    WebhookClient::with_resolver(&settings, Clock::manual(now), Script::new(answers)).unwrap()
}

async fn post(client: &WebhookClient, url: &str) -> Result<WebhookReply, WebhookFailure> {
    let url = Url::parse(url).unwrap();
    let body = Bytes::from_static(b"{}");
    client.post(&url, HeaderMap::new(), body).await
}

async fn is_refused(client: &WebhookClient, url: &str) -> bool {
    let failure = post(client, url).await.expect_err(url);
    // Neither the URL nor an address is shown to customers.
    assert!(!failure.reason.contains("hook"), "{}", failure.reason);
    failure.refused_address
}

#[tokio::test]
async fn a_name_that_resolves_differently_the_next_time_is_checked_again() {
    // 127.0.0.2 stands for an allowed address, 127.0.0.1 for a forbidden one.
    let good = Receiver::start_at("127.0.0.2:0".parse().unwrap(), Manner::status(200)).await;
    let port = good.address.port();
    let bad = SocketAddr::new("127.0.0.1".parse().unwrap(), port);
    let bad = Receiver::start_at(bad, Manner::status(200)).await;
    let client = client("127.0.0.2", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let url = format!("http://rebound.example:{port}/hook");
    assert_eq!(post(&client, &url).await.unwrap().status, 200);
    assert!(is_refused(&client, &url).await);
    let refused = client.probe(&Url::parse(&url).unwrap()).await;
    assert!(refused.unwrap_err().refused_address);
    assert_eq!(good.methods(), ["POST"]);
    assert!(bad.take().is_empty());
}

#[tokio::test]
async fn only_the_allowed_addresses_of_a_name_are_tried() {
    let good = Receiver::start_at("127.0.0.2:0".parse().unwrap(), Manner::status(200)).await;
    let port = good.address.port();
    let bad = SocketAddr::new("127.0.0.1".parse().unwrap(), port);
    let bad = Receiver::start_at(bad, Manner::status(200)).await;
    let client = client("127.0.0.2", &[&["127.0.0.1", "10.0.0.1", "127.0.0.2"]]);
    let url = format!("http://mixed.example:{port}/hook");
    assert_eq!(post(&client, &url).await.unwrap().status, 200);
    assert_eq!(good.methods(), ["POST"]);
    assert!(bad.take().is_empty());
}

#[tokio::test]
async fn names_that_resolve_to_addresses_that_are_not_public_are_refused() {
    for address in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:7f00:1::1",
        "fd00:ec2::254",
        "fe80::1",
    ] {
        let client = client("", &[&[address]]);
        for name in ["example.com", "metadata.internal", "localhost", "x."] {
            let url = format!("https://{name}/hook");
            assert!(is_refused(&client, &url).await, "{address}");
        }
    }
    // A name that does not resolve is not refused by the guard.
    let client = client("", &[]);
    assert!(!is_refused(&client, "https://nowhere.example/hook").await);
}

#[tokio::test]
async fn plain_http_goes_only_where_the_operator_allows_it() {
    let client = client("127.0.0.2", &[&["8.8.8.8", "2606:4700:4700::1111"]]);
    for url in [
        "http://public.example/hook",
        "http://8.8.8.8/hook",
        "http://[2606:4700:4700::1111]/hook",
        "http://127.0.0.1/hook",
    ] {
        assert!(is_refused(&client, url).await, "{url}");
        assert!(!client.allows_plain(&Url::parse(url).unwrap()).await);
    }
    for url in ["http://127.0.0.2/", "http://[::ffff:127.0.0.2]/"] {
        assert!(client.allows_plain(&Url::parse(url).unwrap()).await);
    }
}

#[tokio::test]
async fn an_address_in_a_url_is_checked_in_any_form() {
    let receiver = Receiver::start(Manner::status(200)).await;
    let port = receiver.address.port();
    // The operator allows another address, so that plain HTTP is possible at all.
    let client = client("127.0.0.2", &[]);
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
    ] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/hook");
            assert!(is_refused(&client, &url).await, "{url}");
        }
    }
    assert!(receiver.take().is_empty());
}

#[tokio::test]
async fn the_beginning_of_an_answer_is_stored_as_text() {
    let flood = format!("a\0{}", "\u{e9}".repeat(1_000_000));
    let receiver = Receiver::start(Manner::Answer(503, "retry-after: 120\r\n", flood)).await;
    let client = client("127.0.0.1", &[]);
    let reply = post(&client, &receiver.url()).await.unwrap();
    assert_eq!((reply.status, reply.is_success()), (503, false));
    assert!(reply.answer.starts_with("a\u{fffd}\u{e9}\u{e9}"));
    assert_eq!(reply.answer.chars().count(), 513);
    assert_eq!(reply.retry_after, Some(Duration::from_secs(120)));
    for (header, wait) in [
        ("retry-after: Sat, 21 Nov 2026 08:01:00 GMT\r\n", Some(60)),
        ("retry-after: Sat, 21 Nov 2026 07:00:00 GMT\r\n", Some(0)),
        ("retry-after: 99999999\r\n", Some(48 * 3_600)),
        ("retry-after: later\r\n", None),
        ("", None),
    ] {
        receiver.behave(Manner::Answer(429, header, String::new()));
        let reply = post(&client, &receiver.url()).await.unwrap();
        assert_eq!(reply.retry_after, wait.map(Duration::from_secs), "{header}");
    }
}

#[tokio::test]
async fn a_call_ends_at_its_timeout() {
    let receiver = Receiver::start(Manner::Silent).await;
    let client = client("127.0.0.1", &[]);
    let failure = post(&client, &receiver.url()).await.unwrap_err();
    assert!(!failure.refused_address);
    assert!(failure.duration >= Duration::from_millis(500));
    assert!(failure.duration < Duration::from_secs(5));
}
