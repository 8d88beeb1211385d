//! Fetches the files of URLs that customers choose, through the guard of `http::guarded`.
//! A URL has https, or plain http where the operator allows the address. Each redirect is
//! held to the same rules. The answers' own words on their size are not believed: the bytes
//! are counted as they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, LOCATION};
use http::{HeaderMap, HeaderValue, Method};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::byte_budget::{BudgetExceeded, ByteBudget, ReservedBytes};
use super::{Digest, PIECE_BYTES};
use crate::fault::Fault;
use crate::http::guarded::{GuardedClient, GuardedError, OpenReply, Resolver, SystemResolver};
use crate::http::{HttpBody, HttpRequest, HttpSettings};
use crate::network::Networks;
use crate::network::guard::AddressGuard;

/// Redirects that are followed for one file.
const REDIRECTS_MAX: usize = 3;
/// Concurrent DNS look-ups of a process.
const DNS_LOOKUPS_MAX: usize = 64;
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a [`Fetcher`].
#[derive(Debug, Clone)]
pub struct FetcherSettings {
    /// Networks from which files may come although they are not public, also with plain http.
    pub allowed: Networks,
    /// How long the files of one message may take together.
    pub timeout: Duration,
}

/// Fetches files. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Fetcher {
    client: GuardedClient,
    allows_plain: bool,
    timeout: Duration,
}

/// What the files of one message may still take, of time and of bytes.
#[derive(Debug)]
pub(super) struct Allowance {
    deadline: Instant,
    bytes: AtomicU64,
}

/// A fetched file, in memory.
#[derive(Debug)]
pub(super) struct FetchedFile {
    pub(super) digest: Digest,
    /// Each of [`PIECE_BYTES`] but the last.
    pub(super) pieces: Vec<Vec<u8>>,
    _reserved: Vec<ReservedBytes>,
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// As the end of a sentence that begins with the path.
    #[error("{0}")]
    NoFile(String),
    #[error(transparent)]
    Busy(#[from] BudgetExceeded),
}

impl Fetcher {
    /// A fetcher that uses the system's DNS resolver.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up (no root certificates).
    pub fn new(settings: &FetcherSettings) -> Result<Self, Fault> {
        Self::with_resolver(settings, Arc::new(SystemResolver::new(DNS_LOOKUPS_MAX)))
    }

