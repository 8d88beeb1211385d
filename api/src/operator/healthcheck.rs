//! `waypost-api healthcheck`: whether the API on this machine responds.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use waypost_core::config::Settings;

use super::CommandError;

/// The time limit of the health check.
const HEALTHCHECK_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn healthcheck(settings: &Settings) -> Result<(), CommandError> {
    let mut address: SocketAddr = settings.api.listen;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let response = request_health(&address).map_err(|error| {
        format!("the API does not respond at {address} ({error}): is it running, and is WAYPOST_LISTEN right?")
    })?;
    if &response == b"HTTP/1.1 200" {
        Ok(())
    } else {
        Err(format!("the server at {address} did not respond with 200: is it the API, and is WAYPOST_LISTEN right?").into())
    }
}

/// The first bytes of the response: the version and the status.
fn request_health(address: &SocketAddr) -> std::io::Result<[u8; 12]> {
    let mut stream = TcpStream::connect_timeout(address, HEALTHCHECK_TIMEOUT)?;
    stream.set_read_timeout(Some(HEALTHCHECK_TIMEOUT))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = [0; 12];
    stream.read_exact(&mut response)?;
    Ok(response)
}
