//! HTTP to URLs that customers choose (SSRF protection): a client that checks every address
//! with an [`AddressGuard`] before it connects.
//!
//! The client resolves names itself and removes forbidden addresses from the result, so it
//! connects to exactly the addresses that it checked, whatever the name resolves to later. A
//! URL with an address instead of a name is checked before the call; the `url` crate has
//! normalized its forms (decimal, octal, hexadecimal, shortened). HTTPS may go to public
//! addresses and to those that the operator allows; plain HTTP, which has a client of its own,
//! only to the latter. The client follows no redirects and uses no proxy, so there is no other
//! way to open a connection.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::HeaderMap;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use url::{Host, Url};

use super::{HttpReply, HttpRequest, HttpSettings, builder, describe, with_body};
use crate::fault::Fault;
use crate::network::guard::AddressGuard;

/// Resolves names to addresses.
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of `name`.
    ///
    /// # Errors
    /// The name has no addresses or could not be resolved.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// How long reading the body of a response may take. A slow body does not change the status.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// The resolver of the system, with a limit on simultaneous look-ups. A look-up occupies one of
/// the 512 threads (tokio's `max_blocking_threads`) that the whole process uses to resolve
/// names, and the DNS server of the name decides for how long.
#[derive(Debug)]
pub struct SystemResolver {
    permits: Arc<Semaphore>,
}

impl SystemResolver {
    /// Allows `lookups_max` look-ups at once.
    #[must_use]
    pub fn new(lookups_max: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(lookups_max)),
        }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let name = name.to_owned();
            let looked_up = tokio::task::spawn_blocking(move || {
                // Held until the look-up ends, even if the caller is gone.
                let _permit = permit;
                (name.as_str(), 0).to_socket_addrs()
            });
            let found = looked_up.await.map_err(io::Error::other)??;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A client that connects only to addresses that its guard permits. Cheap to clone.
#[derive(Clone)]
pub struct GuardedClient {
    guard: Arc<AddressGuard>,
    resolver: Arc<dyn Resolver>,
    https: reqwest::Client,
    plain: reqwest::Client,
    answer_bytes_max: usize,
}

/// Why there is no response. The reasons never contain the URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardedError {
    /// The guard permits no address of the host.
    #[error("the host has no address that may be called")]
    Refused,
    #[error("the request was not sent: {reason}")]
    NotSent { reason: String },
    /// The request may have been sent, and there was no response.
    #[error("no answer came: {reason}")]
    Unanswered { reason: String },
}

