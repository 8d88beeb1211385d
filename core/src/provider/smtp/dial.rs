//! Which addresses may be reached. A customer names the server, and must not reach
//! our own network by it: only public addresses are dialled, and those that the
//! operator allows. What is checked is the address that is really dialled, after
//! the name was looked up, so no name can change its mind in between.

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::account::SmtpServer;
use crate::http::guarded::{Resolver as _, SystemResolver};
use crate::network::guard::AddressGuard;

/// Addresses of one name that are tried, one after the other.
const ADDRESSES_MAX: usize = 4;

/// Names that a process looks up at once.
const LOOK_UPS_MAX: usize = 64;
static RESOLVER: LazyLock<SystemResolver> = LazyLock::new(|| SystemResolver::new(LOOK_UPS_MAX));

/// Why no connection stands.
#[derive(Debug)]
pub(super) enum NoConnection {
    /// The name leads to addresses that may not be reached, and to no others.
    Forbidden,
    /// It could not be looked up or reached.
    Unreachable { reason: String },
}

/// Connects to a server within `wait_max` for each of its addresses. Without a guard
/// any of them: the operator named the server.
pub(super) async fn dial(
    server: &SmtpServer,
    guard: Option<&AddressGuard>,
    wait_max: Duration,
) -> Result<TcpStream, NoConnection> {
    let unreachable = |reason: String| NoConnection::Unreachable { reason };
    let looked_up = timeout(wait_max, RESOLVER.resolve(server.host.as_str()));
    let addresses = match looked_up.await {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return Err(unreachable(format!("the name does not resolve: {error}"))),
        Err(_) => return Err(unreachable("the name was not resolved in time".to_owned())),
    };
    let mut outcome = NoConnection::Forbidden;
    let permits = |address: IpAddr| guard.is_none_or(|guard| guard.permits(address));
    let addresses = addresses.into_iter().filter(|address| permits(*address));
    for address in addresses.take(ADDRESSES_MAX) {
        let address = SocketAddr::new(address, server.port);
        match timeout(wait_max, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Commands are small and waited for.
                let _slower = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => outcome = unreachable(error.to_string()),
            Err(_) => outcome = unreachable("no connection in time".to_owned()),
        }
    }
    Err(outcome)
}
