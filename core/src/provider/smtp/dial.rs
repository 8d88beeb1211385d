//! Connects to mail servers. A customer names the server and must not reach our own
//! network through it: only public addresses are connected to, and those that the operator
//! allows. The check applies to the resolved address that is connected to, so a name
//! cannot change between check and connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::account::SmtpServer;
use crate::http::guarded::{Resolver as _, SystemResolver};
use crate::network::guard::AddressGuard;

/// The most addresses of one name that are tried, one after the other.
const ADDRESSES_MAX: usize = 4;

/// The most name look-ups of a process at once.
const LOOKUPS_MAX: usize = 64;
static RESOLVER: LazyLock<SystemResolver> = LazyLock::new(|| SystemResolver::new(LOOKUPS_MAX));

/// Why no connection could be made.
#[derive(Debug)]
pub(super) enum DialError {
    /// The name resolves only to addresses that are not allowed.
    Forbidden,
    /// The name did not resolve, or no address accepted the connection.
    Unreachable { reason: String },
}

/// Connects to a server, waiting at most `wait_max` for each of its addresses. Without a
/// guard every address is allowed: the operator named the server.
pub(super) async fn dial(
    server: &SmtpServer,
    guard: Option<&AddressGuard>,
    wait_max: Duration,
) -> Result<TcpStream, DialError> {
    let unreachable = |reason: String| DialError::Unreachable { reason };
    let resolved = timeout(wait_max, RESOLVER.resolve(server.host.as_str()));
    let addresses = match resolved.await {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return Err(unreachable(format!("the name does not resolve: {error}"))),
        Err(_) => return Err(unreachable("the name was not resolved in time".to_owned())),
    };
    let mut outcome = DialError::Forbidden;
    let permits = |address: IpAddr| guard.is_none_or(|guard| guard.permits(address));
    let addresses = addresses.into_iter().filter(|address| permits(*address));
    for address in addresses.take(ADDRESSES_MAX) {
        let address = SocketAddr::new(address, server.port);
        match timeout(wait_max, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Commands are small, and each waits for its reply.
                let _slower = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => outcome = unreachable(error.to_string()),
            Err(_) => outcome = unreachable("no connection in time".to_owned()),
        }
    }
    Err(outcome)
}