    /// A fetcher with another DNS resolver.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up (no root certificates).
    pub fn with_resolver(
        settings: &FetcherSettings,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, Fault> {
        let http = HttpSettings {
            connect_timeout: CONNECT_TIMEOUT.min(settings.timeout),
            // The allowance of a message ends it before.
            answer_timeout: settings.timeout + Duration::from_secs(1),
            idle_connections_max: 1,
            idle_timeout: Duration::from_secs(5),
            answer_bytes_max: 0,
        };
        let guard = AddressGuard::new(settings.allowed.clone());
        Ok(Self {
            allows_plain: !guard.allows_nothing(),
            client: GuardedClient::new(&http, guard, resolver)?,
            timeout: settings.timeout,
        })
    }

    /// What is wrong with a URL, as the end of a sentence. Its host is not looked up.
    pub(super) fn check(&self, url: &Url) -> Result<(), String> {
        let is_plain = url.scheme() == "http" && self.allows_plain;
        if url.scheme() != "https" && !is_plain {
            return Err("must begin with https://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not contain a user or a password".to_owned());
        }
        Ok(())
    }

    /// The allowance of a message whose files of URLs may have `bytes`.
    pub(super) fn allowance(&self, bytes: u64, latest: Option<Instant>) -> Allowance {
        let deadline = Instant::now() + self.timeout;
        Allowance {
            deadline: latest.map_or(deadline, |latest| latest.min(deadline)),
            bytes: AtomicU64::new(bytes),
        }
    }

    /// Fetches a file.
    pub(super) async fn fetch(
        &self,
        url: Url,
        allowance: &Allowance,
        budget: &ByteBudget,
    ) -> Result<FetchedFile, FetchError> {
        let fetching = async {
            let reply = self.follow(url).await?;
            read(reply, allowance, budget).await
        };
        timeout_at(allowance.deadline, fetching)
            .await
            .unwrap_or_else(|_| no_file("could not be fetched in time"))
    }

    /// The answer at the end of the redirects.
    async fn follow(&self, mut url: Url) -> Result<OpenReply, FetchError> {
        for _ in 0..=REDIRECTS_MAX {
            let request = HttpRequest {
                method: Method::GET,
                url: url.clone(),
                headers: headers(),
                body: HttpBody::Empty,
            };
            let reply = self.client.open(request).await.map_err(not_answered)?;
            match reply.status {
                200 => return Ok(reply),
                301 | 302 | 303 | 307 | 308 => {
                    url = location(&url, &reply.headers)?;
                    if let Err(mistake) = self.check(&url) {
                        return no_file(format!("redirects to a URL that {mistake}"));
                    }
                }
                status => {
                    return no_file(format!("could not be fetched: it answers with {status}"));
                }
            }
        }
        no_file(format!("redirects more than {REDIRECTS_MAX} times"))
    }
}

impl Allowance {
    /// Takes bytes, if they are left.
    fn take(&self, bytes: u64) -> Result<(), FetchError> {
        let left = |left: u64| left.checked_sub(bytes);
        let taken = (self.bytes).fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        match taken {
            Ok(_) => Ok(()),
            Err(_) => no_file("has more bytes than the attachments of a message may have in all"),
        }
    }
}

async fn read(
    mut reply: OpenReply,
    allowance: &Allowance,
    budget: &ByteBudget,
) -> Result<FetchedFile, FetchError> {
    check_head(&reply.headers, allowance)?;
    let mut hasher = Sha256::new();
    let mut size = 0;
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut reserved = Vec::new();
    while let Some(chunk) = reply.chunk().await.map_err(not_answered)? {
        allowance.take(chunk.len() as u64)?;
        hasher.update(&chunk);
        size += chunk.len() as u64;
        let mut rest = &chunk[..];
        while !rest.is_empty() {
            let last = pieces.last_mut().filter(|last| last.len() < PIECE_BYTES);
            let Some(last) = last else {
                reserved.push(budget.reserve(PIECE_BYTES as u64)?);
                pieces.push(Vec::with_capacity(rest.len().min(PIECE_BYTES)));
                continue;
            };
            let (now, later) = rest.split_at(rest.len().min(PIECE_BYTES - last.len()));
            last.extend_from_slice(now);
            rest = later;
        }
    }
    Ok(FetchedFile {
        digest: Digest {
            size,
            sha256: hasher.finalize().into(),
        },
        pieces,
        _reserved: reserved,
    })
}

/// Refuses an answer by its headers.
fn check_head(headers: &HeaderMap, allowance: &Allowance) -> Result<(), FetchError> {
    let coding = headers.get(CONTENT_ENCODING);
    if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return no_file("could not be fetched: it answers with a Content-Encoding");
    }
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > allowance.bytes.load(Ordering::Relaxed)) {
        return no_file("has more bytes than the attachments of a message may have in all");
    }
    Ok(())
}

/// Where an answer redirects to.
fn location(url: &Url, headers: &HeaderMap) -> Result<Url, FetchError> {
    let location = headers.get(LOCATION).and_then(|text| text.to_str().ok());
    match location.map(|text| url.join(text)) {
        Some(Ok(next)) => Ok(next),
        Some(Err(_)) | None => no_file("redirects without a valid Location"),
    }
}

fn headers() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("*/*")),
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ])
}

fn not_answered(error: GuardedError) -> FetchError {
    FetchError::NoFile(match error {
        GuardedError::Refused => "must have a host with a public address".to_owned(),
        GuardedError::NotSent { reason } | GuardedError::Unanswered { reason } => {
            format!("could not be fetched: {reason}")
        }
    })
}

fn no_file<T>(message: impl Into<String>) -> Result<T, FetchError> {
    Err(FetchError::NoFile(message.into()))
}
