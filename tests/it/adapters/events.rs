//! Posts in the providers' names: every published signature is verified or refused as its
//! label says, and genuine posts are read. Every kind of wrong post is refused with its own
//! reason.

mod mailgun;
mod postmark;
mod sendgrid;
mod sns;

use chrono::{DateTime, TimeDelta};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;
use waypost_core::clock::Timestamp;
use waypost_core::provider::ProviderHosts;
use waypost_core::provider::event::{ProviderEvent, ProviderEventKind};
use waypost_core::provider::event_secrets::EventSecrets;
use waypost_core::provider::inbound::{Inbound, InboundRefusal, Received, SnsFetcher, receive};
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::secret::Secret;

use super::documents::{shared, shared_bytes};
use super::now;

/// A fetcher that fetches everything from `base`.
fn fetcher_at(base: &Url) -> SnsFetcher {
    let transport = Transport::new(&TransportSettings::default()).unwrap();
    SnsFetcher::new(transport, ProviderHosts::all_at(base))
}

/// A fetcher that reaches no host.
fn no_fetcher() -> SnsFetcher {
    fetcher_at(&Url::parse("http://127.0.0.1:9").unwrap())
}

fn kind_of(secrets: &EventSecrets) -> ProviderType {
    match secrets {
        EventSecrets::Sendgrid { .. } => ProviderType::Sendgrid,
        EventSecrets::Postmark { .. } => ProviderType::Postmark,
        EventSecrets::Mailgun { .. } => ProviderType::Mailgun,
        EventSecrets::Ses { .. } => ProviderType::Ses,
    }
}

/// Receives a post whose verification needs no fetch.
async fn posted(
    secrets: &EventSecrets,
    headers: &[(&str, &str)],
    body: &[u8],
    now: Timestamp,
) -> Result<Received, InboundRefusal> {
    let headers = headers_of(headers);
    let inbound = Inbound {
        headers: &headers,
        body,
        now,
    };
    receive(kind_of(secrets), secrets, &inbound, &no_fetcher()).await
}

fn headers_of(headers: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    map
}

fn at(seconds: i64) -> Timestamp {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

/// The reason why it was not verified.
fn unverified(result: Result<Received, InboundRefusal>) -> &'static str {
    match result {
        Err(InboundRefusal::Unverified { why }) => why,
        other => panic!("{other:?}"),
    }
}

fn kinds(events: &[ProviderEvent]) -> Vec<ProviderEventKind> {
    events.iter().map(|event| event.kind).collect()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} of {value}"))
}

#[tokio::test]
async fn nothing_is_verified_with_another_providers_secrets() {
    let secrets = EventSecrets::Mailgun {
        signing_key: Secret::from("key"),
    };
    let headers = HeaderMap::new();
    let inbound = Inbound {
        headers: &headers,
        body: b"{}",
        now: now(),
    };
    for kind in ProviderType::ALL {
        let result = receive(kind, &secrets, &inbound, &no_fetcher()).await;
        unverified(result);
    }
}
