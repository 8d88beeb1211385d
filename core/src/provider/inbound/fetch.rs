//! The requests that verify SNS messages: the signing certificates, and the confirmation of
//! a subscription. Both go to hosts of SNS only (`sns.rs` checks the URLs), over TLS and
//! without redirects. SNS sends no certificate chain, so the host is what makes a
//! certificate trusted. The official validators do the same
//! (aws-php-sns-message-validator, aws-js-sns-message-validator).

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::time::timeout;
use url::Url;
use x509_cert::Certificate as X509;
use x509_cert::der::{DecodePem as _, Encode as _};

use super::InboundRefusal;
use crate::clock::Timestamp;
use crate::provider::ProviderHosts;
use crate::provider::call::{ProviderCall, ProviderReply};
use crate::provider::kind::ProviderType;
use crate::provider::transport::Transport;

/// The longest wait for one reply. SNS gives a post 15 s, and a confirmation needs two
/// replies.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest certificate accepted, in bytes; those of SNS have about 2,000.
const CERTIFICATE_BYTES_MAX: usize = 16 << 10;
/// The most certificates in the cache: SNS has one per region, for about a year.
const CERTIFICATES_MAX: u64 = 256;
/// How long a certificate is cached. Its validity is checked on every use.
const CERTIFICATE_MEMORY: Duration = Duration::from_hours(24);

/// Fetches from SNS. Cheap to clone; clones share the certificate cache.
#[derive(Clone)]
pub struct SnsFetcher {
    transport: Transport,
    endpoints: ProviderHosts,
    certificates: Cache<String, Arc<Certificate>>,
}

/// A signing certificate and its validity, in Unix seconds.
#[derive(Debug)]
pub(super) struct Certificate {
    pub(super) public_key: Vec<u8>,
    not_before_s: u64,
    not_after_s: u64,
}

impl std::fmt::Debug for SnsFetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SnsFetcher")
    }
}

impl SnsFetcher {
    /// Fetches through `transport`. If `endpoints` overrides the host of SES, requests to
    /// SNS go there with the same path and query; URLs are checked as they were sent.
    #[must_use]
    pub fn new(transport: Transport, endpoints: ProviderHosts) -> Self {
        let certificates = Cache::builder()
            .max_capacity(CERTIFICATES_MAX)
            .time_to_live(CERTIFICATE_MEMORY)
            .build();
        Self {
            transport,
            endpoints,
            certificates,
        }
    }

    /// The certificate at a URL that was checked to be one of SNS. Concurrent callers for
    /// the same URL share one request; a failure is not cached.
    pub(super) async fn certificate(&self, url: &Url) -> Result<Arc<Certificate>, InboundRefusal> {
        let fetched = self
            .certificates
            .try_get_with(url.as_str().to_owned(), self.fetch_certificate(url));
        fetched.await.map_err(|refused| (*refused).clone())
    }

    async fn fetch_certificate(&self, url: &Url) -> Result<Arc<Certificate>, InboundRefusal> {
        let reply = self.get(url, "the certificate").await?;
        match reply.status {
            200 => Certificate::parse(&reply.body)
                .map(Arc::new)
                .ok_or_else(|| unavailable("what was fetched for the certificate is none")),
            400 | 403 | 404 | 410 => {
                Err(InboundRefusal::unverified("its certificate does not exist"))
            }
            status => Err(unavailable(&format!(
                "the certificate was answered {status}"
            ))),
        }
    }

    /// Confirms a subscription at a URL that was checked to be one of SNS.
    pub(super) async fn confirm(&self, url: &Url) -> Result<(), InboundRefusal> {
        let reply = self.get(url, "the confirmation").await?;
        match reply.status {
            200 => Ok(()),
            status => Err(unavailable(&format!(
                "the confirmation of the subscription was answered {status}"
            ))),
        }
    }

    async fn get(&self, url: &Url, what: &str) -> Result<ProviderReply, InboundRefusal> {
        let base = self
            .endpoints
            .base(ProviderType::Ses, url.host_str().unwrap_or_default());
        let target = match url.query() {
            Some(query) => base.query(url.path(), query),
            None => base.at(url.path()),
        };
        let reply = timeout(
            FETCH_TIMEOUT,
            self.transport.call(ProviderCall::get(target)),
        );
        match reply.await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(unavailable(&format!(
                "{what} could not be fetched: {error}"
            ))),
            Err(_) => Err(unavailable(&format!(
                "{what} did not come within {} s",
                FETCH_TIMEOUT.as_secs()
            ))),
        }
    }
}

impl Certificate {
    /// Reads a PEM file with one certificate.
    fn parse(pem: &[u8]) -> Option<Self> {
        if pem.len() > CERTIFICATE_BYTES_MAX {
            return None;
        }
        Self::of(&X509::from_pem(pem).ok()?)
    }

    fn of(certificate: &X509) -> Option<Self> {
        let content = certificate.tbs_certificate();
        let validity = content.validity();
        Some(Self {
            public_key: content.subject_public_key_info().to_der().ok()?,
            not_before_s: validity.not_before.to_unix_duration().as_secs(),
            not_after_s: validity.not_after.to_unix_duration().as_secs(),
        })
    }

    /// Whether the certificate is valid at this time.
    pub(super) fn is_valid_at(&self, now: Timestamp) -> bool {
        u64::try_from(now.timestamp())
            .is_ok_and(|now_s| (self.not_before_s..=self.not_after_s).contains(&now_s))
    }
}

/// Reads fuzzed bytes: PEM, else DER, which a fuzzer would hardly find through Base64.
#[cfg(fuzzing)]
pub(super) fn read_any_certificate(bytes: &[u8]) {
    use x509_cert::der::Decode as _;
    let certificate = Certificate::parse(bytes).or_else(|| {
        X509::from_der(bytes)
            .ok()
            .and_then(|read| Certificate::of(&read))
    });
    if let Some(certificate) = certificate {
        let _valid = certificate.is_valid_at(Timestamp::default());
    }
}

fn unavailable(why: &str) -> InboundRefusal {
    InboundRefusal::Unavailable {
        why: why.to_owned(),
    }
}
