//! HTTP to where strangers say: the same client, behind a guard that every address
//! passes before it is dialled.
//!
//! Names are resolved by us and what may not be dialled is taken out of the answer,
//! so the address that was judged is the one that is connected to, whatever the
//! name resolves to a moment later. A URL that holds an address is judged before
//! the call; the `url` crate has brought all its forms (decimal, octal,
//! hexadecimal, shortened) into one by then. HTTPS goes to public addresses and to
//! those that the operator allows; plain HTTP goes to the latter alone, through a
//! client of its own. Redirections are not followed and no proxy is asked, so there
//! is no other way to a connection.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use url::{Host, Url};

use super::{HttpBody, HttpReply, HttpRequest, HttpSettings, builder, describe, form};
use crate::fault::Fault;
use crate::network::guard::AddressGuard;

/// Finds the addresses of a name.
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of `name`.
    ///
    /// # Errors
    /// That it has none, or could not be looked up.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// How long the content of an answer may take: who says yes and then goes on word by
/// word has said yes.
const CONTENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The machine's own resolver, for so many names at once. A look-up holds one of the 512
/// threads (tokio's `max_blocking_threads`) by which all of the process finds names, its
/// servers' too, and a name's own server decides how long.
#[derive(Debug)]
pub struct SystemResolver {
    places: Arc<Semaphore>,
}

impl SystemResolver {
    /// For so many names at once.
    #[must_use]
    pub fn new(look_ups_max: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(look_ups_max)),
        }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let place = Arc::clone(&self.places).acquire_owned().await;
            let name = name.to_owned();
            let looked_up = tokio::task::spawn_blocking(move || {
                // Until the look-up ends, also where nobody waits for it any more.
                let _place = place;
                (name.as_str(), 0).to_socket_addrs()
            });
            let found = looked_up.await.map_err(io::Error::other)??;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A client that dials only what its guard permits. Cheap to clone.
#[derive(Clone)]
pub struct GuardedClient {
    guard: Arc<AddressGuard>,
    resolver: Arc<dyn Resolver>,
    https: reqwest::Client,
    plain: reqwest::Client,
    answer_bytes_max: usize,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardedError {
    /// No address of the host may be dialled.
    #[error("the host has no address that may be called")]
    Refused,
    #[error("the request was not sent: {reason}")]
    NotSent {
        /// What happened; without the URL.
        reason: String,
    },
    /// It may have been sent, and no answer came.
    #[error("no answer came: {reason}")]
    Unanswered {
        /// What happened; without the URL.
        reason: String,
    },
}

impl GuardedClient {
    /// A client with pools of its own. Of every answer's content
    /// `settings.answer_bytes_max` bytes are read, and the rest is left.
    ///
    /// # Errors
    /// A fault when TLS cannot be set up (no root certificates).
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

    /// Sends a request and reads the beginning of the answer. An answer whose
    /// content breaks off is one nevertheless.
    ///
    /// # Errors
    /// See [`GuardedError`].
    pub async fn call(&self, request: HttpRequest) -> Result<HttpReply, GuardedError> {
        let scheme = Scheme::of(&request.url).ok_or(GuardedError::Refused)?;
        if literal(&request.url).is_some_and(|address| !scheme.permits(&self.guard, address)) {
            return Err(GuardedError::Refused);
        }
        let client = match scheme {
            Scheme::Https => &self.https,
            Scheme::Plain => &self.plain,
        };
        let builder = client
            .request(request.method, request.url)
            .headers(request.headers);
        let builder = match request.body {
            HttpBody::Empty => builder,
            HttpBody::Bytes(bytes) => builder.body(bytes),
            HttpBody::Form(fields) => builder.multipart(form(fields)),
        };
        let mut response = builder.send().await.map_err(no_answer)?;
        Ok(HttpReply {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: self.beginning(response).await,
        })
    }

    /// Whether the operator allows an address of the URL's host, and with it plain
    /// HTTP. A name that does not resolve has none.
    pub async fn allows_plain(&self, url: &Url) -> bool {
        // No look-up whose answer is known: names of strangers may take long.
        if self.guard.allows_nothing() {
            return false;
        }
        if let Some(address) = literal(url) {
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

    /// The connection is dropped with the response, where something is left of it.
    async fn beginning(&self, mut response: reqwest::Response) -> Bytes {
        let mut body = BytesMut::new();
        let reading = async {
            while body.len() < self.answer_bytes_max
                && let Ok(Some(chunk)) = response.chunk().await
            {
                body.extend_from_slice(&chunk);
            }
        };
        let _cut_off = tokio::time::timeout(CONTENT_TIMEOUT, reading).await;
        body.truncate(self.answer_bytes_max);
        body.freeze()
    }
}

impl fmt::Debug for GuardedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedClient")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// What a request travels by, which decides where it may go.
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

/// The address that stands in a URL in place of a name.
fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
    }
}

/// Finds the addresses of a name that may be dialled. Where some may and some may
/// not, only those that may are tried.
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
            let is_known = !found.is_empty();
            found.retain(|address| scheme.permits(&guard, *address));
            if found.is_empty() && is_known {
                return Err(AddressRefused.into());
            }
            // The port comes from the URL.
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// All addresses of a name were taken out.
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