impl GuardedClient {
    /// A client with connection pools of its own. It reads `settings.answer_bytes_max` bytes
    /// of a response body and ignores the rest.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up (no root certificates).
    pub fn new(
        settings: &HttpSettings,
        guard: AddressGuard,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, Fault> {
        let guard = Arc::new(guard);
        let client = |scheme: Scheme| {
            let resolver = GuardedResolver {
                guard: Arc::clone(&guard),
                resolver: Arc::clone(&resolver),
                scheme,
            };
            builder(settings)
                .dns_resolver(resolver)
                .build()
                .map_err(|error| Fault::internal("set up the HTTP client", error))
        };
        Ok(Self {
            https: client(Scheme::Https)?,
            plain: client(Scheme::Plain)?,
            answer_bytes_max: settings.answer_bytes_max,
            guard,
            resolver,
        })
    }

    /// Sends a request and reads the beginning of the response. A response whose body breaks
    /// off is not an error.
    ///
    /// # Errors
    /// See [`GuardedError`].
    pub async fn call(&self, request: HttpRequest) -> Result<HttpReply, GuardedError> {
        let mut response = self.send(request).await?;
        Ok(HttpReply {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: self.read_limited(response).await,
        })
    }

    /// Sends a request. The caller reads the body of the response and limits it: the size is
    /// not limited here.
    ///
    /// # Errors
    /// See [`GuardedError`].
    pub async fn open(&self, request: HttpRequest) -> Result<OpenReply, GuardedError> {
        let mut response = self.send(request).await?;
        Ok(OpenReply {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            response,
        })
    }

    async fn send(&self, request: HttpRequest) -> Result<reqwest::Response, GuardedError> {
        let scheme = Scheme::of(&request.url).ok_or(GuardedError::Refused)?;
        if literal_address(&request.url)
            .is_some_and(|address| !scheme.permits(&self.guard, address))
        {
            return Err(GuardedError::Refused);
        }
        let client = match scheme {
            Scheme::Https => &self.https,
            Scheme::Plain => &self.plain,
        };
        let builder = client
            .request(request.method, request.url)
            .headers(request.headers);
        let builder = with_body(builder, request.body);
        builder.send().await.map_err(no_answer)
    }

    /// Whether the operator allows an address of the URL's host, and therefore plain HTTP.
    /// False if the name does not resolve.
    pub async fn allows_plain(&self, url: &Url) -> bool {
        // Saves a look-up, which may be slow.
        if self.guard.allows_nothing() {
            return false;
        }
        if let Some(address) = literal_address(url) {
            return self.guard.is_allowed(address);
        }
        let Some(Host::Domain(name)) = url.host() else {
            return false;
        };
        let addresses = self.resolver.resolve(name).await.unwrap_or_default();
        addresses
            .into_iter()
            .any(|address| self.guard.is_allowed(address))
    }

    /// Reads the beginning of the body. If some of it is left, the connection is closed with
    /// the response.
    async fn read_limited(&self, mut response: reqwest::Response) -> Bytes {
        let mut body = BytesMut::new();
        let reading = async {
            while body.len() < self.answer_bytes_max
                && let Ok(Some(chunk)) = response.chunk().await
            {
                body.extend_from_slice(&chunk);
            }
        };
        let _cut_off = tokio::time::timeout(BODY_TIMEOUT, reading).await;
        body.truncate(self.answer_bytes_max);
        body.freeze()
    }
}

/// A response whose body is not read yet.
#[derive(Debug)]
pub struct OpenReply {
    pub status: u16,
    pub headers: HeaderMap,
    response: reqwest::Response,
}

impl OpenReply {
    /// The next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// The body broke off, or the time is over.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, GuardedError> {
        self.response.chunk().await.map_err(no_answer)
    }
}

impl fmt::Debug for GuardedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedClient")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// The scheme of a request, on which the permitted addresses depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Https,
    Plain,
}

impl Scheme {
    fn of(url: &Url) -> Option<Self> {
        match url.scheme() {
            "https" => Some(Self::Https),
            "http" => Some(Self::Plain),
            _ => None,
        }
    }

    fn permits(self, guard: &AddressGuard, address: IpAddr) -> bool {
        match self {
            Self::Https => guard.permits(address),
            Self::Plain => guard.is_allowed(address),
        }
    }
}

/// The address in a URL without a host name.
fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
    }
}

/// Resolves a name to its permitted addresses. Forbidden addresses are removed.
struct GuardedResolver {
    guard: Arc<AddressGuard>,
    resolver: Arc<dyn Resolver>,
    scheme: Scheme,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, resolver) = (Arc::clone(&self.guard), Arc::clone(&self.resolver));
        let scheme = self.scheme;
        Box::pin(async move {
            let mut found = resolver.resolve(name.as_str()).await?;
            let has_addresses = !found.is_empty();
            found.retain(|address| scheme.permits(&guard, *address));
            if found.is_empty() && has_addresses {
                return Err(AddressRefused.into());
            }
            // The library takes the port from the URL.
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// None of the addresses of a name is permitted.
#[derive(Debug, thiserror::Error)]
#[error("the name has no address that may be called")]
struct AddressRefused;

fn no_answer(error: reqwest::Error) -> GuardedError {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(error) = cause {
        if error.is::<AddressRefused>() {
            return GuardedError::Refused;
        }
        cause = error.source();
    }
    let is_unsent = error.is_connect() || error.is_builder();
    let reason = describe(error);
    if is_unsent {
        GuardedError::NotSent { reason }
    } else {
        GuardedError::Unanswered { reason }
    }
}
